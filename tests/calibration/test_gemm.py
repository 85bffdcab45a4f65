"""The fit of matrix products: what it recovers, what it makes of shapes that it did not see, what it writes."""

import csv
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.calibration import gemm
from advisor.calibration.tables import DATA
from advisor.engine.calibrated import gemm_laws
from advisor.engine.fabric import silicon_family
from advisor.evaluation.gpus import accelerators
from tests.engine.accelerators import shipped

PEAK = 989.4e12
MEDIAN_BAR = {"fp32": 0.11, "16bit": 0.09, "fp8": 0.09, "fp4": 0.10}
"""Median error on shapes left out of the fit, of the worst chip of each class: 0.07, 0.08, 0.07 and 0.08."""


@pytest.mark.parametrize("key", sorted(gemm.measured_shapes()))
def test_shapes_left_out_of_the_fit(key):
    errors = np.abs(gemm.unseen_errors(key))
    assert np.median(errors) < MEDIAN_BAR[key[1]]
    assert np.quantile(errors, 0.9) < 0.25


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(st.floats(1.0, 2.0), st.floats(0, 300), st.floats(0, 3000), st.floats(0, 1500)),
    st.floats(0, 1e-5),
    st.floats(1.0, 100.0),
)
def test_a_law_is_found_again_from_its_own_times_whatever_one_outlier_says(terms, launch_s, wrong):
    axes = (512.0, 2048.0, 8192.0), (1024.0, 4096.0, 16384.0), (1024.0, 5120.0, 12288.0)
    sides = np.array(list(product(*axes)))
    true = gemm.Law(terms=np.array(terms), launch_s=launch_s, best=1.0, evidence="", source="")
    found = gemm.slowdowns(true, sides, PEAK)
    kept = np.arange(len(sides)) != 7
    again, launch_again_s = gemm.fitted(sides, np.where(kept, found, found * wrong), np.empty(0), PEAK)
    law = replace(true, terms=again, launch_s=launch_again_s)
    assert gemm.slowdowns(law, sides, PEAK)[kept] == pytest.approx(found[kept], rel=0.01)


def test_no_law_beats_the_peak():
    for law in gemm.laws().values():
        assert 0 < law.best <= 1
        assert (law.terms >= 0).all()


@pytest.mark.parametrize("name", ["gemm_sources.csv", "gemm_best.csv"])
def test_peaks_are_those_of_the_catalog(name):
    """A law is a share of the peak that the engine multiplies it with. Intel does not print an fp8 rate for B60."""
    units = {"fp32": ("fp32",), "tf32": ("tf32",), "16bit": ("bf16", "fp16"), "fp8": ("fp8",), "fp4": ("fp4",)}
    with (DATA / name).open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            rates = accelerators()[row["accelerator"]].dense_flops_per_s
            peak = next((rates[dtype] for dtype in units[row["precision"]] if rates.get(dtype)), None)
            if (row["silicon"], row["precision"]) != ("b60", "fp8"):
                assert peak == pytest.approx(float(row["peak_tflops"]) * 1e12, rel=0.005), row


def test_every_chip_that_is_sold_has_a_law_of_16_bit_and_most_are_its_own():
    chips = {silicon_family(key) for key in shipped()}
    without = {chip for chip in chips if (chip, "16bit") not in gemm_laws()}
    assert without <= {"l40"}


def test_narrow_products_gain_over_16_bit_and_less_than_the_sheet_says():
    """Large products; the casts of the activations are in what was measured."""
    sides = np.array([[8192.0, 8192.0, 8192.0]])
    for chip in ("h100", "h200", "b200", "gb300", "l40s", "rtx-pro-6000-se"):
        wide, narrow = (
            gemm.peak_of((chip, kind)) / gemm.slowdowns(gemm.laws()[chip, kind], sides, gemm.peak_of((chip, kind)))[0]
            for kind in ("16bit", "fp8")
        )
        assert 1.3 < narrow / wide < 2.0


def test_the_other_form_of_a_chip_is_slower_by_what_its_best_product_is():
    sides = np.array([[4096.0, 4096.0, 4096.0]])
    laws = (gemm.laws()[chip, "16bit"] for chip in ("a100-pcie-80", "a100"))
    card, module = (gemm.slowdowns(law, sides, 312e12)[0] for law in laws)
    assert card / module == pytest.approx(271.2 / 252.9, rel=0.01)
