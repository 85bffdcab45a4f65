"""How much arithmetic per byte it takes for arithmetic to be the limit: the ridge of a typical accelerator.

Peak dense FLOP/s over bytes/s of device memory (Williams, Waterman and Patterson, Communications of the ACM 52, 2009).
A capture does not always tell its chip, and chips of one format differ by a factor of two and more, so the middle of
``profiling/data/ridges.csv`` stands for all, and what lies near it counts half.
"""

import csv
from functools import lru_cache
from importlib.resources import files
from statistics import median

import numpy as np
from numpy.typing import NDArray

from profiling.kernels import precision_of

NEAR = 2.0
"""Factor below and above the ridge within which a kernel counts half."""
_COLUMN = {"fp8": "fp8", "bf16": "bf16", "fp16": "bf16", "tf32": "tf32", "fp32": "fp32"}
_NOT_TOLD = "bf16"
"""Most products whose names tell no format (nvjet) are of 16 bit."""


@lru_cache(maxsize=1)
def _ridges() -> dict[str, float]:
    """FLOP per byte by column of the table: TFLOP/s over TB/s."""
    rows = list(csv.DictReader(files("profiling").joinpath("data/ridges.csv").read_text(encoding="utf-8").splitlines()))
    found = {}
    for column in set(_COLUMN.values()):
        told = [(row[f"{column}_tflops"], row["memory_tb_s"]) for row in rows]
        found[column] = median(float(flops) / float(moved) for flops, moved in told if flops)
    return found


def ridge_of(name: str) -> float:
    """FLOP per byte above which a matrix kernel of this name is bound by arithmetic, on a typical accelerator."""
    return _ridges()[_COLUMN[precision_of(name) or _NOT_TOLD]]


def streaming_parts(intensity: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 where memory is the limit, 0 where arithmetic is, 0.5 between; ``intensity``: FLOP per byte over the ridge."""
    return np.where(intensity * NEAR < 1, 1.0, np.where(intensity > NEAR, 0.0, 0.5))
