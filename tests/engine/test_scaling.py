"""Throughput over GPU counts."""

from dataclasses import replace
from itertools import pairwise

import pytest

from advisor.engine.plans import GPU_COUNTS
from advisor.engine.prediction import Prediction, predict_all
from advisor.engine.scaling import curve
from advisor.engine.step import job_of
from advisor.engine.system import System
from tests.engine.machines import A100_PCIE, H100_SXM, L40S, NVSWITCH, PCIE_P2P, TRAINING_7B, TRAINING_SMALL


def curve_of(job, accelerator, fabric):
    system = System(accelerator, fabric)
    (found,) = predict_all(job_of(job, None), [system], [GPU_COUNTS])
    return curve("top_offer", system, found), found


def per_gpu(point):
    return point.prediction.samples_per_s / point.prediction.gpus


@pytest.mark.parametrize("accelerator", [H100_SXM, A100_PCIE, L40S])
@pytest.mark.parametrize("job", [TRAINING_7B, TRAINING_SMALL])
def test_efficiency_is_never_above_one(job, accelerator):
    drawn, _ = curve_of(job, accelerator, PCIE_P2P)
    assert all(0 < point.efficiency <= 1 for point in drawn.points)


def test_a_small_count_that_recomputes_is_no_base():
    """A 7B in Adam needs 108 GB of states: on two GPUs of 86 GB it recomputes, on eight it does not have to."""
    drawn, found = curve_of(replace(TRAINING_7B, batch_per_step=16), H100_SXM, NVSWITCH)
    first, last = drawn.points[0], drawn.points[-1]
    assert not isinstance(found[1], Prediction)
    assert first.prediction.plan.recompute == "full"
    assert last.prediction.plan.recompute == "none"
    assert per_gpu(last) > per_gpu(first)
    assert first.efficiency == 1


def test_efficiency_is_against_the_best_up_to_there():
    drawn, _ = curve_of(TRAINING_7B, H100_SXM, NVSWITCH)
    best = 0.0
    for point in drawn.points:
        best = max(best, per_gpu(point))
        assert point.efficiency == pytest.approx(per_gpu(point) / best)
    assert all(one.prediction.gpus < other.prediction.gpus for one, other in pairwise(drawn.points))
