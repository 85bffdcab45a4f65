"""Order of the offers, ties, and offers that another one beats on both price and time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, hypot

from advisor.engine.cost import Objective, Priced
from advisor.engine.intervals import ratio_halfwidth
from advisor.engine.prediction import Prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One line of the answer.

    ``rank``: from 1; None for an offer in another currency, which is listed and not compared. ``dominated``: another
    offer is at least as fast and as cheap, and better in one. ``ties_with_first``: the 80 % range of the ratio to the
    first offer includes 1.
    """

    rank: int | None
    priced: Priced
    dominated: bool
    ties_with_first: bool


def ranked(offers: Iterable[Priced], objective: Objective) -> tuple[Ranked, ...]:
    """Best first; what is equal keeps the order of its keys, whatever order the offers came in."""
    order = sorted(offers, key=lambda one: _key(one, objective))
    beaten = _dominated(order)
    return tuple(
        Ranked(
            rank=place + 1,
            priced=one,
            dominated=one.offer.key in beaten,
            ties_with_first=place > 0 and _ties(order[0], one, objective),
        )
        for place, one in enumerate(order)
    )


def listed(offers: Iterable[Priced], objective: Objective) -> tuple[Ranked, ...]:
    """Offers that are shown and not compared."""
    order = sorted(offers, key=lambda one: (one.offer.currency, _key(one, objective)))
    return tuple(Ranked(rank=None, priced=one, dominated=False, ties_with_first=False) for one in order)


def _key(one: Priced, objective: Objective) -> tuple[object, ...]:
    if objective is Objective.TIME:
        return one.time_to_finish_s, one.cost_to_finish, one.offer.key
    if objective is Objective.VALUE:
        return -one.samples_per_money, one.time_to_finish_s, one.offer.key
    return one.cost_to_finish, one.time_to_finish_s, one.offer.key


def _dominated(offers: Sequence[Priced]) -> frozenset[str]:
    """Keys of the offers off the front of time and cost; equal offers do not beat each other."""
    beaten, best = set(), None
    for one in sorted(offers, key=lambda one: (one.time_to_finish_s, one.cost_to_finish)):
        here = (one.cost_to_finish, one.time_to_finish_s)
        if best is None or here[0] < best[0]:
            best = here
        elif here != best:
            beaten.add(one.offer.key)
    return frozenset(beaten)


def _ties(first: Priced, other: Priced, objective: Objective) -> bool:
    """Whether the other may be as good as the first, by the range of their ratio."""
    ratio = other.time_to_finish_s / first.time_to_finish_s
    if objective is not Objective.TIME:
        ratio = float(other.cost_to_finish / first.cost_to_finish) if first.cost_to_finish else 1.0
    same_machine = first.offer.server.fabric == other.offer.server.fabric and first.servers == other.servers
    low, _ = paired_range(first.prediction, other.prediction, same_machine=same_machine)
    return ratio * low < 1


def paired_range(one: Prediction, other: Prediction, *, same_machine: bool = False) -> tuple[float, float]:
    """80 % range of T_other / T_one over its middle, for the same job: what both get wrong alike cancels.

    ``same_machine``: their fabrics are equal; with the same accelerator nothing is left to differ.
    """
    if same_machine and one.accelerator_key == other.accelerator_key:
        return 1.0, 1.0
    shared = ratio_halfwidth((one.accelerator_key, one.evidence), (other.accelerator_key, other.evidence))
    low = hypot(shared, other.link_low, one.link_high)
    high = hypot(shared, other.link_high, one.link_low)
    return exp(-low), exp(high)
