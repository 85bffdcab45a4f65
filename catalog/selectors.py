"""Reading the catalog as specs; each function says how many queries it makes, whatever the catalog's size."""

from collections.abc import Iterable
from datetime import date
from functools import cache

from django.db.models import DateField, Max, Q, Value
from django.db.models.functions import Least

from catalog import columns
from catalog.models import Accelerator, CatalogRevision, Fabric, Offer, Server
from catalog.models.accelerator import DTYPES
from catalog.models.offer import OfferStatus
from catalog.specs import (
    AcceleratorSpec,
    Confidence,
    DatePrecision,
    FabricSpec,
    OfferSpec,
    PricingModel,
    ServerSpec,
    TopologyClass,
)


def current_revision() -> int:
    """The catalog's number; 0 while nothing was ever loaded. One query."""
    return CatalogRevision.objects.aggregate(newest=Max("number"))["newest"] or 0


def accelerator_specs() -> tuple[AcceleratorSpec, ...]:
    """All accelerators in order of their keys. One query."""
    return tuple(_accelerator(row) for row in Accelerator.objects.order_by("key"))


def accelerator_by_device_name(name: str) -> AcceleratorSpec | None:
    """The accelerator whose driver prints ``name``, as in a trace; None where the name does not settle it.

    A name that several form factors or memory sizes share is not in the table. At most one query.
    """
    key = _device_names().get(_folded(name))
    row = Accelerator.objects.filter(key=key).first() if key else None
    return _accelerator(row) if row else None


def server_spec(key: str) -> ServerSpec | None:
    """The server with the key ``provider/sku``; None where there is none. One query."""
    provider, _, sku = key.partition("/")
    return next(iter(_servers(Q(provider__key=provider, sku=sku)).values()), None)


def offer_specs(*, on: date) -> tuple[OfferSpec, ...]:
    """Offers as they stood on a day: of each server, region, tenancy, way of paying, term, currency the newest.

    What was seen later as well is dated with the day asked for. Of prices seen on the same day, as of several zones,
    the lowest counts: one can choose. A retired one counts up to its last day; without a last day it never counted. An
    offer of which only the year is known counts from that year's first day. Servers whose accelerator is not known
    cannot be predicted and are left out. Two queries.
    """
    specs = _servers(Q())
    counted = Q(status=OfferStatus.LIVE) | Q(status=OfferStatus.RETIRED, valid_to__isnull=False)
    found = Offer.objects.filter(counted, observed_on__lte=on).exclude(valid_to__lt=on)
    place = ("server_id", "region", "tenancy", "pricing_model", "term_months", "currency")
    rest = ("key", "price_per_hour", "seen_on", "observed_precision", "source", "source_licence")
    seen = found.annotate(seen_on=Least("last_seen_on", Value(on, output_field=DateField())))
    newest = {row[:6]: row for row in seen.order_by("seen_on", "-price_per_hour", "key").values_list(*place, *rest)}
    offers = (_offer(row, specs[row[0]]) for row in newest.values() if row[0] in specs)
    return tuple(sorted(offers, key=lambda offer: (offer.server.key, offer.region, offer.pricing_model, offer.key)))


@cache
def _device_names() -> dict[str, str]:
    table = columns.cells(columns.DATA / "device_names.csv")
    return {_folded(row["device_name"]): row["accelerator"] for row in table}


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()


def _servers(query: Q) -> dict[int, ServerSpec]:
    known = Server.objects.filter(query, fabric__isnull=False, accelerator__isnull=False)
    found = known.select_related("provider", "accelerator", "fabric")
    accelerators: dict[int, AcceleratorSpec] = {}
    return {row.pk: _server(row, accelerators) for row in _ordered(found)}


def _ordered(servers: Iterable[Server]) -> list[Server]:
    return sorted(servers, key=lambda row: (row.provider.key, row.sku))


def _server(row: Server, accelerators: dict[int, AcceleratorSpec]) -> ServerSpec:
    accelerator = accelerators.get(row.accelerator_id) or _accelerator(row.accelerator)
    accelerators[row.accelerator_id] = accelerator
    return ServerSpec(
        key=row.key,
        provider=row.provider.key,
        sku=row.sku,
        accelerator=accelerator,
        gpu_count=row.gpu_count,
        fabric=_fabric(row.fabric),
        sockets=row.sockets,
        cpu_cores=row.cpu_cores,
        memory_bytes=row.memory_bytes,
        deployment=row.deployment,
        confidence=Confidence(min(row.confidence, row.fabric.confidence, key=_CERTAINTY.index)),
        source=row.source,
    )


_CERTAINTY = [Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH]


def _fabric(row: Fabric) -> FabricSpec:
    return FabricSpec(
        topology=TopologyClass(row.topology),
        domain_gpus=row.domain_gpus,
        bandwidth_bytes_per_s=row.bandwidth_bytes_per_s,
        peer_bandwidth_bytes_per_s=row.peer_bandwidth_bytes_per_s,
        pcie_generation=row.pcie_generation,
        pcie_lanes=row.pcie_lanes,
        pcie_bandwidth_bytes_per_s=row.pcie_bandwidth_bytes_per_s,
        peer_to_peer=row.peer_to_peer,
        network_bandwidth_bytes_per_s=row.network_bandwidth_bytes_per_s,
        rdma=row.rdma,
    )


def _accelerator(row: Accelerator) -> AcceleratorSpec:
    rates = {dtype: getattr(row, f"dense_{dtype}_flops_per_s") for dtype in DTYPES}
    return AcceleratorSpec(
        key=row.key,
        name=row.name,
        vendor=row.vendor,
        architecture=row.architecture,
        form_factor=row.form_factor,
        memory_bytes=row.memory_bytes,
        memory_bandwidth_bytes_per_s=row.memory_bandwidth_bytes_per_s,
        dense_flops_per_s={dtype: rate for dtype, rate in rates.items() if rate is not None},
        scaleup_kind=row.scaleup_kind,
        scaleup_bandwidth_bytes_per_s=row.scaleup_bandwidth_bytes_per_s,
        pcie_generation=row.pcie_generation,
        pcie_lanes=row.pcie_lanes,
        peer_to_peer_over_pcie=row.peer_to_peer_over_pcie,
        tdp_w=row.tdp_w,
        confidence=Confidence(row.confidence),
        source=row.source,
    )


def _offer(row: tuple, server: ServerSpec) -> OfferSpec:
    _, region, tenancy, pricing_model, term_months, currency, key, price, observed_on, precision, source, licence = row
    return OfferSpec(
        key=key,
        server=server,
        region=region,
        pricing_model=PricingModel(pricing_model),
        price_per_hour=price,
        currency=currency,
        observed_on=observed_on,
        observed_precision=DatePrecision(precision),
        term_months=term_months,
        tenancy=tenancy,
        source=source,
        source_licence=licence,
    )
