"""The catalog over REST."""

import pytest
from rest_framework.test import APIClient

from catalog.countries import EEA_COUNTRIES
from catalog.models import Accelerator, CostLine, Fabric, Offer, Provider, Region, Server
from tests.catalog.api_support import CACHE, caller

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.catalog.urls"), pytest.mark.usefixtures("shipped")]

MODELS = {
    "accelerators": Accelerator,
    "providers": Provider,
    "regions": Region,
    "servers": Server,
    "fabrics": Fabric,
    "cost-lines": CostLine,
    "offers": Offer,
}
LISTS = tuple(MODELS)
ALL = {"page_size": 500}
everything = {}
"""All rows of a list, read once: the tests of this module change none."""


@pytest.fixture
def api(settings) -> APIClient:
    settings.CACHES = CACHE
    return caller()


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


def all_of(api, name):
    if name not in everything:
        everything[name] = listed(api, name)
    return everything[name]


@pytest.mark.parametrize("name", LISTS)
def test_lists_take_few_queries_whatever_the_size(api, name, django_assert_max_num_queries):
    filters = {"accelerator": "l4", "provider": "gcp"} if name in ("servers", "offers") else {}
    with django_assert_max_num_queries(6):
        assert len(api.get(f"/api/v1/{name}/", filters | {"page_size": 500}).json()["results"]) >= 8


@pytest.mark.parametrize("name", LISTS)
def test_pages_hold_every_row_once(api, name):
    keys = [row["key" if name != "fabrics" else "server"] for row in all_of(api, name)]
    assert len(keys) == len(set(keys)) == MODELS[name].objects.count()


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
        ({"vendor": "amd"}, lambda s: (s["accelerator"] or "").startswith("mi")),
        ({"accelerator": "h100-sxm5-80"}, lambda s: s["accelerator"] == "h100-sxm5-80"),
        ({"provider": "oci"}, lambda s: s["provider"] == "oci"),
        ({"topology": ["nvl72", "c2c"]}, lambda s: s["fabric"]["topology"] in ("nvl72", "c2c")),
        ({"is_nvlink": "true"}, lambda s: s["fabric"]["is_nvlink"]),
        ({"is_nvlink": "false"}, lambda s: not s["fabric"]["is_nvlink"]),
        ({"gpu_count": 16}, lambda s: s["gpu_count"] == 16),
        ({"gpu_count_min": 3, "gpu_count_max": 4}, lambda s: s["gpu_count"] in (3, 4)),
        ({"min_total_memory_gb": 1000}, lambda s: (s["total_memory_bytes"] or 0) >= 10**12),
        ({"deployment": "bare_metal"}, lambda s: s["deployment"] == "bare_metal"),
    ],
)
def test_servers_are_filtered(api, query, holds):
    found = listed(api, "servers", **query)
    assert 0 < len(found) < len(all_of(api, "servers"))
    assert found == [server for server in all_of(api, "servers") if holds(server)]


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ({"region": "us-east-1"}, lambda o: o["region"] == "us-east-1"),
        (
            {"pricing_model": ["reserved_1y", "reserved_3y"]},
            lambda o: o["pricing_model"] in ("reserved_1y", "reserved_3y"),
        ),
        ({"price_max": "1.5"}, lambda o: float(o["price_per_hour"]) <= 1.5 and o["currency"] == "USD"),
        ({"country": ["EEA", "JP"]}, lambda o: o["country"] in {*EEA_COUNTRIES, "JP"}),
        ({"observed_after": "2026-08-23"}, lambda o: o["observed_on"] >= "2026-08-23"),
        ({"currency": "cny"}, lambda o: o["currency"] == "CNY"),
        ({"status": "retired"}, lambda o: o["status"] == "retired"),
        ({"gpu_count_min": 16}, lambda o: o["gpu_count"] == 16),
        ({"topology": "nvl72"}, lambda o: o["topology"] == "nvl72"),
    ],
)
def test_offers_are_filtered(api, query, holds):
    found = listed(api, "offers", **query)
    assert 0 < len(found) < len(all_of(api, "offers"))
    assert found == [offer for offer in all_of(api, "offers") if holds(offer)]


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
    values = [float(value) if "price" in field else value or 0 for value, _ in seen]
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
        {"observed_after": "01/02/2026"},
        {"deployment": "cloud"},
        {"status": "old"},
        {"region": "a\x00b"},
    ],
)
def test_bad_values_are_an_error_with_a_pointer(api, query):
    response = api.get("/api/v1/offers/", query)
    assert response.status_code == 400, response.content
    assert response.json()["errors"][0]["pointer"] == f"#/{next(iter(query))}"


def test_pages_lead_forth_and_back(api):
    there, document = (
        [],
        api.get("/api/v1/offers/", {"ordering": "-observed_on", "provider": "gcp", "page_size": 99}).json(),
    )
    first = document["results"]
    while document["next"]:
        there.append(document["results"])
        document = api.get(document["next"]).json()
    while document["previous"]:
        document = api.get(document["previous"]).json()
        assert document["results"] == there.pop()
    assert (document["results"], there) == (first, [])


def test_where_a_value_differs_in_source_from_its_row_that_is_told(api):
    told = [row for name in ("servers", "accelerators", "fabrics") for row in all_of(api, name) if row["sources"]]
    assert told
    for row in told:
        assert set(row["sources"]) <= set(row)
        for origin in row["sources"].values():
            assert origin["source"] and origin["confidence"] in ("high", "medium", "low")


def test_what_is_not_known_is_null(api):
    unknown = [server for server in all_of(api, "servers") if server["accelerator"] is None]
    for server in unknown:
        assert server["accelerator_printed"]
        assert (server["accelerator_name"], server["total_memory_bytes"]) == (None, None)


def test_without_a_key_nothing_is_shown_anywhere():
    for name in (*LISTS, "revisions"):
        assert APIClient().get(f"/api/v1/{name}/").status_code == 401


def test_addresses_beyond_all_numbers_are_404(api):
    assert api.get(f"/api/v1/revisions/{10**30}/").status_code == 404
