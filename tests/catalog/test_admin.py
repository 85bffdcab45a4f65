"""What an editor sees and does in the admin: lists, forms that save drafts, history, whole rows."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.apps import apps
from django.urls import reverse
from django.utils import timezone, translation

from catalog.loading import load_catalog
from catalog.models import Accelerator, CatalogRevision, CostLine, Draft, Fabric, Offer, Provider, Region, Server
from catalog.models.accelerator import DTYPES
from catalog.selectors import current_revision
from tests.catalog.admin_support import add_page, few, filled, page, person, save, sentences, signed_in  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.catalog.urls"), pytest.mark.usefixtures("few")]

TABLES = ("accelerator", "provider", "region", "server", "fabric", "costline", "offer")
MODELS = [Accelerator, Provider, Region, Server, Fabric, CostLine, Offer]
SAID = {"source": "the provider's page", "source_licence": "facts-only", "confidence": "low"}


@pytest.fixture
def editor():
    return signed_in("Catalog editor")


@pytest.fixture
def publisher():
    return signed_in("Catalog publisher")


def h100() -> Accelerator:
    return Accelerator.objects.get(key="h100-sxm5-80")


def publish(client, *drafts):
    sent = {"draft": [f"{draft.pk}.{draft.version}" for draft in drafts or Draft.objects.all()]}
    return client.post(reverse("admin:catalog_draft_publish"), sent, follow=True)


@pytest.mark.parametrize("table", TABLES)
def test_lists_search_and_filter_in_few_queries(editor, table, django_assert_max_num_queries):
    url = reverse(f"admin:catalog_{table}_changelist")
    with django_assert_max_num_queries(11):
        everything = editor.get(url)
    assert everything.status_code == 200
    found = editor.get(url, {"q": "h100" if table == "accelerator" else "aws"})
    assert 0 < found.context["cl"].result_count <= everything.context["cl"].queryset.count()
    assert everything.context["cl"].has_filters


def test_the_list_of_drafts_takes_few_queries_whatever_its_length(editor, django_assert_max_num_queries):
    for row in Accelerator.objects.all()[:30]:
        Draft.objects.create(table="accelerators", key=row.key, values={"launch_year": 2030}, base_version=1)
    with django_assert_max_num_queries(11):
        said = editor.get(reverse("admin:catalog_draft_changelist")).content.decode()
    assert "Launch year: 2" in said
    assert "2030" in said


@pytest.mark.parametrize("model", MODELS)
def test_forms_and_histories_open(editor, model):
    row = model.objects.first()
    assert editor.get(page(row)).status_code == 200
    response = editor.get(page(row, "history"))
    assert "shipped files" in response.content.decode()


def test_saving_makes_a_draft_and_publishing_puts_it_into_the_catalog(editor, publisher):
    row, before = h100(), current_revision()
    response = editor.post(page(row), filled(editor, page(row), tdp_w="690", reason="read on the machine"), follow=True)
    said = unescape(response.content.decode())
    assert "Saved as a draft" in said
    assert "700 W" in said
    assert "690 W" in said
    assert "“read on the machine”" in said
    assert "A publisher has to publish it" in said
    assert response.context["adminform"].form["tdp_w"].value() == "690"
    assert h100().tdp_w == 700
    assert current_revision() == before

    said = publish(publisher).content.decode()
    assert "Published: the catalog is now revision" in said
    assert (h100().tdp_w, h100().edited) == (690, True)
    newest = CatalogRevision.objects.first()
    assert (newest.number, newest.user.username) == (before + 1, "publisher")
    history = unescape(publisher.get(page(row, "history")).content.decode())
    assert "Power: 700 W → 690 W" in re.sub(r"<[^>]+>", "", history)
    assert "read on the machine" in history


def test_a_publisher_saves_and_publishes_at_once(publisher):
    row = h100()
    publisher.post(page(row), filled(publisher, page(row), tdp_w="690") | {"_publish": "x"})
    assert h100().tdp_w == 690
    assert not Draft.objects.exists()


def test_an_edited_value_outlives_the_next_loading(publisher, few):  # noqa: F811
    row = h100()
    publisher.post(page(row), filled(publisher, page(row), tdp_w="690") | {"_publish": "x"})
    Accelerator.objects.filter(pk=row.pk).update(file_hash="of an older file")
    report = load_catalog(few)
    assert h100().tdp_w == 690
    assert report.tables["accelerators"].kept == 1


def test_a_draft_is_discarded(editor):
    row = h100()
    save(editor, page(row), tdp_w="690")
    draft = Draft.objects.get()
    editor.post(reverse("admin:catalog_draft_discard"), {"draft": f"{draft.pk}.{draft.version}"})
    assert not Draft.objects.exists()
    assert "draft" not in editor.get(page(row)).context["banners"]


def test_lists_say_that_drafts_wait(editor):
    save(editor, page(h100()), tdp_w="690")
    said = editor.get(reverse("admin:catalog_accelerator_changelist")).content.decode()
    assert "1 draft of this table waits" in said
    assert reverse("admin:catalog_draft_change", args=[Draft.objects.get().pk]) in said


def test_bandwidths_are_typed_in_gb_per_second(editor):
    row = Fabric.objects.get(server__sku="p4d.24xlarge")
    data = filled(editor, page(row))
    assert (data["bandwidth_bytes_per_s"], data["network_bandwidth_bytes_per_s"]) == ("300", "400")
    editor.post(page(row), data | {"network_bandwidth_bytes_per_s": "800"})
    assert Draft.objects.get().values == {"network_bandwidth_bytes_per_s": 100e9}


def test_the_fabric_is_edited_inside_its_server(editor, publisher):
    server = Server.objects.get(sku="p4d.24xlarge")
    response = save(editor, page(server), **{"fabric-0-network_bandwidth_bytes_per_s": "800", "sockets": "1"})
    assert response.status_code == 302, sentences(response)
    assert {draft.table for draft in Draft.objects.all()} == {"servers", "fabrics"}
    form = editor.get(page(server))
    assert form.context["inline_admin_formsets"][0].formset.forms[0]["network_bandwidth_bytes_per_s"].value() == "800"
    publish(publisher)
    assert Fabric.objects.get(server=server).network_bandwidth_bytes_per_s == 100e9
    assert Server.objects.get(pk=server.pk).sockets == 1


def test_a_server_and_its_fabric_are_tried_out_together(editor):
    server = Server.objects.get(sku="p4d.24xlarge")
    response = save(editor, page(server), gpu_count="1")
    assert "nothing to join" in sentences(response)
    lone = {"topology": "single", "domain_gpus": "", "bandwidth_bytes_per_s": "", "peer_bandwidth_bytes_per_s": ""}
    typed = {f"fabric-0-{name}": value for name, value in lone.items()}
    response = save(editor, page(server), gpu_count="1", **typed)
    assert response.status_code == 302, sentences(response)
    # the server's draft is taken along when only the fabric is changed later
    response = save(editor, page(server), **{"fabric-0-notes": "seen again"})
    assert response.status_code == 302, sentences(response)


def test_a_new_server_with_its_fabric_waits_as_a_draft(editor, publisher):
    card, provider = Accelerator.objects.get(key="l40s"), Provider.objects.get(key="aws")
    url = add_page(Server)
    server = {"provider": provider.pk, "sku": "g9.big", "accelerator": card.pk, "gpu_count": "4"}
    fabric = {f"fabric-0-{name}": value for name, value in {"topology": "pcie-root", **SAID}.items()}
    response = editor.post(url, filled(editor, url, **server, **SAID, **fabric) | {"_save": "x"})
    assert response.status_code == 302, sentences(response)
    assert not Server.objects.filter(sku="g9.big").exists()

    # the draft opens the page of a new row, filled in, and can be called otherwise there
    draft = Draft.objects.get(table="servers")
    url = editor.get(reverse("admin:catalog_draft_change", args=[draft.pk])).url
    data = filled(editor, url, sku="g9.bigger")
    assert (data["gpu_count"], data["fabric-0-topology"], int(data["accelerator"])) == (4, "pcie-root", card.pk)
    response = editor.post(url, data | {"_save": "x"})
    assert response.status_code == 302, sentences(response)
    assert {d.key for d in Draft.objects.all()} == {"aws/g9.bigger"}

    publish(publisher)
    assert Server.objects.get(sku="g9.bigger").fabric.topology == "pcie-root"


def test_a_server_needs_no_fabric(editor):
    url = add_page(Server)
    server = {
        "provider": Provider.objects.get(key="aws").pk,
        "sku": "x1",
        "gpu_count": "8",
        "accelerator_printed": "H100",
    }
    response = editor.post(url, filled(editor, url, **server, **SAID) | {"_save": "x"})
    assert response.status_code == 302, sentences(response)
    assert Draft.objects.get().values["accelerator_printed"] == "H100"


def test_a_price_of_a_day_that_has_begun_somewhere_is_taken(editor):
    tomorrow = timezone.now().date() + timedelta(days=1)
    offer = Offer.objects.filter(status="live").first()
    names = ("region", "tenancy", "pricing_model", "currency", "price_per_hour", "price_basis", "observed_precision")
    same = {name: getattr(offer, name) for name in (*names, "status", "source_licence")}
    data = {"server": offer.server_id, **same, "observed_on": tomorrow, "source": "typed by hand"}
    response = editor.post(add_page(Offer), data)
    assert response.status_code == 302, sentences(response)
    assert Draft.objects.get().values["observed_on"] == tomorrow.isoformat()


def test_a_held_back_price_is_released_on_its_own_page(editor):
    offer = Offer.objects.filter(status="live").first()
    Offer.objects.filter(pk=offer.pk).update(status="quarantined", quarantine_reason="")
    listed = editor.get(reverse("admin:catalog_offer_changelist"), {"status": "quarantined"}).content.decode()
    assert reverse("admin:catalog_heldback") in listed
    response = save(editor, page(offer), status="live")
    assert "page of held-back prices" in sentences(response)
    assert save(editor, page(offer), notes="looked at").status_code == 302


@pytest.mark.parametrize("table", TABLES)
def test_pages_of_new_and_of_known_rows_open_in_chinese(editor, table):
    model = apps.get_model("catalog", table)
    with translation.override("zh-hant"):
        name = str(model._meta.verbose_name)
    for url in (reverse(f"admin:catalog_{table}_add"), page(model.objects.first())):
        response = editor.get(url, headers={"accept-language": "zh-TW"})
        assert '<html lang="zh-hant"' in response.content.decode()
        assert name in response.content.decode()


def test_the_eight_peaks_are_labelled_in_chinese(editor):
    said = editor.get(add_page(Accelerator), headers={"accept-language": "zh-TW"}).content.decode()
    for dtype in DTYPES:
        assert re.search(rf"{dtype} 稠密峰值（TFLOP/s）", said, re.IGNORECASE)


def test_an_older_version_comes_back_as_a_draft(editor, publisher):
    row = h100()
    publisher.post(page(row), filled(publisher, page(row), tdp_w="690") | {"_publish": "x"})
    first = row.history.order_by("history_id").first()
    url = reverse("admin:catalog_accelerator_revert", args=[row.pk, first.pk])
    said = editor.post(url, follow=True).content.decode()
    assert "The old values are a draft now" in said
    assert Draft.objects.get().values == {"tdp_w": 700}
    publish(publisher)
    assert [old.tdp_w for old in row.history.all()] == [700, 690, 700]


def test_a_replaced_value_is_restored_into_a_draft_with_all_that_was_typed(publisher):
    row = h100()
    publisher.post(page(row), filled(publisher, page(row), tdp_w="690", reason="typo") | {"_publish": "x"})
    said = unescape(publisher.get(page(row)).content.decode())
    assert "Restore 700 W as a draft" in said
    assert "entered by hand" in said
    data = filled(publisher, page(row), notes="half done") | {"_restore": "accelerators:tdp_w:0"}
    publisher.post(page(row), data)
    assert Draft.objects.get().values == {"tdp_w": 700, "notes": "half done"}


def test_shipped_rows_are_not_deleted_and_own_rows_are(editor, publisher):
    own = Provider.objects.create(key="ours", name="Ours", source="us", source_licence="facts-only", edited=True)
    before = current_revision()
    assert publisher.post(page(Provider.objects.get(key="aws"), "delete"), {"post": "yes"}).status_code == 403
    assert editor.post(page(own, "delete"), {"post": "yes"}).status_code == 403
    assert publisher.post(page(own, "delete"), {"post": "yes"}).status_code == 302
    assert not Provider.objects.filter(key="ours").exists()
    assert current_revision() == before + 1


@pytest.mark.parametrize(
    ("model", "typed"),
    [
        (Accelerator, {"key": "renamed"}),
        (Server, {"sku": "renamed", "provider": "1"}),
        (Fabric, {"server": "1"}),
        (Offer, {"region": "moved", "observed_on": "2026-01-02", "currency": "EUR", "tenancy": "vm"}),
    ],
)
def test_natural_keys_do_not_change(editor, model, typed):
    row = model.objects.order_by("pk").last()
    response = editor.post(page(row), filled(editor, page(row)) | typed | {"notes": "seen again"})
    assert response.status_code == 302, sentences(response)
    assert Draft.objects.get().values == {"notes": "seen again"}


def test_the_form_draws_the_server_and_says_what_is_wrong(editor):
    server = Server.objects.get(sku="p4d.24xlarge")
    assert "<svg" in editor.get(page(server)).content.decode()
    url = reverse("admin:catalog_server_drawing_of", args=[server.pk])
    said = editor.post(url, filled(editor, page(server), **{"fabric-0-bandwidth_bytes_per_s": "600"})).content.decode()
    assert "<svg" in said
    assert "Enter one direction: 300 GB/s" in said
    assert signed_in("Catalog viewer").post(url).status_code == 403
    assert not Draft.objects.exists()
