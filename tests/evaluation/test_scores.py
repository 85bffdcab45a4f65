"""Scores: perfect predictions have no error, and each figure means what it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.evaluation.scores import Hit, error_scores, group_scores, kendall_tau, ratio_scores

SECONDS = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20)


def hit(measured, predicted, low=0.8, high=1.25, mfu=None):
    ratio = measured / predicted
    return Hit(
        measured_s=measured,
        predicted_s=predicted,
        low_s=predicted * low,
        high_s=predicted * high,
        measured_mfu=mfu,
        predicted_mfu=mfu and mfu * ratio,
    )


@given(SECONDS)
def test_perfect_predictions(seconds):
    scores = group_scores(len(seconds) + 1, [hit(value, value) for value in seconds])
    assert (scores["rows"], scores["predicted"]) == (len(seconds) + 1, len(seconds))
    assert (scores["median_ape"], scores["p90_ape"], scores["bias"], scores["coverage80"]) == (0, 0, 0, 1)


@given(SECONDS, st.floats(1.3, 3))
def test_bias_is_the_common_factor(seconds, factor):
    scores = group_scores(len(seconds), [hit(value, value * factor) for value in seconds])
    assert scores["bias"] == pytest.approx(factor - 1)
    assert scores["median_ape"] == pytest.approx(factor - 1)
    assert scores["coverage80"] == 0


def test_nothing_predicted_is_no_score():
    scores = group_scores(3, [])
    assert (scores["rows"], scores["predicted"], scores["median_ape"], scores["kendall_mfu"]) == (3, 0, None, None)


def test_coverage_counts_measurements_inside():
    assert group_scores(2, [hit(1.0, 1.1), hit(1.0, 2.0)])["coverage80"] == 0.5


def test_kendall_tau_of_a_worked_example():
    """Two lists with ties, by hand: 6 concordant, 2 discordant of 10 pairs, one tie in each list."""
    one, other = np.array([1.0, 2, 2, 3, 4]), np.array([1.0, 3, 2, 2, 4])
    assert kendall_tau(one, other) == pytest.approx((7 - 1) / 9)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=15))
def test_kendall_tau_is_one_for_the_same_order_and_minus_one_for_the_reverse(values):
    numbers = np.array(values, dtype=float)
    if len(set(values)) == 1:
        assert kendall_tau(numbers, numbers) is None
    else:
        assert kendall_tau(numbers, numbers**3) == pytest.approx(1)
        assert kendall_tau(numbers, -numbers) == pytest.approx(-1)


def test_utilisation_is_ranked_where_it_is_known():
    known = [hit(1.0, 1.0, mfu=0.3), hit(1.0, 1.0, mfu=0.5), hit(1.0, 1.0)]
    assert group_scores(3, known)["kendall_mfu"] == pytest.approx(1)


def test_errors_of_efficiency_and_ratios_of_links():
    assert error_scores([0.01, -0.03, 0.02])["median_abs_error"] == pytest.approx(0.02)
    assert error_scores([]) == {"median_abs_error": None, "p90_abs_error": None, "n": 0}
    scores = ratio_scores([(1.20, 1.10), (1.02, 1.00), (1.10, 1.01)])
    assert scores["right_side_share"] == pytest.approx(2 / 3)
    assert scores["median_ape"] == pytest.approx(1 - 1.01 / 1.10)
    assert ratio_scores([])["n"] == 0
