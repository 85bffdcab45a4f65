import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.breakdown import Window, whole_window
from profiling.rates import ClassRate, class_rates
from profiling.timeline import Timeline
from profiling.workload import KernelClass
from tests.profiling.timelines import Row, timeline

NAN = float("nan")
GEMM, NORM, COLLECTIVE = "sgemm", "layer_norm_kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def line(rows: list[Row], flops: list[float] | None, moved: list[float] | None = None) -> Timeline:
    return timeline(
        rows,
        flops=None if flops is None else np.array(flops),
        moved_bytes=None if moved is None else np.array(moved),
    )


def rates(made: Timeline) -> tuple[ClassRate, ...]:
    return class_rates(made, 0, whole_window(made))


def test_rates_by_class_over_the_time_of_kernels_whose_work_is_known() -> None:
    rows = [Row(GEMM, 0, 1000), Row(GEMM, 1000, 3000), Row(NORM, 4000, 500), Row(COLLECTIVE, 5000, 500)]
    found = rates(line(rows, [2e6, NAN, NAN, 7.0], [1e3, NAN, 5e4, 7.0]))
    assert found == (
        ClassRate(
            kernel_class=KernelClass.MATMUL,
            busy_s=1e-6,
            flops=2e6,
            moved_bytes=1e3,
            flops_per_s=pytest.approx(2e12),
            bytes_per_s=pytest.approx(1e9),
            covered=0.25,
        ),
        ClassRate(
            kernel_class=KernelClass.MEMORY,
            busy_s=5e-7,
            flops=None,
            moved_bytes=5e4,
            flops_per_s=None,
            bytes_per_s=pytest.approx(1e11),
            covered=1.0,
        ),
    )


def test_kernels_side_by_side_share_the_time() -> None:
    (found,) = rates(line([Row(GEMM, 0, 1000), Row(GEMM, 0, 1000)], [1e6, 1e6]))
    assert found.flops_per_s == pytest.approx(2e12)
    assert found.busy_s == pytest.approx(1e-6)


def test_work_of_a_kernel_that_the_window_cuts_is_left_out() -> None:
    made = line([Row(GEMM, 0, 1000), Row(GEMM, 1000, 1000)], [9e9, 1e6])
    (found,) = class_rates(made, 0, Window(500, 2000))
    assert found.flops == 1e6


def test_work_beyond_any_accelerator_belongs_to_other_kernels() -> None:
    (found,) = rates(line([Row(GEMM, 0, 1000)], [19e9], [19e6]))
    assert (found.flops_per_s, found.bytes_per_s) == (pytest.approx(19e15), pytest.approx(19e12))
    (found,) = rates(line([Row(GEMM, 0, 1000)], [21e9], [19e6]))
    assert (found.flops, found.flops_per_s, found.moved_bytes) == (None, None, 19e6)
    (found,) = rates(line([Row(GEMM, 0, 1000)], [19e9], [21e6]))
    assert (found.moved_bytes, found.bytes_per_s, found.flops) == (None, None, 19e9)
    assert rates(line([Row(GEMM, 0, 1000)], [21e9], [1e308])) == ()


@pytest.mark.parametrize(
    "flops", [pytest.param(None, id="no shapes"), pytest.param([NAN, -1.0, float("inf")], id="none that can be")]
)
def test_without_shapes_there_are_no_rates(flops: list[float] | None) -> None:
    assert rates(line([Row(GEMM, at, 5) for at in (0, 10, 20)], flops)) == ()


def test_kernels_without_length_have_no_rate() -> None:
    assert rates(line([Row(GEMM, 0, 0), Row(NORM, 5, 5)], [1e6, NAN])) == ()


@given(
    st.lists(
        st.tuples(
            st.sampled_from([GEMM, NORM, COLLECTIVE, "unheard-of"]),
            st.integers(0, 1000),
            st.integers(0, 100),
            st.floats(),
            st.floats(),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_rates_are_possible_and_coverage_is_a_share(rows: list[tuple[str, int, int, float, float]]) -> None:
    rows = sorted(rows, key=lambda row: row[1])
    made = line([Row(*row[:3]) for row in rows], [row[3] for row in rows], [row[4] for row in rows])
    found = rates(made)
    assert len({one.kernel_class for one in found}) == len(found)
    for one in found:
        assert 0 < one.covered <= 1
        assert one.busy_s > 0
        assert (one.flops, one.moved_bytes) != (None, None)
        assert one.flops_per_s is None or 0 <= one.flops_per_s <= 20e15
        assert one.bytes_per_s is None or 0 <= one.bytes_per_s <= 20e12
