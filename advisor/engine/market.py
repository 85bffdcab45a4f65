"""What the market asks for NVLink, from dated offers; never a constant.

Prices are per GPU-hour, of one pricing model and currency. The cleanest evidence is one provider's price of both forms
on one day for the same number of GPUs; what that does not give comes from wider groups, and ``basis`` says which.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import median

from catalog.specs import OfferSpec, PricingModel, TopologyClass


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketPremium:
    """Price per GPU-hour of NVLink offers over PCIe offers, less one.

    ``basis``: ``same_provider_date_and_size`` or ``same_provider_and_date`` (median of the ratios of such groups), or
    ``market_medians`` (ratio of the medians).
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


def _provider_date_size(offer: OfferSpec) -> Hashable:
    return offer.server.provider, offer.observed_on, offer.server.gpu_count


def _provider_date(offer: OfferSpec) -> Hashable:
    return offer.server.provider, offer.observed_on


def _everything(_offer: OfferSpec) -> Hashable:
    return ()


_BASES: tuple[tuple[str, Callable[[OfferSpec], Hashable]], ...] = (
    ("same_provider_date_and_size", _provider_date_size),
    ("same_provider_and_date", _provider_date),
    ("market_medians", _everything),
)


def market_premium(nvlink: Sequence[OfferSpec], pcie: Sequence[OfferSpec], currency: str) -> MarketPremium | None:
    """From the best basis there is, on-demand prices first; None where no pricing model has both sides."""
    for model in PricingModel:
        fast = [offer for offer in nvlink if offer.pricing_model is model and offer.currency == currency]
        slow = [offer for offer in pcie if offer.pricing_model is model and offer.currency == currency]
        for basis, key in _BASES:
            found = _premium(fast, slow, model, basis, key)
            if found is not None:
                return found
    return None


def _premium(
    fast: Iterable[OfferSpec],
    slow: Iterable[OfferSpec],
    model: PricingModel,
    basis: str,
    key: Callable[[OfferSpec], Hashable],
) -> MarketPremium | None:
    fast_groups, slow_groups = _grouped(fast, key), _grouped(slow, key)
    common = [group for group in fast_groups if group in slow_groups]
    if not common:
        return None
    ratios = [_median_price(fast_groups[group]) / _median_price(slow_groups[group]) for group in common]
    used = [offer for group in common for offer in (*fast_groups[group], *slow_groups[group])]
    return MarketPremium(
        premium=median(ratios) - 1,
        basis=basis,
        pricing_model=model,
        nvlink_offers=sum(len(fast_groups[group]) for group in common),
        pcie_offers=sum(len(slow_groups[group]) for group in common),
        groups=len(common),
        first_date=min(offer.observed_on for offer in used),
        last_date=max(offer.observed_on for offer in used),
        sources=tuple(sorted({offer.source for offer in used if offer.source})),
    )


def _grouped(offers: Iterable[OfferSpec], key: Callable[[OfferSpec], Hashable]) -> dict[Hashable, list[OfferSpec]]:
    groups: dict[Hashable, list[OfferSpec]] = defaultdict(list)
    for offer in offers:
        groups[key(offer)].append(offer)
    return groups


def _median_price(offers: Iterable[OfferSpec]) -> float:
    return median(float(offer.price_per_gpu_hour) for offer in offers)


def offers_of(offers: Iterable[OfferSpec], accelerator_key: str, *, nvlink: bool) -> list[OfferSpec]:
    """Offers of this accelerator joined by NVLink (or by PCIe), and of one of it alone: the same part's price."""
    return [
        offer
        for offer in offers
        if offer.server.accelerator.key == accelerator_key and _counts(offer.server.fabric.topology, nvlink)
    ]


def _counts(topology: TopologyClass, nvlink: bool) -> bool:
    return topology is TopologyClass.SINGLE or (topology.is_nvlink if nvlink else topology.is_pcie)
