"""Fit of what ranks lose together: published runs on 2, 4 and 8 GPUs against the run on one GPU of their series.

Five constants for all models, chips and sources (``engine/together.py``), from the error of the scaling efficiency with
a loss that grows no faster than the error: a box whose links fail is one run, not a law. The runs are
``data/scaling_runs.csv``: of every source, model, count, kind of link and software at most three.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from advisor.calibration.stacks import calibration
from advisor.calibration.tables import DATA, written
from advisor.calibration.training import Floats, chip_of, demand_in, gathered
from advisor.engine.demand import Demand
from advisor.engine.described import composed
from advisor.engine.stacks import UNTOLD, Stack
from advisor.engine.together import is_late, is_uneven, losses
from advisor.evaluation.jobs import Case, case_of
from advisor.evaluation.refusals import RowRefused
from advisor.evaluation.rows import read_rows

_SOFT = 0.01
"""Efficiency: errors far below it hardly count."""
_MOST_STEPS = 4_000
_TENSORFLOW = "tensorflow"

CONSTANTS = (
    ("skew_even", 0.01, "share of a micro-batch", "standard deviation of one rank's time, samples of one size"),
    ("skew_uneven", 0.05, "share of a micro-batch", "the same, samples of different lengths or numbers of parts"),
    ("skew_tensorflow", 0.03, "share of a micro-batch", "what TensorFlow with Horovod strays beside that"),
    ("host_crowding", 0.03, "share of launching for each further process", "one host's clocks, caches, memory"),
    ("rendezvous_s", 0.002, "s per step", "hooks, launches of the exchange, and the wait for it"),
)
"""Name, where the search begins, unit, meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledRuns:
    """Row by row: a run on several GPUs, and what its run on one GPU says.

    ``measured``: efficiency, samples per second and GPU over those of the run on one. ``ideal_s``: step at the speed
    of that run. ``pace``: its time over what the laws say.
    """

    sources: tuple[str, ...]
    models: tuple[str, ...]
    measured: Floats
    ideal_s: Floats
    pace: Floats
    gpus: NDArray[np.int64]
    uneven: NDArray[np.bool_]
    tensorflow: NDArray[np.bool_]
    late: Floats
    stack: Stack
    chip: Floats
    demand: Demand

    @classmethod
    def of(cls, pairs: list[tuple[Case, Case]]) -> Self:
        """``pairs``: a run on several GPUs and the one on one."""
        many, ones = [case for case, _ in pairs], [case for _, case in pairs]
        found = calibration()
        stack = found.stack_rows([case.workload.stack or UNTOLD for case in many])
        chip = found.chip_rows([chip_of(case) for case in many])
        alone_s = composed(_demands(ones), stack, chip).step_s
        gpus = np.array([case.gpus for case in many])
        batch = np.array([case.workload.batch_per_step for case in many])
        ideal_s = batch / gpus / np.array([case.samples_per_s for case in ones])
        return cls(
            sources=tuple(case.row.source_group for case in many),
            models=tuple(case.row.model for case in many),
            measured=ideal_s / np.array([case.measured_step_s for case in many]),
            ideal_s=ideal_s,
            pace=np.array([case.measured_step_s for case in ones]) / alone_s,
            gpus=gpus,
            uneven=np.array([is_uneven(case.workload) for case in many]),
            tensorflow=np.array([case.workload.stack == _TENSORFLOW for case in many]),
            late=np.array([float(is_late(case.workload)) for case in many]),
            stack=stack,
            chip=chip,
            demand=_demands(many),
        )

    def __len__(self) -> int:
        return len(self.sources)

    def efficiency(self, constants: Floats) -> Floats:
        """Predicted, from the run on one GPU; ``constants`` in the order of CONSTANTS."""
        even, uneven, tensorflow, crowding, rendezvous_s = constants
        ranks = losses(
            self.gpus,
            processes=self.gpus,
            passes=self.demand.passes,
            noise=np.where(self.uneven, uneven, even) + np.where(self.tensorflow, tensorflow, 0.0),
            crowding=crowding,
            rendezvous_s=rendezvous_s,
            late=self.late,
        )
        step_s = composed(self.demand, self.stack, self.chip, self.pace, ranks=ranks).step_s
        return np.asarray(self.ideal_s / step_s)


def _demands(cases: list[Case]) -> Demand:
    return gathered(demand for case in cases if (demand := demand_in(case)) is not None)


@cache
def scaled_runs() -> ScaledRuns:
    """The runs on several GPUs of which the series has one on one GPU: the first in the file."""
    cases = []
    for row in read_rows(DATA / "scaling_runs.csv"):
        try:
            case = case_of(row)
        except RowRefused:
            continue
        if demand_in(case) is not None:
            cases.append(case)
    ones: dict[str, Case] = {}
    for case in cases:
        if case.gpus == 1:
            ones.setdefault(case.row.series, case)
    return ScaledRuns.of([(case, ones[case.row.series]) for case in cases if case.gpus > 1 and case.row.series in ones])


def fitted(without: str = "") -> Floats:
    """The constants, in the order of CONSTANTS; ``without``: a source that is left out.

    Every model of a source weighs as the root of its runs.
    """
    runs = scaled_runs()
    cells = list(zip(runs.sources, runs.models, strict=True))
    counts = Counter(cells)
    weights = np.array([counts[cell] ** -0.5 if cell[0] != without else 0.0 for cell in cells])
    start = np.array([one[1] for one in CONSTANTS])

    def loss(scaled: Floats) -> float:
        errors = runs.efficiency(np.abs(scaled) * start) - runs.measured
        return float(np.sum(weights * np.sqrt(errors**2 + _SOFT**2)) / weights.sum())

    options = {"maxfev": _MOST_STEPS, "xatol": 1e-4, "fatol": 1e-9}
    found = minimize(loss, np.ones(len(start)), method="Nelder-Mead", options=options).x
    return np.asarray(np.abs(found) * start)


@cache
def left_out() -> dict[str, Floats]:
    """Source -> the constants that the others give."""
    return {source: fitted(without=source) for source in sorted(set(scaled_runs().sources))}


@cache
def table() -> str:
    """``scaling.csv`` of the engine."""
    runs, whole, others = scaled_runs(), fitted(), np.array(list(left_out().values()))
    basis = f"fitted to {len(runs)} published runs of {', '.join(sorted(set(runs.sources)))}"
    lines = []
    for place, (name, _, unit, meaning) in enumerate(CONSTANTS):
        low, high = others[:, place].min(), others[:, place].max()
        source = f"{meaning}; {basis}; {low:.2g} to {high:.2g} with one source left out"
        lines.append((name, f"{whole[place]:.3g}", unit, source))
    return written(("name", "value", "unit", "source"), lines)
