"""What should be looked up again."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from catalog.loading import load_catalog
from catalog.models import Feed, Offer
from catalog.staleness import late_feeds, stale_offers

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def feed(name: str, fetched_at: datetime | None, **values: object) -> Feed:
    return Feed.objects.create(name=name, url="https://x.org/a.csv", list_format="own", fetched_at=fetched_at, **values)


def test_live_offers_are_counted_by_source_and_provider(small):
    load_catalog(small)
    Offer.objects.update(last_seen_on=date(2026, 11, 1), status="live")
    of_aws = Offer.objects.filter(server__provider__key="aws")[:3]
    for offer, day in zip(of_aws, (1, 9, 20), strict=True):
        Offer.objects.filter(pk=offer.pk).update(last_seen_on=date(2026, 10, day), source="old")
    (group,) = stale_offers(today=NOW.date(), days=49)
    assert (group.source, group.provider, group.count) == ("old", "aws", 2)
    assert (group.oldest, group.newest) == (date(2026, 10, 1), date(2026, 10, 9))


def test_a_feed_is_late_after_two_intervals():
    feed("late", datetime(2026, 11, 28, 11, tzinfo=UTC))
    feed("in time", datetime(2026, 11, 28, 13, tzinfo=UTC))
    feed("never", None)
    feed("off", None, enabled=False)
    assert [found.name for found in late_feeds(now=NOW)] == ["late", "never"]


def test_the_command_says_the_same_in_text_and_in_json(small, capsys):
    load_catalog(small)
    yesterday = timezone.now().date() - timedelta(days=1)
    Offer.objects.update(status="live", last_seen_on=yesterday)
    Offer.objects.filter(pk=Offer.objects.filter(server__sku="p4d.24xlarge").first().pk).update(status="retired")
    feed("list", None, last_problem="not found")
    call_command("stale_offers")
    text = capsys.readouterr().out
    assert "0 live offers not seen for more than 90 days." in text
    assert "  list: every 24 hours, last fetched never; not found" in text
    assert "  aws/p4d.24xlarge: " in text
    call_command("stale_offers", days=0, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["offers"][0]["newest"] == yesterday.isoformat()
    assert found["retired_servers"][0]["retired"] == 1
    assert found["feeds"][0]["fetched_at"] is None
