"""Ways of dividing one job over the same GPUs, side by side: the best plan of each method."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from advisor.engine.memory import FITS_IN_ORDER
from advisor.engine.plans import Plan, legal_plans
from advisor.engine.prediction import Outcome, Prediction, outcomes, seen_by
from advisor.engine.search import Rows, plainness
from advisor.engine.step import Job
from advisor.engine.system import System

SINGLE, CAPTURED = "single", "captured"
SHOWN = 10
_SHARDED = {0: "dp", 1: "zero1", 2: "zero2", 3: "zero3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable:
    """The plans of one machine, best first. ``role``: ``nvlink``, ``pcie`` or ``top_offer``."""

    role: str
    system: System
    gpus: int
    outcomes: tuple[Outcome, ...]


def method_of(plan: Plan) -> str:
    """What kind of dividing a plan does: ``single``, ``captured``, or the kinds of parallelism it uses, joined by +.

    Data parallelism alone is told apart by what is sharded (``dp``, ``zero1``, ``zero2``, ``zero3``); beside other
    kinds it is ``dp``, whatever is sharded. Experts divided over data-parallel ranks are ``ep``.
    """
    if plan.captured:
        return CAPTURED
    others = [name for name in ("tp", "cp", "ep", "pp") if getattr(plan, name) > 1]
    if others == ["ep"]:
        return "ep"
    if others:
        return "+".join([*others, *(["dp"] if plan.dp > 1 else [])])
    return _SHARDED[plan.zero_stage] if plan.dp > 1 else SINGLE


def compare_plans(job: Job, system: System, gpus: int, limit: int = 8) -> tuple[Outcome, ...]:
    """The best plan of each method on ``gpus`` GPUs, best first, at most ``limit``; what does not fit at the end.

    Where there are more, the last of those that use several kinds of parallelism are left out first. The order is
    that of the search for the best plan: what fits before what is tight, then samples per second, the plainer of
    nearly equal ones first; what does not fit by how much is missing. Empty where the job cannot be divided over so
    many GPUs.
    """
    plans = legal_plans(job.workload, gpus)
    if not plans:
        return ()
    methods = [method_of(plan) for plan in plans]
    number = {method: place for place, method in enumerate(dict.fromkeys(methods))}
    group = np.array([number[method] for method in methods], dtype=np.int64)
    found = outcomes(job, [system], replace(Rows.of([(0, plans)]), group=group))
    return _first(sorted(found, key=_order), limit)


def comparables(job: Job, wanted: Sequence[tuple[str, System, int]]) -> tuple[Comparable, ...]:
    """The plans of each wanted machine: (role, system, number of GPUs)."""
    seen = [(seen_by(job.workload, system).at(gpus), gpus) for _, system, gpus in wanted]
    found = {(kind, gpus): compare_plans(job, kind, gpus, SHOWN) for kind, gpus in dict.fromkeys(seen)}
    return tuple(
        Comparable(role=role, system=system, gpus=gpus, outcomes=found[key])
        for key, (role, system, gpus) in zip(seen, wanted, strict=True)
    )


def _first(ordered: Sequence[Outcome], limit: int) -> tuple[Outcome, ...]:
    """Those that use one kind of parallelism, and the best of the others."""
    places = sorted(range(len(ordered)), key=lambda place: (place > 0 and "+" in method_of(ordered[place].plan), place))
    return tuple(ordered[place] for place in sorted(places[:limit]))


def _order(outcome: Outcome) -> tuple[bool, int, float]:
    is_short = not isinstance(outcome, Prediction)
    worth = (outcome.memory.shortfall_bytes or 0.0) if is_short else plainness(outcome.plan) / outcome.samples_per_s
    return is_short, FITS_IN_ORDER.index(outcome.memory.verdict), worth
