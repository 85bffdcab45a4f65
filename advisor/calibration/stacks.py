"""Fit of software stacks and of chips in long runs: what the laws of single kernels leave out.

Most likely constants under priors, from ln(measured / predicted) with a soft loss. There is one set of constants for
all stacks ("*", which also holds where nothing is told); every stack's own set is drawn to it by a prior, so that a
stack with few runs stays near the middle. Each chip has one factor for each class of precision on products and
attention, drawn to 1: clocks of long runs are lower than those of short measurements. No constant belongs to a source,
a model or a row.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from advisor.calibration.tables import written
from advisor.calibration.training import Chip, Floats, Runs, known_stack, known_stacks, training_runs
from advisor.engine.stacks import UNTOLD, Stack

_SOFT = 0.1
"""ln: errors beyond it count less and less; a few published figures are wrong."""
_CHIP_SPREAD = 0.2
"""ln: how far a chip's sustained rate strays from the law of its short runs."""
_MOST_STEPS = 60
LEAST_RUNS = 3
"""Of a chip in a class of precision: fewer are no evidence for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A constant of a stack: where the search starts, and how far (in ln, or in logit of a share) it may stray.

    ``spread``: all stacks together from the start; ``own_spread``: one stack from all.
    """

    name: str
    start: float
    spread: float
    own_spread: float
    is_share: bool = False

    @property
    def inward(self) -> float:
        """The start, in ln or logit."""
        return float(np.log(self.start / (1 - self.start)) if self.is_share else np.log(self.start))

    def outward(self, value: Any) -> Any:
        return 1 / (1 + np.exp(-value)) if self.is_share else np.exp(value)


CONSTANTS = (
    Fitted(name="products_scale", start=1.15, spread=0.2, own_spread=0.25),
    Fitted(name="expert_scale", start=1.15, spread=0.25, own_spread=0.25),
    Fitted(name="attention_scale", start=1.15, spread=0.15, own_spread=0.15),
    Fitted(name="elementwise_scale", start=1.4, spread=0.2, own_spread=0.2),
    Fitted(name="host_launch_s", start=3e-4, spread=0.5, own_spread=0.7),
    Fitted(name="expert_launch_s", start=1e-3, spread=0.5, own_spread=0.5),
    Fitted(name="gradient_overlap", start=0.6, spread=0.7, own_spread=1.5, is_share=True),
    Fitted(name="tensor_overlap", start=0.2, spread=1.0, own_spread=1.5, is_share=True),
    Fitted(name="expert_overlap", start=0.2, spread=1.0, own_spread=1.5, is_share=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """``values``: constants of each stack, in ln or logit; ``chips``: factor of each chip that runs tell of."""

    values: Mapping[str, Floats]
    chips: Mapping[Chip, float]

    def stack(self, name: str) -> Stack:
        return _stack(name, self.values.get(name, self.values[UNTOLD]))

    def errors(self, runs: Runs) -> Floats:
        """ln(measured / predicted) of each run."""
        return runs.errors(self.stack_rows(runs.stacks), self.chip_rows(runs.chips))

    def stack_rows(self, names: Sequence[str]) -> Stack:
        """One stack whose constants are arrays: row by row those of the stack of that name."""
        rows = np.array([self.values.get(name, self.values[UNTOLD]) for name in names])
        return _stack(UNTOLD, rows.T)

    def chip_rows(self, chips: Sequence[Chip]) -> Floats:
        return np.array([self.chips.get(chip, 1.0) for chip in chips])


def _stack(name: str, values: Floats) -> Stack:
    return known_stack(name, **{one.name: one.outward(value) for one, value in zip(CONSTANTS, values, strict=True)})


def calibrated(runs: Runs, start: Calibration | None = None) -> Calibration:
    """Everything that these runs tell: the most likely constants under the priors, all at once.

    ``start``: where the search begins, which saves time and changes nothing else.
    """
    return _Problem.of(runs).solved(start)


@cache
def calibration() -> Calibration:
    """What all published runs tell."""
    return calibrated(training_runs())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    """``stack_rows``, ``chip_rows``: place of each run's stack (0 = told none) and chip."""

    runs: Runs
    stacks: tuple[str, ...]
    chips: tuple[Chip, ...]
    stack_rows: NDArray[np.int64]
    chip_rows: NDArray[np.int64]
    weights: Floats

    @classmethod
    def of(cls, runs: Runs) -> Self:
        """Each source weighs as the root of its runs."""
        stacks, chips = (UNTOLD, *sorted(set(runs.stacks) - {UNTOLD})), tuple(sorted(set(runs.chips)))
        counts = Counter(runs.sources)
        return cls(
            runs=runs,
            stacks=stacks,
            chips=chips,
            stack_rows=np.array([stacks.index(name) for name in runs.stacks]),
            chip_rows=np.array([chips.index(chip) for chip in runs.chips]),
            weights=np.array([counts[source] ** -0.25 for source in runs.sources]),
        )

    def solved(self, start: Calibration | None) -> Calibration:
        first = np.zeros(len(self.stacks) * len(CONSTANTS) + len(self.chips)) if start is None else self._at(start)
        found = least_squares(self._residuals, first, max_nfev=_MOST_STEPS).x
        values, chips = self._split(found)
        return Calibration(
            values=dict(zip(self.stacks, values, strict=True)),
            chips={chip: float(np.exp(value)) for chip, value in zip(self.chips, chips, strict=True)},
        )

    def _at(self, known: Calibration) -> Floats:
        """``_split`` backwards."""
        middle = known.values[UNTOLD]
        strays = [(middle - [one.inward for one in CONSTANTS]) / [one.spread for one in CONSTANTS]]
        own = [one.own_spread for one in CONSTANTS]
        strays += [(known.values[name] - middle) / own for name in self.stacks[1:]]
        return np.concatenate([*strays, [np.log(known.chips[chip]) / _CHIP_SPREAD for chip in self.chips]])

    def _split(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Constants of each stack, and ln of each chip's factor. Parameters count spreads from their centres."""
        own, chips = np.split(parameters, [len(self.stacks) * len(CONSTANTS)])
        strays = own.reshape(len(self.stacks), len(CONSTANTS))
        middle = np.array([one.inward for one in CONSTANTS]) + strays[0] * [one.spread for one in CONSTANTS]
        stacks = middle + strays[1:] * [one.own_spread for one in CONSTANTS]
        return np.vstack([middle, stacks]), chips * _CHIP_SPREAD

    def _residuals(self, parameters: Floats) -> Floats:
        values, chips = self._split(parameters)
        stack = _stack(UNTOLD, values[self.stack_rows].T)
        errors = self.runs.errors(stack, np.exp(chips[self.chip_rows])) / _SOFT
        soft = np.sign(errors) * np.sqrt(2 * (np.sqrt(1 + errors**2) - 1))
        return np.concatenate([self.weights * soft, parameters])


def stacks_table() -> str:
    """``stacks.csv`` of the engine."""
    runs = training_runs()
    found, counts = calibration(), Counter(runs.stacks)
    names = [item.name for item in fields(Stack) if item.name not in ("name", "title")]
    lines = []
    for name, known in known_stacks().items():
        stack = found.stack(name)
        basis = f"fitted to {counts[name]} published runs" if counts[name] else "no run of its own: as *"
        basis = f"fitted to all {len(runs)} published runs" if name == UNTOLD else basis
        values = [_printed(getattr(stack, one)) for one in names]
        lines.append((name, stack.title, *values, f"{basis}; {known['source']}"))
    return written(("stack", "title", *names, "source"), lines)


def _printed(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def chips_table() -> str:
    """``chips.csv`` of the engine."""
    runs = training_runs()
    counts = Counter(runs.chips)
    sources = {chip: sorted({s for c, s in zip(runs.chips, runs.sources, strict=True) if c == chip}) for chip in counts}
    lines = [
        (*chip, f"{scale:.3f}", f"fitted to {counts[chip]} published runs of {', '.join(sources[chip])}")
        for chip, scale in calibration().chips.items()
        if counts[chip] >= LEAST_RUNS
    ]
    return written(("silicon", "precision", "scale", "source"), lines)
