"""The laws against products that other people measured, none of which went into the fit."""

import csv
from collections import defaultdict

import numpy as np
import pytest

from advisor.calibration import gemm
from tests.paths import SHARED

pytestmark = pytest.mark.skipif(SHARED is None, reason="published figures are not beside this checkout")

CHIPS = {"A100-SXM4-80GB": "a100", "H100-SXM5-80GB": "h100", "H200-SXM-141GB": "h200"}
CLASSES = {"fp16": "16bit", "bf16": "16bit", "fp8": "fp8"}
SOURCES = ("PrincetonUniversity/LLMCompass", "Azure/AI-benchmarking-guide", "drmysore/", "microsoft/vidur")
BARS = {("a100", "16bit"): 0.12, ("h100", "16bit"): 0.10, ("h100", "fp8"): 0.20, ("h200", "fp8"): 0.20}
"""Median error found: 0.10, 0.07, 0.09 and 0.15. The fp8 products here leave out the cast that the law takes in."""


def _errors():
    found = defaultdict(list)
    with (SHARED / "measured" / "kernels.csv").open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if not row["source"].startswith(SOURCES) or row["gpu"] not in CHIPS or row["dtype"] not in CLASSES:
                continue
            sides = np.array([[float(row[side] or 0) for side in "mnk"]])
            if sides.min() >= gemm.LEAST_SIDE and row["efficiency"]:
                key = CHIPS[row["gpu"]], CLASSES[row["dtype"]]
                said = 1 / gemm.slowdowns(gemm.laws()[key], sides, gemm.peak_of(key))[0]
                found[key].append(said / float(row["efficiency"]) - 1)
    return found


@pytest.mark.parametrize("key", sorted(BARS))
def test_products_of_other_people(key):
    errors = np.abs(_errors()[key])
    assert len(errors) >= 5
    assert np.median(errors) < BARS[key]
