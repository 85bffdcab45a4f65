"""The catalog over REST."""

import pytest
from rest_framework.test import APIClient
from rest_framework_api_key.models import APIKey

from catalog.models import Accelerator, Server

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.catalog.urls"), pytest.mark.usefixtures("shipped")]

LISTS = ("accelerators", "providers", "servers", "offers")
ALL = {"page_size": 500}


@pytest.fixture
def api(settings) -> APIClient:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    client = APIClient()
    _, key = APIKey.objects.create_key(name="tests")
    client.credentials(HTTP_AUTHORIZATION=f"Api-Key {key}")
    return client


def listed(api, name, **query):
    """All rows of all pages."""
    response = api.get(f"/api/v1/{name}/", ALL | query)
    assert response.status_code == 200, response.content
    document = response.json()
    rows = document["results"]
    while document["next"]:
        document = api.get(document["next"]).json()
        rows += document["results"]
    return rows


@pytest.mark.parametrize("name", LISTS)
def test_lists_take_few_queries_whatever_the_size(api, name, django_assert_max_num_queries):
    filters = {"accelerator": "l4", "provider": "gcp"} if name in ("servers", "offers") else {}
    with django_assert_max_num_queries(8):  # two of them look the key up
        assert len(api.get(f"/api/v1/{name}/", filters | {"page_size": 500}).json()["results"]) >= 8


@pytest.mark.parametrize("name", LISTS)
def test_pages_hold_every_row_once(api, name):
    keys = [row["key"] for row in listed(api, name)]
    assert len(keys) == len(set(keys)) == {"accelerators": 62, "providers": 45, "servers": 862, "offers": 2701}[name]


def test_a_server_by_its_natural_key(api):
    server = api.get("/api/v1/servers/aws/p4d.24xlarge/").json()
    assert (server["key"], server["accelerator"], server["gpu_count"]) == ("aws/p4d.24xlarge", "a100-sxm4-40", 8)
    assert server["total_memory_bytes"] == 8 * 40960 * 2**20
    assert server["host_memory_bytes"] == 1152 * 10**9
    assert server["fabric"]["is_nvlink"] is True
    assert server["fabric"]["bandwidth_bytes_per_s"] == 300e9
    assert server["fabric"]["source_licence"] == "Apache-2.0; MIT"


@pytest.mark.parametrize("sku", ["H100 node (8x, IB)", "n1+8xV100", "HGX H100 (gd-8xh100ib-i128)"])
def test_odd_names_have_addresses_too(api, sku):
    row = Server.objects.select_related("provider").get(sku=sku)
    assert api.get(f"/api/v1/servers/{row.provider.key}/{sku}/").json()["sku"] == sku


@pytest.mark.parametrize("path", ["servers/aws/none", "servers/none/p4d.24xlarge", "accelerators/none", "offers/0"])
def test_what_is_not_there_is_404(api, path):
    assert api.get(f"/api/v1/{path}/").status_code == 404


def test_an_accelerator_prints_units_and_its_source(api):
    card = api.get("/api/v1/accelerators/h100-sxm5-80/").json()
    assert card["dense_bf16_flops_per_s"] == 989.4e12
    assert card["scaleup_bandwidth_bytes_per_s"] == 450e9
    assert card["dense_fp4_flops_per_s"] is None
    assert card["source"] and card["source_licence"] and card["confidence"] == "high"


def test_an_offer_prints_money_as_text_with_date_and_licence(api):
    offers = listed(api, "offers", provider="aws", accelerator="a100-sxm4-40", status="live", region="us-east-1")
    (offer,) = [row for row in offers if row["server"] == "aws/p4d.24xlarge"]
    assert (offer["price_per_hour"], offer["price_per_gpu_hour"], offer["currency"]) == ("21.957600", "2.744700", "USD")
    assert (offer["observed_on"], offer["observed_precision"]) == ("2026-07-20", "day")
    assert offer["source_licence"] == "Apache-2.0"
    assert api.get(f"/api/v1/offers/{offer['key']}/").json() == offer


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ({"vendor": "amd"}, lambda s: s["accelerator"].startswith("mi")),
        ({"accelerator": "h100-sxm5-80"}, lambda s: s["accelerator"] == "h100-sxm5-80"),
        ({"provider": "oci"}, lambda s: s["provider"] == "oci"),
        ({"topology": ["nvl72", "c2c"]}, lambda s: s["fabric"]["topology"] in ("nvl72", "c2c")),
        ({"is_nvlink": "true"}, lambda s: s["fabric"]["is_nvlink"]),
        ({"is_nvlink": "false"}, lambda s: not s["fabric"]["is_nvlink"]),
        ({"gpu_count": 16}, lambda s: s["gpu_count"] == 16),
        ({"gpu_count_min": 3, "gpu_count_max": 4}, lambda s: s["gpu_count"] in (3, 4)),
        ({"min_total_memory_gb": 1000}, lambda s: s["total_memory_bytes"] >= 10**12),
        ({"deployment": "bare_metal"}, lambda s: s["deployment"] == "bare_metal"),
    ],
)
def test_servers_are_filtered(api, query, holds):
    everything, found = listed(api, "servers"), listed(api, "servers", **query)
    assert 0 < len(found) < len(everything)
    assert found == [server for server in everything if holds(server)]


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ({"region": "us-east-1"}, lambda o: o["region"] == "us-east-1"),
        ({"pricing_model": ["reserved_1y", "reserved_3y"]}, lambda o: o["pricing_model"].startswith("reserved")),
        ({"price_max": "1.5"}, lambda o: float(o["price_per_hour"]) <= 1.5),
        ({"observed_after": "2026-08-23"}, lambda o: o["observed_on"] >= "2026-08-23"),
        ({"currency": "cny"}, lambda o: o["currency"] == "CNY"),
        ({"status": "retired"}, lambda o: o["status"] == "retired"),
        ({"gpu_count_min": 16}, lambda o: o["gpu_count"] == 16),
        ({"topology": "nvl72"}, lambda o: o["topology"] == "nvl72"),
    ],
)
def test_offers_are_filtered(api, query, holds):
    everything, found = listed(api, "offers"), listed(api, "offers", **query)
    assert 0 < len(found) < len(everything)
    assert found == [offer for offer in everything if holds(offer)]


def test_accelerators_and_providers_are_filtered(api):
    big = {card["key"] for card in listed(api, "accelerators", vendor="nvidia", min_memory_gb=180)}
    assert big == {"b100", "b200", "b300", "gb200", "gb300"}
    assert {card["vendor"] for card in listed(api, "accelerators", scaleup_kind="ici")} == {"Google"}
    assert [row["key"] for row in listed(api, "providers", kind="reference")] == ["reference"]


@pytest.mark.parametrize(
    ("name", "order", "field"),
    [
        ("accelerators", "-memory_bytes", "memory_bytes"),
        ("servers", "-total_memory_bytes", "total_memory_bytes"),
        ("offers", "price_per_hour", "price_per_hour"),
        ("offers", "-price_per_gpu_hour", "price_per_gpu_hour"),
        ("offers", "-observed_on", "observed_on"),
    ],
)
def test_ordering_holds_across_pages(api, name, order, field):
    seen = [
        (row[field], row["key"]) for row in listed(api, name, ordering=order, page_size=30 if name[0] == "a" else 400)
    ]
    values = [float(value) if "price" in field else value for value, _ in seen]
    assert values == sorted(values, reverse=order.startswith("-"))
    assert len({key for _, key in seen}) == len(seen)


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize(
    ("query", "at"),
    [({"colour": "red"}, "colour"), ({"ordering": "secret"}, "ordering"), ({"ordering": "-key,pk"}, "ordering")],
)
def test_unknown_names_are_an_error(api, name, query, at):
    response = api.get(f"/api/v1/{name}/", query)
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == f"#/{at}"
    assert "Known are" in response.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    "query",
    [
        {"gpu_count": "many"},
        {"gpu_count": "1.5"},
        {"gpu_count_min": "0"},
        {"gpu_count_max": "1e30"},
        {"is_nvlink": "maybe"},
        {"topology": "mesh"},
        {"accelerator": "h900"},
        {"provider": "nobody"},
        {"pricing_model": "serverless"},
        {"price_max": "-1"},
        {"price_max": "NaN"},
        {"price_max": "1e400"},
        {"min_total_memory_gb": "10000000000000000000"},
        {"observed_after": "yesterday"},
        {"observed_after": "2026-02-30"},
        {"deployment": "cloud"},
        {"status": "old"},
        {"region": "a\x00b"},
    ],
)
def test_bad_values_are_an_error_with_a_pointer(api, query):
    response = api.get("/api/v1/offers/", query)
    assert response.status_code == 400, response.content
    assert response.json()["errors"][0]["pointer"] == f"#/{next(iter(query))}"


def test_nothing_can_be_written(api):
    before = Accelerator.objects.count()
    for method in (api.post, api.put, api.patch, api.delete):
        assert method("/api/v1/accelerators/", {"key": "x"}, format="json").status_code == 405
        assert method("/api/v1/servers/aws/p4d.24xlarge/", {"sku": "x"}, format="json").status_code == 405
    assert Accelerator.objects.count() == before


def test_without_a_key_nothing_is_shown():
    assert APIClient().get("/api/v1/offers/").status_code == 401
