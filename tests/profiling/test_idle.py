from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.breakdown import Window, breakdown, whole_window
from profiling.idle import IdleCauses, idle_by_cause
from profiling.intervals import Intervals, union
from profiling.timeline import UNKNOWN, HostSide, Timeline
from tests.profiling.timelines import Row, timeline


def intervals(*spans: tuple[int, int]) -> Intervals:
    borders = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return union(borders[:, 0], borders[:, 1])


def host(**changed: Any) -> HostSide:
    return HostSide(**({"operators": 10, "launches": 10} | changed))


def two(launched: int, **changed: Any) -> Timeline:
    """Work from 100 to 200 and from 300 to 400; the second was launched when the test says."""
    rows = [Row("a", 100, 100, 90), Row("b", 300, 100, launched)]
    return timeline(rows, **({"host": host()} | changed))


def causes(line: Timeline) -> IdleCauses:
    return idle_by_cause(line, 0, whole_window(line))


def parts(found: IdleCauses) -> tuple[int | None, ...]:
    return found.launch_bound_ns, found.synchronisation_ns, found.input_ns, found.unknown_ns


def test_work_launched_after_the_device_ran_dry_is_launch_bound() -> None:
    assert parts(causes(two(290))) == (100, 0, 0, 0)
    assert parts(causes(two(200))) == (100, 0, 0, 0)


def test_work_that_was_in_the_queue_is_no_fault_of_the_host() -> None:
    assert parts(causes(two(199))) == (0, 0, 0, 100)


@pytest.mark.parametrize("wait", [(150, 220), (199, 200), (150, 290)])
def test_a_wait_that_drained_the_device_costs_the_whole_gap(wait: tuple[int, int]) -> None:
    assert parts(causes(two(290, host=host(waits=intervals(wait))))) == (0, 100, 0, 0)


@pytest.mark.parametrize(
    ("wait", "expected"),
    [
        ((120, 190), (100, 0, 0, 0)),  # returned before the device ran dry: the host had time to launch
        ((230, 250), (80, 20, 0, 0)),  # called when the device was dry already
        ((150, 350), (0, 100, 0, 0)),  # all of the gap
    ],
)
def test_other_waits_count_as_long_as_they_last(wait: tuple[int, int], expected: tuple[int, ...]) -> None:
    assert parts(causes(two(290, host=host(waits=intervals(wait))))) == expected


def test_loading_data_comes_before_the_other_causes() -> None:
    loading = {"input": intervals((180, 260))}
    assert parts(causes(two(290, host=host(**loading)))) == (40, 0, 60, 0)
    assert parts(causes(two(290, host=host(**loading, waits=intervals((150, 210)))))) == (0, 40, 60, 0)
    assert parts(causes(two(150, host=host(**loading)))) == (0, 0, 0, 100)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"clocks_agree": False}, id="clocks disagree"),
        pytest.param({"host": HostSide()}, id="host not recorded"),
        pytest.param({"launched_ns": np.full(2, UNKNOWN, dtype=np.int64)}, id="not linked"),
    ],
)
def test_without_the_host_all_idle_time_is_unknown(changed: dict[str, Any]) -> None:
    found = causes(two(290, **changed))
    assert (*parts(found), found.host_ns) == (None, None, None, 100, None)


def test_without_operators_loading_of_data_is_unknown_unless_it_is_seen() -> None:
    assert parts(causes(two(290, host=host(operators=None)))) == (100, 0, None, 0)
    assert parts(causes(two(290, host=host(operators=None, input=intervals((250, 260)))))) == (90, 0, 10, 0)


def test_gaps_at_the_borders_of_a_window_end_with_the_work_behind_it() -> None:
    line = timeline([Row("a", 100, 100, 90), Row("b", 300, 100, 250), Row("c", 450, 50, 420)], host=host())
    assert parts(idle_by_cause(line, 0, Window(200, 450))) == (150, 0, 0, 0)
    assert parts(idle_by_cause(line, 0, Window(0, 450))) == (250, 0, 0, 0)
    assert parts(idle_by_cause(line, 0, Window(400, 600))) == (50, 0, 0, 100)


def test_only_work_of_the_device_ends_its_gaps() -> None:
    rows = [Row("a", 100, 100, 90), Row("other", 250, 10, 95, device=1), Row("b", 300, 100, 290)]
    assert parts(idle_by_cause(timeline(rows, host=host()), 0, Window(100, 400))) == (100, 0, 0, 0)


SPAN = st.tuples(st.integers(0, 200), st.integers(0, 40)).map(lambda span: (span[0], span[0] + span[1]))
ROWS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 30), st.integers(-1, 210)).map(lambda one: Row("k", *one)),
    min_size=1,
    max_size=12,
)


@given(ROWS, st.lists(SPAN, max_size=4), st.lists(SPAN, max_size=4), st.booleans(), SPAN)
def test_causes_add_up_to_the_idle_time(
    rows: list[Row], waits: list[tuple[int, int]], loading: list[tuple[int, int]], agree: bool, span: tuple[int, int]
) -> None:
    line = timeline(rows, host=host(waits=intervals(*waits), input=intervals(*loading)), clocks_agree=agree)
    for window in (whole_window(line), Window(span[0], span[1] + 1)):
        found = idle_by_cause(line, 0, window)
        assert found.idle_ns == breakdown(line, 0, window).idle_ns
        known = [part for part in parts(found) if part is not None]
        assert sum(known) == found.idle_ns
        assert min(known) >= 0
        assert found.host_ns is None or found.host_ns + found.unknown_ns == found.idle_ns
