"""Loading: idempotent by natural key, all or nothing, and never over an editor's head."""

from decimal import Decimal

import pytest
from django.core.management import call_command
from django.db import IntegrityError

from catalog.loading import load_catalog
from catalog.models import Accelerator, CatalogRevision, Fabric, Offer, Provider, Server

pytestmark = pytest.mark.django_db

HISTORIES = (Accelerator.history, Fabric.history, Offer.history, Provider.history, Server.history)


def history_rows() -> int:
    return sum(history.count() for history in HISTORIES)


def test_first_run_creates_everything_with_history_and_one_revision(small):
    report = load_catalog(small)
    counts = {name: table.created for name, table in report.tables.items()}
    assert counts == {"providers": 2, "accelerators": 3, "servers": 4, "fabrics": 4, "offers": 11}
    assert history_rows() == sum(counts.values())
    assert [revision.number for revision in CatalogRevision.objects.all()] == [report.revision]


def test_second_run_changes_nothing(small):
    load_catalog(small)
    before = history_rows(), CatalogRevision.objects.count(), list(Offer.objects.order_by("pk").values())
    report = load_catalog(small)
    assert report.revision is None
    assert {(table.created, table.updated, table.kept) for table in report.tables.values()} == {(0, 0, 0)}
    assert before == (history_rows(), CatalogRevision.objects.count(), list(Offer.objects.order_by("pk").values()))


def test_units_become_base_units(small):
    load_catalog(small)
    card = Accelerator.objects.get(key="h100-pcie-80")
    fabric = Fabric.objects.get(server__sku="p4d.24xlarge")
    assert card.memory_bytes == 81559 * 2**20
    assert card.dense_bf16_flops_per_s == 756e12
    assert card.scaleup_bandwidth_bytes_per_s == 300e9
    assert fabric.bandwidth_bytes_per_s == 300e9
    assert fabric.network_bandwidth_bytes_per_s == 50e9
    assert fabric.server.memory_bytes == 1152 * 10**9


def test_a_changed_file_updates_the_row_and_keeps_the_old_value_in_the_history(small, edit):
    first = load_catalog(small)
    edit("fabrics", {"sku": "g5.12xlarge"}, {"pcie_lanes": "16", "host_link_gb_per_s_one_direction": "31.5"})
    second = load_catalog(small)
    fabric = Fabric.objects.get(server__sku="g5.12xlarge")
    assert second.tables["fabrics"].updated == 1
    assert second.revision > first.revision
    assert fabric.pcie_lanes == 16
    assert [old.pcie_lanes for old in fabric.history.order_by("history_id")] == [8, 16]


def test_a_new_price_on_a_new_day_is_a_new_offer(small, edit):
    load_catalog(small)
    offer = Offer.objects.filter(server__sku="p4d.24xlarge").first()
    match = {"sku": "p4d.24xlarge", "region": offer.region, "observed_on": offer.observed_on.isoformat()}
    edit("offers", match, {"price_per_server_hour": "9.99", "observed_on": "2026-11-29"})
    report = load_catalog(small)
    assert report.tables["offers"].created == 1
    assert Offer.objects.get(pk=offer.pk).price_per_hour == offer.price_per_hour


def test_an_edited_row_is_kept_when_the_file_changes(small, edit):
    load_catalog(small)
    Accelerator.objects.filter(key="a10g").update(tdp_w=150, edited=True)
    edit("accelerators", {"key": "a10g"}, {"tdp_w": "299", "launch_year": "2020"})
    edit("accelerators", {"key": "h100-pcie-80"}, {"tdp_w": "351"})
    report = load_catalog(small)
    assert (report.tables["accelerators"].kept, report.tables["accelerators"].updated) == (1, 1)
    assert Accelerator.objects.get(key="a10g").tdp_w == 150
    assert Accelerator.objects.get(key="h100-pcie-80").tdp_w == 351


def test_a_row_that_an_editor_made_first_is_kept(small):
    Provider.objects.create(key="aws", name="Our AWS contract", edited=True)
    report = load_catalog(small)
    assert report.tables["providers"].kept == 1
    assert Provider.objects.get(key="aws").name == "Our AWS contract"


def test_a_row_whose_place_an_edited_row_has_is_skipped_and_counted_and_the_rest_is_loaded(small, edit, caplog):
    load_catalog(small)
    edited = Offer.objects.filter(server__sku="p4d.24xlarge").first()
    Offer.objects.filter(pk=edited.pk).update(region="moved", edited=True)
    match = {"sku": "p4d.24xlarge", "region": edited.region, "observed_on": edited.observed_on.isoformat()}
    edit("offers", match, {"region": "moved", "price_per_server_hour": "9.99"})
    edit("offers", {"sku": "g5.12xlarge"}, {"region": "nowhere-1"})
    wanted = Offer.objects.filter(server__sku="g5.12xlarge").count()

    first, second = load_catalog(small), load_catalog(small)

    assert (first.tables["offers"].created, first.tables["offers"].skipped) == (wanted, 1)
    assert (second.tables["offers"].created, second.tables["offers"].skipped, second.revision) == (0, 1, None)
    assert Offer.objects.get(region="moved").price_per_hour == edited.price_per_hour
    assert Offer.objects.filter(region="nowhere-1").count() == wanted
    assert f"row {edited.pk} has its place" in caplog.text


def test_the_command_says_how_many_rows_were_skipped(capsys):
    call_command("load_catalog", verbosity=0)
    offer = Offer.objects.filter(server__sku="p4d.24xlarge").first()
    Offer.objects.filter(pk=offer.pk).update(key="of another day", edited=True)
    call_command("load_catalog")
    assert "offers: 2700 unchanged, 1 skipped" in capsys.readouterr().out


def test_a_bad_file_leaves_the_catalog_as_it_was(small, edit):
    edit("offers", {"sku": "g5.12xlarge"}, {"price_per_server_hour": "-1"})
    with pytest.raises(IntegrityError):
        load_catalog(small)
    assert not Accelerator.objects.exists()
    assert not CatalogRevision.objects.exists()


def test_few_queries_whatever_the_size(small, django_assert_max_num_queries):
    with django_assert_max_num_queries(35):
        load_catalog(small)
    with django_assert_max_num_queries(12):
        load_catalog(small)


def test_the_command_loads_the_shipped_files_and_says_so(capsys):
    call_command("load_catalog")
    call_command("load_catalog")
    said = capsys.readouterr().out
    assert "offers: 2701 created" in said
    assert "offers: 2701 unchanged" in said
    assert said.endswith("The catalog is up to date.\n")
    assert Offer.objects.get(
        server__sku="p4d.24xlarge",
        region="us-east-1",
        status="live",
        observed_on="2026-07-20",
        pricing_model="on_demand",
    ).price_per_hour == Decimal("21.9576")
