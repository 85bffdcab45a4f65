"""What the market asks for NVLink: like with like, each provider once, no more exact than the prices are."""

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest

from advisor.engine.market import market_premium, sizes_sold, smallest_sold
from catalog.specs import DatePrecision, FabricSpec, PricingModel, TopologyClass
from tests.engine.machines import A100_PCIE, A100_SXM, NVSWITCH, PAIRS, PCIE_STAGED, TODAY, offer, server

SINGLE = FabricSpec(topology=TopologyClass.SINGLE)
NVLINK, PCIE = (A100_SXM, NVSWITCH), (A100_PCIE, PCIE_STAGED)
EARLIER = TODAY - timedelta(days=90)


def sold(accelerator, fabric, price_per_gpu, gpus=8, provider="one", region="", **changes):
    """An offer of ``gpus`` of these at this price for each."""
    name = f"{accelerator.key}-{fabric.topology}-{gpus}-{region}-{price_per_gpu}"
    machine = server(accelerator, fabric, gpus, key=f"{provider}/{name}")
    made = offer(f"{provider}{name}", price_per_gpu * gpus, on=machine)
    return replace(made, region=region, **changes)


def premium(*offers, nvlink=NVLINK, pcie=PCIE, gpus=8):
    return market_premium(offers, nvlink, pcie, gpus, "USD")


def test_one_gpu_of_one_accelerator_is_not_two_sides_of_a_market():
    """A bridge joins the same card: the price of one card alone says nothing of the bridge."""
    bridged, cards = (A100_PCIE, PAIRS), (A100_PCIE, PCIE_STAGED)
    alone = [sold(A100_PCIE, SINGLE, 2, gpus=1, provider=name) for name in ("one", "two", "three")]
    assert premium(*alone, nvlink=bridged, pcie=cards, gpus=2) is None
    both = sold(A100_PCIE, PAIRS, 2.1, gpus=2), sold(A100_PCIE, PCIE_STAGED, 2, gpus=2)
    assert premium(*alone, *both, nvlink=bridged, pcie=cards, gpus=2).premium == pytest.approx(0.05)


def test_servers_of_the_size_compared_come_before_one_gpu():
    alone = sold(A100_SXM, SINGLE, 9, gpus=1), sold(A100_PCIE, SINGLE, 1, gpus=1)
    assert premium(*alone).server_gpus == 1
    sized = sold(A100_SXM, NVSWITCH, 3), sold(A100_PCIE, PCIE_STAGED, 2)
    found = premium(*alone, *sized)
    assert found.premium == pytest.approx(0.5)
    assert (found.server_gpus, found.nvlink_offers, found.pcie_offers) == (8, 1, 1)


def test_a_larger_server_is_no_price_of_the_size_compared():
    assert premium(sold(A100_SXM, NVSWITCH, 3, gpus=8), sold(A100_PCIE, PCIE_STAGED, 2, gpus=4), gpus=4) is None


def test_a_reservation_is_compared_with_one_of_the_same_term():
    reserved = {"pricing_model": PricingModel.RESERVED_OTHER}
    half_year = sold(A100_SXM, NVSWITCH, 2.2, term_months=6, **reserved)
    five_years = sold(A100_PCIE, PCIE_STAGED, 1, term_months=60, **reserved)
    assert premium(half_year, five_years) is None
    same_term = sold(A100_PCIE, PCIE_STAGED, 2, term_months=6, **reserved)
    assert premium(half_year, five_years, same_term).premium == pytest.approx(0.1)


def test_regions_are_compared_with_themselves():
    offers = [
        sold(A100_SXM, NVSWITCH, 2.2, region="here"),
        sold(A100_PCIE, PCIE_STAGED, 2, region="here"),
        sold(A100_PCIE, PCIE_STAGED, 9, region="far away"),
        sold(A100_PCIE, PCIE_STAGED, 8, region="farther"),
    ]
    found = premium(*offers)
    assert found.premium == pytest.approx(0.1)
    assert (found.basis, found.nvlink_offers, found.pcie_offers) == ("same_provider_region_and_date", 1, 1)
    assert premium(offers[0], *offers[2:]).basis == "same_provider_and_date"


def test_kinds_of_tenancy_are_compared_with_themselves():
    found = premium(
        sold(A100_SXM, NVSWITCH, 2.2, tenancy="secure"),
        sold(A100_PCIE, PCIE_STAGED, 2, tenancy="secure"),
        sold(A100_PCIE, PCIE_STAGED, 1, tenancy="community"),
    )
    assert found.premium == pytest.approx(0.1)


def test_a_provider_counts_once_with_its_newest_day():
    old = [sold(A100_SXM, NVSWITCH, 8, observed_on=EARLIER), sold(A100_PCIE, PCIE_STAGED, 2, observed_on=EARLIER)]
    new = [sold(A100_SXM, NVSWITCH, 3), sold(A100_PCIE, PCIE_STAGED, 2.5)]
    found = premium(*old, *new)
    assert found.premium == pytest.approx(0.2)
    assert found.nvlink_offers == found.pcie_offers == 1
    assert (found.first.observed_on, found.last.observed_on) == (TODAY, TODAY)


def test_a_provider_with_many_regions_weighs_no_more_than_one_with_one():
    many = [
        sold(form, fabric, price, provider="wide", region=f"r{place}")
        for place in range(9)
        for form, fabric, price in ((A100_SXM, NVSWITCH, 4), (A100_PCIE, PCIE_STAGED, 2))
    ]
    few = [
        sold(form, fabric, price, provider=name)
        for name in ("two", "three")
        for form, fabric, price in ((A100_SXM, NVSWITCH, 2.2), (A100_PCIE, PCIE_STAGED, 2))
    ]
    assert premium(*many, *few).premium == pytest.approx(0.1)


def test_medians_over_providers_need_several_on_each_side():
    """Of one provider each, the ratio is that of the providers."""
    fast = [sold(A100_SXM, NVSWITCH, 3, provider=f"fast{place}") for place in range(3)]
    slow = [sold(A100_PCIE, PCIE_STAGED, 2, provider=f"slow{place}") for place in range(3)]
    assert premium(fast[0], slow[0]) is None
    assert premium(*fast, *slow[:2]) is None
    found = premium(*fast, *slow)
    assert (found.basis, found.premium) == ("market_medians", pytest.approx(0.5))


def test_a_price_of_which_the_year_is_known_has_no_day():
    year = {"observed_on": date(2026, 1, 1), "observed_precision": DatePrecision.YEAR}
    assert premium(sold(A100_SXM, NVSWITCH, 3, **year), sold(A100_PCIE, PCIE_STAGED, 2, **year)).seen == "2026"
    assert premium(sold(A100_SXM, NVSWITCH, 3), sold(A100_PCIE, PCIE_STAGED, 2)).seen == TODAY.isoformat()


def test_the_smallest_server_that_has_enough_is_what_is_paid():
    offers = [sold(A100_SXM, NVSWITCH, 3, gpus=size) for size in (2, 4, 8)]
    assert [smallest_sold(sizes_sold(offers), NVLINK, gpus) for gpus in (2, 3, 8)] == [2, 4, 8]
    assert smallest_sold(sizes_sold(offers), PCIE, 2) is None


def test_prices_are_per_gpu_hour():
    made = sold(A100_SXM, NVSWITCH, 3, gpus=4)
    assert made.price_per_gpu_hour == Decimal(3)
