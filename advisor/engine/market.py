"""What the market asks for NVLink, from dated offers; never a constant.

Prices are per GPU-hour, of one pricing model and currency. Best are servers that have the link and the number of GPUs
compared; where no provider sells both forms so, the prices of one GPU of each form stand in, since a form's price does
not depend much on how many are rented together. One provider counts once, with its newest day on which it has both.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from advisor.engine.system import System
from catalog.specs import DatePrecision, OfferSpec, PricingModel, TopologyClass

LEAST_PROVIDERS = 3
"""Providers on each side that a ratio of medians over different providers needs: of fewer it compares providers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketPremium:
    """Price per GPU-hour of NVLink offers over PCIe offers, less one.

    ``basis``: ``same_provider_region_and_date`` or ``same_provider_and_date`` (median over providers of the ratios of
    such groups), or ``market_medians`` (ratio of the medians over all providers). ``server_gpus``: GPUs of the servers
    whose prices these are: the number compared, or 1.
    """

    premium: float
    basis: str
    pricing_model: PricingModel
    server_gpus: int
    nvlink_offers: int
    pcie_offers: int
    providers: tuple[str, ...]
    first: OfferSpec
    last: OfferSpec
    sources: tuple[str, ...]

    @property
    def seen(self) -> str:
        """The newest date of the offers used, as exact as it is known: ``2026-08-22`` or ``2026``."""
        day = self.last.observed_on
        return str(day.year) if self.last.observed_precision is DatePrecision.YEAR else day.isoformat()


Group = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Basis:
    """``key`` begins with the provider and ends with the date, where there is one."""

    name: str
    key: Callable[[OfferSpec], Group]


def _provider_region_date(offer: OfferSpec) -> Group:
    return offer.server.provider, offer.tenancy, offer.region, offer.observed_on.isoformat()


def _provider_date(offer: OfferSpec) -> Group:
    return offer.server.provider, offer.observed_on.isoformat()


_LIKE_FOR_LIKE = (
    _Basis(name="same_provider_region_and_date", key=_provider_region_date),
    _Basis(name="same_provider_and_date", key=_provider_date),
)

Sides = tuple[list[OfferSpec], list[OfferSpec]]


def market_premium(
    offers: Iterable[OfferSpec], nvlink: System, pcie: System, gpus: int, currency: str, *, each: int | None = None
) -> MarketPremium | None:
    """From the best basis there is, on-demand prices first; None where nothing like can be compared.

    ``each``: GPUs of one server, where several are taken.
    """
    own = [one for one in offers if one.currency == currency]
    for priced in _ways_of_paying(own):
        sized = [(size, _sides(priced, nvlink, pcie, gpus, size)) for size in dict.fromkeys((each or gpus, 1))]
        for size, sides in sized:
            for basis in _LIKE_FOR_LIKE:
                if (found := _like_for_like(sides, basis, size)) is not None:
                    return found
        for size, sides in sized:
            if (found := _medians(sides, size)) is not None:
                return found
    return None


def _ways_of_paying(offers: Iterable[OfferSpec]) -> list[list[OfferSpec]]:
    """Offers by pricing model and term, on demand first: a year's price is never held against a month's."""
    order = list(PricingModel)
    groups: dict[tuple[int, int], list[OfferSpec]] = defaultdict(list)
    for one in offers:
        groups[order.index(one.pricing_model), one.term_months].append(one)
    return [groups[way] for way in sorted(groups)]


def _sides(offers: Iterable[OfferSpec], nvlink: System, pcie: System, gpus: int, size: int) -> Sides:
    """Offers of the two accelerators: with the link and the number compared, or of one GPU alone.

    One GPU of an accelerator that is on both sides is the same thing at the same price: it says nothing of the link.
    """
    fast, slow = nvlink[0].key, pcie[0].key
    if size < gpus and fast == slow:
        return [], []
    own = [one for one in offers if one.server.gpu_count == size]
    return (
        [one for one in own if one.server.accelerator.key == fast and _joined(one, size, nvlink=True)],
        [one for one in own if one.server.accelerator.key == slow and _joined(one, size, nvlink=False)],
    )


def _joined(offer: OfferSpec, size: int, *, nvlink: bool) -> bool:
    topology = offer.server.fabric.topology
    if size == 1:
        return topology is TopologyClass.SINGLE
    return topology.is_nvlink if nvlink else topology.is_pcie


def _like_for_like(sides: Sides, basis: _Basis, size: int) -> MarketPremium | None:
    fast, slow = (_grouped(side, basis.key) for side in sides)
    common = _newest([group for group in fast if group in slow])
    if not common:
        return None
    ratios: dict[str, list[float]] = defaultdict(list)
    for group in common:
        ratios[group[0]].append(_median_price(fast[group]) / _median_price(slow[group]))
    premium = median(median(own) for own in ratios.values()) - 1
    used = [one for group in common for one in fast[group]], [one for group in common for one in slow[group]]
    return _found(premium, basis.name, used, size)


def _newest(groups: Sequence[Group]) -> list[Group]:
    """Of each provider the groups of its newest day: an older day is the same offer once more."""
    last: dict[str, str] = {}
    for group in groups:
        last[group[0]] = max(last.get(group[0], ""), group[-1])
    return [group for group in groups if group[-1] == last[group[0]]]


def _medians(sides: Sides, size: int) -> MarketPremium | None:
    """Each provider's newest day, then medians over the providers."""
    used: Sides = (_of_newest_day(sides[0]), _of_newest_day(sides[1]))
    prices = [[_median_price(own) for own in _grouped(side, _provider).values()] for side in used]
    if min(len(own) for own in prices) < LEAST_PROVIDERS:
        return None
    return _found(median(prices[0]) / median(prices[1]) - 1, "market_medians", used, size)


def _provider(offer: OfferSpec) -> Group:
    return (offer.server.provider,)


def _of_newest_day(offers: Iterable[OfferSpec]) -> list[OfferSpec]:
    groups = _grouped(offers, _provider_date)
    return [one for group in _newest(list(groups)) for one in groups[group]]


def _found(premium: float, basis: str, used: Sides, size: int) -> MarketPremium:
    both = sorted((*used[0], *used[1]), key=lambda one: (one.observed_on, one.key))
    return MarketPremium(
        premium=premium,
        basis=basis,
        pricing_model=both[0].pricing_model,
        server_gpus=size,
        nvlink_offers=len(used[0]),
        pcie_offers=len(used[1]),
        providers=tuple(sorted({one.server.provider for one in both})),
        first=both[0],
        last=both[-1],
        sources=tuple(sorted({one.source for one in both if one.source})),
    )


def _grouped(offers: Iterable[OfferSpec], key: Callable[[OfferSpec], Group]) -> Mapping[Group, list[OfferSpec]]:
    groups: dict[Group, list[OfferSpec]] = defaultdict(list)
    for offer in offers:
        groups[key(offer)].append(offer)
    return groups


def _median_price(offers: Iterable[OfferSpec]) -> float:
    return median(float(offer.price_per_gpu_hour) for offer in offers)


Sizes = Mapping[tuple[str, bool], Sequence[int]]


def sizes_sold(offers: Iterable[OfferSpec]) -> Sizes:
    """GPUs of the servers on offer, ascending, by (accelerator, whether NVLink joins them); PCIe where it does not."""
    found: dict[tuple[str, bool], set[int]] = defaultdict(set)
    for one in offers:
        topology = one.server.fabric.topology
        if topology.is_nvlink or topology.is_pcie:
            found[one.server.accelerator.key, topology.is_nvlink].add(one.server.gpu_count)
    return {key: sorted(sizes) for key, sizes in found.items()}


def smallest_sold(sizes: Sizes, system: System, gpus: int) -> int | None:
    """GPUs of the smallest server with this accelerator and kind of link that has at least ``gpus``, 2 or more.

    All of them are paid. None where nothing is offered.
    """
    sold = sizes.get((system[0].key, system[1].topology.is_nvlink), ())
    return next((size for size in sold if size >= gpus), None)
