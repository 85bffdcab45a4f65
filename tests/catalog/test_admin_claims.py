"""Wrong statements about links, memory, PCIe and prices, typed into the admin, are answered with what is right.

The rows are those of the project's collection of interconnect facts: the seed claims and what other pages get wrong.
"""

import re
from decimal import Decimal
from html import unescape
from typing import Any

import pytest

from catalog.models import Accelerator, CatalogRevision, Draft, Fabric, Offer, Server
from tests.catalog.admin_support import add_page, few, filled, save, sentences, signed_in  # noqa: F401
from tests.catalog.admin_support import page as page_of

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.catalog.urls"), pytest.mark.usefixtures("few")]

PER_GPU, PER_PAIR, TOPOLOGY = (
    "fabric-0-bandwidth_bytes_per_s",
    "fabric-0-peer_bandwidth_bytes_per_s",
    "fabric-0-topology",
)
B200, A100, H100 = "p6-b200.48xlarge", "p4d.24xlarge", "Dell PowerEdge XE9680 H100"
FOUR_A100, FOUR_H100 = "Dell PowerEdge XE8545", "Dell PowerEdge XE8640"
BRIDGED, TPU = "n3-H100x8-NVLink", "ct5lp-hightpu-8t (v5e)"
MI300X, GAUDI2 = "Standard_ND96isr_MI300X_v5", "Intel HLS-Gaudi2"

SEED_CLAIMS = [
    pytest.param(B200, PER_GPU, "1800 TB/s", "a thousand times too much", "enter 900 GB/s", id="NVLink 1800 TB/s"),
    pytest.param(B200, PER_GPU, "1800", "both directions together", "900 GB/s", id="NVLink 5, both directions"),
    pytest.param(A100, PER_GPU, "600 GB/s", "both directions together", "300 GB/s", id="NVLink 600 GB/s on its A100"),
    pytest.param(H100, PER_GPU, "600 GB/s", "NVLink 3 (A100)", "enter 450 GB/s", id="NVLink 600 GB/s on an H100"),
    pytest.param(B200, PER_GPU, "600 GB/s", "NVLink 3 (A100)", "enter 900 GB/s", id="NVLink 600 GB/s on a B200"),
    pytest.param(BRIDGED, PER_GPU, "600", "both directions together", "300 GB/s", id="bridged cards"),
    pytest.param(B200, PER_GPU, "1.8 TB/s per link", "No link has 1800 GB/s", "50 GB/s in one", id="1.8 TB/s per link"),
    pytest.param(B200, PER_GPU, "32400", "not per link", "one link is 50 GB/s", id="1.8 TB/s x 18"),
    pytest.param(TPU, TOPOLOGY, "nvswitch-full", "has no NVLink", "its links are ICI", id="TPU pods use NVLink"),
]
FURTHER_CLAIMS = [
    pytest.param(
        B200, PER_GPU, "900 GB/s bidirectional per link", "No link has 900 GB/s", "Enter 900 GB/s", id="manual"
    ),
    pytest.param(
        H100, PER_PAIR, "1.8 TB/s", "One pair cannot get more", "enter 450 GB/s", id="1.8 TB/s between a pair"
    ),
    pytest.param(FOUR_H100, PER_GPU, "18xNVLink 25GB/s", "One link of NVLink 4 is 25 GB/s", "Enter 450", id="XE8640"),
    pytest.param(FOUR_H100, PER_GPU, "25", "is one link", "enter 450 GB/s", id="XE8640, a bare number"),
    pytest.param(B200, PER_GPU, "956.25", "raw signalling rate", "enter 900 GB/s", id="nvidia-smi 956"),
    pytest.param(H100, PER_GPU, "478.125", "raw signalling rate", "enter 450 GB/s", id="nvidia-smi 478"),
    pytest.param(
        FOUR_A100, PER_PAIR, "300", "shared out among its peers", "Enter 100 GB/s", id="4 A100 without switch"
    ),
    pytest.param(
        FOUR_H100, PER_PAIR, "450", "shared out among its peers", "Enter 150 GB/s", id="4 H100 without switch"
    ),
    pytest.param(MI300X, PER_GPU, "896 GB/s", "both directions together", "448 GB/s", id="MI300X total"),
    pytest.param(MI300X, PER_GPU, "64", "what one peer gets", "448 GB/s", id="MI300X, a peer for the device"),
    pytest.param(MI300X, PER_PAIR, "448", "over a single link of xGMI", "64 GB/s", id="MI300X per peer"),
    pytest.param(MI300X, PER_PAIR, "128", "both directions together", "64 GB/s", id="MI300X per peer, both"),
    pytest.param(GAUDI2, PER_GPU, "525", "both directions together", "262.5 GB/s", id="Gaudi 2, both"),
    pytest.param(GAUDI2, PER_GPU, "600", "ports that leave the box", "262.5 GB/s", id="Gaudi 2, all ports"),
    pytest.param(TPU, PER_GPU, "400", "both directions together", "200 GB/s", id="TPU v5e, both"),
    pytest.param(TPU, PER_PAIR, "100", "both directions together", "50 GB/s", id="TPU v5e per peer, both"),
    pytest.param(BRIDGED, TOPOLOGY, "nvswitch-full", "is a PCIe card", "over bridges", id="cards behind a switch"),
    pytest.param(H100, TOPOLOGY, "nvlink-bridge-pairs", "is an SXM module", "bridges are for cards", id="SXM bridged"),
    pytest.param("g5.12xlarge", TOPOLOGY, "nvlink-direct", "A10G has no NVLink", "no scale-up link", id="A10G"),
    pytest.param("g5.12xlarge", "fabric-0-pcie_lanes", "16", "g5 attaches", "enter 8", id="x16 on AWS g5"),
    pytest.param(H100, "fabric-0-pcie_bandwidth_bytes_per_s", "126", "both directions", "63 GB/s", id="PCIe both ways"),
    pytest.param(B200, PER_GPU, "900 gb/s", "bits or bytes", "GB/s or TB/s for bytes", id="bits or bytes"),
    pytest.param(B200, PER_GPU, "900 quux", "no unit that we know", "TFLOP/s", id="unknown unit"),
    pytest.param(B200, PER_GPU, "900 MHz", "which cannot be made", "GB/s", id="another dimension"),
]


SHOWN: dict[str, dict[str, Any]] = {}
"""What forms send when nothing is typed; each is opened once, as every test begins with the same catalog."""


def type_in(url, typed):
    client = signed_in("Catalog editor")
    if url not in SHOWN:
        SHOWN[url] = filled(client, url)
    assert typed.keys() <= SHOWN[url].keys()
    return client.post(url, SHOWN[url] | typed)


@pytest.mark.parametrize(("sku", "field", "typed", "wrong", "right"), [*SEED_CLAIMS, *FURTHER_CLAIMS])
def test_a_wrong_claim_about_a_server_is_answered(sku, field, typed, wrong, right):
    server, before = Server.objects.get(sku=sku), CatalogRevision.objects.count()
    response = type_in(page_of(server), {field: typed})
    assert response.status_code == 200
    said = unescape(sentences(response))
    assert wrong in said
    assert right in said
    assert not Draft.objects.exists()
    assert CatalogRevision.objects.count() == before


@pytest.mark.parametrize(
    ("key", "typed", "says"),
    [
        ("l40s", {"scaleup_kind": "nvlink", "scaleup_generation": "4", "scaleup_links": "18"}, "L40S has no NVLink"),
        ("tpu-v5e", {"scaleup_kind": "nvlink"}, "NVLink is not a link of Google"),
        ("mi300x", {"scaleup_kind": "nvlink"}, "can only have xGMI"),
        ("h100-sxm5-80", {"scaleup_generation": "5"}, "Hopper GH100 has NVLink 4"),
        ("b200", {"scaleup_bandwidth_bytes_per_s": "1.8 TB/s per link"}, "No link has 1800 GB/s"),
        ("b200", {"scaleup_bandwidth_bytes_per_s": "1.8 TB/s bidirectional"}, "is 900 GB/s in one: enter that"),
        ("mi300x", {"scaleup_bandwidth_bytes_per_s": "896"}, "both directions together"),
        ("mi300x", {"scaleup_peer_bandwidth_bytes_per_s": "448"}, "64 GB/s"),
        ("a40", {"scaleup_bandwidth_bytes_per_s": "112.5"}, "Enter one direction: 56.25 GB/s"),
        ("a30", {"scaleup_bandwidth_bytes_per_s": "200"}, "both directions together"),
        ("gaudi3", {"scaleup_bandwidth_bytes_per_s": "600"}, "ports that leave the box"),
        ("tpu-v5p", {"scaleup_bandwidth_bytes_per_s": "1200"}, "Enter one direction: 600 GB/s"),
        ("h100-sxm5-80", {"dense_bf16_flops_per_s": "1978.9"}, "enter half: 989.45"),
        ("h100-sxm5-80", {"dense_bf16_flops_per_s": "1979 TFLOPS with sparsity"}, "enter half, 989.5"),
        ("h100-sxm5-80", {"memory_bytes": "80"}, "type the unit: 80 GB"),
        ("h100-sxm5-80", {"memory_marketing_bytes": "81559"}, "does not fit"),
        ("h100-sxm5-80", {"memory_bandwidth_bytes_per_s": "3.35"}, "enter 3350"),
    ],
)
def test_a_wrong_claim_about_an_accelerator_is_answered(key, typed, says):
    row = Accelerator.objects.get(key=key)
    response = type_in(page_of(row), typed)
    assert response.status_code == 200
    assert says in unescape(sentences(response))
    assert not Draft.objects.exists()


@pytest.fixture
def client(few):  # noqa: F811
    return signed_in("Catalog editor")


def as_new(offer: Offer, **changes):
    """The data of the page of a new offer, filled in as for an offer that there is."""
    names = ("region", "tenancy", "pricing_model", "currency", "price_per_hour", "price_basis", "observed_precision")
    same = {name: getattr(offer, name) for name in (*names, "observed_on", "status", "source_licence")}
    return {"server": offer.server_id, **same, "source": "typed by hand", **changes}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pricing_model": "spot", "price_per_hour": lambda price: price / 8}, "the price of one accelerator"),
        ({"pricing_model": "reserved_1y", "price_per_hour": lambda price: price * 8}, "looks multiplied twice"),
        ({"currency": "KRW"}, "KRW per accelerator and hour is outside"),
        ({"currency": "RMB"}, "Write CNY"),
        ({"currency": "ZZZ"}, "no currency of ISO 4217"),
        ({"price_per_hour": lambda price: price * 1000}, "the price of the whole server (8 accelerators)"),
        ({"observed_on": "2999-01-01"}, "has not come yet"),
    ],
)
def test_a_wrong_claim_about_a_price_is_answered(changes, says):
    on_demand = Offer.objects.filter(server__sku=A100, pricing_model="on_demand", status="live").first()
    typed = {
        name: round(value(on_demand.price_per_hour), 6) if callable(value) else value for name, value in changes.items()
    }
    response = signed_in("Catalog editor").post(add_page(Offer), as_new(on_demand, **typed))
    assert says in unescape(sentences(response))
    assert not Draft.objects.exists()


@pytest.mark.parametrize(
    ("sku", "field", "typed", "kept"),
    [
        (B200, "network_bandwidth_bytes_per_s", "1.6 Tbit/s", 200e9),
        (B200, "network_bandwidth_bytes_per_s", "100 GB/s", 100e9),
        (B200, "network_bandwidth_bytes_per_s", "1,600", 200e9),
        (A100, "pcie_bandwidth_bytes_per_s", "30 GB/s", 30e9),
        (A100, "pcie_bandwidth_bytes_per_s", "0.03TB/s", 30e9),
    ],
)
def test_what_people_paste_is_understood(sku, field, typed, kept):
    fabric = Fabric.objects.get(server__sku=sku)
    response = save(signed_in("Catalog editor"), page_of(fabric), **{field: typed})
    assert response.status_code == 302, sentences(response)
    assert Draft.objects.get().values == {field: kept}


@pytest.mark.parametrize(
    ("model", "field", "typed", "says"),
    [
        (Accelerator, "memory_bytes", "1e308", "No machine has more than 100,000,000 MiB."),
        (Accelerator, "memory_bytes", "-1e308", "No machine has more than 100,000,000 MiB."),
        (Accelerator, "memory_bytes", "nan", "is not a number"),
        (Accelerator, "memory_bytes", "inf", "is not a number"),
        (Accelerator, "memory_bytes", "1e999", "too large for any machine"),
        (Accelerator, "memory_bytes", "80,5", "with a decimal point"),
        (Accelerator, "dense_bf16_flops_per_s", "1e300", "No machine has more than 100,000,000 TFLOP/s."),
        (Server, "local_storage_bytes", "1e300", "No machine has more than 1,000,000 TB."),
        (Server, "memory_bytes", "2e6", "No machine has more than 1,000,000 GB."),
    ],
)
def test_numbers_beyond_any_machine_are_one_sentence(model, field, typed, says):
    row = model.objects.first()
    response = type_in(page_of(row), {field: typed})
    errors = response.context["adminform"].form.errors
    assert list(errors) == [field]
    assert len(errors[field]) == 1
    assert says in errors[field][0]


@pytest.mark.parametrize("model", [Accelerator, Server, Fabric, Offer])
def test_rows_saved_as_they_are_leave_no_draft(model, client):
    for row in model.objects.order_by("pk")[:: max(model.objects.count() // 3, 1)]:
        response = save(client, page_of(row))
        assert response.status_code == 302, (row, sentences(response))
    assert [(draft.table, draft.key, draft.values) for draft in Draft.objects.all()] == []


def test_a_price_is_kept_as_it_was_typed():
    on_demand = Offer.objects.filter(server__sku=A100, pricing_model="on_demand", status="live").first()
    data = as_new(on_demand, price_per_hour="12.5", pricing_model="spot")
    response = signed_in("Catalog editor").post(add_page(Offer), data)
    assert response.status_code == 302, sentences(response)
    assert Decimal(Draft.objects.get().values["price_per_hour"]) == Decimal("12.5")
    assert re.fullmatch(r"[0-9a-f]{16}", Draft.objects.get().key)
