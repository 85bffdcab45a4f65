"""Feeds: what is fetched when, what becomes an import, and what happens when a source does not answer."""

from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from django.utils import timezone

from catalog.importers import feeds, jobs
from catalog.importers.download import Downloaded, DownloadLimits, DownloadRefused
from catalog.loading import load_catalog
from catalog.models import Feed, ImportJob, Offer, Provider
from tests.catalog.lists import SOURCE, row, sky, work

pytestmark = pytest.mark.django_db

Answer = Callable[[], bytes | None]


@pytest.fixture
def feed(small: Path) -> Feed:
    load_catalog(small)
    return Feed.objects.create(
        name="AWS",
        url="https://example.com/catalogs/vms.csv?raw=1",
        list_format="skypilot",
        provider=Provider.objects.get(key="aws"),
        source=SOURCE,
        source_licence="MIT",
        every_hours=8,
        apply_alone=True,
    )


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Puts an answer in the place of the internet: bytes, None for "not modified", or a refusal."""

    def answer(with_: object) -> None:
        def download(url: str, *, to: Path, etag: str, limits: DownloadLimits) -> Downloaded:
            if isinstance(with_, DownloadRefused):
                raise with_
            if with_ is None:
                return Downloaded(path=None, sha256="", size=0, etag=etag, not_modified=True)
            to.write_bytes(with_)
            return Downloaded(path=to, sha256=sha256(with_).hexdigest(), size=len(with_), etag='"1"')

        monkeypatch.setattr(feeds, "download", download)

    return answer


def fetch(feed: Feed) -> list[ImportJob]:
    """Fetches now, and plays the workers; the imports so far, newest first."""
    Feed.objects.filter(pk=feed.pk).update(next_at=None)
    feeds.fetch(feed.pk)
    for job in ImportJob.objects.exclude(status__in=["applied", "waiting", "unchanged"]):
        work(work(job))
    feed.refresh_from_db()
    return list(ImportJob.objects.order_by("-created_at"))


def test_the_first_list_waits_for_a_person_the_next_goes_in_alone(feed: Feed, internet: Callable) -> None:
    internet(sky(*(row(region=f"r{n}") for n in range(9))))
    (first,) = fetch(feed)
    assert (first.status, first.file_name, first.feed) == ("waiting", "vms.csv", feed)
    assert feed.next_at == feed.fetched_at + timedelta(hours=8)
    jobs.approve(first, None)
    work(first)

    internet(sky(row(price="6", region="r0"), *(row(region=f"r{n}") for n in range(1, 9))))
    second = fetch(feed)[0]

    assert (second.status, second.decided_by, second.report["counts"]["changed"]) == ("applied", None, 1)
    assert Offer.objects.get(source=SOURCE, price_per_hour=6).source_url == feed.url


def test_a_list_with_something_held_back_waits_for_a_person(feed: Feed, internet: Callable) -> None:
    internet(sky(row()))
    jobs.approve(fetch(feed)[0], None)
    work(ImportJob.objects.get())

    internet(sky(row(), row(region="r1", price="900")))

    assert fetch(feed)[0].status == "waiting"


def test_a_feed_that_may_not_apply_alone_always_asks(feed: Feed, internet: Callable) -> None:
    internet(sky(row()))
    jobs.approve(fetch(feed)[0], None)
    work(ImportJob.objects.get())
    Feed.objects.update(apply_alone=False)

    internet(sky(row(price="6")))

    assert fetch(feed)[0].status == "waiting"


@pytest.mark.parametrize("again", [sky(row()), None], ids=["same bytes", "not modified"])
def test_what_has_not_changed_makes_no_import(feed: Feed, internet: Callable, again: bytes | None) -> None:
    internet(sky(row()))
    fetch(feed)

    internet(again)

    assert len(fetch(feed)) == 1
    assert feed.last_problem == ""


def test_a_problem_is_kept_as_a_sentence_and_the_wait_doubles(feed: Feed, internet: Callable) -> None:
    Feed.objects.update(fetched_at=timezone.now() - timedelta(hours=9))
    internet(DownloadRefused("status", host="example.com", status=404))

    assert fetch(feed) == []
    assert "example.com" in feed.last_problem
    assert timedelta(minutes=58) < feed.next_at - timezone.now() < timedelta(minutes=61)
    internet(sky(row()))
    fetch(feed)
    assert feed.last_problem == ""


def test_two_workers_do_not_fetch_the_same_feed(feed: Feed, internet: Callable) -> None:
    assert feeds.due() == [feed.pk]
    Feed.objects.update(lease_until=timezone.now() + timedelta(minutes=1))
    internet(sky(row()))

    assert fetch(feed) == []
    assert feeds.due() == []
    Feed.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert feeds.due() == [feed.pk]


def test_disabled_and_early_feeds_are_left_alone(feed: Feed) -> None:
    Feed.objects.update(next_at=timezone.now() + timedelta(hours=1))
    assert feeds.due() == []
    Feed.objects.update(next_at=None, enabled=False)
    assert feeds.due() == []


def test_a_feed_that_lacks_its_licence_says_so(feed: Feed, internet: Callable) -> None:
    Feed.objects.update(source_licence="")
    internet(sky(row()))

    assert fetch(feed) == []
    assert "licence" in feed.last_problem
