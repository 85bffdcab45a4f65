from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.marks import LEAST, steps_from_ranges

Range = tuple[str, int, int]


def repeated(name: str, count: int, *, every: int = 100, length: int = 90, shift: int = 0) -> list[Range]:
    return [(name.format(n), shift + n * every, shift + n * every + length) for n in range(count)]


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("step {}", "step #"),
        ("iteration#{}", "iteration##"),
        ("train_step", "train_step"),
        ("ProfilerStep#{}", "ProfilerStep##"),
        ("training iteration {} of 500", "training iteration # of #"),
        ("Solve", "Solve"),
        ("forward", "forward"),
    ],
)
def test_a_name_that_repeats_over_the_window_marks_the_steps(name, folded):
    marked = steps_from_ranges(repeated(name, 5))
    assert marked.name == folded
    assert [(step.start_ns, step.end_ns) for step in marked.steps] == [(n * 100, n * 100 + 90) for n in range(5)]
    assert [step.number for step in marked.steps] == list(range(5))


def test_numbers_are_those_of_the_program():
    ranges = [(f"iter {n}", n * 100, n * 100 + 90) for n in (40, 41, 42)]
    assert [step.number for step in steps_from_ranges(ranges).steps] == [40, 41, 42]


def test_numbers_that_start_again_are_not_kept():
    ranges = [(f"step {n % 3}", n * 100, n * 100 + 90) for n in range(6)]
    assert [step.number for step in steps_from_ranges(ranges).steps] == list(range(6))


def phases(count: int) -> list[Range]:
    return [
        *repeated("forward", count, length=40),
        *repeated("backward", count, length=50, shift=40),
        *repeated("layer_{}", count * 4, every=25, length=22),
    ]


def test_the_enclosing_iteration_wins_over_its_phases():
    assert steps_from_ranges([*phases(6), *repeated("body", 6)]).name == "body"
    assert (
        steps_from_ranges([*phases(6), *repeated("optimizer_step", 6), *repeated("step", 6, length=80)]).name == "step"
    )


def test_the_outermost_of_two_that_say_step_wins():
    inner = [*repeated("step {}", 6, every=50, length=45)]
    assert steps_from_ranges([*inner, *repeated("global_step {}", 3)]).name == "global_step #"


def test_a_name_that_says_step_wins_over_what_encloses_it():
    ranges = [*repeated("epoch {}", 3, every=1000, length=990), *repeated("trainer.fit", 3, every=1000, length=995)]
    assert steps_from_ranges([*ranges, *repeated("step {}", 30)]).name == "step #"


def test_long_preparation_before_the_steps_does_not_hide_them():
    assert steps_from_ranges([("load model", 0, 100_000), *repeated("step {}", 4, shift=100_000)]).name == "step #"


def test_a_slow_first_step_is_one_of_them():
    ranges = [("step", 0, 2000), *repeated("step", 4, shift=2000)]
    assert len(steps_from_ranges(ranges).steps) == 5


def test_a_second_thread_and_nested_ranges_of_the_name_count_once():
    ranges = [*repeated("step", 5), *repeated("step", 5, shift=3), *repeated("step", 5, shift=10, length=20)]
    assert [step.start_ns for step in steps_from_ranges(ranges).steps] == [0, 100, 200, 300, 400]


@pytest.mark.parametrize(
    "ranges",
    [
        pytest.param([], id="none"),
        pytest.param(repeated("step {}", LEAST - 1), id="too few"),
        pytest.param(repeated("layer {}", 32), id="layers"),
        pytest.param(repeated("epoch {}", 3), id="epochs"),
        pytest.param(repeated("ncclAllReduce", 30), id="library calls"),
        pytest.param([(f"pp{n % 4}", n * 100, n * 100 + 90) for n in range(16)], id="numbers that start again"),
        pytest.param(repeated("step", 9, length=20), id="little of the time"),
        pytest.param([("run", n * 1000, n * 1000 + 10 ** (n % 4)) for n in range(9)], id="lengths all different"),
        pytest.param([("step", 7, 7)] * 9, id="instants"),
        pytest.param([("all", 0, 10_000), *repeated("something", 5)], id="a short burst of a name that says nothing"),
    ],
)
def test_nothing_convincing_is_none(ranges):
    assert steps_from_ranges(ranges) is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["step 1", "step 2", "train_step", "forward", "x", "x 9", ""]),
            st.integers(-(10**6), 10**6),
            st.integers(-(10**6), 10**6),
        ),
        max_size=40,
    )
)
def test_steps_follow_each_other_and_are_ranges_of_the_capture(ranges):
    marked = steps_from_ranges(ranges)
    if marked is not None:
        assert len(marked.steps) >= LEAST
        assert {(step.start_ns, step.end_ns) for step in marked.steps} <= {(low, high) for _, low, high in ranges}
        for one, following in pairwise(marked.steps):
            assert one.end_ns <= following.start_ns
            assert one.number < following.number


def test_the_order_of_the_ranges_does_not_matter():
    ranges = [*phases(6), *repeated("step {}", 6)]
    assert steps_from_ranges(ranges) == steps_from_ranges(reversed(ranges))
