"""What of the catalog nobody has confirmed for long. Each function makes one query."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count, Max, Min, Q

from catalog.models import Feed, Offer, Server
from catalog.models.offer import OfferStatus

OVERDUE = 2
"""A feed is late once it has missed this many of its intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleOffers:
    """Live offers of one provider that their source was last seen to print between ``oldest`` and ``newest``."""

    source: str
    provider: str
    count: int
    oldest: date
    newest: date


@dataclass(frozen=True, slots=True, kw_only=True)
class LateFeed:
    """``fetched_at``: None where it never was."""

    name: str
    every_hours: int
    fetched_at: datetime | None
    last_problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiredServer:
    """A server that is no longer rented out, says one of its offers, and that others still count as live."""

    server: str
    live: int
    retired: int


def stale_offers(*, today: date, days: int) -> list[StaleOffers]:
    """Live offers not seen for more than ``days``, by source and provider."""
    found = Offer.objects.filter(status=OfferStatus.LIVE, last_seen_on__lt=today - timedelta(days=days))
    groups = found.order_by("source", "server__provider__key").values_list("source", "server__provider__key")
    counted = groups.annotate(Count("pk"), Min("last_seen_on"), Max("last_seen_on"))
    return [
        StaleOffers(source=source, provider=provider, count=count, oldest=oldest, newest=newest)
        for source, provider, count, oldest, newest in counted
    ]


def late_feeds(*, now: datetime) -> list[LateFeed]:
    """Enabled feeds that were not fetched in twice their interval."""
    late = [feed for feed in Feed.objects.filter(enabled=True).order_by("name") if _is_late(feed, now)]
    return [
        LateFeed(
            name=feed.name,
            every_hours=feed.every_hours,
            fetched_at=feed.fetched_at,
            last_problem=feed.last_problem,
        )
        for feed in late
    ]


def retired_servers() -> list[RetiredServer]:
    """Servers with retired and with live offers."""
    live = Count("offers", filter=Q(offers__status=OfferStatus.LIVE))
    retired = Count("offers", filter=Q(offers__status=OfferStatus.RETIRED))
    found = Server.objects.annotate(live=live, retired=retired).filter(live__gt=0, retired__gt=0)
    rows = found.order_by("provider__key", "sku").values_list("provider__key", "sku", "live", "retired")
    return [
        RetiredServer(server=f"{provider}/{sku}", live=live, retired=retired) for provider, sku, live, retired in rows
    ]


def _is_late(feed: Feed, now: datetime) -> bool:
    return feed.fetched_at is None or feed.fetched_at < now - OVERDUE * timedelta(hours=feed.every_hours)
