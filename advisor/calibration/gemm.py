"""Fit of matrix products: time = launch + time at peak x (c0 + m0/M + n0/N + k0/K), for each chip and precision.

``launch`` is what a product takes however small it is: microseconds, more where operands are cast to 8 or 4 bit before.

Three kinds of evidence give a law, in this order:

* shapes: products of many shapes were measured (``gemm_shapes.csv``). The middle one of the stacks that were measured
  on a shape counts; the sum of relative errors is least over all large shapes. N and K of most of these shapes are
  alike, so that they alone cannot tell n0 from k0: what a law without launch made of all 9,000 to 36,000 shapes of
  each stack (``gemm_laws_of_stacks.csv``) stands in for the large oblong ones, with half of the weight.
* best: only the best rate over many shapes was measured (``gemm_best.csv``). c0 is the peak over that rate, the
  shape terms are those of the middle chip.
* borrowed: the same or the nearest chip was measured (``borrowed.csv``); TF32 borrows from the chip's own 16 bit.

A chip of which nothing is known has the middle of its class of precision (``*``).
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from advisor.calibration.tables import rows, written

Floats = NDArray[np.float64]

CLASSES = ("fp32", "tf32", "16bit", "fp8", "fp4")
"""Of precision: fp16 and bf16 run alike."""
LEAST_ROWS, LEAST_SIDE = 512, 1024
"""M, and N and K; smaller products are bound by reading their operands, which the engine times by itself."""
_GRID = (4096.0, 8192.0, 16384.0)
MOST_SUSTAINED = 0.96
"""Best of peak that a chip kept up in a wide search (A100 0.956): short runs at boost clocks print more than 1."""
_ROUNDS, _FOLDS = 25, 4
_TELLS_LAUNCH = 25
"""Fewer shapes (DeepBench has 16) do not tell the launch from the sides."""
_SHAPES_SOURCE = (
    "{points} shapes x stacks; half of the shapes that the fit did not see are within {error:.0%}; {source}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """``sides``: ``[shape, 3]``, M, N, K. ``slowdowns``: time over time at peak, ``[shape]``, middle of the stacks.

    ``oblong``: the same ratio as the laws of the stacks have it, over M, N and K of ``_GRID``; empty without such laws.
    """

    sides: Floats
    slowdowns: Floats
    oblong: Floats
    best: float
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """``terms``: c0, m0, n0, k0. ``best``: never a larger share of the peak than this, launch left out."""

    terms: Floats
    launch_s: float
    best: float
    evidence: str
    source: str

    def cells(self) -> list[str]:
        c0, *sides = self.terms
        launch = f"{self.launch_s * 1e6:.1f}"
        return [f"{c0:.3f}", *(f"{side:.0f}" for side in sides), launch, f"{self.best:.3f}", self.evidence, self.source]


def slowdowns(law: Law, sides: Floats, peak: float) -> Floats:
    """Time over time at peak (FLOP/s), as the engine makes it of the law: ``[shape]``."""
    return np.maximum(_columns(sides) @ law.terms, 1 / law.best) + law.launch_s / _ideal_s(sides, peak)


def peak_of(key: tuple[str, str]) -> float:
    """Data sheet of the accelerator whose shapes were measured, FLOP/s."""
    return float(peaks()[key]["peak_tflops"]) * 1e12


def _ideal_s(sides: Floats, peak: float) -> Floats:
    return 2 * sides.prod(axis=1) / peak


@cache
def measured_shapes() -> Mapping[tuple[str, str], Measured]:
    """(silicon, class of precision) -> its large products, in the order of their sides."""
    rates: dict[tuple[str, str], dict[tuple[int, int, int], list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows("gemm_shapes.csv"):
        sides = int(row["m"]), int(row["n"]), int(row["k"])
        if sides[0] >= LEAST_ROWS and min(sides[1:]) >= LEAST_SIDE:
            rates[row["silicon"], row["precision"]][sides].append(float(row["tflops"]))
    return {key: _measured(key, shapes) for key, shapes in sorted(rates.items())}


def _measured(key: tuple[str, str], shapes: dict[tuple[int, int, int], list[float]]) -> Measured:
    ordered, peak = sorted(shapes), float(peaks()[key]["peak_tflops"])
    return Measured(
        sides=np.array(ordered, dtype=np.float64),
        slowdowns=np.array([peak / np.median(shapes[sides]) for sides in ordered]),
        oblong=_of_stacks(key, peak),
        best=max(max(found) for found in shapes.values()) / peak,
        points=sum(len(found) for found in shapes.values()),
    )


def _of_stacks(key: tuple[str, str], peak: float) -> Floats:
    laws_of_stacks = [
        np.array([float(row[term]) for term in ("c0", "m0", "n0", "k0")]) * peak / float(row["peak_tflops"])
        for row in rows("gemm_laws_of_stacks.csv")
        if (row["silicon"], row["precision"]) == key
    ]
    return np.median([_columns(_grid()) @ law for law in laws_of_stacks], axis=0) if laws_of_stacks else np.empty(0)


def _grid() -> Floats:
    return np.array(list(product(_GRID, repeat=3)))


@cache
def peaks() -> Mapping[tuple[str, str], dict[str, str]]:
    """(silicon, class of precision) -> accelerator that was measured, its data-sheet peak, source."""
    return {(row["silicon"], row["precision"]): row for row in rows("gemm_sources.csv")}


def fitted(sides: Floats, found: Floats, oblong: Floats, peak: float) -> tuple[Floats, float]:
    """Four terms and launch (s; 0 where few shapes do not tell it), none below 0: least sum of relative errors.

    Least absolute errors by reweighted least squares; of the terms, every subset is tried, so the result is the best
    one and does not depend on where a search starts. ``oblong`` weighs half as much as ``found``.
    """
    parts, shares = [_with_launch(sides, peak) / found[:, None]], [np.ones(len(found))]
    if len(oblong):
        parts.append(_with_launch(_grid(), peak) / oblong[:, None])
        shares.append(np.full(len(oblong), 0.5 * len(found) / len(oblong)))
    relative, share = np.vstack(parts), np.concatenate(shares)
    if len(found) < _TELLS_LAUNCH:
        relative = relative[:, :4]
    terms = _least_squares(relative, share)
    for _ in range(_ROUNDS):
        terms = _least_squares(relative, share / np.maximum(np.abs(relative @ terms - 1), 1e-3))
    return terms[:4], float(terms[4:].sum()) * 1e-6


def _with_launch(sides: Floats, peak: float) -> Floats:
    """The columns of the law and one of 1 microsecond over the time at peak."""
    return np.column_stack([_columns(sides), 1e-6 / _ideal_s(sides, peak)])


def _columns(sides: Floats) -> Floats:
    return np.column_stack([np.ones(len(sides)), 1 / sides])


def _least_squares(relative: Floats, weights: Floats) -> Floats:
    root, width = np.sqrt(weights), relative.shape[1]
    least, best = np.inf, np.zeros(width)
    for count in range(1, width + 1):
        for chosen in combinations(range(width), count):
            kept = list(chosen)
            solved = np.linalg.lstsq(relative[:, kept] * root[:, None], root, rcond=None)[0]
            error = float((weights * (relative[:, kept] @ solved - 1) ** 2).sum())
            if (solved >= 0).all() and error < least:
                least, best = error, np.zeros(width)
                best[kept] = solved
    return best


@cache
def unseen_errors(key: tuple[str, str]) -> Floats:
    """Relative errors of shapes that the fit did not see: every fourth shape is left out in turn."""
    measured = measured_shapes()[key]
    turn = np.arange(len(measured.sides)) % _FOLDS
    errors = np.empty(len(turn))
    for fold in range(_FOLDS):
        seen, left = turn != fold, turn == fold
        terms, launch_s = fitted(measured.sides[seen], measured.slowdowns[seen], measured.oblong, peak_of(key))
        law = Law(terms=terms, launch_s=launch_s, best=min(measured.best, 1.0), evidence="", source="")
        errors[left] = slowdowns(law, measured.sides[left], peak_of(key)) / measured.slowdowns[left] - 1
    return errors


@cache
def laws() -> Mapping[tuple[str, str], Law]:
    """(silicon, class of precision) -> law; ``*`` where nothing is known of the silicon."""
    found = {key: _from_shapes(key, measured) for key, measured in measured_shapes().items()}
    middle = {precision: _middle(found, precision) for precision in CLASSES}
    for row in rows("gemm_best.csv"):
        found.setdefault((row["silicon"], row["precision"]), _from_best(row, middle[row["precision"]]))
    unknown = {("*", precision): _unknown(found, middle[precision], precision) for precision in CLASSES}
    for row in rows("borrowed.csv"):
        for precision in CLASSES:
            if like := found.get((row["like"], precision)):
                found.setdefault((row["silicon"], precision), _borrowed(row, like))
    for silicon in [silicon for silicon, precision in found if precision == "16bit"]:
        own = replace(found[silicon, "16bit"], evidence="borrowed", source=f"{silicon}: own law of 16 bit, same units")
        found.setdefault((silicon, "tf32"), own)
    return found | unknown


def _from_shapes(key: tuple[str, str], measured: Measured) -> Law:
    error = float(np.median(np.abs(unseen_errors(key))))
    source = _SHAPES_SOURCE.format(points=measured.points, error=error, source=peaks()[key]["source"])
    terms, launch_s = fitted(measured.sides, measured.slowdowns, measured.oblong, peak_of(key))
    return Law(terms=terms, launch_s=launch_s, best=min(measured.best, 1.0), evidence="measured", source=source)


def _from_best(row: Mapping[str, str], middle: Law) -> Law:
    best = min(float(row["tflops"]) / float(row["peak_tflops"]), MOST_SUSTAINED)
    terms = np.array([1 / best, *middle.terms[1:]])
    rate = f"best rate only, {row['tflops']} of {row['peak_tflops']} TFLOP/s"
    source = f"{rate}, shape terms of the middle chip; {row['source']}"
    return Law(terms=terms, launch_s=middle.launch_s, best=best, evidence="borrowed", source=source)


def _borrowed(row: Mapping[str, str], like: Law) -> Law:
    slower = float(row["slower"])
    source = f"law of {row['like']}: {row['why']}"
    return replace(like, terms=like.terms * slower, best=like.best / slower, evidence=row["evidence"], source=source)


def _middle(found: Mapping[tuple[str, str], Law], precision: str) -> Law:
    """Term by term the middle of the chips with measured shapes. TF32 has none: tensor cores, so as 16 bit."""
    like = "16bit" if precision == "tf32" else precision
    those = [law for (_, one), law in found.items() if one == like]
    terms = np.median([law.terms for law in those], axis=0)
    launch_s, best = (float(np.median([getattr(law, name) for law in those])) for name in ("launch_s", "best"))
    return Law(terms=terms, launch_s=launch_s, best=best, evidence="", source="")


def _unknown(found: Mapping[tuple[str, str], Law], middle: Law, precision: str) -> Law:
    """A chip of which nothing is known: shape terms of the middle, the rest the middle of shapes and best rates."""
    those = [law for (_, one), law in found.items() if one == precision]
    terms = np.array([np.median([law.terms[0] for law in those]), *middle.terms[1:]])
    best = float(np.median([law.best for law in those]))
    source = f"nothing measured: the middle of {len(those)} measured chips"
    return Law(terms=terms, launch_s=middle.launch_s, best=best, evidence="spec-sheet", source=source)


def table() -> str:
    header = ("silicon", "precision", "c0", "m0", "n0", "k0", "launch_us", "max_utilisation", "evidence", "source")
    return written(header, ([*key, *law.cells()] for key, law in sorted(laws().items())))
