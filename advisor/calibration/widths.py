"""Width of the 80 % range of a step, from errors on sources that the fit has not seen.

Every source is left out in turn, everything else is fitted, and its runs are predicted: errors that a new customer
would meet. Runs of one source err alike, so every source weighs the same. Residuals of the fit itself, or of runs left
out one by one, would promise half the width: they know the source.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from advisor.calibration.stacks import LEAST_RUNS, calibrated, calibration
from advisor.calibration.tables import rows, written
from advisor.calibration.training import Floats, training_runs
from advisor.engine.calibrated import Evidence

NOMINAL = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """One run predicted without its source: ln(measured / predicted), and how well the rest supports it."""

    source: str
    level: Evidence
    error: float


@cache
def unseen() -> tuple[Unseen, ...]:
    """Every run, its source left out."""
    runs, whole, found = training_runs(), calibration(), []
    for source in sorted(set(runs.sources)):
        left_out = [place for place, name in enumerate(runs.sources) if name == source]
        kept = runs.take([place for place, name in enumerate(runs.sources) if name != source])
        chips = Counter(kept.chips)
        ran = runs.take(left_out)
        errors = calibrated(kept, start=whole).errors(ran)
        levels = (Evidence.CALIBRATED if chips[chip] >= LEAST_RUNS else Evidence.UNCALIBRATED for chip in ran.chips)
        found += [
            Unseen(source=source, level=level, error=float(error)) for level, error in zip(levels, errors, strict=True)
        ]
    return tuple(found)


def weighted_quantile(found: Sequence[Unseen], share: float) -> float:
    """|ln error| that this share stays under, every source weighing the same."""
    counts = Counter(one.source for one in found)
    sizes = np.array([abs(one.error) for one in found])
    weights = np.array([1 / counts[one.source] for one in found])
    order = np.argsort(sizes, kind="stable")
    reached: Floats = np.cumsum(weights[order]) / weights.sum()
    return float(sizes[order][np.searchsorted(reached, share)])


def widths() -> Mapping[Evidence, float]:
    """Half-width (ln) of the two levels that the runs tell of."""
    return {
        level: weighted_quantile([one for one in unseen() if one.level is level], NOMINAL)
        for level in (Evidence.CALIBRATED, Evidence.UNCALIBRATED)
    }


def table() -> str:
    """``widths.csv`` of the engine: what the runs tell, and what stands in ``data/widths.csv``."""
    lines = []
    for level, width in widths().items():
        own = [one for one in unseen() if one.level is level]
        sources = len({one.source for one in own})
        basis = f"80 % of {len(own)} published training runs of {sources} sources, each left out of the fit in turn"
        lines.append((level.value, "step", f"{width:.2f}", f"{basis}, every source weighing the same"))
    known = [(row["level"], row["kind"], row["log_halfwidth"], row["source"]) for row in rows("widths.csv")]
    return written(("level", "kind", "log_halfwidth", "source"), [*lines, *known])


def coverage_lines() -> list[str]:
    """The coverage table of docs/prediction.md, in Markdown."""
    lines = ["| source | runs | level | median error | in the 80 % range |", "| --- | --- | --- | --- | --- |"]
    found = widths()
    for source in sorted({one.source for one in unseen()}):
        for level in found:
            own = [one for one in unseen() if one.source == source and one.level is level]
            if own:
                error = float(np.median([abs(np.expm1(-one.error)) for one in own]))
                inside = float(np.mean([abs(one.error) <= found[level] for one in own]))
                lines.append(f"| {source} | {len(own)} | {level.value} | {error:.0%} | {inside:.0%} |")
    return lines
