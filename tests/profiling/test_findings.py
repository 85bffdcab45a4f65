"""What an answer about a bottleneck says first, and that it says no more than is so."""

import pytest

from profiling.bottleneck import HOST
from profiling.classifier import classify
from profiling.notes import BottleneckCode, Note
from tests.profiling.test_classifier import codes, features


def test_idle_time_that_is_longer_than_waiting_is_said_first():
    shares = {"matmul_share": 0.2, "attention_share": 0.0, "memory_kernel_share": 0.0, "idle_share": 0.45}
    waits = {"exposed_communication_share": 0.35, "waiting_share": 0.35, "late_share": 0.35, "gpus": 8}
    found = classify(features(**shares, **waits, host_gap_share=0.45))
    assert (found.label, found.statement.code) == (HOST, BottleneckCode.HOST_LEADS)


@pytest.mark.parametrize(("late", "label"), [(0.02, None), (0.3, HOST)])
def test_of_few_kernels_waiting_counts_as_lost_where_a_host_is_late(late: float, label: str | None):
    waits = {"exposed_communication_share": 0.3, "waiting_share": 0.3, "late_share": late, "gpus": 8}
    found = classify(features(**waits, memory_kernel_share=0.0, idle_share=0.6, host_gap_share=0.6, kernels=3))
    assert found.label == label


def test_loading_is_said_first_only_where_it_is_most_of_the_idle_time():
    shares = {"idle_share": 0.8, "attention_share": 0.05, "memory_kernel_share": 0.05}
    launching = classify(features(**shares, host_gap_share=0.5, input_share=0.3))
    loading = classify(features(**shares, host_gap_share=0.7, input_share=0.5))
    assert launching.statement == Note(BottleneckCode.HOST_LEADS, {"percent": 80.0})
    assert loading.statement == Note(BottleneckCode.INPUT_LEADS, {"percent": 50.0})


@pytest.mark.parametrize("idle", [0.0, 1.0])
def test_gpus_that_do_nothing_are_bound_by_nothing_of_their_own(idle: float):
    nothing = dict.fromkeys(("matmul_share", "attention_share", "memory_kernel_share", "copy_share"), 0.0)
    found = classify(features(**nothing, idle_share=idle, host_gap_share=None), idle_known=idle > 0)
    assert found.work_label is None
    assert found.label == (HOST if idle else None)


def test_communication_that_may_all_be_waiting_is_never_sure():
    nothing = dict.fromkeys(("matmul_share", "attention_share", "memory_kernel_share", "idle_share"), 0.0)
    found = classify(features(**nothing, exposed_communication_share=1.0, overlap_ratio=0.0), idle_known=False)
    assert (found.label, found.sure) == ("communication", False)


@pytest.mark.parametrize(
    ("gap", "statement", "code"),
    [
        (0.6, BottleneckCode.HOST_LEADS, BottleneckCode.HOST_BOUND),
        (None, BottleneckCode.IDLE_LEADS, BottleneckCode.HOST_BOUND_UNVERIFIED),
        (0.05, BottleneckCode.IDLE_LEADS, BottleneckCode.IDLE_THOUGH_LAUNCHED),
    ],
)
def test_an_idle_gpu_comes_first_and_says_why(gap: float | None, statement: BottleneckCode, code: BottleneckCode):
    found = classify(features(idle_share=0.7, host_gap_share=gap))
    assert found.host_bound
    assert found.statement.code == statement
    assert code in codes(found.warnings)


def test_several_losses_lead_together_where_none_is_longer_than_the_matrix_kernels():
    found = classify(
        features(
            matmul_share=0.37, attention_share=0.0, memory_kernel_share=0.0, other_kernel_share=0.0, copy_share=0.0,
            exposed_communication_share=0.28, waiting_share=0.28, late_share=0.28, idle_share=0.35, host_gap_share=0.35,
        )
    )  # fmt: skip
    assert found.host_bound
    assert found.statement.code == BottleneckCode.LOST_LEADS
    assert found.statement.params == {"percent": 63.0}


def test_what_bounds_the_rest_is_said_beside_the_host():
    found = classify(features(idle_share=0.7, host_gap_share=0.7))
    assert found.work_label == "compute"
    assert Note(BottleneckCode.THEN_BOUND_BY, {"resource": "compute"}) in found.evidence


def test_loading_data_is_told_from_launching():
    found = classify(features(idle_share=0.7, host_gap_share=0.65, input_share=0.6))
    assert found.statement.code == BottleneckCode.INPUT_LEADS
    assert BottleneckCode.INPUT_BOUND in codes(found.warnings)
    assert BottleneckCode.HOST_BOUND not in codes(found.warnings)
