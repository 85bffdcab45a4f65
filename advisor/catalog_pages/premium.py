"""What NVLink has cost over time: prices of one provider, held side by side. No database, no clock.

Two prices are compared only where provider, region, tenancy, way of paying, term, currency and number of accelerators
are the same and their dates are close. An SXM board against the PCIe card of the same chip and memory buys more than
links; a bridge on the very same card buys links alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from itertools import permutations

CLOSE_DAYS = 7
"""Prices move by the week: further apart two dates tell of the market, not of the link."""
ALIKE_MEMORY = 0.1
"""Memory may differ by this share: vendors count differently, but 40 and 80 GB are two products."""


class Kind(StrEnum):
    FORM = "form"
    LINK = "link"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One accelerator model. ``chip``: the silicon that form factors share. Figures are of one device, dense bf16."""

    key: str
    name: str
    chip: str
    form_factor: str
    memory_bytes: int
    memory_bandwidth_bytes_per_s: float
    bf16_flops_per_s: float | None

    @property
    def is_sxm(self) -> bool:
        return self.form_factor.upper().startswith("SXM")

    @property
    def is_pcie(self) -> bool:
        return self.form_factor.upper().startswith("PCIE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One printed price per accelerator and hour.

    ``link``: ``bridge`` where NVLink bridges join the cards, ``pcie`` where PCIe alone does, else empty.
    ``seen_on``, ``last_on``: the first and the last day on which its source was seen to print it.
    ``is_day_known``: where it is not, both are the first day of its year. ``source``: its text and licence.
    """

    provider: str
    region: str
    tenancy: str
    pricing_model: str
    term_months: int
    currency: str
    gpu_count: int
    card: Card
    link: str
    price: Decimal
    seen_on: date
    last_on: date
    is_day_known: bool
    source: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What the dearer form cost above the cheaper one at one provider at one time.

    Where several regions print both, the pair in the middle stands for all, ``low`` and ``high`` are the ends.
    """

    dear: Observed
    cheap: Observed
    low: float
    high: float
    regions: int

    @property
    def premium(self) -> float:
        return _premium(self.dear, self.cheap)

    @property
    def seen_on(self) -> date:
        """The first day on which both were printed."""
        return max(self.dear.seen_on, self.cheap.seen_on)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """All points of two forms of a chip, oldest first."""

    kind: Kind
    dear: Card
    cheap: Card
    points: tuple[Point, ...]

    @property
    def providers(self) -> int:
        return len({point.dear.provider for point in self.points})

    @property
    def more_memory_bandwidth(self) -> float:
        """What the dearer form has above the cheaper one, as a share; 0 where it is the same card."""
        return self.dear.memory_bandwidth_bytes_per_s / self.cheap.memory_bandwidth_bytes_per_s - 1

    @property
    def more_flops(self) -> float | None:
        """Likewise; None where one of them is not known."""
        dear, cheap = self.dear.bf16_flops_per_s, self.cheap.bf16_flops_per_s
        return dear / cheap - 1 if dear and cheap else None


def series_of(observed: Iterable[Observed]) -> tuple[Series, ...]:
    """Every pair of forms that some provider has sold alike: chips by name, the bridge last."""
    pairs: dict[tuple[Kind, Card, Card], list[tuple[Observed, Observed]]] = defaultdict(list)
    for alike in _alike(observed):
        for kind, dear, cheap in _matched(alike):
            pairs[kind, dear.card, cheap.card].append((dear, cheap))
    found = (
        Series(kind=kind, dear=dear, cheap=cheap, points=_points(own)) for (kind, dear, cheap), own in pairs.items()
    )
    return tuple(sorted(found, key=lambda one: (one.kind, one.dear.chip, one.dear.key, one.cheap.key)))


def _alike(observed: Iterable[Observed]) -> Iterable[list[Observed]]:
    groups: dict[tuple[object, ...], list[Observed]] = defaultdict(list)
    for one in observed:
        same = (one.provider, one.region, one.tenancy, one.pricing_model, one.term_months, one.currency)
        groups[(*same, one.gpu_count, one.card.chip, one.is_day_known)].append(one)
    return groups.values()


def _matched(alike: Sequence[Observed]) -> Iterator[tuple[Kind, Observed, Observed]]:
    """Each dearer form with the cheaper one nearest in time, once a day."""
    unbridged = _by_day(one for one in alike if one.link != "bridge")
    for dear, cheap in permutations(unbridged, 2):
        if _buys_a_board(dear, cheap):
            yield from ((Kind.FORM, *pair) for pair in _nearest(unbridged[dear], unbridged[cheap]))
    bridged = _by_day(one for one in alike if one.link == "bridge")
    plain = _by_day(one for one in alike if one.link == "pcie")
    for card in bridged.keys() & plain.keys():
        yield from ((Kind.LINK, *pair) for pair in _nearest(bridged[card], plain[card]))


def _by_day(observed: Iterable[Observed]) -> dict[Card, dict[date, Observed]]:
    """The cheapest of each card and day."""
    found: dict[Card, dict[date, Observed]] = defaultdict(dict)
    for one in sorted(observed, key=lambda own: own.price, reverse=True):
        found[one.card][one.seen_on] = one
    return found


def _buys_a_board(dear: Card, cheap: Card) -> bool:
    alike = abs(dear.memory_bytes / cheap.memory_bytes - 1) <= ALIKE_MEMORY
    return dear.is_sxm and cheap.is_pcie and alike


def _nearest(dear: dict[date, Observed], cheap: dict[date, Observed]) -> Iterator[tuple[Observed, Observed]]:
    """Each dearer price with its nearest, and each cheaper one that came while the dearer stood."""
    pairs = [(one, _near(one, cheap.values())) for one in dear.values()]
    back = [(_near(other, dear.values()), other) for other in cheap.values()]
    pairs += [pair for pair in back if _days_apart(*pair) == 0 and pair not in pairs]
    return (pair for pair in pairs if _days_apart(*pair) <= CLOSE_DAYS)


def _near(one: Observed, others: Iterable[Observed]) -> Observed:
    return min(others, key=lambda own: (_days_apart(one, own), abs((one.seen_on - own.seen_on).days), own.seen_on))


def _points(pairs: Sequence[tuple[Observed, Observed]]) -> tuple[Point, ...]:
    """One point for all regions of a provider, way of paying, size and day."""
    groups: dict[tuple[object, ...], list[tuple[Observed, Observed]]] = defaultdict(list)
    for dear, cheap in pairs:
        terms = (dear.provider, dear.tenancy, dear.pricing_model, dear.term_months, dear.currency, dear.gpu_count)
        groups[(*terms, dear.seen_on, cheap.seen_on)].append((dear, cheap))
    points = (_point(own) for own in groups.values())
    return tuple(sorted(points, key=lambda point: (point.seen_on, point.dear.provider, point.dear.tenancy)))


def _point(pairs: list[tuple[Observed, Observed]]) -> Point:
    ordered = sorted(pairs, key=lambda pair: (_premium(*pair), pair[0].region))
    dear, cheap = ordered[(len(ordered) - 1) // 2]
    low, high = _premium(*ordered[0]), _premium(*ordered[-1])
    return Point(dear=dear, cheap=cheap, low=low, high=high, regions=len(ordered))


def _premium(dear: Observed, cheap: Observed) -> float:
    return float(dear.price / cheap.price) - 1


def _days_apart(one: Observed, other: Observed) -> int:
    """Between the days of the one and those of the other; 0 where some day had both."""
    return max((max(one.seen_on, other.seen_on) - min(one.last_on, other.last_on)).days, 0)
