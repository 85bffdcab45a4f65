"""What waits for an editor: unknown names, held-back prices, feeds."""

import socket
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse
from django.utils import timezone

from catalog.groups import EDITOR, PUBLISHER
from catalog.models import Accelerator, Feed, Offer, PrintedName, Provider, Server
from catalog.models.offer import OfferStatus
from catalog.models.printed_name import NameState
from tests.catalog.import_support import (
    HELD_BACK,
    LIST,
    text,
    with_one_held_back,
)
from tests.catalog.lists import SOURCE, imported, row, sky, start

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.catalog.urls"),
    pytest.mark.usefixtures("shipped", "uploads"),
]


def test_a_suggestion_settles_a_name_and_its_servers(publisher):
    imported(sky(row(sku="p9.x", card="RTX6000", count="1", price="3")))
    name = PrintedName.objects.get()
    assert name.suggestions == ["rtx-6000-ada"]
    listed = publisher.get(reverse("admin:catalog_printedname_changelist")).content.decode()
    address = reverse("admin:catalog_printedname_decide", args=[name.pk])
    assert f'formaction="{address}"' in listed
    page = text(publisher.get(reverse("admin:catalog_printedname_change", args=[name.pk])))
    assert "1 server with 1 offers stands in the catalog under this name." in page

    said = text(publisher.post(address, {"accelerator": "rtx-6000-ada"}, follow=True))
    assert "1 server now has it" in said
    assert Server.objects.get(sku="p9.x").accelerator.key == "rtx-6000-ada"
    assert "Somebody has already decided" in text(publisher.post(address, {"none": "1"}, follow=True))
    publisher.post(address, {"reopen": "1"})
    name.refresh_from_db()
    assert name.state == NameState.OPEN


def test_another_accelerator_can_be_chosen_and_nonsense_is_refused(publisher):
    name = PrintedName.objects.create(provider="aws", name="A100 SXM", normalised="A100")
    address = reverse("admin:catalog_printedname_decide", args=[name.pk])
    for nonsense in ({}, {"accelerator": "no-such"}, {"other": "999999"}, {"other": "x"}):
        assert "Nothing was changed." in text(publisher.post(address, nonsense, follow=True))
    accelerator = Accelerator.objects.get(key="a100-sxm4-40")
    publisher.post(address, {"other": str(accelerator.pk)})
    name.refresh_from_db()
    assert (name.state, name.accelerator, name.decided_by.username) == ("mapped", accelerator, "catalog-publisher")


def test_names_are_rejected_together_and_open_ones_stand_first(publisher):
    names = [PrintedName.objects.create(name=f"N{n}", normalised=f"N{n}", rows=n) for n in range(3)]
    where = reverse("admin:catalog_printedname_changelist")
    publisher.post(where, {"action": "reject_marked", "_selected_action": [names[1].pk, names[2].pk]})
    shown = [(one.name, one.state) for one in publisher.get(where).context["cl"].result_list]
    assert shown == [("N0", "open"), ("N2", "rejected"), ("N1", "rejected")]


def test_a_held_back_price_stands_beside_the_one_that_counts(publisher):
    with_one_held_back()
    shown = text(publisher.get(reverse(HELD_BACK)))
    assert "11.30 USD 2.825 each 5.60 +101.8 %" in shown
    assert "The price went from 5.60 to 11.30 in one step" in shown


@pytest.mark.parametrize(("decision", "status"), [("release", OfferStatus.LIVE), ("refuse", OfferStatus.RETIRED)])
@pytest.mark.parametrize("alone", [True, False])
def test_held_back_prices_are_decided_on_with_a_reason(publisher, decision, status, alone):
    with_one_held_back()
    offer = Offer.objects.get(status=OfferStatus.QUARANTINED)
    pressed = {f"{decision}_one": offer.pk} if alone else {"decision": decision, "offer": [offer.pk, "x"]}
    publisher.post(reverse(HELD_BACK), {**pressed, "reason": ""})
    assert Offer.objects.get(pk=offer.pk).status == OfferStatus.QUARANTINED

    said = text(publisher.post(reverse(HELD_BACK), {**pressed, "reason": "asked\x00\nthem"}, follow=True))
    assert f"1 price {'released' if decision == 'release' else 'refused'}." in said
    offer.refresh_from_db()
    assert offer.status == status
    assert offer.history.latest().history_change_reason == "asked them"
    assert "Nothing is held back." in said
    again = publisher.post(reverse(HELD_BACK), {**pressed, "reason": "again"}, follow=True)
    assert "already decided" in text(again)


def test_a_price_that_cannot_be_right_is_refused_and_never_released(publisher):
    imported(sky(row(price="5.6")))
    imported(sky(row(price="22.4")), "2026-11-08")
    Offer.objects.filter(source=SOURCE, status=OfferStatus.LIVE).update(source="another list")
    offer = Offer.objects.get(status=OfferStatus.QUARANTINED)
    said = text(publisher.post(reverse(HELD_BACK), {"release_one": offer.pk, "reason": "x"}, follow=True))
    assert "Nothing was changed." in said
    assert "This looks multiplied twice" in said
    assert "1 price refused." in text(
        publisher.post(reverse(HELD_BACK), {"refuse_one": offer.pk, "reason": "x"}, follow=True)
    )


def test_held_back_prices_can_be_narrowed_down(publisher):
    job = with_one_held_back()
    assert len(publisher.get(reverse(HELD_BACK), {"import": str(job.pk), "provider": "aws"}).context["rows"]) == 1
    assert publisher.get(reverse(HELD_BACK), {"provider": "nobody"}).context["rows"] == []
    assert publisher.get(reverse(HELD_BACK), {"import": "x", "p": "x"}).status_code == 200


def feed_form(**typed: object) -> dict[str, object]:
    same = {"provider": Provider.objects.get(key="aws").pk, "source": "", "source_licence": "facts-only", "table": ""}
    given = {"name": "AWS", "url": "https://lists.example.com/vms.csv", "list_format": "skypilot", "every_hours": "24"}
    return {**same, **given, "enabled": "on"} | typed


@pytest.fixture
def resolves(monkeypatch):
    """What names lead to, told by the test."""

    def to(address: str) -> None:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: found)

    return to


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://lists.example.com/vms.csv", "10.0.0.7"),
        ("http://lists.example.com/vms.csv", "8.8.8.8"),
        ("https://127.0.0.1/vms.csv", "8.8.8.8"),
        ("https://user:secret@lists.example.com/", "8.8.8.8"),
    ],
)
def test_a_feed_inside_a_network_is_refused_at_once(publisher, resolves, url, address):
    resolves(address)
    answer = publisher.post(reverse("admin:catalog_feed_add"), feed_form(url=url))
    assert list(answer.context["adminform"].form.errors) == ["url"]
    assert not Feed.objects.exists()


def test_a_feed_is_kept_edited_and_fetched_on_request(publisher, resolves):
    resolves("8.8.8.8")
    publisher.post(reverse("admin:catalog_feed_add"), feed_form())
    feed = Feed.objects.get()
    later = timezone.now() + timedelta(hours=5)
    Feed.objects.update(next_at=later, etag='"1"', sha256="0" * 64, last_problem="It did not answer.")
    start(sky(row()), feed=feed)
    assert publisher.get(reverse("admin:catalog_feed_change", args=["x"])).status_code == 302
    page = reverse("admin:catalog_feed_change", args=[feed.pk])
    assert "It did not answer." in text(publisher.get(page))
    assert "vms.csv" in text(publisher.get(page))

    publisher.post(reverse("admin:catalog_feed_fetch", args=[feed.pk]))
    feed.refresh_from_db()
    assert (feed.next_at, feed.etag) == (None, '"1"')
    publisher.post(page, feed_form(url="https://lists.example.com/other.csv"))
    feed.refresh_from_db()
    assert (feed.etag, feed.sha256) == ("", "")


def test_who_may_change_feeds_but_not_publish_cannot_turn_a_publishing_one_elsewhere(editor, resolves):
    resolves("8.8.8.8")
    group = Group.objects.get(name=EDITOR)
    group.permissions.add(*Group.objects.get(name=PUBLISHER).permissions.filter(codename__endswith="_feed"))
    editor.post(reverse("admin:catalog_feed_add"), feed_form(apply_alone="on"))
    feed = Feed.objects.get()
    assert not feed.apply_alone
    Feed.objects.update(apply_alone=True)
    page = reverse("admin:catalog_feed_change", args=[feed.pk])
    assert editor.get(page).status_code == 200
    assert editor.post(page, feed_form(url="https://elsewhere.example.com/")).status_code == 403
    assert editor.post(reverse("admin:catalog_feed_fetch", args=[feed.pk])).status_code == 403


GETS = {
    "imports": LIST,
    "held back": HELD_BACK,
    "tables": "admin:catalog_tables",
    "names": "admin:catalog_printedname_changelist",
    "feeds": "admin:catalog_feed_changelist",
}
