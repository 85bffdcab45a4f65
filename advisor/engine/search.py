"""Which plans on which servers are worth timing, and which of them is the best.

Whether a plan fits depends on the plan and the size of the memory alone, so that is looked at first: of each group only
the rows that fit best are timed, since the winner is one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Self

import numpy as np

from advisor.engine.candidates import Candidates
from advisor.engine.collectives import Floats, Ints
from advisor.engine.hardware import Hardware
from advisor.engine.memory import FITS_IN_ORDER, Fit, fit, need_bytes
from advisor.engine.plans import Plan, Recompute
from advisor.engine.step import Job

_PLAINER = 0.003
_NEVER = FITS_IN_ORDER.index(Fit.DOES_NOT_FIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """``plans[which[row]]`` on the server with the place ``server[row]``; one is to be chosen of each ``group``."""

    plans: tuple[Plan, ...]
    which: Ints
    server: Ints
    group: Ints

    @classmethod
    def of(cls, wanted: Sequence[tuple[int, Sequence[Plan]]]) -> Self:
        """A group for each (server, plans), in order. A list of plans that several servers share is kept once."""
        lists = {id(own): own for _, own in wanted}
        first = dict(zip(lists, accumulate((len(own) for own in lists.values()), initial=0), strict=False))
        sizes = [len(own) for _, own in wanted]
        return cls(
            plans=tuple(chain.from_iterable(lists.values())),
            which=np.concatenate([first[id(own)] + np.arange(len(own)) for _, own in wanted]),
            server=np.repeat([place for place, _ in wanted], sizes),
            group=np.repeat(np.arange(len(wanted)), sizes),
        )

    def take(self, rows: Ints | slice) -> Self:
        return type(self)(plans=self.plans, which=self.which[rows], server=self.server[rows], group=self.group[rows])

    def on(self, servers: Hardware) -> Candidates:
        """These rows; ``servers`` has one row for each server."""
        return Candidates.of(servers.take(self.server), self.plans, self.which)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Rows with the bytes that each needs on a GPU (NaN: unknown) and how that fits, a place in ``FITS_IN_ORDER``."""

    rows: Rows
    need: Floats
    fits: Ints

    def take(self, rows: Ints) -> Self:
        return type(self)(rows=self.rows.take(rows), need=self.need[rows], fits=self.fits[rows])


def checked(job: Job, servers: Hardware, rows: Rows) -> Checked:
    """Memory of every row; what a plan needs is the same on every server."""
    anywhere = servers.take(np.zeros(len(rows.plans), dtype=np.int64))
    need = need_bytes(job.workload, Candidates.of(anywhere, rows.plans, np.arange(len(rows.plans))))[rows.which]
    source = None if job.traced is None else float(job.traced.memory_bytes)
    return Checked(
        rows=rows, need=need, fits=fit(job.workload, need, servers.memory.capacity_bytes[rows.server], source)
    )


def worth_timing(found: Checked) -> Checked:
    """Of each group the rows that fit best; where nothing fits, the leanest."""
    group = found.rows.group
    need = np.where(found.fits == _NEVER, found.need, 0.0)
    ahead = np.flatnonzero(_is_least(group, found.fits))
    return found.take(ahead[_is_least(group[ahead], need[ahead])])


def plainness(plan: Plan) -> float:
    """Factor on the time of a plan when it is chosen: of plans that are nearly as fast the plainest is named.

    0.3 % for each kind of dividing and stage of sharding, far below what a prediction can tell apart.
    """
    kinds = sum(size > 1 for size in (plan.tp, plan.pp, plan.cp, plan.ep, plan.vpp))
    return 1.0 + _PLAINER * (kinds + plan.zero_stage + (plan.recompute is not Recompute.NONE))


def plainly(candidates: Candidates) -> Floats:
    """``plainness`` of every row."""
    return np.array([plainness(plan) for plan in candidates.plans])[candidates.which]


def best_rows(group: Ints, fits: Ints, need: Floats, time_per_sample: Floats) -> Ints:
    """Row of the winner of each group that has rows, in order of the groups.

    What fits before what is tight, then the fastest; if none fits, the leanest. The first of equals.
    """
    ahead = np.flatnonzero(_is_least(group, fits))
    worth = np.where(fits == _NEVER, need, time_per_sample)[ahead]
    ahead = ahead[_is_least(group[ahead], worth)]
    _, first = np.unique(group[ahead], return_index=True)
    return ahead[first]


def _is_least(group: Ints, value: Floats | Ints) -> np.typing.NDArray[np.bool_]:
    least = np.full(int(group.max(initial=-1)) + 1, np.inf)
    np.minimum.at(least, group, value)
    return value == least[group]
