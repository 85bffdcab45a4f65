"""Interval arithmetic and the breakdown hold for any work in any order."""

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiling.breakdown import breakdowns
from profiling.intervals import Intervals, gaps, join, length_without, union
from profiling.timeline import UNKNOWN, Collectives, HostSide, Timeline, WorkKind

NAMES = (
    "ampere_sgemm_128x64_tn",
    "void at::native::vectorized_elementwise_kernel<4>",
    "flash_fwd_kernel",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
    "a kernel that no table knows",
    "Memcpy HtoD (Pinned -> Device)",
)
SPANS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)), max_size=30)
ROWS = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 90), st.integers(0, len(NAMES) - 1), st.sampled_from(list(WorkKind))),
    min_size=1,
    max_size=40,
)


def _set(spans: list[tuple[int, int]]) -> Intervals:
    start = np.array([start for start, _ in spans], dtype=np.int64)
    return union(start, start + np.array([length for _, length in spans], dtype=np.int64))


def _ticks(spans: list[tuple[int, int]]) -> set[int]:
    return {tick for start, length in spans for tick in range(start, start + length)}


def timeline(rows: list[tuple[int, int, int, WorkKind]]) -> Timeline:
    """Rows of start, duration, name and kind as the timeline of one device."""
    rows = sorted(rows, key=lambda row: row[0])
    start, duration, name, kind = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    nothing = np.zeros(0, dtype=np.int64)
    return Timeline(
        rank=None,
        world_size=None,
        source="made.json",
        start_ns=start,
        duration_ns=duration,
        device=np.zeros(start.shape, dtype=np.int32),
        stream=np.zeros(start.shape, dtype=np.int32),
        kind=kind.astype(np.int8),
        name_id=name.astype(np.int32),
        names=NAMES,
        launched_ns=np.full(start.shape, UNKNOWN, dtype=np.int64),
        bytes=np.full(start.shape, UNKNOWN, dtype=np.int64),
        collectives=Collectives(
            row=nothing, kind=nothing.astype(np.int8), message_bytes=nothing, group_size=nothing.astype(np.int32)
        ),
        host=HostSide(),
        steps=(),
        device_names={},
        clocks_agree=True,
        peak_memory_bytes=None,
    )


@given(SPANS)
def test_union_covers_what_its_intervals_cover(spans: list[tuple[int, int]]) -> None:
    covered = _set(spans)
    assert covered.length == len(_ticks(spans))
    assert (covered.start[1:] > covered.end[:-1]).all()
    assert (covered.end > covered.start).all()


@given(SPANS, SPANS)
def test_difference_and_join_agree_with_sets(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    assert length_without(_set(first), _set(second)) == len(_ticks(first) - _ticks(second))
    assert join(_set(first), _set(second)).length == len(_ticks(first) | _ticks(second))


@given(SPANS)
def test_gaps_fill_the_window(spans: list[tuple[int, int]]) -> None:
    covered = _set(spans)
    if covered.start.size:
        assert covered.length + gaps(covered).length == covered.end[-1] - covered.start[0]


@given(ROWS)
def test_parts_of_a_breakdown_add_up(rows: list[tuple[int, int, int, WorkKind]]) -> None:
    (part,) = breakdowns(timeline(rows))
    assert part.exposed_comm_ns + part.hidden_comm_ns == part.comm_ns
    assert part.gpu_busy_ns + part.idle_ns == part.window_ns
    assert part.compute_ns + part.exposed_comm_ns + part.copy_only_ns == part.gpu_busy_ns
    assert sum(part.class_ns.values()) == part.compute_ns
    assert part.gpu_busy_ns == len(_ticks([(start, length) for start, length, _, _ in rows]))
    assert min(part.idle_ns, part.exposed_comm_ns, part.hidden_comm_ns, part.copy_only_ns) >= 0


@given(ROWS, st.randoms(use_true_random=False))
def test_order_of_events_is_irrelevant(rows: list[tuple[int, int, int, WorkKind]], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert breakdowns(timeline(rows)) == breakdowns(timeline(shuffled))


@given(ROWS, st.integers(-1000, 10**15))
def test_moving_the_clock_changes_nothing(rows: list[tuple[int, int, int, WorkKind]], shift: int) -> None:
    line = timeline(rows)
    moved = dataclasses.replace(line, start_ns=line.start_ns + shift)
    assert breakdowns(line) == breakdowns(moved)
