"""The catalog's pages: filters, state in the address, what is not known, hostile names, and their cost in queries."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from catalog.models import Accelerator, CostLine, Fabric, Offer, Provider, Region, Server
from tests.advisor.test_pages import assert_sound

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("small_market")]

SOURCED = {"source": "a price list https://example.org/list", "source_licence": "MIT"}
HOSTILE = '"><script>alert(1)</script>'
TODAY = timezone.now().date()
NO_CACHE = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}


@pytest.fixture(scope="module")
def small_market(django_db_setup: None, django_db_blocker: Any) -> Any:
    """Two providers, four servers with offers, one without, one whose form factor nobody knows."""
    with django_db_blocker.unblock(), transaction.atomic():
        _fill()
        yield
        transaction.set_rollback(True)


def _fill() -> None:
    sxm = _accelerator("h100-sxm5-80", "H100 SXM5", form_factor="SXM5", memory_bytes=80 * 10**9, scaleup_kind="nvlink")
    pcie = _accelerator("h100-pcie-80", "H100 PCIe", memory_bytes=80 * 10**9, scaleup_kind="nvlink")
    amd = _accelerator("mi300x", "MI300X", vendor="AMD", form_factor="OAM", memory_bytes=192 * 10**9)
    north = Provider.objects.create(key="north", name="North", kind="cloud", **SOURCED)
    bazaar = Provider.objects.create(key="bazaar", name="Bazaar", kind="marketplace", **SOURCED)
    Region.objects.create(provider=north, name="eu-1", country="DE", **SOURCED)
    Region.objects.create(provider=north, name="us-1", country="US", **SOURCED)
    fast = _server(north, "fast-8", sxm, 8, topology="nvswitch-full", peer=450e9, rdma=True, deployment="vm")
    slow = _server(north, "slow-8", pcie, 8, topology="pcie-switch", host=63e9, rdma=False)
    lone = _server(bazaar, "lone", amd, 1, topology="single", confidence="low")
    odd = _server(bazaar, f"odd {HOSTILE}", None, 4, accelerator_printed=f"H100 {HOSTILE}")
    _server(north, "unpriced", pcie, 2, topology="nvlink-bridge-pairs", peer=300e9, hire="colocation")
    designs = Provider.objects.create(key="designs", name="Designs", kind="reference", **SOURCED)
    _server(designs, "reference-1", sxm, 1, topology="single")
    _offer(fast, 32, region="eu-1")
    _offer(fast, 20, region="us-1", pricing_model="spot", days=60)
    _offer(slow, 16, region="us-1", days=200)
    _offer(slow, 12, region="us-1", pricing_model="reserved_1y", term_months=12)
    _offer(lone, 3, tenancy="community")
    _offer(lone, 1, currency="EUR")
    _offer(odd, 4, region=HOSTILE, notes=HOSTILE)
    _offer(lone, "0.01", status="quarantined")
    _offer(lone, "0.02", status="retired", days=300)
    _offer(lone, "0.03", region="gone", valid_to=TODAY - timedelta(days=1))
    CostLine.objects.create(
        provider=north, kind="egress", amount="0.05", currency="USD", unit="gb", observed_on=TODAY, **SOURCED
    )


def _accelerator(key: str, name: str, **values: Any) -> Accelerator:
    usual = {"vendor": "NVIDIA", "architecture": "Hopper", "form_factor": "PCIe", "memory_bandwidth_bytes_per_s": 2e12}
    return Accelerator.objects.create(key=key, name=name, confidence="high", **(usual | values), **SOURCED)


def _server(
    provider: Provider,
    sku: str,
    card: Accelerator | None,
    count: int,
    *,
    topology: str = "",
    peer: float | None = None,
    host: float | None = None,
    rdma: bool | None = None,
    **values: Any,
) -> Server:
    usual = {"confidence": "high"} | values
    row = Server.objects.create(provider=provider, sku=sku, accelerator=card, gpu_count=count, **usual, **SOURCED)
    if topology:
        rates = {"peer_bandwidth_bytes_per_s": peer, "bandwidth_bytes_per_s": peer, "pcie_bandwidth_bytes_per_s": host}
        Fabric.objects.create(server=row, topology=topology, rdma=rdma, confidence="high", **rates, **SOURCED)
    return row


def _offer(server: Server, price: int | str, *, days: int = 5, **values: Any) -> Offer:
    usual = {"pricing_model": "on_demand", "currency": "USD", "observed_on": TODAY - timedelta(days=days)}
    return Offer.objects.create(server=server, price_per_hour=Decimal(price), **(usual | values), **SOURCED)


def _skus(browser: Client, query: str) -> list[str]:
    """SKUs of the list in their order, without what hostile ones carry."""
    response = browser.get(f"/catalog/?{query}", follow=True)
    assert response.status_code == 200
    return [
        sku.split()[0] for sku in re.findall(r'<small class="sku">([a-z][^<]*)</small></th>', response.content.decode())
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["slow-8", "fast-8", "lone", "unpriced", "odd"]),
        ("accelerator=h100-sxm5-80&accelerator=mi300x", ["fast-8", "lone"]),
        ("vendor=AMD", ["lone"]),
        ("form_factor_known=false", ["odd"]),
        ("provider=bazaar", ["lone", "odd"]),
        ("provider_kind=marketplace", ["lone", "odd"]),
        ("provider_kind=reference", ["reference-1"]),
        ("topology=nvswitch-full&topology=nvlink-bridge-pairs", ["fast-8", "unpriced"]),
        ("topology=unknown", ["odd"]),
        ("is_nvlink=true", ["fast-8", "unpriced"]),
        ("min_peer_bandwidth_gb_per_s=60", ["slow-8", "fast-8", "unpriced"]),
        ("min_peer_bandwidth_gb_per_s=100", ["fast-8", "unpriced"]),
        ("rdma=true", ["fast-8"]),
        ("rdma=unknown", ["lone", "unpriced", "odd"]),
        ("gpu_count_min=2&gpu_count_max=4", ["unpriced", "odd"]),
        ("min_memory_gb=100", ["lone"]),
        ("min_total_memory_gb=600", ["slow-8", "fast-8"]),
        ("deployment=vm", ["fast-8"]),
        ("hire=colocation", ["unpriced"]),
        ("country=DE", ["fast-8"]),
        ("country=EEA", ["fast-8"]),
        ("country=US", ["slow-8", "fast-8"]),
        ("region=EU-1", ["fast-8"]),
        ("country=EEA&pricing_model=spot", []),
        ("pricing_model=spot", ["fast-8"]),
        ("term_months=12", ["slow-8"]),
        ("price_max=12", ["slow-8", "lone", "odd"]),
        ("price_per_gpu_hour_max=2", ["slow-8", "odd"]),
        ("price_per_gpu_hour_max=1&currency=eur", ["lone"]),
        ("country=DE&price_max=30", []),
        ("sort=price_per_hour", ["lone", "odd", "slow-8", "fast-8", "unpriced"]),
        ("sort=memory", ["slow-8", "fast-8", "lone", "unpriced", "odd"]),
        ("sort=bandwidth", ["fast-8", "unpriced", "slow-8", "odd", "lone"]),
        ("sort=name", ["lone", "odd", "fast-8", "slow-8", "unpriced"]),
        ("sort=age", ["odd", "slow-8", "lone", "fast-8", "unpriced"]),
    ],
)
def test_filters_really_filter_and_sort(browser: Client, query: str, found: list[str]) -> None:
    assert _skus(browser, query) == found


def test_the_lowest_price_that_can_be_bought_stands_in_one_currency(browser: Client) -> None:
    lone = browser.get("/catalog/?accelerator=mi300x").content.decode()
    assert "$3.00" in lone and "€" not in lone and "$0.01" not in lone
    assert "€1.00" in browser.get("/catalog/?accelerator=mi300x&currency=EUR").content.decode()
    slow = browser.get("/catalog/?accelerator=h100-pcie-80&currency=EUR").content.decode()
    assert slow.count("no price in EUR") == 2


def test_ages_are_said_in_words(browser: Client) -> None:
    words = {"pricing_model=spot": "seen within 90 days", "price_max=12": "seen within 30 days"}
    for query, age in words.items():
        assert age in browser.get(f"/catalog/?{query}").content.decode()
    assert (
        "older than 90 days"
        in browser.get("/catalog/?accelerator=h100-pcie-80&pricing_model=on_demand").content.decode()
    )


def test_empty_fields_leave_the_address_and_the_rest_stays(browser: Client) -> None:
    response = browser.get("/catalog/?vendor=&gpu_count_min=8&country=US&country=DE&region=")
    assert (response.status_code, response.headers["Location"]) == (
        302,
        "/catalog/?gpu_count_min=8&country=US&country=DE",
    )
    assert browser.get("/catalog/?vendor=").headers["Location"] == "/catalog/"


def test_a_condition_can_be_dropped_and_the_order_stays(browser: Client) -> None:
    page = browser.get("/catalog/?gpu_count_min=8&country=US&sort=memory").content.decode()
    assert 'href="?country=US&amp;sort=memory"' in page
    assert 'href="?gpu_count_min=8&amp;sort=memory"' in page


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("gpu_count_min=many", "gpu_count_min"),
        ("gpu_count_min=0", "gpu_count_min"),
        ("min_memory_gb=-1", "min_memory_gb"),
        ("currency=DOLLAR", "currency"),
        ("price_max=1e400", "price_max"),
        ("term_months=1.5", "term_months"),
        ("hire=loan", "hire"),
        ("sort=luck", "sort"),
    ],
)
def test_a_bad_value_is_told_beside_its_field_and_nothing_is_lost(browser: Client, query: str, field: str) -> None:
    response = browser.get(f"/catalog/?{query}&region=eu-1&accelerator=mi300x")
    page = response.content.decode()
    assert response.status_code == 422
    assert f'id="error_1_id_{field}"' in page
    assert 'value="eu-1"' in page and 'value="mi300x" checked' in page
    assert "Nothing is listed until" in page
    assert_sound(page)


@pytest.mark.parametrize("query", ["accelerator=h900", "topology=mesh", "country=Germany", "provider=nobody"])
def test_a_choice_that_is_none_is_told(browser: Client, query: str) -> None:
    response = browser.get(f"/catalog/?{query}")
    assert response.status_code == 422
    assert "Something needs your attention" in response.content.decode()


def test_an_empty_list_says_what_to_relax(browser: Client) -> None:
    page = browser.get("/catalog/?vendor=AMD&rdma=true").content.decode()
    assert "No server meets all of these conditions" in page
    assert 'href="?rdma=true"' in page


def test_pages_keep_the_filters(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("advisor.catalog_pages.browse.PAGE_SIZE", 2)
    page = browser.get("/catalog/?sort=name&is_nvlink=false").content.decode()
    assert "Page 1 of 2" in page
    assert 'href="?sort=name&amp;is_nvlink=false&amp;page=2"' in page
    assert _skus(browser, "sort=name&is_nvlink=false&page=2") == ["slow-8"]


@pytest.mark.parametrize(
    ("address", "queries"),
    [
        ("/catalog/", 6),
        ("/catalog/?accelerator=h100-sxm5-80&provider=north&country=EEA&sort=age&price_max=40", 6),
        ("/catalog/servers/north/fast-8/", 4),
        ("/catalog/compare/?server=north/fast-8&server=north/slow-8", 2),
    ],
)
def test_pages_cost_few_queries(browser: Client, django_assert_num_queries: Any, address: str, queries: int) -> None:
    with django_assert_num_queries(queries):
        assert browser.get(address).status_code == 200


def test_a_server_shows_its_facts_with_sources_its_offers_and_costs(browser: Client) -> None:
    row = Server.objects.get(sku="fast-8")
    row.field_sources = {
        "gpu_count": {
            "source": "seen on the machine",
            "source_licence": "facts-only",
            "confidence": "high",
            "observed_on": "2026-11-01",
            "reason": "counted",
            "replaced": [{"value": 4, "source": "an older list", "confidence": "low", "until": "2026-11-01"}],
        }
    }
    row.save()
    page = browser.get("/catalog/servers/north/fast-8/").content.decode()
    assert_sound(page)
    assert "<svg" in page and "450 GB/s one way" in page
    for words in ("seen on the machine", "counted", "Until 2026-11-01", "4 (an older list)", "2026-11-01"):
        assert words in page
    assert "$32.00" in page and "$4.00" in page and "$23,360" in page and "Germany" in page
    assert "outgoing traffic" in page and "$0.05" in page
    assert "main memory" in page.partition("What this server does not tell")[2]


def test_only_what_can_be_bought_is_offered(browser: Client) -> None:
    page = browser.get("/catalog/servers/bazaar/lone/").content.decode()
    offers, _, history = page.partition('id="history"')
    assert "$3.00" in offers and "€1.00" in offers
    assert not {"$0.01", "$0.02", "$0.03"} & set(re.findall(r"[$]\d+\.\d+", offers))
    assert "$0.02" in history and "$0.01" not in history


def test_what_a_server_has_is_said_in_the_units_of_price_lists(browser: Client) -> None:
    Server.objects.filter(sku="fast-8").update(memory_bytes=2048 * 10**9, local_storage_bytes=30.4e12)
    page = browser.get("/catalog/servers/north/fast-8/").content.decode()
    assert ">2,048 GB</data>" in page and ">30.4 TB</data>" in page


def test_an_unknown_form_factor_is_said_and_hostile_names_are_text(browser: Client) -> None:
    server = Server.objects.get(accelerator=None)
    listed = browser.get("/catalog/").content.decode()
    (address,) = re.findall(r'href="(/catalog/servers/bazaar/odd[^"]*)"', listed)
    page = browser.get(address).content.decode()
    compared = browser.get("/catalog/compare/", {"server": [server.key, "north/fast-8"]}).content.decode()
    for text in (listed, page, compared):
        assert "<script" not in text
        assert_sound(text)
    assert "form factor not known" in listed
    assert "nothing is predicted for this server" in page


@pytest.mark.parametrize(
    "address",
    ["/catalog/servers/north/none/", "/catalog/servers/none/fast-8/", "/catalog/servers/north/fast-8/prices-huge.svg"],
)
def test_what_is_not_there_is_404(browser: Client, address: str) -> None:
    assert browser.get(address).status_code == 404


def test_differences_are_marked_in_words(browser: Client) -> None:
    page = browser.get("/catalog/compare/?server=north/fast-8&server=north/slow-8").content.decode()
    rows = dict(re.findall(r'<th scope="row">([^<]+?)( <span class="tag differs">[^<]*</span>)?</th>', page))
    assert rows["topology"] and rows["on demand"]
    assert not rows["accelerators"]
    assert page.count('href="#source-') > 20


@pytest.mark.parametrize(
    ("servers", "says"),
    [
        (["north/fast-8"], "Choose 2 to 6"),
        (["north/fast-8", "north/fast-8"], "Choose 2 to 6"),
        ([f"north/{number}" for number in range(7)], "Choose 2 to 6"),
        (["north/fast-8", f"north/{HOSTILE}"], "The catalog has no server north/"),
    ],
)
def test_a_selection_that_cannot_be_compared_is_told(browser: Client, servers: list[str], says: str) -> None:
    response = browser.get("/catalog/compare/", {"server": servers})
    assert response.status_code == 422
    assert says in response.content.decode()
    assert_sound(response.content.decode())


def test_a_price_that_moved_is_drawn(browser: Client, settings: Any) -> None:
    settings.CACHES = NO_CACHE
    page = browser.get("/catalog/servers/north/slow-8/").content.decode()
    (address,) = re.findall(r'src="([^"]+/prices-wide\.svg)"', page)
    drawn = browser.get(address)
    assert drawn.headers["Content-Type"] == "image/svg+xml"
    assert b"reserved 1 year" in drawn.content


def test_premiums_come_from_offers_and_are_honest_about_few(browser: Client, settings: Any) -> None:
    settings.CACHES = NO_CACHE
    fast, slow = Server.objects.get(sku="fast-8"), Server.objects.get(sku="slow-8")
    assert "there is nothing to compare" in browser.get("/catalog/premium/").content.decode()
    _offer(fast, 30, region="us-2")
    _offer(slow, 24, region="us-2")
    _offer(slow, 1, region="us-2", pricing_model="spot")
    page = browser.get("/catalog/premium/").content.decode()
    assert_sound(page)
    assert "1 observation · 1 provider" in page and "+25%" in page and "$3.75" in page
    assert "An SXM board buys more than links" in page
    assert browser.get("/catalog/premium/narrow.svg").status_code == 200


def test_an_empty_catalog_says_so(browser: Client) -> None:
    for model in (Offer, CostLine, Fabric, Server):
        model.objects.all().delete()
    assert "The catalog is empty" in browser.get("/catalog/").content.decode()
