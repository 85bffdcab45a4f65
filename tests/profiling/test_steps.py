from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.breakdown import Window, whole_window
from profiling.steps import Steps, find_steps
from profiling.timeline import StepSource, StepSpan, Timeline, WorkKind
from tests.profiling.timelines import Row, timeline


def length(window: Window) -> int:
    return window.high_ns - window.low_ns


def marked(lengths: list[int], **changed: object) -> Timeline:
    """Steps that follow each other; each has one kernel, launched at its start, that ends 10 ns before it does."""
    borders = [sum(lengths[:at]) for at in range(len(lengths) + 1)]
    spans = [StepSpan(number=n, start_ns=low, end_ns=high) for n, (low, high) in enumerate(pairwise(borders))]
    rows = [Row("k", span.start_ns + 1, span.duration_ns - 10, span.start_ns) for span in spans]
    return timeline(rows, steps=tuple(spans), **changed)


# --- markers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [StepSource.PROFILER, StepSource.RANGES])
def test_marked_steps_are_counted_whatever_marks_them(source: StepSource) -> None:
    steps = find_steps(marked([100, 100, 100], steps_from=source))
    assert (steps.observed, steps.steady, steps.repeated, steps.source) == (3, 3, None, source)
    assert length(steps.typical) == 100
    assert steps.set_aside == 0
    assert steps.first_ratio is None


@pytest.mark.parametrize(
    ("lengths", "set_aside", "ratio"),
    [
        ([4000, 200, 200, 200, 200], 1, 20.0),
        ([4000, 3000, 500, 200, 200, 200], 3, 20.0),
        ([400, 100], 1, 4.0),
        ([190, 100, 100, 100], 0, None),
        ([100, 100, 5000, 100], 0, None),
    ],
)
def test_slow_steps_at_the_start_are_set_aside(lengths: list[int], set_aside: int, ratio: float | None) -> None:
    line = marked(lengths)
    steps = find_steps(line)
    assert (steps.observed, steps.steady) == (len(lengths), len(lengths) - set_aside)
    assert (steps.set_aside, steps.first_ratio) == (set_aside, ratio)
    assert length(steps.typical) == sorted(lengths[set_aside:])[(len(lengths) - set_aside - 1) // 2]
    assert steps.region.high_ns == whole_window(line).high_ns
    assert steps.region.low_ns == sum(lengths[:set_aside]) + 1


def test_the_first_step_is_compared_by_its_markers_where_they_show_it() -> None:
    rows = [Row("k", 30, 900, 5), *(Row("k", at, 50, at) for at in (1000, 1100, 1200))]
    borders = pairwise((0, 1000, 1100, 1200, 1300))
    spans = [StepSpan(number=n, start_ns=low, end_ns=high) for n, (low, high) in enumerate(borders)]
    assert find_steps(timeline(rows, steps=tuple(spans))).first_ratio == 10.0
    ahead = [StepSpan(number=n, start_ns=n * 10, end_ns=n * 10 + 10) for n in range(4)]
    costs = [(10, 900), (910, 100), (1010, 100), (1110, 100)]
    rows = [Row("k", at, cost, n * 10) for n, (at, cost) in enumerate(costs)]
    assert find_steps(timeline(rows, steps=tuple(ahead))).first_ratio == 9.0


def _prompt_then_answers(*, names: str, gap: int = 0) -> Timeline:
    """A step of 4,000 with kernels of the given names, then five of 100 that each run ``answer``."""
    borders = [0, *range(4000, 4600, 100)]
    spans = [StepSpan(number=n, start_ns=low, end_ns=high) for n, (low, high) in enumerate(pairwise(borders))]
    size = 4000 // len(names)
    first = [Row(name, at * size, size - gap, 0) for at, name in enumerate(names)]
    return timeline([*first, *(Row("a", one.start_ns, 90, one.start_ns) for one in spans[1:])], steps=tuple(spans))


@pytest.mark.parametrize(
    ("line", "set_aside"),
    [
        (_prompt_then_answers(names="pppa"), 0),
        (_prompt_then_answers(names="paaa"), 1),
        (_prompt_then_answers(names="pppa", gap=500), 1),
    ],
)
def test_a_long_step_of_other_work_is_no_slow_start(line: Timeline, set_aside: int) -> None:
    """Three quarters of other kernels without idle time; a quarter of them; three quarters with as much idle time."""
    steps = find_steps(line)
    assert (steps.set_aside, steps.observed) == (set_aside, 6)
    assert length(steps.typical) == 100
    assert steps.region == Window(4000 if set_aside else 0, whole_window(line).high_ns)


def test_half_of_the_steps_are_kept_however_slow_the_others() -> None:
    steps = find_steps(marked([800, 700, 600, 100, 100, 100]))
    assert (steps.set_aside, steps.steady) == (3, 3)


def test_spread_of_the_steady_steps() -> None:
    spread = find_steps(marked([5000, *[100] * 8, 110, 300])).spread
    assert spread is not None
    assert (spread.median_ns, spread.p10_ns, spread.p90_ns) == (100, 100, 110)
    assert spread.slowest_ratio == 3.0
    assert spread.variation == pytest.approx(0.4937, abs=1e-4)


def test_one_step_has_no_spread() -> None:
    assert find_steps(marked([100])).spread is None
    assert find_steps(marked([100, 100])).spread is not None


@given(st.lists(st.integers(20, 10**6), min_size=2, max_size=30))
def test_laws_of_marked_steps(lengths: list[int]) -> None:
    steps = find_steps(marked(lengths))
    assert steps.steady == len(lengths) - steps.set_aside
    assert steps.steady >= len(lengths) / 2
    assert length(steps.typical) in lengths
    if steps.spread is not None:
        assert steps.spread.p10_ns <= steps.spread.median_ns == length(steps.typical) <= steps.spread.p90_ns
        assert steps.spread.slowest_ratio >= 1


# --- repetition ------------------------------------------------------------------------------------------------------

STEP = ["embed", *["norm", "qkv_gemm", "attn", "mlp_gemm"] * 6, "logits", "adam"]


def kernels(names: list[str], *, idle_before: dict[str, int] | None = None) -> Timeline:
    """Kernels of 10 ns in a row, 1 ns apart, or more before some of them."""
    rows, at = [], 0
    for name in names:
        at += (idle_before or {}).get(name, 1)
        rows.append(Row(name, at, 10))
        at += 10
    return timeline(rows)


def test_kernels_that_repeat_are_steps() -> None:
    steps = find_steps(kernels(STEP * 5, idle_before={"embed": 200}))
    assert (steps.repeated, steps.source) == (5, StepSource.REPETITION)
    assert (steps.observed, steps.steady) == (None, None)
    assert length(steps.typical) == len(STEP) * 11 + 199


def test_steps_begin_where_the_device_was_idle() -> None:
    line = kernels(STEP * 5, idle_before={"logits": 300})
    assert line.names[line.name_id[list(line.start_ns).index(find_steps(line).typical.low_ns)]] == "logits"


def test_cut_off_steps_at_both_ends_are_left_out() -> None:
    line = kernels([*STEP[7:], *STEP * 5, *STEP[:9]], idle_before={"embed": 200})
    steps = find_steps(line)
    assert steps.repeated == 5
    assert length(steps.typical) == len(STEP) * 11 + 199
    assert steps.region.low_ns > whole_window(line).low_ns


def test_layers_of_one_step_are_no_steps() -> None:
    assert find_steps(kernels(STEP)).repeated is None
    assert find_steps(kernels(STEP * 3)).repeated is None
    assert find_steps(kernels(["embed", *["norm", "gemm", "attn"] * 90, "logits", "sample"] * 5)).repeated == 5


def test_a_kernel_that_comes_now_and_then_changes_nothing() -> None:
    long = ["embed", *["norm", "gemm", "attn"] * 20, "logits", "adam"]
    logging = [name for at in range(20) for name in (*long, *(["isnan"] if at % 5 == 0 else []))]
    assert find_steps(kernels(logging)).repeated == 20


def test_small_changes_of_order_change_nothing() -> None:
    swapped = [*STEP[:3], STEP[4], STEP[3], *STEP[5:]]
    assert find_steps(kernels([*STEP * 3, *swapped, *STEP * 4])).repeated == 8


def test_a_slow_first_repetition_is_set_aside() -> None:
    rows, at = [], 0
    for number in range(6):
        for name in STEP:
            cost = 100 if number == 0 else 10
            rows.append(Row(name, at, cost))
            at += cost
    steps = find_steps(timeline(rows))
    assert (steps.repeated, steps.set_aside, steps.first_ratio) == (6, 1, 10.0)
    assert steps.region.low_ns == 100 * len(STEP)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["k"] * 50, id="one kernel over and over"),
        pytest.param([f"k{at}" for at in range(50)], id="no kernel twice"),
        pytest.param([*"abcdefgh" * 2, *"hgfedcba" * 2], id="another order"),
        pytest.param([*"abcd" * 4, *[f"k{at}" for at in range(40)]], id="a small part repeats"),
        pytest.param(["k"], id="one kernel"),
    ],
)
def test_without_repetition_the_whole_capture_is_one_step(names: list[str]) -> None:
    line = kernels(names)
    assert find_steps(line) == Steps(
        typical=whole_window(line), region=whole_window(line), observed=None, steady=None, source=None
    )


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([Row(name, 5, 0) for name in "abcd" * 5], id="all at one moment"),
        pytest.param([Row(name, 0, 0) for name in "ab" * 9] + [Row("c", 0, 50)], id="without length"),
        pytest.param([Row("copy", at, 5, kind=WorkKind.COPY) for at in range(0, 90, 9)], id="copies alone"),
    ],
)
def test_work_without_kernels_that_last_has_no_steps(rows: list[Row]) -> None:
    assert find_steps(timeline(rows)).source is None


def test_markers_win_over_repetition() -> None:
    line = kernels(STEP * 8)
    whole = whole_window(line)
    middle = (whole.low_ns + whole.high_ns) // 2
    spans = (StepSpan(number=1, start_ns=0, end_ns=middle), StepSpan(number=2, start_ns=middle, end_ns=whole.high_ns))
    steps = find_steps(timeline([Row("k", at, 5) for at in range(0, whole.high_ns, 7)], steps=spans))
    assert (steps.observed, steps.repeated, steps.source) == (2, None, StepSource.PROFILER)


@given(st.lists(st.sampled_from("abc"), max_size=60), st.integers(1, 8))
def test_laws_of_repetition(names: list[str], times: int) -> None:
    if not names:
        return
    line = kernels(names * times)
    whole = whole_window(line)
    steps = find_steps(line)
    assert whole.low_ns <= steps.typical.low_ns < steps.typical.high_ns <= whole.high_ns
    if steps.repeated is not None:
        assert steps.repeated >= 4
        assert steps.spread is not None


@given(st.permutations([*"abcdefghij"]), st.integers(4, 12))
def test_every_sequence_of_different_kernels_is_found(order: list[str], times: int) -> None:
    assert find_steps(kernels(order * times)).repeated == times
