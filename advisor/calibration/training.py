"""The published training runs that stacks and chips are fitted to, timed once by the laws of chips and links."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from advisor.calibration.tables import DATA, rows
from advisor.engine.calibrated import Era
from advisor.engine.candidates import AS_IS
from advisor.engine.demand import Demand, demand_of
from advisor.engine.described import composed
from advisor.engine.exchanges import GradientTimes
from advisor.engine.fabric import silicon_family
from advisor.engine.hardware import hardware, precision_class, running_dtype
from advisor.engine.network import network_is_known
from advisor.engine.plans import plans_like
from advisor.engine.prediction import candidates_on
from advisor.engine.stacks import UNTOLD, Stack
from advisor.engine.system import System
from advisor.evaluation.jobs import Case, case_of
from advisor.evaluation.refusals import RowRefused
from advisor.evaluation.rows import MeasuredRow, read_rows

Floats = NDArray[np.float64]
Chip = tuple[str, str]
"""Silicon family and class of precision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Runs in one batch: row by row who published it, its stack, its chip, ln of its seconds, and its demand."""

    sources: tuple[str, ...]
    stacks: tuple[str, ...]
    chips: tuple[Chip, ...]
    log_measured: Floats
    demand: Demand

    def __len__(self) -> int:
        return len(self.sources)

    def take(self, wanted: Sequence[int] | NDArray[np.int64]) -> Self:
        """The given rows."""
        places = np.asarray(wanted, dtype=np.int64)
        return replace(
            self,
            sources=tuple(self.sources[place] for place in places),
            stacks=tuple(self.stacks[place] for place in places),
            chips=tuple(self.chips[place] for place in places),
            log_measured=self.log_measured[places],
            demand=_mapped(lambda column: column[places], self.demand),
        )

    def errors(self, stack: Stack, chip: Floats | float = 1.0) -> Floats:
        """ln(measured / predicted); the stack's constants are numbers, or one for each row."""
        return self.log_measured - np.log(composed(self.demand, stack, chip).step_s)


def _mapped(change: Any, *values: Any) -> Any:
    """The same structure with every array changed: ``change`` takes that array of each of ``values``."""
    first = values[0]
    if is_dataclass(first):
        return type(first)(
            **{item.name: _mapped(change, *(getattr(one, item.name) for one in values)) for item in fields(first)}
        )
    if isinstance(first, tuple):
        return tuple(_mapped(change, *parts) for parts in zip(*values, strict=True))
    return change(*values)


@cache
def known_stacks() -> dict[str, dict[str, str]]:
    """What is known of each stack without a fit, by name."""
    return {row["stack"]: row for row in rows("stacks.csv")}


def known_stack(name: str, **constants: Any) -> Stack:
    """A stack with these fitted constants; one that is not known counts as not told."""
    row = known_stacks().get(name) or known_stacks()[UNTOLD]
    return Stack(
        name=row["stack"],
        title=row["title"],
        attention_era=Era(row["attention_era"]),
        gradient_bytes=float(row["gradient_bytes"]),
        **constants,
    )


@cache
def training_runs() -> Runs:
    """The runs that can be predicted and state what decides.

    Where a micro-batch is not stated, the largest that the rank can fill counts.
    """
    found = [run for row in read_rows(DATA / "training_runs.csv") if (run := _run(row)) is not None]
    cases = [case for case, _ in found]
    return Runs(
        sources=tuple(case.row.source_group for case in cases),
        stacks=tuple(case.workload.stack or UNTOLD for case in cases),
        chips=tuple(chip_of(case) for case in cases),
        log_measured=np.log([case.measured_step_s for case in cases]),
        demand=gathered(one for _, one in found),
    )


def _run(row: MeasuredRow) -> tuple[Case, Demand] | None:
    try:
        case = case_of(row)
    except RowRefused:
        return None
    if not _DECIDES.isdisjoint(case.assumed) or case.workload.model is None:
        return None
    demand = demand_in(case)
    return (case, demand) if demand else None


def demand_in(case: Case) -> Demand | None:
    """What the job of a run demands, by the plan of the run; None where that or its network is not known."""
    system, plans = System.of(case.server), plans_like(case.workload, case.plan)
    if not plans or not network_is_known(system, case.gpus):
        return None
    stack = known_stack(case.workload.stack or UNTOLD, **_UNFITTED)
    chips = hardware([system], case.workload.precision, stack.attention_era)
    candidates = candidates_on(chips, [(0, plans[-1:])])
    return demand_of(case.workload, candidates, AS_IS, stack)


_DECIDES = frozenset({"sequence", "network"})
"""What a run has to state itself, as the figure that it is completed with would decide the error."""

_UNFITTED = {
    item.name: 1.0 for item in fields(Stack) if item.name not in ("name", "title", "attention_era", "gradient_bytes")
}


def chip_of(case: Case) -> Chip:
    accelerator = case.server.accelerator
    dtype = running_dtype(accelerator, case.workload.precision) or case.workload.precision
    return silicon_family(accelerator.key), precision_class(dtype)


def gathered(demands: Iterable[Demand]) -> Demand:
    """One batch of many demands, in order."""
    joined: Demand = _mapped(lambda *columns: np.concatenate(columns), *map(_two_gradients, demands))
    return joined


def _two_gradients(demand: Demand) -> Demand:
    """Every run with two groups of replicas (dense weights, experts), empty ones where it has fewer."""
    nothing = np.zeros(len(demand.passes))
    times = list(demand.gradients)
    while len(times) < 2:
        times.append(GradientTimes(reduce_s=nothing, scatter_s=nothing, gather_s=nothing))
    return replace(demand, gradients=tuple(times))
