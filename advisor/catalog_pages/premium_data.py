"""The prices that the premium is worked out from."""

from django.db.models import F

from advisor.catalog_pages.premium import Card, Observed, Series, series_of
from advisor.engine.fabric import silicon_family
from catalog.models import Accelerator, Offer
from catalog.models.accelerator import ScaleupKind
from catalog.models.offer import ObservedPrecision, OfferStatus
from catalog.specs import TopologyClass

_BRIDGED = (TopologyClass.NVLINK_BRIDGE_PAIRS, TopologyClass.NVLINK_BRIDGE_QUADS)
_TERMS = (
    "region",
    "tenancy",
    "pricing_model",
    "term_months",
    "currency",
    "observed_on",
    "last_seen_on",
    "observed_precision",
)
_PRICE = ("price_per_gpu_hour", "source", "source_licence")
_COLUMNS = (*_TERMS, *_PRICE, "provider", "card", "gpus", "topology")


def observed_prices() -> tuple[Observed, ...]:
    """Every price of chips sold as SXM board and as PCIe card, but for those that are held back. Two queries."""
    cards = _cards()
    rows = Offer.objects.filter(server__accelerator__key__in=cards).exclude(status=OfferStatus.QUARANTINED)
    named = rows.order_by().annotate(
        provider=F("server__provider__name"),
        card=F("server__accelerator__key"),
        gpus=F("server__gpu_count"),
        topology=F("server__fabric__topology"),
    )
    found = named.values_list(*_COLUMNS, named=True)
    return tuple(
        Observed(
            provider=row.provider,
            region=row.region,
            tenancy=row.tenancy,
            pricing_model=row.pricing_model,
            term_months=row.term_months,
            currency=row.currency,
            gpu_count=row.gpus,
            card=cards[row.card],
            link=_link(row.topology),
            price=row.price_per_gpu_hour,
            seen_on=row.observed_on,
            last_on=row.last_seen_on,
            is_day_known=row.observed_precision == ObservedPrecision.DAY,
            source=(row.source, row.source_licence),
        )
        for row in found.iterator()
    )


def premium_history() -> tuple[Series, ...]:
    """All series. Two queries."""
    return series_of(observed_prices())


def _cards() -> dict[str, Card]:
    """Forms of chips that are sold in two, and cards that a bridge may join."""
    rows = {row.key: row for row in Accelerator.objects.order_by("key")}
    cards = {key: _card(row) for key, row in rows.items()}
    boards = {card.chip for card in cards.values() if card.is_sxm}
    own_slot = {card.chip for card in cards.values() if card.is_pcie}
    bridged = {key for key, row in rows.items() if cards[key].is_pcie and row.scaleup_kind == ScaleupKind.NVLINK}
    return {key: card for key, card in cards.items() if card.chip in boards & own_slot or key in bridged}


def _card(row: Accelerator) -> Card:
    return Card(
        key=row.key,
        name=row.name,
        chip=silicon_family(row.key),
        form_factor=row.form_factor,
        memory_bytes=row.memory_bytes,
        memory_bandwidth_bytes_per_s=row.memory_bandwidth_bytes_per_s,
        bf16_flops_per_s=row.dense_bf16_flops_per_s,
    )


def _link(topology: str | None) -> str:
    if topology is None:
        return ""
    known = TopologyClass(topology)
    return "bridge" if known in _BRIDGED else "pcie" if known.is_pcie else ""
