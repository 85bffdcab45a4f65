"""Wrong values are told what is right; right ones pass, as every shipped row does."""

import datetime
from decimal import Decimal

import pytest

from catalog import columns, facts, validation
from catalog.models import Accelerator, Fabric, Offer, Provider, Server


@pytest.fixture
def b200() -> Accelerator:
    row = next(row for row in columns.shipped("accelerators") if row.key == "b200")
    return Accelerator(pk=1, **row.values)


@pytest.fixture
def hgx(b200: Accelerator) -> Fabric:
    server = Server(pk=1, provider=Provider(pk=1, key="x"), sku="hgx", accelerator=b200, gpu_count=8)
    return Fabric(
        server=server,
        topology="nvswitch-full",
        domain_gpus=8,
        bandwidth_bytes_per_s=900e9,
        peer_bandwidth_bytes_per_s=900e9,
        pcie_generation=5,
        pcie_lanes=16,
        pcie_bandwidth_bytes_per_s=63e9,
        host_link_basis="stated",
    )


@pytest.mark.parametrize(
    ("typed", "generation", "links", "says"),
    [
        (1800e12, 5, 18, "a thousand times too much"),
        (1800e9, 5, 18, "both directions together. Enter one direction: 900 GB/s"),
        (18 * 1800e9, 5, 18, "18 times too much"),
        (18 * 900e9, 5, 18, "both directions, not per link; one link is 50 GB/s"),
        (50e9, 5, 18, "is one link. A device has 18 of them: enter 900 GB/s"),
        (0.9e9, 5, 18, "a thousand times too small"),
        (600e9, 3, 12, "Enter one direction: 300 GB/s"),
        (900e9, 3, 12, "is NVLink 4 (H100, H200), both directions together. This device has NVLink 3: enter 300 GB/s"),
        (700e9, 3, 12, "more than NVLink 3 has with 12 links: 300 GB/s in one direction (600 GB/s both"),
        (700e9, 5, 18, "does not fit NVLink 5 with 18 links: enter 900 GB/s"),
        (956.25e9, 5, 18, "raw signalling rate"),
        (100e9, 3, 8, "does not fit NVLink 3 with 8 links: enter 200 GB/s"),
        (1000e9, 5, 18, "more than NVLink 5"),
    ],
)
def test_nvlink_values_that_cannot_be(typed, generation, links, says):
    assert says in validation.nvlink_problem(typed, generation, links)


@pytest.mark.parametrize(
    ("typed", "generation", "links"),
    [
        (900e9, 5, 18),
        (300e9, 3, 12),
        (56.25e9, 3, 4),
        (100e9, 3, 4),
        (300e9, 4, None),
        (200e9, 4, 8),
        (None, 5, 18),
        (900e9, None, None),
        (900e9, 9, 18),
    ],
)
def test_nvlink_values_that_can_be(typed, generation, links):
    assert validation.nvlink_problem(typed, generation, links) is None


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("dense_bf16_flops_per_s", 4500e12, "enter half: 2250"),
        ("dense_fp8_flops_per_s", 20_000e12, "without sparsity"),
        ("scaleup_bandwidth_bytes_per_s", 1800e9, "both directions together"),
        ("scaleup_peer_bandwidth_bytes_per_s", 1800e9, "more than the device has in all"),
        ("pcie_lanes", 12, "1, 2, 4, 8 or 16"),
        ("pcie_generation", 16, "1 to 6"),
    ],
)
def test_accelerator_values_are_held_against_the_hardware(b200, field, value, says):
    assert validation.accelerator_problems(b200) == {}
    setattr(b200, field, value)
    assert says in validation.accelerator_problems(b200)[field][0]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("bandwidth_bytes_per_s", 1800e9, "Enter one direction: 900 GB/s"),
        ("peer_bandwidth_bytes_per_s", 1800e9, "more than one accelerator has in all"),
        ("pcie_bandwidth_bytes_per_s", 126e9, "both directions together: PCIe 5 x16 is 63 GB/s one way"),
        ("pcie_bandwidth_bytes_per_s", 15.75e9, "does not fit PCIe 5 x16, which carries 63 GB/s"),
        ("pcie_lanes", 8, ""),
        ("topology", "single", "The server has 8 accelerators"),
    ],
)
def test_fabric_values_are_held_against_the_accelerator_and_pcie(hgx, field, value, says):
    assert validation.fabric_problems(hgx) == {}
    setattr(hgx, field, value)
    problems = validation.fabric_problems(hgx)
    where = "pcie_bandwidth_bytes_per_s" if field == "pcie_lanes" else field
    assert says in problems[where][0]


@pytest.mark.parametrize(
    ("kind", "says"),
    [("ici", "has no NVLink: its links are ICI"), ("none", "it has no scale-up link"), ("xgmi", "its links are xGMI")],
)
def test_nvlink_is_refused_on_devices_without_it(hgx, kind, says):
    hgx.server.accelerator.scaleup_kind = kind
    assert says in validation.fabric_problems(hgx)["topology"][0]


@pytest.mark.parametrize(
    ("topology", "domain", "says"),
    [
        ("pcie-root", 8, "no scale-up domain"),
        ("nvlink-bridge-pairs", 8, "joins 2 accelerators"),
        ("nvl72", 4, "joins 72 accelerators"),
    ],
)
def test_domain_sizes_follow_the_topology(hgx, topology, domain, says):
    hgx.topology, hgx.domain_gpus = topology, domain
    assert says in validation.fabric_problems(hgx)["domain_gpus"][0]


@pytest.mark.parametrize(
    ("price", "model", "on_demand", "says"),
    [
        ("500", "on_demand", None, "62.5000 USD per accelerator and hour is outside 0.005 to 60"),
        ("0.01", "on_demand", None, "Enter the price of the whole server (8 accelerators)"),
        ("40", "spot", "30", "A spot price above the on-demand price (30)"),
        ("5", "spot", "40", "looks like the price of one accelerator"),
        ("320", "reserved_1y", "40", "multiplied twice"),
    ],
)
def test_prices_are_held_against_the_market_and_the_on_demand_price(hgx, price, model, on_demand, says):
    offer = Offer(
        server=hgx.server,
        pricing_model=model,
        currency="USD",
        price_per_hour=Decimal(price),
        observed_on=datetime.date(2026, 11, 1),
    )
    problems = validation.offer_problems(offer, Decimal(on_demand) if on_demand else None)
    assert says in problems["price_per_hour"][0]


def test_a_plausible_price_passes(hgx):
    offer = Offer(server=hgx.server, pricing_model="spot", currency="USD", price_per_hour=Decimal(20))
    assert validation.offer_problems(offer, Decimal(40)) == {}


@pytest.mark.django_db
@pytest.mark.usefixtures("shipped")
def test_every_shipped_row_passes():
    for accelerator in Accelerator.objects.all():
        assert validation.accelerator_problems(accelerator) == {}, accelerator
    for fabric in Fabric.objects.select_related("server__accelerator", "server__provider"):
        assert validation.fabric_problems(fabric) == {}, fabric
    for offer in Offer.objects.select_related("server__provider"):
        assert validation.offer_problems(offer) == {}, offer


@pytest.mark.parametrize(
    ("generation", "lanes", "gb_per_s"), [(3, 16, 15.75), (4, 8, 15.75), (5, 16, 63), (6, 16, 121), (None, 16, None)]
)
def test_pcie_payload(generation, lanes, gb_per_s):
    assert facts.pcie_payload_bytes_per_s(generation, lanes) == (gb_per_s and gb_per_s * 1e9)
