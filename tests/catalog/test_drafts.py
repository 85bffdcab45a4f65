"""Drafts: nobody sees them before they are published, two editors do not overwrite each other."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import User

from catalog import drafts
from catalog.changes import Change, ChangesRefused, VersionConflict, apply_changes
from catalog.drafts import DraftConflict, Edit, Seen, previewed, publish, save_drafts
from catalog.models import Accelerator, CatalogRevision, CostLine, Draft, Fabric, Offer, Provider, Server
from catalog.models.revision import RevisionOrigin
from tests.catalog.admin_support import few  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("few")]

SAID = {"source": "the provider's page", "source_licence": "facts-only", "confidence": "low"}
P4D = "aws/p4d.24xlarge"


@pytest.fixture
def ann():
    return User.objects.create_user("ann")


@pytest.fixture
def bob():
    return User.objects.create_user("bob")


def edit(values, *, table="accelerators", key="h100-sxm5-80", seen=None):
    return Edit(table=table, key=key, values=values, seen=seen)


def save(*edits, user=None, reason=""):
    return save_drafts(edits, user=user, reason=reason)


def new_server(sku="p9.big"):
    server = {"provider": "aws", "sku": sku, "accelerator": "l40s", "gpu_count": 4, **SAID}
    fabric = {"server": f"aws/{sku}", "topology": "pcie-root", **SAID}
    return edit(server, table="servers", key=f"aws/{sku}"), edit(fabric, table="fabrics", key=f"aws/{sku}")


def new_offer(**changes):
    values = {"server": P4D, "region": "eu-west-1", "pricing_model": "on_demand", "price_per_hour": "30"}
    said = {"observed_on": "2026-06-01", "source": "the provider's page", "source_licence": "facts-only"}
    return edit(values | said | changes, table="offers", key="")


def test_a_draft_changes_nothing_until_it_is_published(ann, bob):
    before = CatalogRevision.objects.count()
    [draft] = save(edit({"tdp_w": 690}), user=ann, reason="measured")
    assert (draft.author, draft.reason, draft.base_version, draft.values) == (ann, "measured", 1, {"tdp_w": 690})
    row = Accelerator.objects.get(key="h100-sxm5-80")
    assert (row.tdp_w, row.version, row.edited) == (700, 1, False)
    assert CatalogRevision.objects.count() == before

    number = publish([draft], user=bob)
    row.refresh_from_db()
    assert (row.tdp_w, row.version, row.edited) == (690, 2, True)
    assert CatalogRevision.objects.first().number == number
    newest = row.history.first()
    assert (newest.history_user, newest.history_change_reason, newest.prev_record.tdp_w) == (bob, "measured", 700)
    assert row.field_sources["tdp_w"]["replaced"][0]["value"] == 700
    assert not Draft.objects.exists()


def test_a_second_save_goes_on_top_and_back_to_the_published_value_ends_the_draft(ann):
    save(edit({"tdp_w": 690}), user=ann, reason="first")
    [draft] = save(edit({"boost_clock_hz": 1.8e9}), user=ann)
    assert (draft.values, draft.version, draft.reason) == ({"tdp_w": 690, "boost_clock_hz": 1.8e9}, 2, "first")
    save(edit({"tdp_w": 700.0}), user=ann)
    assert Draft.objects.get().values == {"boost_clock_hz": 1.8e9}
    assert save(edit({"boost_clock_hz": 1.83e9}), user=ann) == []
    assert not Draft.objects.exists()


def test_a_value_in_another_spelling_is_no_difference(ann):
    offer = Offer.objects.filter(server__sku="p4d.24xlarge").first()
    same = {"price_per_hour": str(offer.price_per_hour.normalize()), "observed_on": offer.observed_on.isoformat()}
    assert save(edit(same, table="offers", key=offer.key), user=ann) == []


def test_what_cannot_be_right_is_not_kept(ann):
    with pytest.raises(ChangesRefused) as caught:
        save(edit({"scaleup_bandwidth_bytes_per_s": 900e9}), user=ann)
    [refused] = caught.value.refused
    assert "both directions" in refused.problems["scaleup_bandwidth_bytes_per_s"][0]
    assert not Draft.objects.exists()


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"no_such": 1}, "no_such"),
        ({"version": 9}, "version"),
        ({"memory_bytes": "much"}, "memory_bytes"),
        ({"name": ""}, "name"),
    ],
)
def test_columns_and_values_that_are_none_are_named(ann, values, where):
    with pytest.raises(ChangesRefused) as caught:
        save(edit(values), user=ann)
    assert list(caught.value.refused[0].problems) == [where]
    assert not Draft.objects.exists()


def test_the_second_of_two_editors_is_told(ann, bob):
    seen = Seen.now("accelerators", "h100-sxm5-80")
    save(edit({"tdp_w": 690}, seen=seen), user=ann)
    with pytest.raises(VersionConflict):
        save(edit({"tdp_w": 680}, seen=seen), user=bob)
    assert Draft.objects.get().values == {"tdp_w": 690}
    save(edit({"tdp_w": 680}, seen=Seen.now("accelerators", "h100-sxm5-80")), user=bob)
    assert Draft.objects.get().values == {"tdp_w": 680}


def test_publishing_is_refused_when_the_row_or_the_draft_has_changed_since(ann, bob):
    [draft] = save(edit({"tdp_w": 690}), user=ann)
    [newer] = save(edit({"tdp_w": 680}), user=bob)
    with pytest.raises(DraftConflict):
        publish([draft], user=bob)
    change = Change(table="accelerators", key="h100-sxm5-80", values={"boost_clock_hz": 1.8e9})
    apply_changes([change], origin=RevisionOrigin.API, summary="over REST")
    with pytest.raises(VersionConflict):
        publish([newer], user=bob)
    assert Accelerator.objects.get(key="h100-sxm5-80").tdp_w == 700
    [taken] = save(edit({}), user=bob)
    publish([taken], user=bob)
    row = Accelerator.objects.get(key="h100-sxm5-80")
    assert (row.tdp_w, row.boost_clock_hz) == (680, 1.8e9)


def test_a_draft_that_is_gone_cannot_be_published(ann):
    [draft] = save(edit({"tdp_w": 690}), user=ann)
    assert drafts.discard([draft]) == 1
    with pytest.raises(DraftConflict):
        publish([draft], user=ann)


def test_only_the_draft_that_was_looked_at_is_discarded(ann):
    [old] = save(edit({"tdp_w": 690}), user=ann)
    save(edit({"tdp_w": 680}), user=ann)
    assert drafts.discard([old]) == 0
    assert Draft.objects.get().values == {"tdp_w": 680}


def test_a_new_server_and_its_fabric_are_published_together(ann):
    made = save(*new_server(), user=ann)
    assert [draft.base_version for draft in made] == [0, 0]
    assert not Server.objects.filter(sku="p9.big").exists()
    publish(made, user=ann)
    assert Fabric.objects.get(server__sku="p9.big").topology == "pcie-root"


def test_a_fabric_alone_waits_for_its_server(ann):
    made = save(*new_server(), user=ann)
    [fabric] = [draft for draft in made if draft.table == "fabrics"]
    with pytest.raises(ChangesRefused) as caught:
        publish([fabric], user=ann)
    assert "Publish it first" in caught.value.refused[0].problems["server"][0]
    with previewed([fabric]):
        assert Fabric.objects.filter(server__sku="p9.big").exists()
    assert not Server.objects.filter(sku="p9.big").exists()


def test_rows_whose_key_follows_from_their_values(ann):
    [first] = save(new_offer(), user=ann)
    [second] = save(new_offer(region="eu-west-2"), user=ann)
    line = {"provider": "aws", "kind": "ip", "amount": "0.005", "currency": "USD", "unit": "hour"}
    said = {"observed_on": "2026-06-01", "source": "the provider's page", "source_licence": "facts-only"}
    [third] = save(edit(line | said, table="cost_lines", key=""), user=ann)
    assert len({first.key, second.key, third.key}) == 3
    publish([first, second, third], user=ann)
    offer = Offer.objects.get(key=first.key)
    assert (offer.price_per_gpu_hour, offer.last_seen_on) == (Decimal("3.75"), offer.observed_on)
    assert CostLine.objects.get(key=third.key).amount == Decimal("0.005")
    # the same offer once more is the row that there is now
    [again] = save(new_offer(price_per_hour="31"), user=ann)
    assert (again.base_version, again.values) == (1, {"price_per_hour": "31"})


def test_a_new_row_that_lacks_what_names_it_is_told_what(ann):
    with pytest.raises(ChangesRefused) as caught:
        save(new_offer(server=None), user=ann)
    assert "server" in caught.value.refused[0].problems
    assert not {"key", "price_per_gpu_hour"} & set(caught.value.refused[0].problems)


def test_a_new_row_published_by_somebody_else_first_is_a_conflict(ann):
    [draft] = save(new_offer(), user=ann)
    change = Change(table="offers", key="", values=new_offer().values)
    apply_changes([change], origin=RevisionOrigin.API, summary="over REST")
    with pytest.raises(VersionConflict):
        publish([draft], user=ann)


def test_a_preview_leaves_nothing_behind(ann):
    made = save(edit({"tdp_w": 690}), user=ann)
    history = Accelerator.history.count()
    before = CatalogRevision.objects.count()
    with previewed(made):
        assert Accelerator.objects.get(key="h100-sxm5-80").tdp_w == 690
    with pytest.raises(RuntimeError), previewed(made):
        raise RuntimeError
    Draft.objects.update(values={"tdp_w": -1})
    with pytest.raises(ChangesRefused), previewed(Draft.objects.all()):
        pass
    row = Accelerator.objects.get(key="h100-sxm5-80")
    assert (row.tdp_w, row.version, Accelerator.history.count()) == (700, 1, history)
    assert CatalogRevision.objects.count() == before
    assert Draft.objects.count() == 1


def test_seen_travels_as_text():
    assert Seen.parse(str(Seen(row=3, draft=12))) == Seen(row=3, draft=12)
    for text in ("", "1", "1.2.3", "a.b"):
        with pytest.raises(ValueError):
            Seen.parse(text)


def test_a_provider_and_its_first_server_can_wait_together(ann):
    provider = {"key": "ours", "name": "Ours", "source": "us", "source_licence": "facts-only"}
    server = new_server()[0].values | {"provider": "ours"}
    made = save(
        edit(provider, table="providers", key="ours"), edit(server, table="servers", key="ours/p9.big"), user=ann
    )
    publish(made, user=ann)
    assert Provider.objects.get(key="ours").servers.get().sku == "p9.big"
