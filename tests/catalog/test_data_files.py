"""The files that ship: complete, attributed, consistent, and never faster than the hardware."""

from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal

import pytest

from catalog import facts, rows
from catalog.specs import TopologyClass
from tests.paths import SHARED

OFFER_LICENCES = {"Apache-2.0", "CC-BY-4.0", "MIT", "MPL-2.0"}
FACT_LICENCES = OFFER_LICENCES | {"BSD-3-Clause", "CC-BY-SA-4.0", "facts-only"}
FILES = ("accelerators", "providers", "servers", "fabrics", "offers", "device_names")


def table(name: str) -> list[dict[str, str]]:
    return list(rows.cells(rows.DATA / f"{name}.csv"))


def key(row: dict[str, str]) -> tuple[str, str]:
    return row["provider"], row["sku"]


ACCELERATORS = {row["key"]: row for row in table("accelerators")}
SERVERS = {key(row): row for row in table("servers")}
FABRICS = {key(row): row for row in table("fabrics")}
OFFERS = table("offers")


def test_enough_of_everything():
    known = [fabric for fabric in FABRICS.values() if fabric["topology"] not in ("unknown", "single")]
    described = [row for row in SERVERS.values() if "as the price list describes it" not in row["notes"]]
    assert len(ACCELERATORS) == 62
    assert len(SERVERS) == 862
    assert len(described) == 280
    assert len(known) == 251
    assert len(OFFERS) == 2701


@pytest.mark.parametrize("name", FILES)
def test_every_row_names_its_source_and_licence(name):
    for row in table(name):
        assert row["source"].strip()
        assert set(row["source_licence"].split("; ")) <= FACT_LICENCES


def test_every_offer_comes_from_a_source_whose_licence_allows_it():
    assert {row["source_licence"] for row in OFFERS} == OFFER_LICENCES


def test_natural_keys_are_unique_and_refer_to_rows_that_exist():
    assert len(table("servers")) == len(SERVERS) == len(table("fabrics"))
    assert FABRICS.keys() == SERVERS.keys()
    assert {row["accelerator"] for row in SERVERS.values()} <= ACCELERATORS.keys()
    assert {provider for provider, _ in SERVERS} == {row["key"] for row in table("providers")}
    assert {key(row) for row in OFFERS} <= SERVERS.keys()
    offers = Counter(row.key for row in rows.offers(rows.DATA))
    assert offers.most_common(1)[0][1] == 1


def test_device_names_are_unique_and_refer_to_accelerators():
    names = table("device_names")
    assert len({row["device_name"] for row in names}) == len(names) == 56
    assert {row["accelerator"] for row in names} <= ACCELERATORS.keys()


def test_no_nvlink_number_is_above_its_generation():
    nvlink = {name: row for name, row in ACCELERATORS.items() if row["scaleup_kind"] == "nvlink"}
    for row in nvlink.values():
        limit = facts.NVLINK[int(row["scaleup_generation"])].device_bytes_per_s / 1e9
        assert float(row["scaleup_gb_per_s_per_gpu_one_direction"]) <= limit
    for name, fabric in FABRICS.items():
        if not TopologyClass(fabric["topology"]).is_nvlink:
            continue
        accelerator = nvlink[SERVERS[name]["accelerator"]]
        limit = float(accelerator["scaleup_gb_per_s_per_gpu_one_direction"])
        assert 0 < float(fabric["gb_per_s_per_gpu_one_direction"]) <= limit
        assert 0 < float(fabric["gb_per_s_per_peer_one_direction"]) <= limit


def test_pcie_numbers_fit_their_generation_and_lanes_and_the_card():
    for name, fabric in FABRICS.items():
        accelerator = ACCELERATORS[SERVERS[name]["accelerator"]]
        generation, lanes = rows._whole(fabric["pcie_generation"]), rows._whole(fabric["pcie_lanes"])
        payload = facts.pcie_payload_bytes_per_s(generation, lanes)
        if payload:
            assert float(fabric["host_link_gb_per_s_one_direction"]) * 1e9 == pytest.approx(payload, rel=1e-3)
            assert lanes <= int(accelerator["pcie_lanes"])
        else:
            assert not fabric["host_link_gb_per_s_one_direction"] or fabric["host_link_basis"] == "c2c"


def test_one_accelerator_has_no_topology_and_several_never_have_that_of_one():
    for name, fabric in FABRICS.items():
        single = fabric["topology"] in ("single", "c2c")
        assert single == (SERVERS[name]["gpu_count"] == "1")


def test_tensor_peaks_are_dense():
    for row in ACCELERATORS.values():
        units, clock = rows._whole(row["compute_units"]), rows._real(row["boost_clock_mhz"], 1e6)
        for dtype in facts.DTYPE_RATE:
            typed = row[rows._dense_column(dtype)]
            peak = facts.dense_peak_flops_per_s(row["architecture"], dtype, units, clock)
            assert not (typed and peak) or float(typed) * 1e12 <= 1.1 * peak, (row["key"], dtype)


def test_reported_memory_is_near_the_marketing_figure():
    for row in ACCELERATORS.values():
        if row["memory_reported_mib"]:
            gib = float(row["memory_reported_mib"]) / 1024
            assert 0.88 <= gib / float(row["memory_marketing_gb"]) <= 1.01, row["key"]


def test_a_retired_family_is_retired_in_every_size():
    """Azure ended NCv3 with and without InfiniBand on the same day."""
    ended = [row for row in OFFERS if row["provider"] == "azure" and row["sku"].endswith("s_v3") and "NC" in row["sku"]]
    assert len(ended) == 92
    assert {row["status"] for row in ended} == {"retired"}


def test_a_provider_has_no_live_offer_twice_under_names_that_two_lists_gave_it():
    """Lists of one-GPU prices invent the SKU; the older list's price of the same card and tenancy is not live."""
    lists = defaultdict(set)
    for row in OFFERS:
        server = SERVERS[key(row)]
        if row["status"] == "live" and row["observed_precision"] == "day" and "price list" in server["notes"]:
            product = server["accelerator"], server["gpu_count"], row["region"], row["tenancy"]
            lists[row["provider"], *product, row["pricing_model"], row["currency"]].add(row["source"].split()[0])
    assert [product for product, sources in lists.items() if len(sources) > 1] == []


def test_prices_are_plausible_whole_server_prices_with_real_dates():
    for row in OFFERS:
        each = Decimal(row["price_per_server_hour"]) / int(SERVERS[key(row)]["gpu_count"])
        assert Decimal("0.005") <= each <= 60
        assert row["currency"] in ("USD", "CNY")
        day = date.fromisoformat(row["observed_on"])
        assert day <= date(2026, 11, 30)
        assert row["observed_precision"] == "day" or (day.month, day.day) == (1, 1)


def test_servers_known_only_from_price_lists_are_marked_so():
    for name, row in SERVERS.items():
        if "as the price list describes it" in row["notes"]:
            assert row["confidence"] == "low"
            assert FABRICS[name]["topology"] in ("single", "unknown")


@pytest.mark.skipif(SHARED is None, reason="the reference folder is not here")
def test_every_price_is_one_that_was_read():
    reference = SHARED / "catalog" / "offers.csv"
    read = {
        (row["provider"], row["source"], Decimal(row["price_per_hour_server"]), row["region"], row["currency"])
        for row in rows.cells(reference)
    }
    for row in OFFERS:
        price = Decimal(row["price_per_server_hour"])
        assert (row["provider"], row["source"], price, row["region"], row["currency"]) in read
