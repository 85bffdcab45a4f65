"""What an editor sees and does in the admin."""

import re
from datetime import date, timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from catalog.loading import load_catalog
from catalog.models import Accelerator, CatalogRevision, Fabric, Offer, Provider, Server
from catalog.models.accelerator import DTYPES
from catalog.selectors import current_revision

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.catalog.urls"), pytest.mark.usefixtures("shipped")]

TABLES = ("accelerator", "provider", "server", "fabric", "offer")


@pytest.fixture
def editor(client: Client) -> Client:
    """A staff member with the five tables' permissions, not a superuser."""
    user = User.objects.create_user("editor", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="catalog"))
    client.force_login(user)
    return client


def page(row, action="change"):
    return reverse(f"admin:catalog_{row._meta.model_name}_{action}", args=[row.pk])


def filled(client: Client, url: str, **changes: str) -> dict[str, str]:
    """The data a browser would send back from a form page, with some fields typed over."""
    context = client.get(url).context
    forms = [context["adminform"].form]
    for inline in context["inline_admin_formsets"]:
        forms += [inline.formset.management_form, *inline.formset.forms]
    data = {}
    for form in forms:
        for field in form:
            value = field.value()
            data[field.html_name] = "" if value is None else value
    data = {name: value for name, value in data.items() if value is not False}
    assert changes.keys() <= {field.html_name for form in forms for field in form}
    return data | changes


def as_new(offer: Offer, **changes: Any) -> dict[str, Any]:
    """The data of the page of a new offer, filled in as for an offer that there is."""
    names = ("region", "tenancy", "pricing_model", "currency", "price_per_hour", "price_basis", "observed_precision")
    same = {name: getattr(offer, name) for name in (*names, "observed_on", "status", "source", "source_licence")}
    return {"server": offer.server_id, **same, **changes}


def sentences(response) -> str:
    context = response.context
    errors = [context["adminform"].form.errors, *(inline.formset.errors for inline in context["inline_admin_formsets"])]
    return " ".join(str(error) for error in errors)


@pytest.mark.parametrize("table", TABLES)
def test_lists_search_and_filter_in_few_queries(editor, table, django_assert_max_num_queries):
    url = reverse(f"admin:catalog_{table}_changelist")
    with django_assert_max_num_queries(20):
        assert editor.get(url).status_code == 200
    found = editor.get(url, {"q": "aws" if table != "accelerator" else "h100"})
    everything = editor.get(url)
    assert 0 < found.context["cl"].result_count < everything.context["cl"].queryset.count()
    assert everything.context["cl"].has_filters


@pytest.mark.parametrize("model", [Accelerator, Provider, Server, Fabric, Offer])
def test_history_pages_open(editor, model):
    response = editor.get(page(model.objects.first(), "history"))
    assert response.status_code == 200
    assert "shipped files" in response.content.decode()


def test_saving_records_who_marks_the_row_and_gives_a_new_revision(editor):
    row, before = Accelerator.objects.get(key="h100-sxm5-80"), current_revision()
    response = editor.post(page(row), filled(editor, page(row), tdp_w="690"))
    assert response.status_code == 302
    row.refresh_from_db()
    assert (row.tdp_w, row.edited) == (690, True)
    assert current_revision() > before
    assert CatalogRevision.objects.first().user.username == "editor"
    newest = row.history.first()
    assert (newest.tdp_w, newest.history_user.username, newest.prev_record.tdp_w) == (690, "editor", 700)


def test_an_edited_value_outlives_the_next_loading(editor):
    row = Accelerator.objects.get(key="h100-sxm5-80")
    editor.post(page(row), filled(editor, page(row), tdp_w="690"))
    Accelerator.objects.filter(pk=row.pk).update(file_hash="of an older file")
    report = load_catalog()
    row.refresh_from_db()
    assert row.tdp_w == 690
    assert report.tables["accelerators"].kept == 1


@pytest.mark.parametrize("model", [Accelerator, Provider, Server, Fabric, Offer])
def test_saving_without_a_change_changes_nothing(editor, model):
    for row in (model.objects.order_by("pk").first(), model.objects.order_by("pk").last()):
        before = current_revision(), row.history.count()
        response = editor.post(page(row), filled(editor, page(row)))
        assert response.status_code == 302, sentences(response)
        row.refresh_from_db()
        assert not row.edited
        assert before == (current_revision(), row.history.count())


def test_bandwidths_are_typed_in_gb_per_second(editor):
    row = Fabric.objects.get(server__sku="p4d.24xlarge")
    data = filled(editor, page(row))
    assert (data["bandwidth_bytes_per_s"], data["network_bandwidth_bytes_per_s"]) == ("300", "400")
    editor.post(page(row), data | {"network_bandwidth_bytes_per_s": "800"})
    row.refresh_from_db()
    assert row.network_bandwidth_bytes_per_s == 100e9
    assert row.bandwidth_bytes_per_s == 300e9


def test_the_fabric_is_edited_inside_its_server(editor):
    server, before = Server.objects.get(sku="g5.12xlarge"), current_revision()
    typed = {"fabric-0-pcie_lanes": "16", "fabric-0-pcie_bandwidth_bytes_per_s": "31.5"}
    response = editor.post(page(server), filled(editor, page(server), **typed))
    assert response.status_code == 302, sentences(response)
    fabric = Fabric.objects.get(server=server)
    assert (fabric.pcie_lanes, fabric.pcie_bandwidth_bytes_per_s, fabric.edited) == (16, 31.5e9, True)
    assert not Server.objects.get(pk=server.pk).edited
    assert current_revision() > before


@pytest.mark.parametrize(
    ("sku", "typed", "says"),
    [
        ("p6-b200.48xlarge", {"fabric-0-bandwidth_bytes_per_s": "1800000"}, "a thousand times too much"),
        ("p6-b200.48xlarge", {"fabric-0-bandwidth_bytes_per_s": "32400"}, "not per link"),
        ("p6-b200.48xlarge", {"fabric-0-bandwidth_bytes_per_s": "1800"}, "Enter one direction: 900 GB/s"),
        ("ct5lp-hightpu-8t (v5e)", {"fabric-0-topology": "nvswitch-full"}, "its links are ICI"),
        ("g5.12xlarge", {"fabric-0-topology": "nvlink-direct"}, "A10G has no NVLink"),
    ],
)
def test_wrong_claims_about_links_are_caught_in_words(editor, sku, typed, says):
    server, before = Server.objects.get(sku=sku), current_revision()
    response = editor.post(page(server), filled(editor, page(server), **typed))
    assert response.status_code == 200
    assert says in sentences(response)
    assert current_revision() == before


def test_a_sparse_peak_is_caught_in_words(editor):
    row = Accelerator.objects.get(key="h100-sxm5-80")
    response = editor.post(page(row), filled(editor, page(row), dense_bf16_flops_per_s="1978.9"))
    assert "enter half: 989.45" in sentences(response)
    row.refresh_from_db()
    assert row.dense_bf16_flops_per_s == 989.4e12


def test_a_price_per_accelerator_is_caught_in_words(editor):
    on_demand = Offer.objects.get(server__sku="p4d.24xlarge", region="us-east-1", status="live")
    data = as_new(on_demand, pricing_model="spot", price_per_hour=on_demand.price_per_hour / 8, source="typed by hand")
    response = editor.post(reverse("admin:catalog_offer_add"), data)
    assert "looks like the price of one accelerator" in sentences(response)


@pytest.mark.parametrize(
    ("model", "field", "typed", "says"),
    [
        (Accelerator, "memory_bytes", "1e308", "No machine has more than 100,000,000 MiB."),
        (Accelerator, "memory_bytes", "-1e308", "No machine has more than 100,000,000 MiB."),
        (Accelerator, "memory_bytes", "nan", "Enter a number."),
        (Accelerator, "memory_bytes", "inf", "Enter a number."),
        (Accelerator, "dense_bf16_flops_per_s", "1e300", "No machine has more than 100,000,000 TFLOP/s."),
        (Server, "local_storage_bytes", "1e300", "No machine has more than 1,000,000 TB."),
        (Server, "memory_bytes", "2e6", "No machine has more than 1,000,000 GB."),
    ],
)
def test_numbers_beyond_any_machine_are_one_sentence(editor, model, field, typed, says):
    row, before = model.objects.first(), current_revision()
    response = editor.post(page(row), filled(editor, page(row), **{field: typed}))
    assert response.status_code == 200
    assert response.context["adminform"].form.errors == {field: [says]}
    assert current_revision() == before


@pytest.mark.parametrize("day", [date(2999, 1, 1), timezone.now().date() + timedelta(days=3)])
def test_a_price_of_a_day_to_come_is_refused(editor, day):
    data = as_new(Offer.objects.filter(status="live").first(), observed_on=day, source="typed by hand")
    response = editor.post(reverse("admin:catalog_offer_add"), data)
    assert f"{day} has not come yet." in sentences(response)
    assert not Offer.objects.filter(source="typed by hand").exists()


def test_a_price_of_a_day_that_has_begun_somewhere_is_taken(editor):
    tomorrow = timezone.now().date() + timedelta(days=1)
    data = as_new(Offer.objects.filter(status="live").first(), observed_on=tomorrow, source="typed by hand")
    response = editor.post(reverse("admin:catalog_offer_add"), data)
    assert response.status_code == 302, sentences(response)
    assert Offer.objects.get(source="typed by hand").observed_on == tomorrow


@pytest.mark.parametrize("table", TABLES)
def test_pages_of_new_and_of_known_rows_open_in_chinese(editor, table):
    model = apps.get_model("catalog", table)
    with translation.override("zh-hant"):
        name = str(model._meta.verbose_name)
    for url in (reverse(f"admin:catalog_{table}_add"), page(model.objects.first())):
        response = editor.get(url, headers={"accept-language": "zh-TW"})
        assert response.status_code == 200
        assert '<html lang="zh-hant"' in response.content.decode()
        assert name in response.content.decode()


def test_the_eight_peaks_are_labelled_in_chinese(editor):
    said = editor.get(reverse("admin:catalog_accelerator_add"), headers={"accept-language": "zh-TW"}).content.decode()
    for dtype in DTYPES:
        assert re.search(rf"{dtype} 稠密峰值（TFLOP/s）", said, re.IGNORECASE)
    assert "dense" not in re.sub(r"dense_\w+", "", said)


def test_a_new_server_with_its_fabric_can_be_added(editor):
    card, provider = Accelerator.objects.get(key="l40s"), Provider.objects.get(key="aws")
    url, before = reverse("admin:catalog_server_add"), current_revision()
    server = {"provider": provider.pk, "sku": "g9.big", "accelerator": card.pk, "gpu_count": "4"}
    both = {"source": "the provider's page", "source_licence": "facts-only", "confidence": "low"}
    fabric = {f"fabric-0-{name}": value for name, value in {"topology": "pcie-root", **both}.items()}
    response = editor.post(url, filled(editor, url, **server, **both, **fabric))
    assert response.status_code == 302, sentences(response)
    assert Server.objects.get(sku="g9.big").fabric.topology == "pcie-root"
    assert Server.objects.get(sku="g9.big").edited
    assert current_revision() > before


def test_an_older_version_can_be_brought_back(editor):
    row = Accelerator.objects.get(key="h100-sxm5-80")
    editor.post(page(row), filled(editor, page(row), tdp_w="690"))
    first = row.history.order_by("history_id").first()
    url = reverse("admin:catalog_accelerator_simple_history", args=[row.pk, first.pk])
    context = editor.get(url).context
    data = {field.html_name: field.value() for field in context["adminform"].form if field.value() not in (None, False)}
    assert editor.post(url, data).status_code == 302
    row.refresh_from_db()
    assert (row.tdp_w, row.edited) == (700, True)
    assert [old.tdp_w for old in row.history.all()] == [700, 690, 700]


def test_shipped_rows_are_not_deleted_and_own_rows_are(editor):
    shipped_row = Provider.objects.get(key="aws")
    own = Provider.objects.create(key="ours", name="Ours", source="us", source_licence="facts-only", edited=True)
    before = current_revision()
    assert editor.post(page(shipped_row, "delete"), {"post": "yes"}).status_code == 403
    assert editor.post(page(own, "delete"), {"post": "yes"}).status_code == 302
    assert list(Provider.objects.filter(key__in=["aws", "ours"])) == [shipped_row]
    assert current_revision() > before


@pytest.mark.parametrize(
    ("model", "typed"),
    [
        (Accelerator, {"key": "renamed"}),
        (Provider, {"key": "renamed"}),
        (Server, {"sku": "renamed", "provider": "1"}),
        (Fabric, {"server": "1"}),
        (Offer, {"region": "moved", "observed_on": "2026-01-02", "source": "typed by hand", "currency": "EUR"}),
        (Offer, {"tenancy": "vm", "pricing_model": "reserved_3y", "server": "1"}),
    ],
)
def test_natural_keys_do_not_change(editor, model, typed):
    row = model.objects.order_by("pk").last()
    before = model.objects.filter(pk=row.pk).values().get()
    response = editor.post(page(row), filled(editor, page(row)) | typed | {"notes": "seen again"})
    assert response.status_code == 302, sentences(response)
    after = model.objects.filter(pk=row.pk).values().get()
    assert {name for name in after if after[name] != before[name]} == {"notes", "edited"}


def test_a_viewer_may_look_and_not_touch(client):
    user = User.objects.create_user("viewer", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_accelerator"))
    client.force_login(user)
    row = Accelerator.objects.get(key="h100-sxm5-80")
    assert client.get(page(row)).status_code == 200
    assert client.post(page(row), {"tdp_w": "1"}).status_code == 403
    assert client.get(reverse("admin:catalog_offer_changelist")).status_code == 403
    row.refresh_from_db()
    assert row.tdp_w == 700
