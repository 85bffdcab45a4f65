"""What a list changes in the catalog: new, moved, gone, held back, taken back."""

import io
import json
import zipfile
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from catalog.changes import Change, ChangesRefused, apply_changes
from catalog.importers import decisions, jobs
from catalog.importers.errors import ImportRefused
from catalog.loading import load_catalog
from catalog.models import Accelerator, Offer, PrintedName, Region, Server
from catalog.models.revision import RevisionOrigin
from catalog.selectors import current_revision, offer_specs
from tests.catalog.lists import HEADER, SOURCE, imported, prices, row, sky, start, work

pytestmark = pytest.mark.django_db
SIX = [row(region=f"r{number}") for number in range(6)]


@pytest.fixture(autouse=True)
def catalog(small: Path) -> None:
    load_catalog(small)


def price_on(day: str) -> list[str]:
    """What the engine reads of the list's prices on a day."""
    found = [offer for offer in offer_specs(on=date.fromisoformat(day)) if offer.source == SOURCE]
    return [f"{offer.price_per_hour:.2f}" for offer in found]


def change_price(offer: Offer, price: str) -> None:
    change = Change(table="offers", key=offer.key, values={"price_per_hour": price})
    apply_changes([change], origin=RevisionOrigin.ADMIN, summary="typed")


def everything() -> dict[str, list]:
    """All that an import may touch, but the versions."""
    plain: dict[str, list] = {}
    for model in (Offer, Server, Region, PrintedName):
        names = [f.attname for f in model._meta.concrete_fields if f.name != "version"]
        plain[model.__name__] = sorted(map(str, model.objects.values_list(*names)))
    return plain


def test_on_demand_and_spot_of_a_known_server() -> None:
    imported(sky(row(spot="2.1", zone="use1-az1")))

    spot, on_demand = Offer.objects.filter(source=SOURCE).order_by("price_per_hour")
    assert (spot.pricing_model, on_demand.pricing_model) == ("spot", "on_demand")
    assert (on_demand.price_per_gpu_hour, on_demand.zone, on_demand.tenancy) == (Decimal("1.4"), "use1-az1", "vm")
    assert on_demand.printed["AcceleratorName"] == "A10G"
    assert on_demand.key == on_demand.natural_key()
    assert Region.objects.filter(provider__key="aws", name="us-east-1").exists()
    assert not on_demand.history.exists()
    on_demand.full_clean()


def test_a_moved_price_is_a_new_row_and_past_days_find_the_old_one() -> None:
    imported(sky(row()), "2026-11-01")
    imported(sky(row(price="6.0")), "2026-11-05")
    imported(sky(row(price="6.0")), "2026-11-07")

    assert prices() == [
        ("retired", "2026-11-01", "2026-11-04", "5.60"),
        ("live", "2026-11-05", "", "6.00"),
    ]
    assert (price_on("2026-10-31"), price_on("2026-11-04"), price_on("2026-11-05")) == ([], ["5.60"], ["6.00"])
    assert Offer.objects.get(price_per_hour=6).last_seen_on == date(2026, 11, 7)


def test_what_the_list_no_longer_prints_ends_and_may_come_back() -> None:
    imported(sky(*SIX), "2026-11-01")
    imported(sky(*SIX[1:]), "2026-11-05")
    gone = prices(region="r0")
    imported(sky(*SIX), "2026-11-09")

    assert gone == [("retired", "2026-11-01", "2026-11-04", "5.60")]
    assert prices(region="r0")[1:] == [("live", "2026-11-09", "", "5.60")]
    assert len(price_on("2026-11-04")) == len(price_on("2026-11-09")) == 6
    assert len(price_on("2026-11-06")) == 5


def test_a_second_list_of_the_same_day_corrects_the_first() -> None:
    imported(sky(row(), row(region="r1")))
    imported(sky(row(price="6.1")))
    imported(sky(row(price="6.1"), row(region="r1")))

    assert prices(region="us-east-1") == [("live", "2026-11-01", "", "6.10")]
    assert prices(region="r1") == [("live", "2026-11-01", "", "5.60")]


def test_other_sources_and_other_providers_are_left_alone() -> None:
    before = list(Offer.objects.values_list("pk", "status", "last_seen_on"))
    imported(sky(row()))
    imported(sky(row(price="9")), source="another list")

    assert (
        list(Offer.objects.filter(pk__in=[pk for pk, *_ in before]).values_list("pk", "status", "last_seen_on"))
        == before
    )
    assert prices() == [("live", "2026-11-01", "", "5.60")]


def test_two_kinds_of_lists_of_one_source_share_its_prices_but_not_what_they_end() -> None:
    top = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot\n"
    rows = "".join(f"g5.12xlarge,{region},5.6,48,192,4,A10G,24,False\n" for region in ("us-east-1", "r1"))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("aws.csv", top + rows)
    imported(file.getvalue(), list_format="gpuhunt", provider=None)

    imported(sky(row(price="6")))
    imported(sky(row(price="6.2")), "2026-11-03")

    moved = [("retired", "2026-11-01", "2026-11-02", "6.00"), ("live", "2026-11-03", "", "6.20")]
    assert prices(region="us-east-1") == moved
    assert prices(region="r1") == [("live", "2026-11-01", "", "5.60")]


def test_an_older_list_is_refused() -> None:
    imported(sky(row()), "2026-11-05")

    job = work(start(sky(row(price="5")), "2026-11-04"))

    assert job.error_code == "older-list"
    assert "2026-11-05" in jobs.problem_of(job)


def test_a_new_server_brings_its_fabric_only_as_far_as_it_is_certain() -> None:
    imported(
        sky(
            row(sku="p4x", card="A100-SXM4-40GB", count="8", price="20"),
            row(sku="g5x", count="2", price="2"),
            row(sku="h8", card="H100", count="8", price="50"),
        )
    )

    nvlink, pair, unknown = (Server.objects.select_related("fabric").get(sku=sku) for sku in ("p4x", "g5x", "h8"))
    assert (nvlink.accelerator.key, nvlink.fabric.topology, nvlink.fabric.topology_basis) == (
        *("a100-sxm4-40", "nvswitch-full"),
        "rule",
    )
    assert nvlink.fabric.bandwidth_bytes_per_s == 300e9
    assert (pair.accelerator.key, pair.fabric.topology, pair.fabric.topology_basis) == ("a10g", "unknown", "")
    assert (unknown.accelerator, unknown.accelerator_printed, unknown.fabric.topology) == (None, "H100", "unknown")
    for server in (nvlink, pair, unknown):
        server.full_clean()
        server.fabric.full_clean()


def test_rows_that_have_no_place_are_counted_by_reason() -> None:
    job = work(
        start(
            sky(
                row(),
                row(),
                row(count="0.5"),
                row(sku="a/b"),
                row(count="999"),
                row(price=""),
                row(card=""),
                row(sku="p2.xlarge", card="K80"),
            )
        )
    )

    assert job.report["reasons"]["left_out"] == {
        "twice-in-list": 1,
        "part-of-one": 1,
        "slash-in-name": 1,
        "too-many-accelerators": 1,
        "no-price": 1,
        "no-accelerator": 1,
        "no-longer-rented": 1,
    }
    assert job.report["counts"]["new"] == 1


def test_an_unknown_name_waits_for_an_editor_who_settles_it_for_stored_servers_too() -> None:
    imported(sky(row(sku="x1", card="Z9000", price="9", count="1"), row(sku="x2", card="Z9000", price="9", count="2")))
    name = PrintedName.objects.get()
    assert (name.state, name.provider, name.rows, name.example) == ("open", "aws", 2, "aws/x1")
    before = current_revision()

    known = decisions.decide_name(name, Accelerator.objects.get(key="a10g"), None)

    assert (known, current_revision()) == (2, before + 1)
    servers = Server.objects.filter(accelerator_printed="Z9000").order_by("sku")
    assert [(s.accelerator.key, s.fabric.topology) for s in servers] == [("a10g", "single"), ("a10g", "unknown")]
    job = work(start(sky(row(sku="x3", card="Z9000", price="9", count="1")), "2026-11-02"))
    assert job.report["servers"]["samples"][0]["accelerator"] == "a10g"


def test_a_decided_name_is_not_believed_where_server_or_memory_say_otherwise() -> None:
    def memory(mebi: int) -> str:
        return json.dumps({"Gpus": [{"MemoryInfo": {"SizeInMiB": mebi}}]})

    def listed(sku: str, info: str = "") -> tuple[str, ...]:
        return (*row(sku=sku, card="Z9000", price="9", count="1"), info)

    header = (*HEADER, "GpuInfo")
    imported(sky(listed("x"), listed("x-pcie"), listed("x-4", memory(40960)), listed("x-8", memory(81920)), top=header))

    decisions.decide_name(PrintedName.objects.get(), Accelerator.objects.get(key="a100-sxm4-40"), None)
    imported(sky(listed("y"), listed("y-pcie"), listed("y-80", memory(81920)), top=header), "2026-11-02")

    known = Server.objects.filter(accelerator__key="a100-sxm4-40", accelerator_printed__in=["", "Z9000"])
    assert set(known.filter(source=SOURCE).values_list("sku", flat=True)) == {"x", "x-4", "y"}


def test_a_rejected_name_is_left_out() -> None:
    imported(sky(row(), row(sku="x1", card="Z9000", price="9", count="1")))
    decisions.decide_name(PrintedName.objects.get(), None, None)

    job = work(start(sky(row(), row(sku="x1", card="Z9000", price="9", count="1")), "2026-11-02"))

    assert job.report["reasons"]["left_out"] == {"name-rejected": 1}


def held(price: str = "9") -> Offer:
    """A price that jumped, beside the one that it might replace."""
    imported(sky(row()), "2026-11-01")
    imported(sky(row(price=price)), "2026-11-05")
    return Offer.objects.get(status="quarantined")


def test_what_looks_wrong_is_held_back_beside_the_live_price() -> None:
    offer = held()

    assert offer.quarantine_reason.startswith("The price went from 5.60 to 9.00")
    assert price_on("2026-11-06") == ["5.60"]
    assert work(start(sky(row(price="9"), row(price="8")), "2026-11-05")).report["counts"]["held_back"] == 0


def test_a_released_price_replaces_the_old_one_and_is_not_held_back_again() -> None:
    offer = held()

    decisions.release([offer], None, "checked on their page")

    assert prices() == [("retired", "2026-11-01", "2026-11-04", "5.60"), ("live", "2026-11-05", "", "9.00")]
    imported(sky(row(price="9")), "2026-11-06")
    assert price_on("2026-11-06") == ["9.00"]


def test_a_refused_price_does_not_come_back_until_it_changes() -> None:
    decisions.refuse([held()], None, "a slip of theirs")

    imported(sky(row(price="9")), "2026-11-06")
    assert [status for status, *_ in prices()] == ["live", "retired"]
    imported(sky(row(price="6")), "2026-11-07")

    assert price_on("2026-11-06") == ["5.60"]
    assert price_on("2026-11-07") == ["6.00"]


def test_a_held_back_price_that_the_list_drops_never_counts() -> None:
    held()

    imported(sky(row(price="5.7")), "2026-11-06")

    assert [(status, price) for status, _, _, price in prices()] == [
        ("retired", "5.60"),
        ("retired", "9.00"),
        ("live", "5.70"),
    ]
    assert price_on("2026-11-05") == ["5.60"]


def test_a_price_that_cannot_be_right_is_not_released() -> None:
    imported(sky(row(spot="6")))

    with pytest.raises(ChangesRefused):
        decisions.release(Offer.objects.filter(status="quarantined"), None, "")


def test_a_price_that_a_person_typed_stays() -> None:
    imported(sky(row()), "2026-11-01")
    change_price(Offer.objects.get(source=SOURCE), "5.0")

    job = imported(sky(row(price="5.9")), "2026-11-05")

    assert (job.report["counts"]["kept"], prices()) == (1, [("live", "2026-11-01", "", "5.00")])


def test_a_list_that_lacks_much_of_a_provider_asks_for_a_person() -> None:
    imported(sky(*SIX))

    job = work(start(sky(*SIX[:3]), "2026-11-02"))

    assert job.report["providers"]["aws"] == {"rows": 3, "current": 6, "moved": 0, "gone": 3}
    assert [asked["code"] for asked in job.report["asks_for_a_person"]] == ["many-gone"]


def test_taking_an_import_back_leaves_everything_as_it_was() -> None:
    imported(sky(*SIX, row(sku="y", card="Q1", count="1", price="1")), "2026-11-01")
    before = everything()
    second = [row(price="6"), *SIX[1:4], row(region="new"), row(sku="x1", card="Z9000", price="9", count="1")]
    job = imported(sky(*second, row(region="r4", price="20"), row(sku="y", card="Q1", count="1")), "2026-11-05")
    assert everything() != before
    revision = current_revision()

    kept = jobs.roll_back(job, None)

    assert (kept, job.status, current_revision()) == (0, "rolled_back", revision + 1)
    assert everything() == before
    with pytest.raises(ImportRefused):
        jobs.roll_back(job, None)


def test_what_a_person_changed_since_stays_when_an_import_is_taken_back() -> None:
    job = imported(sky(row(), row(sku="x1", count="1", price="1"), row(sku="x2", count="1", price="1")))
    change_price(Offer.objects.get(server__sku="x1"), "1.1")

    kept = jobs.roll_back(job, None)

    # the offer and the server that it needs
    assert (kept, prices(), job.report["kept_at_rollback"]) == (2, [("live", "2026-11-01", "", "1.10")], 2)
    assert set(Server.objects.filter(source=SOURCE).values_list("sku", flat=True)) == {"x1"}


def test_a_price_that_a_person_keeps_is_the_only_one_when_an_import_is_taken_back() -> None:
    imported(sky(row()), "2026-11-01")
    job = imported(sky(row(price="6")), "2026-11-05")
    change_price(Offer.objects.get(source=SOURCE, status="live"), "6.5")

    jobs.roll_back(job, None)

    assert prices() == [("retired", "2026-11-01", "2026-11-04", "5.60"), ("live", "2026-11-05", "", "6.50")]


def test_the_next_list_ends_what_is_live_beside_a_newer_price() -> None:
    imported(sky(row()), "2026-11-01")
    typed = {"server": "aws/g5.12xlarge", "region": "us-east-1", "tenancy": "vm", "pricing_model": "on_demand"}
    typed |= {"price_per_hour": "5.7", "observed_on": "2026-11-03", "source": SOURCE, "source_licence": "facts-only"}
    apply_changes([Change(table="offers", key="", values=typed)], origin=RevisionOrigin.ADMIN, summary="typed")

    imported(sky(row(price="5.7")), "2026-11-05")
    assert prices() == [("retired", "2026-11-01", "2026-11-02", "5.60"), ("live", "2026-11-03", "", "5.70")]
    imported(sky(row(region="r1")), "2026-11-06")

    assert [price[0] for price in prices(region="us-east-1")] == ["retired", "retired"]


def test_a_corrected_price_stands_beside_the_row_that_prints_it() -> None:
    imported(sky(row()))
    before = everything()
    job = imported(sky(row(price="6")))
    assert Offer.objects.get(source=SOURCE).printed["Price"] == "6"

    jobs.roll_back(job, None)

    assert everything() == before


def test_prices_taken_back_are_divided_by_what_the_server_has_now() -> None:
    imported(sky(row(sku="x", count="2", price="4")))
    job = imported(sky(row(sku="x", count="2", price="5")))
    Server.objects.filter(sku="x").update(gpu_count=4)

    jobs.roll_back(job, None)

    assert Offer.objects.get(source=SOURCE).price_per_gpu_hour == 1


def test_a_price_that_is_seen_again_is_not_dated_after_the_day_asked_for() -> None:
    imported(sky(row()), "2026-11-01")
    imported(sky(row()), "2026-11-20")

    for asked, dated in (("2026-11-07", "2026-11-07"), ("2026-11-30", "2026-11-20")):
        (offer,) = (one for one in offer_specs(on=date.fromisoformat(asked)) if one.source == SOURCE)
        assert str(offer.observed_on) == dated


def test_only_the_newest_import_of_a_source_is_taken_back() -> None:
    first = imported(sky(row()), "2026-11-01")
    imported(sky(row()), "2026-11-01", source="another list")
    second = imported(sky(row(price="6")), "2026-11-02")

    with pytest.raises(ImportRefused, match="later"):
        jobs.roll_back(first, None)
    jobs.roll_back(second, None)
    jobs.roll_back(first, None)

    assert prices() == []


def test_after_a_rollback_the_same_file_can_be_imported_again() -> None:
    jobs.roll_back(imported(sky(row())), None)

    assert imported(sky(row())).status == "applied"


def test_a_hundred_rows_take_as_many_queries_as_two(django_assert_max_num_queries: object) -> None:
    with django_assert_max_num_queries(60):
        imported(sky(*(row(region=f"r{number}", price=str(5 + number / 100)) for number in range(100))))
