"""The files that ship: complete, attributed, consistent, and never faster than the hardware."""

import json
from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal

import pytest

from catalog import columns, facts, models
from catalog.models.cost_line import UNITS_OF, WITHOUT_MONEY
from catalog.models.fabric import TopologyBasis
from catalog.specs import TopologyClass
from tests.paths import SHARED

LIST_LICENCES = {"Apache-2.0", "CC-BY-4.0", "MIT", "MPL-2.0"}
FACT_LICENCES = LIST_LICENCES | {"BSD-3-Clause", "CC-BY-SA-4.0", "facts-only"}
SOURCED = (
    *("accelerators", "providers", "servers", "fabrics", "offers", "device_names"),
    *("regions", "cost_lines", "field_sources"),
)
SINGLE_PRICES = ("datareceipts/data-receipts", "api-evangelist/")
NOT_IN_REFERENCE = ("data/snapshots/", "(commit 805d5bf6)", "AndrewSirenko/", *SINGLE_PRICES)
"""Prices read later than the reference folder: other copies of its lists, and single facts."""


def table(name: str) -> list[dict[str, str]]:
    return list(columns.cells(columns.DATA / f"{name}.csv"))


def whole(cell: str) -> int | None:
    return int(cell) if cell else None


def key(row: dict[str, str]) -> tuple[str, str]:
    return row["provider"], row["sku"]


ACCELERATORS = {row["key"]: row for row in table("accelerators")}
SERVERS = {key(row): row for row in table("servers")}
FABRICS = {key(row): row for row in table("fabrics")}
OFFERS = table("offers")
PROVIDERS = {row["key"] for row in table("providers")}


def accelerator(row: dict[str, str]) -> dict[str, str] | None:
    """The accelerator of a server or fabric; None where the price list's name leaves it open."""
    return ACCELERATORS.get(SERVERS[key(row)]["accelerator"])


def test_enough_of_everything():
    known = [fabric for fabric in FABRICS.values() if fabric["topology"] not in ("unknown", "single")]
    described = [row for row in SERVERS.values() if "as the price list describes it" not in row["notes"]]
    assert len(ACCELERATORS) == 62
    assert len(SERVERS) == 1020
    assert len(described) == 280
    assert len(known) == 251
    assert len(OFFERS) >= 3000


@pytest.mark.parametrize("name", SOURCED)
def test_every_row_names_its_source_and_licence(name):
    for row in table(name):
        assert row["source"].strip()
        assert set(row["source_licence"].split("; ")) <= FACT_LICENCES


def test_every_offer_comes_from_a_source_whose_licence_allows_it():
    """Whole lists only under a licence; a few single prices, each with the page that prints it."""
    facts_only = [row for row in OFFERS if row["source_licence"] == "facts-only"]
    assert {row["source_licence"] for row in OFFERS} == LIST_LICENCES | {"facts-only"}
    assert len(facts_only) <= 20
    for row in facts_only:
        assert row["source"].startswith(SINGLE_PRICES) and row["source_url"]


def test_natural_keys_are_unique_and_refer_to_rows_that_exist():
    assert len(table("servers")) == len(SERVERS) == len(table("fabrics"))
    assert FABRICS.keys() == SERVERS.keys()
    assert {row["accelerator"] for row in SERVERS.values()} <= ACCELERATORS.keys() | {""}
    assert {provider for provider, _ in SERVERS} == PROVIDERS
    assert {key(row) for row in OFFERS} <= SERVERS.keys()
    names = ("region", "zone", "tenancy", "pricing_model", "term_months", "currency", "source", "observed_on")
    offers = Counter((*key(row), *(row[name] for name in names)) for row in OFFERS)
    assert offers.most_common(1)[0][1] == 1


def test_a_server_has_an_accelerator_or_the_name_that_its_list_prints():
    for name, row in SERVERS.items():
        assert bool(row["accelerator"]) != bool(row["accelerator_printed"])
        if not row["accelerator"]:
            assert row["confidence"] == "low"
            assert FABRICS[name]["topology"] in ("single", "unknown")


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
        limit = float(nvlink[SERVERS[name]["accelerator"]]["scaleup_gb_per_s_per_gpu_one_direction"])
        assert 0 < float(fabric["gb_per_s_per_gpu_one_direction"]) <= limit
        assert 0 < float(fabric["gb_per_s_per_peer_one_direction"]) <= limit


def test_pcie_numbers_fit_their_generation_and_lanes_and_the_card():
    for fabric in FABRICS.values():
        generation, lanes = whole(fabric["pcie_generation"]), whole(fabric["pcie_lanes"])
        payload = facts.pcie_payload_bytes_per_s(generation, lanes)
        if payload:
            assert float(fabric["host_link_gb_per_s_one_direction"]) * 1e9 == pytest.approx(payload, rel=1e-3)
            assert lanes <= int(accelerator(fabric)["pcie_lanes"])
        else:
            assert not fabric["host_link_gb_per_s_one_direction"] or fabric["host_link_basis"] == "c2c"


def test_one_accelerator_has_no_topology_and_several_never_have_that_of_one():
    for name, fabric in FABRICS.items():
        single = fabric["topology"] in ("single", "c2c")
        assert single == (SERVERS[name]["gpu_count"] == "1")


def test_tensor_peaks_are_dense():
    for row in ACCELERATORS.values():
        units, clock = whole(row["compute_units"]), float(row["boost_clock_mhz"] or 0) * 1e6
        for dtype in facts.DTYPE_RATE:
            typed = row[columns.dense_header(dtype)]
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
            product = (
                server["accelerator"] or server["accelerator_printed"],
                server["gpu_count"],
                row["region"],
                row["tenancy"],
            )
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
        assert day <= date.fromisoformat(row["last_seen_on"]) <= date(2026, 11, 30)


def test_terms_fit_the_way_of_paying():
    terms = {"on_demand": {""}, "spot": {""}, "monthly": {""}, "reserved_1y": {"12"}, "reserved_3y": {"36"}}
    for row in OFFERS:
        if row["pricing_model"] == "reserved_other":
            assert int(row["term_months"]) not in (0, 12, 36)
        else:
            assert row["term_months"] in terms[row["pricing_model"]]


@pytest.mark.parametrize(
    ("provider", "module", "card"),
    [
        ("runpod", "h100-sxm5-80", "h100-pcie-80"),
        ("runpod", "a100-sxm4-80", "a100-pcie-80"),
        ("lambda", "h100-sxm5-80", "h100-pcie-80"),
        ("hyperstack", "h100-sxm5-80", "h100-pcie-80"),
        ("crusoe", "a100-sxm4-80", "a100-pcie-80"),
    ],
)
def test_the_price_of_a_module_over_the_card_of_the_same_chip_can_be_drawn(provider, module, card):
    """Both forms by the hour at one provider within one month of 2026."""
    months = defaultdict(set)
    for row in OFFERS:
        server = SERVERS[key(row)]
        alone = row["pricing_model"] == "on_demand" and server["gpu_count"] == "1"
        if row["provider"] == provider and alone and row["observed_precision"] == "day":
            months[server["accelerator"]] |= {row["observed_on"][:7], row["last_seen_on"][:7]}
    assert months[module] & months[card]


def test_the_premium_at_runpod_fell_and_rose_again_within_half_a_year():
    """In per cent of the PCIe card's price, one H100 of each kind."""
    prices = {
        (SERVERS[key(row)]["accelerator"], row["observed_on"]): Decimal(row["price_per_server_hour"])
        for row in OFFERS
        if (row["provider"], row["tenancy"], row["pricing_model"]) == ("runpod", "secure", "on_demand")
        and SERVERS[key(row)]["gpu_count"] == "1"
    }
    for day, premium in (("2026-05-24", 38), ("2026-08-22", 14), ("2026-11-09", 38)):
        ratio = prices["h100-sxm5-80", day] / prices["h100-pcie-80", day]
        assert round(100 * ratio) - 100 == premium


def test_a_topology_says_how_it_is_known():
    for row in FABRICS.values():
        assert row["topology_basis"] in TopologyBasis.values
        assert bool(row["topology_basis"]) == (row["topology"] != "unknown")


def test_measured_curves_stay_below_the_links_of_their_server():
    """In GB/s of bus bandwidth; an all-reduce in the switch may pass the link's one-way rate by a few per cent."""
    measured = {name: json.loads(row["measured_curve"]) for name, row in FABRICS.items() if row["measured_curve"]}
    assert len(measured) == 7
    for name, points in measured.items():
        for point in points:
            assert set(point) == {"collective", "gpus", "bytes", "bus_gb_per_s", "source"}
            assert 1 < point["gpus"] <= int(SERVERS[name]["gpu_count"])
            assert 0 < point["bus_gb_per_s"] <= 1.1 * float(FABRICS[name]["gb_per_s_per_gpu_one_direction"])


def test_every_region_of_an_offer_is_described():
    regions = table("regions")
    assert {(row["provider"], row["name"]) for row in regions} == {
        (r["provider"], r["region"]) for r in OFFERS if r["region"]
    }
    assert len({(row["provider"], row["name"]) for row in regions}) == len(regions)
    known = [row for row in regions if row["country"]]
    assert all(len(row["country"]) == 2 and row["country"].isupper() for row in known)
    assert len(known) >= 0.97 * len(regions)


def test_cost_lines_have_units_and_currencies_of_their_kind():
    lines = table("cost_lines")
    units = {kind.value: {unit.value for unit in allowed} for kind, allowed in UNITS_OF.items()}
    places = Counter((*key(row), row["region"], row["kind"], row["unit"]) for row in lines)
    assert places.most_common(1)[0][1] == 1
    for row in lines:
        assert row["provider"] in PROVIDERS
        assert not row["sku"] or key(row) in SERVERS
        assert row["unit"] in units[row["kind"]]
        assert bool(row["currency"]) == (row["unit"] not in WITHOUT_MONEY)
        assert Decimal(row["amount"]) >= 0
        date.fromisoformat(row["observed_on"])


def test_sources_of_single_values_name_rows_and_columns_that_exist():
    keys = {
        "accelerators": ACCELERATORS.keys(),
        "servers": {"/".join(name) for name in SERVERS},
        "fabrics": {"/".join(name) for name in FABRICS},
    }
    model = {"accelerators": models.Accelerator, "servers": models.Server, "fabrics": models.Fabric}
    entries = table("field_sources")
    assert len({(row["table"], row["key"], row["field"]) for row in entries}) == len(entries) >= 100
    for row in entries:
        assert row["key"] in keys[row["table"]]
        assert model[row["table"]]._meta.get_field(row["field"])
        assert row["reason"] and row["confidence"] in ("high", "medium", "low")
        assert bool(row["other_value"]) == bool(row["other_unit"])


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
        for row in columns.cells(reference)
    }
    old = [row for row in OFFERS if not any(mark in row["source"] for mark in NOT_IN_REFERENCE)]
    assert len(old) >= 2700
    for row in old:
        price = Decimal(row["price_per_server_hour"])
        assert (row["provider"], row["source"], price, row["region"], row["currency"]) in read
