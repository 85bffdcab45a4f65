"""Callers of the REST API, and the few rows that its tests change."""

from datetime import date
from decimal import Decimal

from rest_framework.test import APIClient
from rest_framework_api_key.models import APIKey

from advisor.models import ApiKeyScope
from catalog.models import Accelerator, Fabric, Offer, Provider, Server
from catalog.models.revision import RevisionOrigin
from catalog.services import record_revision

CACHE = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
SOURCED = {"source": "a data sheet", "source_licence": "facts-only"}
ACCELERATOR = {
    "key": "x1-sxm-80",
    "name": "X1 SXM",
    "vendor": "NVIDIA",
    "architecture": "Hopper",
    "form_factor": "SXM5",
    "memory_bytes": 80 * 10**9,
    "memory_bandwidth_bytes_per_s": 3.35e12,
    "scaleup_kind": "nvlink",
    "scaleup_generation": 4,
    "scaleup_links": 18,
    "scaleup_bandwidth_bytes_per_s": 450e9,
    **SOURCED,
}
OFFER = {
    "server": "acme/x1.8",
    "region": "eu-1",
    "pricing_model": "on_demand",
    "currency": "USD",
    "price_per_hour": "16.000000",
    "observed_on": "2026-07-20",
    **SOURCED,
}


def caller(*scopes: str) -> APIClient:
    """A client with a key of its own that has these scopes."""
    client = APIClient()
    row, key = APIKey.objects.create_key(name="tests")
    for scope in scopes:
        ApiKeyScope.objects.create(key=row, scope=scope)
    client.credentials(HTTP_AUTHORIZATION=f"Api-Key {key}")
    return client


def few_rows() -> None:
    """One provider with one server, its fabric and one offer; the catalog is at revision 1."""
    provider = Provider.objects.create(key="acme", name="Acme", **SOURCED)
    accelerator = Accelerator.objects.create(**ACCELERATOR)
    server = Server.objects.create(provider=provider, sku="x1.8", accelerator=accelerator, gpu_count=8, **SOURCED)
    Fabric.objects.create(server=server, topology="nvswitch-full", bandwidth_bytes_per_s=450e9, **SOURCED)
    price = {"price_per_hour": Decimal("16.000000"), "observed_on": date(2026, 7, 20)}
    Offer.objects.create(**{**OFFER, **price, "server": server})
    record_revision(origin=RevisionOrigin.FILES, summary="files")


def pointers(response: object) -> list[str]:
    return [error["pointer"] for error in response.json()["errors"]]


def send(client, method, url, body, **headers):
    return getattr(client, method)(url, body, format="json", headers=headers)


def etag(client, url):
    return client.get(url)["ETag"]


def change(client, url, body, method="patch"):
    """Change a row on top of its present state."""
    return send(client, method, url, body, **{"If-Match": etag(client, url)})
