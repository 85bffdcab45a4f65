"""Loading: idempotent by natural key, all or nothing, and never over an editor's head."""

from decimal import Decimal

import pytest
from django.core.management import call_command
from django.db import IntegrityError

from catalog import columns
from catalog.layouts import FileRefused
from catalog.loading import load_catalog
from catalog.models import Accelerator, CatalogRevision, CostLine, Fabric, Offer, Provider, Region, Server
from catalog.provenance import origin
from tests.catalog.conftest import write
from tests.catalog.lists import imported, row, sky

pytestmark = pytest.mark.django_db

HISTORIES = [model.history for model in (Accelerator, CostLine, Fabric, Offer, Provider, Region, Server)]


def history_rows() -> int:
    return sum(history.count() for history in HISTORIES)


def test_first_run_creates_everything_with_history_and_one_revision(small):
    report = load_catalog(small)
    counts = {name: table.created for name, table in report.tables.items()}
    assert counts == {name: len(list(columns.cells(small / f"{name}.csv"))) for name in counts}
    assert (counts["accelerators"], counts["servers"], counts["fabrics"]) == (3, 4, 4)
    assert min(counts.values()) > 0
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
    assert fabric.version == 2
    assert [old.pcie_lanes for old in fabric.history.order_by("history_id")] == [8, 16]


def test_a_file_may_lack_what_is_not_required(small):
    for name in ("regions", "cost_lines", "field_sources"):
        (small / f"{name}.csv").unlink()
    offers = [{**row, "zone": None} for row in columns.cells(small / "offers.csv")]
    write(small / "offers.csv", [{name: cell for name, cell in row.items() if cell is not None} for row in offers])
    report = load_catalog(small)
    assert report.tables["regions"].created == 0
    assert set(Offer.objects.values_list("zone", flat=True)) == {""}


def test_what_is_derived_follows_when_a_file_changes(small, edit):
    load_catalog(small)
    edit("servers", {"sku": "p4d.24xlarge"}, {"gpu_count": "4"})
    edit("offers", {"sku": "g5.12xlarge"}, {"price_per_server_hour": "8"})
    load_catalog(small)
    for offer in Offer.objects.select_related("server"):
        assert offer.price_per_gpu_hour == pytest.approx(offer.price_per_hour / offer.server.gpu_count)
    assert Offer.objects.filter(server__sku="g5.12xlarge", price_per_gpu_hour=2).exists()


def test_a_value_with_its_own_source_keeps_it_and_what_another_source_prints(small, edit):
    load_catalog(small)
    edit("field_sources", {"key": "a10g", "field": "tdp_w"}, {"reason": "read again"})
    second = load_catalog(small)
    found = origin(Accelerator.objects.get(key="a10g"), "tdp_w")
    assert second.tables["accelerators"].updated == 1
    assert (found.own, found.reason, found.replaced[0].value) == (True, "read again", "150 W")
    assert not origin(Accelerator.objects.get(key="a10g"), "memory_bytes").own


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ({"key": "a11g"}, "accelerators has no row a11g"),
        ({"field": "power"}, "accelerators has no column power"),
        ({"table": "cards"}, "column table: “cards” is not known here"),
        ({"confidence": "sure"}, "column confidence: “sure” is not known here"),
    ],
)
def test_a_source_of_nothing_is_told(small, edit, cells, says):
    edit("field_sources", {"key": "a10g", "field": "tdp_w"}, cells)
    with pytest.raises(FileRefused, match=says) as refused:
        load_catalog(small)
    assert str(refused.value).startswith("field_sources.csv: Line ")


def test_a_row_that_refers_to_none_is_told(small, edit):
    edit("servers", {"sku": "g5.12xlarge"}, {"accelerator": "a11g"})
    with pytest.raises(FileRefused, match=r"servers.csv: Line \d, column accelerator: There is no a11g."):
        load_catalog(small)


def test_a_new_price_on_a_new_day_is_a_new_offer(small, edit):
    load_catalog(small)
    offer = Offer.objects.filter(server__sku="p4d.24xlarge").first()
    match = {"sku": "p4d.24xlarge", "region": offer.region, "observed_on": offer.observed_on.isoformat()}
    edit("offers", match, {"price_per_server_hour": "9.99", "observed_on": "2026-11-29", "last_seen_on": ""})
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


def test_a_price_that_an_imported_list_has_ended_does_not_come_back(small, edit):
    load_catalog(small)
    shipped = {"sku": "g5.12xlarge", "pricing_model": "on_demand"}
    offer = Offer.objects.filter(server__sku="g5.12xlarge", pricing_model="on_demand").first()
    imported(sky(row(region="another")), "2026-11-05", source=offer.source)

    for notes in ("once", "twice"):
        edit("offers", shipped, {"notes": notes})
        assert load_catalog(small).tables["offers"].updated
        offer.refresh_from_db()
        assert (offer.notes, offer.status, str(offer.valid_to)) == (notes, "retired", "2026-11-04")


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


def test_a_cost_line_whose_place_an_edited_one_has_is_skipped(small, caplog):
    load_catalog(small)
    line = CostLine.objects.filter(server=None).first()
    CostLine.objects.filter(pk=line.pk).update(key="of another", edited=True)
    report = load_catalog(small)
    assert (report.tables["cost_lines"].created, report.tables["cost_lines"].skipped) == (0, 1)
    assert f"row {line.pk} has its place" in caplog.text


@pytest.mark.parametrize(
    ("cells", "error"),
    [({"price_per_server_hour": "-1"}, FileRefused), ({"last_seen_on": "2001-01-01"}, IntegrityError)],
)
def test_a_bad_file_leaves_the_catalog_as_it_was(small, edit, cells, error):
    edit("offers", {"sku": "g5.12xlarge"}, cells)
    with pytest.raises(error):
        load_catalog(small)
    assert not Accelerator.objects.exists()
    assert not CatalogRevision.objects.exists()


def test_few_queries_whatever_the_size(small, django_assert_max_num_queries):
    # of each of seven tables: what is known, its unique places, rows and their history; what rows refer to
    with django_assert_max_num_queries(34):
        load_catalog(small)
    # of each table what is known; the lock and a savepoint
    with django_assert_max_num_queries(10):
        load_catalog(small)


def test_the_command_loads_the_shipped_files_and_says_so(capsys):
    call_command("load_catalog")
    offer = Offer.objects.filter(server__sku="p4d.24xlarge").first()
    Offer.objects.filter(pk=offer.pk).update(key="of another day", edited=True)
    call_command("load_catalog")
    said = capsys.readouterr().out
    offers = len(columns.shipped("offers"))
    assert f"offers: {offers} created" in said
    assert f"offers: {offers - 1} unchanged, 1 skipped" in said
    assert said.endswith("The catalog is up to date.\n")
    assert Offer.objects.get(
        server__sku="p4d.24xlarge",
        region="us-east-1",
        status="live",
        observed_on="2026-07-20",
        pricing_model="on_demand",
    ).price_per_hour == Decimal("21.9576")
