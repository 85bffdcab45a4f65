"""Feeds: price lists fetched from an address every so many hours. What is new in them becomes an import."""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone, translation

from catalog.importers import jobs
from catalog.importers.download import Downloaded, DownloadLimits, DownloadRefused, download
from catalog.importers.errors import ImportRefused
from catalog.models import Feed

SECONDS = 60.0
LEASE = timedelta(seconds=5 * SECONDS)
FIRST_WAIT = timedelta(minutes=5)


def due() -> list[int]:
    """Feeds whose time has come and that no worker is fetching."""
    now = timezone.now()
    return list(Feed.objects.filter(_is_due(now), _is_free(), enabled=True).values_list("pk", flat=True))


def fetch(feed_id: int) -> None:
    """Fetch the feed if it is due and nobody else does; a file that differs from the last one becomes an import.

    What goes wrong is a sentence in ``last_problem``; then the wait doubles with each try, up to the feed's interval.
    """
    now = timezone.now()
    mine = Feed.objects.filter(_is_due(now), _is_free(), pk=feed_id, enabled=True)
    if not mine.update(lease_until=Now() + LEASE):
        return
    feed = Feed.objects.select_related("provider").get(pk=feed_id)
    try:
        with tempfile.TemporaryDirectory() as folder:
            _import(feed, _downloaded(feed, Path(folder)))
    except (DownloadRefused, ImportRefused) as refusal:
        _failed(feed, refusal, now)
    except BaseException:
        Feed.objects.filter(pk=feed.pk).update(lease_until=None, next_at=now + FIRST_WAIT)
        raise
    else:
        Feed.objects.filter(pk=feed.pk).update(
            etag=feed.etag[:200],
            sha256=feed.sha256,
            fetched_at=now,
            next_at=now + timedelta(hours=feed.every_hours),
            last_problem="",
            lease_until=None,
        )


def _is_due(now: datetime) -> Q:
    return Q(next_at__isnull=True) | Q(next_at__lte=now)


def _is_free() -> Q:
    return Q(lease_until__isnull=True) | Q(lease_until__lt=Now())


def _downloaded(feed: Feed, folder: Path) -> Downloaded:
    limits = DownloadLimits(bytes=settings.IMPORT_MAX_BYTES, seconds=SECONDS)
    return download(feed.url, to=folder / "list", etag=feed.etag, limits=limits)


def _import(feed: Feed, answer: Downloaded) -> None:
    if answer.not_modified:
        return
    if answer.path is not None and answer.sha256 != feed.sha256:
        with answer.path.open("rb") as file:
            jobs.start_import(
                file=file,
                file_name=urlsplit(feed.url).path.rpartition("/")[2] or feed.name,
                list_format=feed.list_format,
                table=feed.table,
                provider=feed.provider,
                source=feed.source or feed.url,
                source_licence=feed.source_licence,
                observed_on=timezone.now().date(),
                feed=feed,
            )
    feed.etag, feed.sha256 = answer.etag, answer.sha256


def _failed(feed: Feed, refusal: Exception, now: datetime) -> None:
    with translation.override("en"):
        sentence = str(refusal)
    Feed.objects.filter(pk=feed.pk).update(
        last_problem=sentence[:300], next_at=now + _wait(feed, now), lease_until=None
    )


def _wait(feed: Feed, now: datetime) -> timedelta:
    """As long as the feed has been overdue, so that each wait is twice the one before."""
    interval = timedelta(hours=feed.every_hours)
    overdue = now - (feed.fetched_at + interval) if feed.fetched_at else interval
    return min(max(overdue, FIRST_WAIT), interval)
