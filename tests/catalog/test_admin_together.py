"""Two editors at one row, one column of many rows, and who may do what."""

import json
from html import unescape

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from catalog.groups import EDITOR, PUBLISHER, VIEWER, ensure_groups
from catalog.models import Accelerator, Draft, Offer, Server
from tests.catalog.admin_support import add_page, few, filled, page, save, sent_back, sentences, signed_in  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.catalog.urls"), pytest.mark.usefixtures("few")]


@pytest.fixture
def ann():
    return signed_in(EDITOR, "ann")


@pytest.fixture
def bob():
    return signed_in(PUBLISHER, "bob")


def h100() -> Accelerator:
    return Accelerator.objects.get(key="h100-sxm5-80")


def text(response) -> str:
    return unescape(response.content.decode())


def test_the_second_of_two_editors_sees_both_values_and_loses_nothing(ann, bob):
    url = page(h100())
    mine = filled(ann, url, tdp_w="690", notes="what ann saw")
    save(bob, url, tdp_w="680", launch_year="2023", reason="read at the rack")
    response = ann.post(url, mine | {"_save": "x"})
    assert response.status_code == 200
    said = text(response)
    assert "bob saved a draft of H100 SXM5 80GB just now" in said
    assert "“read at the rack”" in said
    [between] = response.context["page"].between
    assert [(one.label, one.old, one.new) for one in between.conflicts] == [("Power", "680 W", "690 W")]
    assert [one.label for one in between.taken] == ["Launch year"]
    form = response.context["adminform"].form
    assert [form[name].value() for name in ("tdp_w", "notes", "launch_year")] == ["690", "what ann saw", "2023"]
    assert Draft.objects.get().values["tdp_w"] == 680

    response = ann.post(url, sent_back(response) | {"_save": "x"})
    assert response.status_code == 302, sentences(response)
    assert Draft.objects.get().values == {"tdp_w": 690, "launch_year": 2023, "notes": "what ann saw"}


def test_what_was_published_meanwhile_is_told_and_kept(ann, bob):
    url = page(h100())
    mine = filled(ann, url, notes="what ann saw")
    bob.post(url, filled(bob, url, tdp_w="680", reason="measured") | {"_publish": "x"})
    response = ann.post(url, mine | {"_save": "x"})
    assert "bob published a change of H100 SXM5 80GB" in text(response)
    assert response.context["adminform"].form["tdp_w"].value() == "680"
    ann.post(url, sent_back(response) | {"_save": "x"})
    assert Draft.objects.get().values == {"notes": "what ann saw"}
    assert h100().tdp_w == 680


def test_a_discarded_draft_is_told(ann, bob):
    url = page(h100())
    save(bob, url, tdp_w="680")
    mine = filled(ann, url, notes="what ann saw")
    draft = Draft.objects.get()
    bob.post(reverse("admin:catalog_draft_discard"), {"draft": f"{draft.pk}.{draft.version}"})
    response = ann.post(url, mine | {"_save": "x"})
    assert "was discarded" in text(response)
    ann.post(url, sent_back(response) | {"_save": "x"})
    assert Draft.objects.get().values == {"notes": "what ann saw"}


def test_two_who_add_the_same_row_are_told(ann, bob):
    url = add_page(Accelerator)
    same = {"key": "new-one", "vendor": "NVIDIA", "architecture": "Rubin", "form_factor": "SXM7"}
    size = {"memory_bytes": "270000", "memory_bandwidth_bytes_per_s": "13 TB/s"}
    said = {"source": "the vendor's page", "source_licence": "facts-only"}
    bob.post(url, filled(bob, url, name="R100", **same, **size, **said) | {"_save": "x"})
    response = ann.post(url, filled(ann, url, name="Rubin R100", **same, **size, **said) | {"_save": "x"})
    assert "bob saved a draft of new-one" in text(response)
    assert [one.label for one in response.context["page"].between[0].conflicts] == ["Name"]
    response = ann.post(url, sent_back(response) | {"_save": "x"})
    assert response.status_code == 302, sentences(response)
    assert Draft.objects.get().values["name"] == "Rubin R100"


def test_a_fabric_changed_by_somebody_else_is_a_conflict_of_the_server_form(ann, bob):
    server = Server.objects.get(sku="p4d.24xlarge")
    mine = filled(ann, page(server), **{"fabric-0-nic_count": "6"})
    save(bob, page(server.fabric), nic_count="8")
    response = ann.post(page(server), mine | {"_save": "x"})
    assert [one.new for one in response.context["page"].between[0].conflicts] == ["6"]
    response = ann.post(page(server), sent_back(response) | {"_save": "x"})
    assert response.status_code == 302, sentences(response)
    assert Draft.objects.get(table="fabrics").values == {"nic_count": 6}


@pytest.mark.parametrize(
    "sent", ["", "nonsense", "[]", '{"accelerators": {"seen": "x", "shown": {}}}', '{"accelerators": 3}']
)
def test_a_form_whose_hidden_field_was_tampered_with_still_saves(ann, sent):
    url = page(h100())
    response = ann.post(url, filled(ann, url, tdp_w="690") | {"as_shown": sent})
    assert response.status_code == 302
    assert Draft.objects.get().values == {"tdp_w": 690}


def test_only_the_version_that_was_looked_at_is_published(ann, bob):
    save(ann, page(h100()), tdp_w="690")
    draft = Draft.objects.get()
    save(ann, page(h100()), tdp_w="680")
    sent = {"draft": f"{draft.pk}.{draft.version}"}
    assert "edited, published or discarded meanwhile" in text(
        bob.post(reverse("admin:catalog_draft_publish"), sent, follow=True)
    )
    assert h100().tdp_w == 700


def test_a_check_of_one_column_stands_at_that_column(ann):
    response = save(ann, page(h100()), tdp_w="-1")
    assert "must be above zero" in response.context["adminform"].form.errors["tdp_w"][0]


# one column of many rows ---------------------------------------------------------------------------------------------


def bulk(client, rows, **typed):
    url = reverse("admin:catalog_accelerator_bulk")
    return client.get(url, {"ids": ",".join(str(row.pk) for row in rows), "preview": "1", **typed})


def test_one_column_of_many_rows_becomes_drafts_after_a_preview(ann):
    rows = list(Accelerator.objects.filter(key__in=["h100-sxm5-80", "h200-sxm", "l40s"]))
    listed = ann.post(
        reverse("admin:catalog_accelerator_changelist"),
        {"action": "edit_column", "_selected_action": [row.pk for row in rows]},
        follow=True,
    )
    assert "3 rows are chosen" in text(listed)
    preview = bulk(ann, rows, column="tdp_w", value="0.7 kW", reason="one sheet")
    assert [(line.old, line.changes) for line in preview.context["lines"]] == [
        ("700 W", False),
        ("700 W", False),
        ("350 W", True),
    ]
    sent = {"ids": preview.context["ids"], "column": "tdp_w", "preview": "1", "value": "700", "reason": "one sheet"}
    ann.post(reverse("admin:catalog_accelerator_bulk"), sent | {"seen": preview.context["seen"]})
    draft = Draft.objects.get()
    assert (draft.key, draft.values, draft.reason) == ("l40s", {"tdp_w": 700}, "one sheet")


def test_rows_that_cannot_have_the_value_are_shown_and_nothing_is_saved(ann):
    rows = list(Accelerator.objects.filter(key__in=["h100-sxm5-80", "l40s"]))
    preview = bulk(ann, rows, column="pcie_generation", value="9")
    assert preview.context["wrong"]
    assert "PCIe generations are 1 to 6." in text(preview)
    sent = {"ids": preview.context["ids"], "column": "pcie_generation", "preview": "1", "value": "9", "reason": ""}
    response = ann.post(reverse("admin:catalog_accelerator_bulk"), sent | {"seen": preview.context["seen"]})
    assert "no draft was made" in text(response)
    assert not Draft.objects.exists()


def test_a_row_changed_since_the_preview_is_not_overwritten(ann, bob):
    row = Accelerator.objects.get(key="l40s")
    preview = bulk(ann, [row], column="tdp_w", value="340")
    save(bob, page(row), tdp_w="330")
    sent = {"ids": row.pk, "column": "tdp_w", "preview": "1", "value": "340", "reason": ""}
    response = ann.post(reverse("admin:catalog_accelerator_bulk"), sent | {"seen": preview.context["seen"]})
    assert "was changed by somebody else meanwhile" in text(response)
    assert Draft.objects.get().values == {"tdp_w": 330}


def test_held_back_prices_are_not_released_together_with_others(ann):
    offers = list(Offer.objects.order_by("pk")[:2])
    Offer.objects.filter(pk=offers[0].pk).update(status="quarantined")
    Offer.objects.filter(pk=offers[1].pk).update(status="stale")
    url = reverse("admin:catalog_offer_bulk")
    ids = ",".join(str(offer.pk) for offer in offers)
    sent = {"ids": ids, "column": "status", "preview": "1", "value": "live", "reason": "all of them"}
    preview = ann.get(url, sent)
    assert preview.context["wrong"]
    assert "page of held-back prices" in text(preview)
    assert "no draft was made" in text(ann.post(url, sent | {"seen": preview.context["seen"]}))
    assert not Draft.objects.exists()


@pytest.mark.parametrize("column", ["key", "field_sources", "version", "nonsense"])
def test_only_listed_columns_can_be_set_for_many_rows(ann, column):
    response = bulk(ann, [h100()], column=column, value="x")
    assert response.context["column"] is None
    assert response.context["lines"] == []


# who may do what -----------------------------------------------------------------------------------------------------


def test_groups_are_made_once_and_keep_what_was_added():
    ensure_groups()
    assert Group.objects.filter(name__startswith="Catalog ").count() == 3
    publisher = set(Group.objects.get(name=PUBLISHER).permissions.values_list("codename", flat=True))
    editor = set(Group.objects.get(name=EDITOR).permissions.values_list("codename", flat=True))
    viewer = set(Group.objects.get(name=VIEWER).permissions.values_list("codename", flat=True))
    assert viewer < editor < publisher
    assert "publish_catalog" in publisher - editor
    assert all(name.startswith("view_") for name in viewer)


def test_a_viewer_looks_sees_no_drafts_and_changes_nothing(ann):
    save(ann, page(h100()), tdp_w="690")
    viewer = signed_in(VIEWER)
    said = text(viewer.get(page(h100())))
    assert "690 W" not in said
    assert "989.4" in said
    assert "Save draft" not in said
    assert viewer.post(page(h100()), {"tdp_w": "1"}).status_code == 403
    assert "draft" not in text(viewer.get(reverse("admin:catalog_accelerator_changelist"))).lower()
    draft = Draft.objects.get()
    for name in ("publish", "discard"):
        sent = {"draft": f"{draft.pk}.{draft.version}"}
        assert viewer.post(reverse(f"admin:catalog_draft_{name}"), sent).status_code == 403
    assert viewer.get(reverse("admin:catalog_draft_changelist")).status_code == 403
    assert viewer.get(reverse("admin:catalog_accelerator_bulk"), {"ids": h100().pk}).status_code == 403
    first = h100().history.first()
    assert viewer.post(reverse("admin:catalog_accelerator_revert", args=[h100().pk, first.pk])).status_code == 403
    assert Draft.objects.get().values == {"tdp_w": 690}


def test_an_editor_publishes_nothing(ann):
    save(ann, page(h100()), tdp_w="690")
    draft = Draft.objects.get()
    sent = {"draft": f"{draft.pk}.{draft.version}"}
    assert ann.post(reverse("admin:catalog_draft_publish"), sent).status_code == 403
    chosen = {"action": "publish_chosen", "_selected_action": draft.pk}
    ann.post(reverse("admin:catalog_draft_changelist"), chosen)
    data = filled(ann, page(h100()), tdp_w="680")
    assert ann.post(page(h100()), data | {"_publish": "x"}).status_code == 403
    assert h100().tdp_w == 700
    assert Draft.objects.get().values == {"tdp_w": 690}


def test_a_publisher_publishes_several_at_once(ann, bob):
    save(ann, page(h100()), tdp_w="690")
    save(ann, page(Accelerator.objects.get(key="l40s")), tdp_w="340")
    chosen = {"action": "publish_chosen", "_selected_action": [draft.pk for draft in Draft.objects.all()]}
    response = bob.post(reverse("admin:catalog_draft_changelist"), chosen, follow=True)
    assert "Published: the catalog is now revision" in text(response)
    assert (h100().tdp_w, Accelerator.objects.get(key="l40s").tdp_w) == (690, 340)


@pytest.mark.parametrize("seen", ["", "[]", "no json", json.dumps({"l40s": 7})])
def test_a_bulk_edit_that_saw_nothing_saves_nothing(ann, seen):
    row = Accelerator.objects.get(key="l40s")
    sent = {"ids": row.pk, "column": "tdp_w", "preview": "1", "value": "340", "reason": "", "seen": seen}
    ann.post(reverse("admin:catalog_accelerator_bulk"), sent)
    assert not Draft.objects.exists()
