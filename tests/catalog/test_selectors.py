"""Specs from the catalog, in a number of queries that does not grow."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from catalog import selectors
from catalog.models import Fabric, Offer, Server
from catalog.services import record_revision
from catalog.specs import Confidence, DatePrecision, TopologyClass

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shipped")]

TODAY = date(2026, 11, 30)


def test_query_counts_do_not_depend_on_size(django_assert_num_queries):
    with django_assert_num_queries(2):
        selectors.offer_specs(on=TODAY)
    with django_assert_num_queries(1):
        selectors.accelerator_specs()
    with django_assert_num_queries(1):
        selectors.server_spec("aws/p4d.24xlarge")
    with django_assert_num_queries(1):
        selectors.current_revision()


def test_a_server_spec_holds_base_units_and_one_direction():
    spec = selectors.server_spec("aws/p4d.24xlarge")
    assert (spec.provider, spec.sku, spec.gpu_count, spec.accelerator.key) == ("aws", "p4d.24xlarge", 8, "a100-sxm4-40")
    assert spec.accelerator.dense_flops_per_s["bf16"] == 312e12
    assert "fp8" not in spec.accelerator.dense_flops_per_s
    assert spec.fabric.topology is TopologyClass.NVSWITCH_FULL
    assert spec.fabric.bandwidth_bytes_per_s == 300e9
    assert spec.fabric.pcie_bandwidth_bytes_per_s == 31.5e9
    assert spec.fabric.network_bandwidth_bytes_per_s == 50e9


@pytest.mark.parametrize(
    ("key", "topology", "domain", "each", "pair"),
    [
        ("gcp/a4x-highgpu-4g", "nvl72", 72, 900e9, 900e9),
        ("hyperstack/n3-H100x8-NVLink", "nvlink-bridge-pairs", 2, 300e9, 300e9),
        ("reference/Dell PowerEdge XE8545", "nvlink-direct", 4, 300e9, 100e9),
        ("reference/Dell PowerEdge XE7740 H200 NVL", "nvlink-bridge-quads", 4, 450e9, 150e9),
        ("aws/p3.16xlarge", "nvlink-hybrid-cube-mesh", 8, 150e9, 25e9),
        ("oci/BM.GPU.MI300X.8", "xgmi-all-to-all", 8, 448e9, 64e9),
        ("aws/g5.12xlarge", "pcie-root", None, None, None),
    ],
)
def test_fabrics_of_each_kind(key, topology, domain, each, pair):
    fabric = selectors.server_spec(key).fabric
    assert fabric.topology == topology
    assert fabric.domain_gpus == domain
    assert fabric.bandwidth_bytes_per_s == each
    assert fabric.peer_bandwidth_bytes_per_s == pair


def test_aws_cards_on_eight_lanes_have_half_the_host_link():
    fabric = selectors.server_spec("aws/g5.12xlarge").fabric
    assert (fabric.pcie_generation, fabric.pcie_lanes, fabric.pcie_bandwidth_bytes_per_s) == (4, 8, 15.75e9)
    assert fabric.peer_to_peer is False


@pytest.mark.parametrize("key", ["aws/none", "nobody/p4d.24xlarge", "p4d.24xlarge", ""])
def test_an_unknown_server_is_none(key):
    assert selectors.server_spec(key) is None


def test_confidence_is_that_of_the_weaker_half():
    Fabric.objects.filter(server__sku="p4d.24xlarge").update(confidence="low")
    assert selectors.server_spec("aws/p4d.24xlarge").confidence is Confidence.LOW


def test_offers_carry_how_exact_their_date_is_and_whose_machines_they_are():
    offers = selectors.offer_specs(on=TODAY)
    for offer in offers:
        assert offer.observed_precision is DatePrecision.DAY or offer.observed_on == date(2026, 1, 1)
    assert {offer.observed_precision for offer in offers} == set(DatePrecision)
    assert {offer.tenancy for offer in offers if offer.server.provider == "runpod"} >= {"secure", "community"}


def test_a_virtual_function_that_is_a_whole_card_is_that_card():
    assert selectors.accelerator_by_device_name("AMD Instinct MI300X VF").key == "mi300x"


def test_offers_are_whole_server_prices_of_live_rows_in_a_fixed_order():
    offers = selectors.offer_specs(on=TODAY)
    assert 2000 < len(offers) < Offer.objects.filter(status="live").count()
    assert [offer.key for offer in offers] == [offer.key for offer in selectors.offer_specs(on=TODAY)]
    p4d = next(o for o in offers if o.server.sku == "p4d.24xlarge" and o.region == "us-east-1")
    assert p4d.price_per_hour == Decimal("21.9576")
    assert p4d.price_per_gpu_hour * 8 == p4d.price_per_hour
    assert (p4d.currency, p4d.observed_on, p4d.source_licence) == ("USD", date(2026, 7, 20), "Apache-2.0")


def prices(*, on: date) -> list[Decimal]:
    offers = selectors.offer_specs(on=on)
    return [o.price_per_hour for o in offers if o.server.sku == "p4d.24xlarge" and o.region == "us-east-1"]


def test_the_newest_price_counts_and_the_day_asked_for_is_a_limit():
    offer = Offer.objects.get(server__sku="p4d.24xlarge", region="us-east-1", status="live")
    seen = offer.observed_on
    offer.pk, offer.key, offer.price_per_hour = None, "", Decimal(20)
    offer.observed_on, offer.last_seen_on = seen + timedelta(days=9), None
    offer.save()
    assert prices(on=TODAY) == [Decimal(20)]
    assert prices(on=seen) == [Decimal("21.9576")]
    assert selectors.offer_specs(on=date(2025, 12, 31)) == ()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80"),
        ("A100-SXM4-40GB", "a100-sxm4-40"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80"),
        ("NVIDIA H100 PCIe", "h100-pcie-80"),
        ("NVIDIA H100 NVL", "h100-nvl-94"),
        ("NVIDIA H800", "h800-sxm5"),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA GH200 480GB", "gh200-96"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2-32"),
        ("Tesla T4", "t4"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA B200", "b200"),
        ("  nvidia  b200 ", "b200"),
        ("AMD Instinct MI300X", "mi300x"),
    ],
)
def test_what_drivers_print_is_recognised(name, key):
    assert selectors.accelerator_by_device_name(name).key == key


@pytest.mark.parametrize("name", ["H100", "NVIDIA A100", "NVIDIA H100", "V100", "", "AMD Instinct MI250X", "Radeon"])
def test_a_name_that_does_not_settle_the_form_factor_is_unknown(name):
    assert selectors.accelerator_by_device_name(name) is None


def test_the_revision_is_the_newest_number():
    newest = record_revision(origin="admin", summary="by hand")
    assert selectors.current_revision() == newest


def test_a_server_without_a_fabric_is_left_out():
    Fabric.objects.filter(server__sku="p4d.24xlarge").delete()
    assert Server.objects.filter(sku="p4d.24xlarge").exists()
    assert selectors.server_spec("aws/p4d.24xlarge") is None
    assert not [o for o in selectors.offer_specs(on=TODAY) if o.server.sku == "p4d.24xlarge"]
