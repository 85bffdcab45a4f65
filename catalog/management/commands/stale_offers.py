"""Say what of the catalog should be looked up again."""

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict

from django.core.management.base import BaseCommand
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone

from catalog.staleness import LateFeed, RetiredServer, StaleOffers, late_feeds, retired_servers, stale_offers


class Command(BaseCommand):
    help = "Lists live offers that were not seen for long, feeds that were not fetched, and contradictions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=int, default=90, help="not seen for more than so many days (default: 90)")
        parser.add_argument("--json", action="store_true", dest="as_json", help="as JSON instead of text")

    def handle(self, *, days: int, as_json: bool, **options: object) -> None:
        now = timezone.now()
        offers = stale_offers(today=now.date(), days=days)
        feeds, servers = late_feeds(now=now), retired_servers()
        if as_json:
            found = {"days": days, "offers": offers, "feeds": feeds, "retired_servers": servers}
            self.stdout.write(json.dumps(found, default=_plain, indent=2))
            return
        self._section(f"{sum(group.count for group in offers)} live offers not seen for more than {days} days", offers)
        self._section(f"{len(feeds)} feeds not fetched in twice their interval", feeds)
        self._section(f"{len(servers)} servers with retired and with live offers", servers)

    def _section(self, title: str, entries: Sequence[StaleOffers | LateFeed | RetiredServer]) -> None:
        self.stdout.write(f"{title}{':' if entries else '.'}")
        for entry in entries:
            self.stdout.write(f"  {_line(entry)}")


def _line(entry: StaleOffers | LateFeed | RetiredServer) -> str:
    if isinstance(entry, StaleOffers):
        seen = f"{entry.oldest}" if entry.oldest == entry.newest else f"{entry.oldest} to {entry.newest}"
        return f"{entry.provider}: {entry.count} last seen {seen}; {entry.source}"
    if isinstance(entry, LateFeed):
        fetched = f"{entry.fetched_at:%Y-%m-%d %H:%M}" if entry.fetched_at else "never"
        problem = f"; {entry.last_problem}" if entry.last_problem else ""
        return f"{entry.name}: every {entry.every_hours} hours, last fetched {fetched}{problem}"
    return f"{entry.server}: {entry.live} live, {entry.retired} retired"


def _plain(value: object) -> object:
    if isinstance(value, StaleOffers | LateFeed | RetiredServer):
        return asdict(value)
    return DjangoJSONEncoder().default(value)
