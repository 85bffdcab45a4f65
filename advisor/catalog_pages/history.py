"""How the price of one server has moved: steps by place, way of paying and currency. No database, no clock."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

DRAWN = 8
"""Lines that one chart can tell apart."""
LEAST_DAYS = 2
"""Of one day there is nothing to draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What must be the same for two prices to be one price that has moved; all as words for the reader."""

    region: str
    tenancy: str
    paying: str
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A price per server-hour from the first to the last day on which its source printed it.

    ``is_day_known``: where it is not, both days stand for their year.
    """

    first: date
    last: date
    price: Decimal
    is_day_known: bool
    source: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The steps of one offer in order of time."""

    terms: Terms
    steps: tuple[Step, ...]


def lines_of(steps: Iterable[tuple[Terms, Step]]) -> tuple[Line, ...]:
    """One line per terms: those that moved most often first, then the cheapest."""
    found: dict[Terms, list[Step]] = defaultdict(list)
    for terms, step in steps:
        found[terms].append(step)
    lines = [Line(terms=terms, steps=tuple(sorted(own, key=_time))) for terms, own in found.items()]
    return tuple(sorted(lines, key=lambda line: (-len(line.steps), line.steps[-1].price, line.terms.region)))


def drawn_of(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines of the chart: of the commonest currency, for one axis holds one. None where all is of one day."""
    if len({day for line in lines for step in line.steps for day in (step.first, step.last)}) < LEAST_DAYS:
        return ()
    currency = Counter(line.terms.currency for line in lines).most_common(1)[0][0]
    return tuple(line for line in lines if line.terms.currency == currency)[:DRAWN]


def _time(step: Step) -> tuple[date, date]:
    return step.first, step.last
