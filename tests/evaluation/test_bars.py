"""The engine against published runs: what it reaches today, so that no change makes it worse unseen.

Most of these rows are in the fit of stacks and chips (docs/prediction.md says which); what sources that the fit has not
seen come to is in tests/calibration/test_training_fit.py.
"""

import pytest

from advisor.evaluation.document import evaluation_document
from advisor.evaluation.outcomes import outcomes_of
from advisor.evaluation.rows import read_rows
from tests.paths import SHARED

pytestmark = pytest.mark.skipif(SHARED is None, reason="published figures are not beside this checkout")


@pytest.fixture(scope="module")
def scores():
    rows = read_rows(SHARED / "measured" / "measured_dev.csv")
    return evaluation_document(outcomes_of([row for row in rows if row.is_scored], rows))


def test_most_training_rows_are_predicted_and_every_refusal_has_a_reason(scores):
    modes = scores["groups"]["mode"]
    rows = sum(modes[mode]["rows"] for mode in ("train", "finetune"))
    assert sum(modes[mode]["predicted"] for mode in ("train", "finetune")) / rows >= 0.85
    assert sum(scores["refused"].values()) == scores["overall"]["rows"] - scores["overall"]["predicted"]


def test_transformers_from_their_description(scores):
    family = scores["groups"]["family"]["transformer-decoder"]
    assert family["median_ape"] <= 0.09
    assert family["p90_ape"] <= 0.32
    assert family["kendall_mfu"] >= 0.85


def test_jobs_that_serve(scores):
    serving = scores["groups"]["mode"]["infer"]
    assert serving["median_ape"] <= 0.10
    assert serving["kendall_mfu"] >= 0.9


def test_nvlink_over_pcie(scores):
    pairs = scores["nvlink_over_pcie"]
    assert pairs["n"] >= 20
    assert pairs["median_ape"] <= 0.10
    assert pairs["right_side_share"] >= 0.9


def test_scaling_from_one_gpu(scores):
    scaling = scores["scaling"]
    assert scaling["n"] > 100
    assert scaling["median_abs_error"] <= 0.07
