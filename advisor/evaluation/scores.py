"""How far predictions lie from measurements. Errors are relative to the measurement, shares are fractions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advisor.engine.collectives import Floats

LEVEL = 1.05
"""A ratio above it counts as a gain (noise between equal servers stays below: 0.1 to 1.7 %, measured)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One prediction beside its measurement, seconds; the utilisations are None where the job's FLOPs are not known."""

    measured_s: float
    predicted_s: float
    low_s: float
    high_s: float
    measured_mfu: float | None = None
    predicted_mfu: float | None = None


def group_scores(rows: int, hits: Sequence[Hit]) -> dict[str, float | int | None]:
    """``bias``: median of ln(predicted / measured), as a fraction: 0.1 = typically 10 % too slow."""
    empty = dict.fromkeys(("median_ape", "p90_ape", "bias", "coverage80", "kendall_mfu"))
    if not hits:
        return {"rows": rows, "predicted": 0, **empty}
    measured = np.array([hit.measured_s for hit in hits])
    predicted = np.array([hit.predicted_s for hit in hits])
    inside = [hit.low_s <= hit.measured_s <= hit.high_s for hit in hits]
    errors = np.abs(predicted / measured - 1)
    return {
        "rows": rows,
        "predicted": len(hits),
        "median_ape": float(np.median(errors)),
        "p90_ape": float(np.quantile(errors, 0.9)),
        "bias": float(np.expm1(np.median(np.log(predicted / measured)))),
        "coverage80": float(np.mean(inside)),
        "kendall_mfu": _mfu_order(hits),
    }


def _mfu_order(hits: Sequence[Hit]) -> float | None:
    pairs = [(hit.measured_mfu, hit.predicted_mfu) for hit in hits if hit.measured_mfu and hit.predicted_mfu]
    measured, predicted = (np.array(side, dtype=float) for side in zip(*pairs, strict=True)) if pairs else ([], [])
    return kendall_tau(np.asarray(measured), np.asarray(predicted))


def kendall_tau(one: Floats, other: Floats) -> float | None:
    """Kendall's tau-b (Kendall 1945): do two lists put their entries in the same order. None where all are alike."""
    first, second = np.sign(one[:, None] - one), np.sign(other[:, None] - other)
    norm = float(np.sqrt(np.sum(first**2) * np.sum(second**2)))
    return float(np.sum(first * second)) / norm if norm else None


def error_scores(errors: Sequence[float]) -> dict[str, float | int | None]:
    """Of absolute errors: median, 90 % and how many."""
    if not errors:
        return {"median_abs_error": None, "p90_abs_error": None, "n": 0}
    sizes = np.abs(errors)
    return {
        "median_abs_error": float(np.median(sizes)),
        "p90_abs_error": float(np.quantile(sizes, 0.9)),
        "n": len(errors),
    }


def ratio_scores(ratios: Sequence[tuple[float, float]]) -> dict[str, float | int | None]:
    """(measured, predicted) gains of one link over another: relative error, and whether both say gain or none."""
    if not ratios:
        return {"median_ape": None, "right_side_share": None, "n": 0}
    measured, predicted = np.array(ratios).T
    return {
        "median_ape": float(np.median(np.abs(predicted / measured - 1))),
        "right_side_share": float(np.mean((measured > LEVEL) == (predicted > LEVEL))),
        "n": len(ratios),
    }
