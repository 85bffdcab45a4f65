"""What the market asks for NVLink, from dated offers; never a constant."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import median

from catalog.specs import OfferSpec, PricingModel


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketPremium:
    """Median price per GPU-hour of NVLink offers over PCIe offers, less one.

    ``basis``: ``same_provider_and_date`` (median of the ratios of such groups) or ``market_medians``.
    """

    premium: float
    basis: str
    pricing_model: PricingModel
    nvlink_offers: int
    pcie_offers: int
    groups: int
    first_date: date
    last_date: date
    sources: tuple[str, ...]


def market_premium(nvlink: Sequence[OfferSpec], pcie: Sequence[OfferSpec], currency: str) -> MarketPremium | None:
    """From offers of one pricing model and currency, on demand first; None where no model has both sides."""
    for model in PricingModel:
        fast = [offer for offer in nvlink if offer.pricing_model is model and offer.currency == currency]
        slow = [offer for offer in pcie if offer.pricing_model is model and offer.currency == currency]
        if fast and slow:
            return _premium(fast, slow, model)
    return None


def _premium(fast: list[OfferSpec], slow: list[OfferSpec], model: PricingModel) -> MarketPremium:
    fast_groups, slow_groups = _grouped(fast), _grouped(slow)
    common = sorted(fast_groups.keys() & slow_groups.keys())
    if common:
        fast = [offer for key in common for offer in fast_groups[key]]
        slow = [offer for key in common for offer in slow_groups[key]]
        ratio = median(_median_price(fast_groups[key]) / _median_price(slow_groups[key]) for key in common)
    else:
        ratio = _median_price(fast) / _median_price(slow)
    dates = [offer.observed_on for offer in (*fast, *slow)]
    return MarketPremium(
        premium=ratio - 1,
        basis="same_provider_and_date" if common else "market_medians",
        pricing_model=model,
        nvlink_offers=len(fast),
        pcie_offers=len(slow),
        groups=len(common),
        first_date=min(dates),
        last_date=max(dates),
        sources=tuple(sorted({offer.source for offer in (*fast, *slow) if offer.source})),
    )


def _grouped(offers: Iterable[OfferSpec]) -> dict[tuple[str, date], list[OfferSpec]]:
    groups: dict[tuple[str, date], list[OfferSpec]] = defaultdict(list)
    for offer in offers:
        groups[offer.server.provider, offer.observed_on].append(offer)
    return groups


def _median_price(offers: Iterable[OfferSpec]) -> float:
    return median(float(offer.price_per_gpu_hour) for offer in offers)


def offers_where(
    offers: Iterable[OfferSpec], accelerator_key: str, wanted: Callable[[OfferSpec], bool]
) -> list[OfferSpec]:
    """Offers of several of these accelerators in one server, joined as wanted."""
    return [
        offer
        for offer in offers
        if offer.server.accelerator.key == accelerator_key and offer.server.gpu_count > 1 and wanted(offer)
    ]
