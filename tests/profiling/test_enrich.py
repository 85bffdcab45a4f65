"""Sizes from an execution graph: all of them where it tells of the very same calls, else none."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.analysis import analyse
from profiling.enrich import with_sizes
from profiling.evidence import ExecutionGraph, SizedCollective
from profiling.notes import NoteCode
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN, Collectives
from profiling.waiting import Calls, calls_of
from profiling.workload import CollectiveKind
from tests.paths import SHARED
from tests.profiling.timelines import Row, timeline

KINDS = st.sampled_from([kind for kind in CollectiveKind if kind is not CollectiveKind.UNKNOWN])
CALLS = st.lists(
    st.builds(
        SizedCollective,
        kind=KINDS,
        message_bytes=st.none() | st.integers(0, 2**40).map(float),
        group_size=st.none() | st.integers(2, 4096),
    ),
    min_size=1,
    max_size=12,
)


def graph(calls: list[SizedCollective], rank: int | None = None) -> ExecutionGraph:
    return ExecutionGraph(rank=rank, world_size=None, operators=len(calls), collectives=tuple(calls), matmul_flops=None)


def line_of(calls: list[SizedCollective], launched: list[int] | None = None) -> Calls:
    """A kernel per call, of its kind, without sizes."""
    moments = launched or [UNKNOWN] * len(calls)
    rows = [Row(f"nccl {call.kind}", 10 * at, 5, launched=moments[at]) for at, call in enumerate(calls)]
    unknown = np.full(len(calls), UNKNOWN, dtype=np.int64)
    found = Collectives(
        row=np.arange(len(calls)),
        kind=np.array([COLLECTIVE_KINDS.index(call.kind) for call in calls], dtype=np.int8),
        message_bytes=unknown,
        group_size=unknown.astype(np.int32),
    )
    return calls_of(timeline(rows, collectives=found))


def sizes(known: Calls) -> list[tuple[float | None, int | None]]:
    return [
        (None if size == UNKNOWN else float(size), None if group == UNKNOWN else group)
        for size, group in zip(known.message_bytes.tolist(), known.group_size.tolist(), strict=True)
    ]


@given(CALLS)
def test_the_same_calls_give_their_sizes(calls: list[SizedCollective]) -> None:
    line = line_of(calls)
    found = with_sizes(line, graph(calls))
    assert sizes(found) == [(call.message_bytes, call.group_size) for call in calls]
    assert replace(found, message_bytes=line.message_bytes, group_size=line.group_size) == line
    assert with_sizes(found, graph(calls)) is found


@given(CALLS, CALLS)
def test_other_calls_give_nothing(calls: list[SizedCollective], others: list[SizedCollective]) -> None:
    exchanges = {CollectiveKind.ALL_TO_ALL: CollectiveKind.SEND_RECV}
    kinds = [[exchanges.get(call.kind, call.kind) for call in some] for some in (calls, others)]
    line = line_of(calls)
    if kinds[0] != kinds[1]:
        assert with_sizes(line, graph(others)) is line


@given(CALLS, st.randoms(use_true_random=False))
def test_calls_are_matched_in_the_order_of_their_launch(calls: list[SizedCollective], random: Random) -> None:
    order = list(range(len(calls)))
    random.shuffle(order)
    found = with_sizes(
        line_of(calls, launched=[100 * at for at in order]), graph([calls[order.index(at)] for at in sorted(order)])
    )
    assert sizes(found) == [(call.message_bytes, call.group_size) for call in calls]


@given(CALLS)
def test_calls_within_a_group_of_one_launch_no_kernel(calls: list[SizedCollective]) -> None:
    alone = SizedCollective(kind=CollectiveKind.ALL_REDUCE, message_bytes=4.0, group_size=1)
    assert sizes(with_sizes(line_of(calls), graph([alone, *calls, alone]))) == sizes(
        with_sizes(line_of(calls), graph(calls))
    )


REDUCE = [SizedCollective(kind=CollectiveKind.ALL_REDUCE, message_bytes=8.0, group_size=4)] * 2


def test_what_is_known_is_kept_and_a_contradiction_takes_everything_back() -> None:
    line = line_of(REDUCE)
    for known, expected in ((8, [(8.0, 4), (8.0, 4)]), (9, [(9.0, None), (None, None)])):
        told = replace(line, message_bytes=np.array([known, UNKNOWN]))
        assert sizes(with_sizes(told, graph(REDUCE))) == expected


def test_an_all_to_all_runs_as_sends_and_receives() -> None:
    called = [SizedCollective(kind=CollectiveKind.ALL_TO_ALL, message_bytes=64.0, group_size=8)]
    line = line_of([replace(called[0], kind=CollectiveKind.SEND_RECV)])
    assert sizes(with_sizes(line, graph(called))) == [(64.0, 8)]


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
@pytest.mark.parametrize(("rank", "sizes"), [(0, {32768, 67108864}), (1, {None})])
def test_a_real_trace_and_the_graph_of_rank_0(rank: int, sizes: set[int | None]) -> None:
    assert SHARED is not None
    files = SHARED / "traces" / "files"
    trace = files / "kineto-megatron-tp8" / f"megatron_kineto_{rank}.json"
    analysis = analyse([trace, files / "chakra-megatron-tp8" / "megatron_et_0.json"])
    assert {row.message_bytes for row in analysis.collectives} == sizes
    assert analysis.workload is not None
    assert analysis.workload.measured is not None
    works = analysis.workload.measured.collectives
    assert all((work.message_bytes is None) == (rank == 1) for work in works)
    assert NoteCode.NO_TIMES not in [note.code for note in analysis.notes]
