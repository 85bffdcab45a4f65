"""What NVLink has cost: which prices are held side by side, and what is never mixed."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest

from advisor.catalog_pages.premium import Card, Kind, Observed, series_of

GIB = 2**30
PCIE = Card(
    key="h100-pcie-80",
    name="H100 PCIe 80GB",
    chip="h100",
    form_factor="PCIe",
    memory_bytes=80 * GIB,
    memory_bandwidth_bytes_per_s=2.0e12,
    bf16_flops_per_s=756e12,
)
SXM = replace(
    PCIE,
    key="h100-sxm5-80",
    name="H100 SXM5",
    form_factor="SXM5",
    memory_bandwidth_bytes_per_s=3.35e12,
    bf16_flops_per_s=989e12,
)
DAY = date(2026, 8, 22)
CHEAP = Observed(
    provider="RunPod",
    region="",
    tenancy="secure",
    pricing_model="on_demand",
    term_months=0,
    currency="USD",
    gpu_count=1,
    card=PCIE,
    link="",
    price=Decimal("2.00"),
    seen_on=DAY,
    last_on=DAY,
    is_day_known=True,
    source=("a price list", "MIT"),
)
DEAR = replace(CHEAP, card=SXM, price=Decimal("2.50"))


def test_a_board_is_held_against_the_card_of_the_same_chip():
    (series,) = series_of([CHEAP, DEAR])
    (point,) = series.points
    assert (series.kind, series.dear, series.cheap) == (Kind.FORM, SXM, PCIE)
    assert (point.premium, point.seen_on, point.regions) == (pytest.approx(0.25), DAY, 1)
    assert series.more_memory_bandwidth == pytest.approx(0.675)
    assert series.more_flops == pytest.approx(0.308, abs=1e-3)


@pytest.mark.parametrize(
    "unlike",
    [
        {"provider": "Lambda"},
        {"region": "us-east"},
        {"tenancy": "community"},
        {"pricing_model": "spot"},
        {"pricing_model": "reserved_other", "term_months": 6},
        {"currency": "EUR"},
        {"gpu_count": 8},
        {"seen_on": DAY + timedelta(days=8), "last_on": DAY + timedelta(days=8)},
        {"is_day_known": False},
        {"card": replace(SXM, memory_bytes=40 * GIB)},
        {"card": replace(SXM, chip="a100")},
        {"card": replace(SXM, form_factor="superchip")},
    ],
)
def test_unlike_prices_are_never_compared(unlike):
    assert series_of([CHEAP, replace(DEAR, **unlike)]) == ()


def test_the_nearest_day_and_the_cheapest_of_a_day_count():
    earlier = replace(CHEAP, seen_on=DAY - timedelta(days=6), last_on=DAY - timedelta(days=6), price=Decimal("1.00"))
    dearer_twin = replace(DEAR, price=Decimal("9.00"))
    (series,) = series_of([earlier, CHEAP, dearer_twin, DEAR])
    assert [point.premium for point in series.points] == [pytest.approx(0.25)]


def test_a_price_that_stood_is_held_against_each_that_came_meanwhile():
    end = DAY + timedelta(days=60)
    standing = replace(CHEAP, last_on=end)
    risen = replace(DEAR, price=Decimal("3.00"), seen_on=end, last_on=end)
    (series,) = series_of([standing, DEAR, risen])
    assert [(point.seen_on, point.premium) for point in series.points] == [
        (DAY, pytest.approx(0.25)),
        (end, pytest.approx(0.5)),
    ]
    cut = replace(CHEAP, price=Decimal("1.00"), seen_on=end, last_on=end)
    (series,) = series_of([CHEAP, cut, replace(DEAR, last_on=end)])
    assert [point.premium for point in series.points] == [pytest.approx(0.25), pytest.approx(1.5)]


def test_a_series_runs_from_the_oldest_day_and_counts_its_providers():
    after, before = DAY + timedelta(days=60), DAY - timedelta(days=60)
    later = [replace(one, seen_on=after, last_on=after) for one in (CHEAP, replace(DEAR, price=Decimal("2.20")))]
    other = [replace(one, provider="Lambda", seen_on=before, last_on=before) for one in (CHEAP, DEAR)]
    (series,) = series_of([*later, CHEAP, DEAR, *other])
    assert [round(point.premium, 2) for point in series.points] == [0.25, 0.25, 0.10]
    assert series.providers == 2


def test_regions_of_one_day_are_one_point_with_its_ends():
    prices = {"a": "2.20", "b": "2.60", "c": "3.00"}
    observed = [replace(CHEAP, region=region) for region in prices]
    observed += [replace(DEAR, region=region, price=Decimal(price)) for region, price in prices.items()]
    (series,) = series_of(observed)
    (point,) = series.points
    assert (point.regions, point.dear.price) == (3, Decimal("2.60"))
    assert (point.low, point.premium, point.high) == (pytest.approx(0.1), pytest.approx(0.3), pytest.approx(0.5))


def test_a_bridge_is_a_series_of_its_own_and_never_stands_for_a_plain_card():
    plain = replace(CHEAP, gpu_count=8, link="pcie")
    bridged = replace(plain, link="bridge", price=Decimal("2.06"))
    board = replace(DEAR, gpu_count=8)
    form, link = series_of([plain, bridged, board])
    assert (form.kind, form.points[0].cheap) == (Kind.FORM, plain)
    assert (link.kind, link.points[0].premium) == (Kind.LINK, pytest.approx(0.03))
    assert series_of([bridged, board]) == ()


def test_one_accelerator_with_a_bridge_in_its_name_is_no_link():
    assert series_of([CHEAP, replace(CHEAP, link="bridge", price=Decimal("2.06"))]) == ()
