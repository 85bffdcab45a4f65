"""Collectives of several ranks: matched by process group, waiting told from transfer, stragglers named."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.analysis import analyse
from profiling.collectives import bus_bytes_per_s, collective_rows
from profiling.label import bottleneck_of
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN, Collectives, Timeline
from profiling.waiting import PARTS, Calls, Waited, Waiting, align, calls_of
from profiling.workload import CollectiveKind
from tests.profiling.timelines import Row, timeline

NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
REDUCE = COLLECTIVE_KINDS.index(CollectiveKind.ALL_REDUCE)
GATHER = COLLECTIVE_KINDS.index(CollectiveKind.ALL_GATHER)


def calls(
    durations: list[int],
    *,
    kinds: list[int] | None = None,
    groups: list[str] | None = None,
    sequence: list[int] | None = None,
    size: int = UNKNOWN,
    message: int = UNKNOWN,
    exposed: list[int] | None = None,
) -> Calls:
    """One call after the other, each of the given duration; ``groups``: the name of the process group of each."""
    duration = np.array(durations, dtype=np.int64)
    names = tuple(dict.fromkeys(groups or ()))
    return Calls(
        start_ns=np.cumsum(np.concatenate(([0], duration[:-1] + 10))).astype(np.int64),
        duration_ns=duration,
        shown_ns=_evenly(duration if exposed is None else np.array(exposed, dtype=np.int64)),
        kind=np.array(kinds or [REDUCE] * len(durations), dtype=np.int8),
        message_bytes=np.full(len(durations), message, dtype=np.int64),
        group_size=np.full(len(durations), size, dtype=np.int32),
        communicator=None if groups is None else np.array([names.index(name) for name in groups], dtype=np.int32),
        sequence=None if sequence is None else np.array(sequence, dtype=np.int64),
        communicators=names,
        order=np.arange(len(durations)),
    )


def _evenly(exposed: np.ndarray) -> np.ndarray:
    """What shows of each call, spread evenly over its length."""
    return exposed[:, None] * np.arange(PARTS + 1) // PARTS


def aligned(*ranks: Calls) -> Waiting | None:
    return align(list(enumerate(ranks)))


@given(st.lists(st.lists(st.integers(1, 10**9), min_size=3, max_size=3), min_size=2, max_size=6))
def test_waiting_and_transfer_add_up_to_each_duration(durations: list[list[int]]) -> None:
    found = aligned(*(calls(one) for one in durations))
    assert found is not None
    transfer = [min(column) for column in zip(*durations, strict=True)]
    for own, waited in zip(durations, found.per_call_ns, strict=True):
        assert (waited >= 0).all()
        assert [duration - wait for duration, wait in zip(own, waited.tolist(), strict=True)] == transfer
    assert 0 <= found.share < 1


def test_groups_are_matched_by_name_whatever_their_order() -> None:
    """Two pairs: ranks 0 and 1 reduce in ``a``, 2 and 3 in ``b``, and all gather in ``w``."""
    first = calls([30, 9], kinds=[REDUCE, GATHER], groups=["a", "w"], size=2)
    second = calls([10, 9], kinds=[REDUCE, GATHER], groups=["a", "w"], size=2)
    third = calls([9, 5], kinds=[GATHER, REDUCE], groups=["w", "b"], size=2)
    fourth = calls([9, 6], kinds=[GATHER, REDUCE], groups=["w", "b"], size=2)
    whole = [_sized(one, {"w": 4}) for one in (first, second, third, fourth)]
    found = aligned(*whole)
    assert found is not None
    assert [waited.tolist() for waited in found.per_call_ns] == [[20, 0], [0, 0], [0, 0], [0, 1]]
    assert found.late_ranks == (1,)
    assert found.late_ns == pytest.approx(20)


def _sized(one: Calls, sizes: dict[str, int]) -> Calls:
    group = [sizes.get(one.communicators[at], 2) for at in (one.communicator if one.communicator is not None else ())]
    return Calls(**{name: getattr(one, name) for name in one.__slots__} | {"group_size": np.array(group)})


def test_sequence_numbers_match_calls_of_captures_that_begin_at_different_times() -> None:
    found = aligned(
        calls([100, 40, 40, 40] * 10, groups=["w"] * 40, sequence=list(range(7, 47))),
        calls([10, 10, 10, 70] * 10, groups=["w"] * 40, sequence=list(range(8, 48))),
    )
    assert found is not None
    assert found.per_call_ns[0][0] == UNKNOWN
    assert found.per_call_ns[1][-1] == UNKNOWN
    assert found.per_call_ns[0][1:4].tolist() == [30, 30, 30]


def test_too_little_matched_is_unknown() -> None:
    assert aligned(calls([100, 1], groups=["a", "w"]), calls([100, 1], groups=["b", "w"])) is None


def test_a_name_that_more_ranks_use_than_its_group_has_means_several_groups() -> None:
    assert aligned(*(calls([10, 20], groups=["tp", "tp"], size=2) for _ in range(4))) is None


@pytest.mark.parametrize("groups", [None, ["w", "w"]])
def test_a_group_that_lacks_a_rank_tells_nothing(groups: list[str] | None) -> None:
    """The missing rank may be the late one: then what the others wait for it would count as transfer."""
    ranks = [calls([100, 100], groups=groups, size=4), calls([101, 100], groups=groups, size=4)]
    assert aligned(*ranks) is None
    unsized = list(enumerate([calls([100, 100], groups=groups), calls([10, 10], groups=groups)]))
    assert align(unsized, world_size=4) is None
    assert align(unsized, world_size=2) is not None


def test_unnamed_groups_smaller_than_the_job_are_not_taken_for_one() -> None:
    assert aligned(*(calls([10, 20], size=2) for _ in range(4))) is None


def test_processes_of_one_capture_need_no_numbers_where_their_calls_overlap() -> None:
    found = align([(None, calls([100, 40])), (None, calls([70, 40]))])
    assert found is not None
    assert [waited.tolist() for waited in found.per_call_ns] == [[30, 0], [0, 0]]
    later = calls([100, 40])
    shifted = replace(later, start_ns=later.start_ns + 1000)
    assert align([(None, calls([70, 40])), (None, shifted)]) is None
    assert align([(0, calls([70, 40])), (None, later)]) is None


def test_no_stage_of_a_pipeline_is_called_late() -> None:
    send = COLLECTIVE_KINDS.index(CollectiveKind.SEND_RECV)
    found = aligned(calls([100, 100], kinds=[send, send]), calls([10, 10], kinds=[send, send]))
    assert found is not None
    assert found.share > 0.8
    assert found.late_ranks == ()


def test_waiting_in_several_calls_at_once_counts_once() -> None:
    """Three calls side by side, each waiting for 90 of 100 ns."""
    first, second = calls([100, 100, 100]), calls([10, 10, 10])
    first = replace(first, start_ns=np.zeros(3, dtype=np.int64))
    found = aligned(first, second)
    assert found is not None
    assert (found.of_rank(first, 0), found.of_rank(second, 1)) == (90, 0)


def test_communication_that_hides_only_while_it_waits_is_no_reason_for_faster_links(tmp_path: Path) -> None:
    """One rank comes 8 of 10 ms late; the other waits under its own computing."""
    work = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n"
    for rank, called in enumerate((0, 8000)):
        events = []
        for step in range(12):
            start = 10_000 * step
            args = {"device": 0, "Collective name": "allreduce", "dtype": "Half", "Group size": 2,
                    "In msg nelems": 1000, "Process Group Name": "0", "Seq": step}  # fmt: skip
            for name, ts, dur, tid in ((work, start, 9000, 7), (NCCL, start + called, 9500 - called, 20)):
                mine = {**args, "stream": tid}
                events.append(
                    {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur, "args": mine}
                )
        trace = {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(trace))
    analysis = analyse([tmp_path])
    assert analysis.waiting_ns == (96_000_000, 0)
    found = bottleneck_of(analysis)
    assert found is not None
    assert found.label == "compute"


def test_only_waiting_that_no_computing_covers_is_exposed() -> None:
    """A call of 80 us whose first 40 us hide under computing, the other rank comes 60 us later: 20 us show."""
    gemm, reduce = "sm90_xmma_gemm_bf16", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    early = [Row(gemm, 0, 40_000), Row(reduce, 0, 80_000)]
    late = [Row(gemm, 0, 60_000), Row(reduce, 60_000, 20_000)]
    ranks = [calls_of(_reducing(rows)) for rows in (early, late)]
    found = aligned(*ranks)
    assert found is not None
    assert [found.within(one, place, 0, 10**9) for place, one in enumerate(ranks)] == [
        Waited(20_000, 40_000),
        Waited(0, 0),
    ]
    assert ranks[0].shown_ns[:, -1].tolist() == [40_000]


def _reducing(rows: list[Row]) -> Timeline:
    row = np.array([at for at, one in enumerate(rows) if one.name.startswith("nccl")])
    unknown = np.full(row.shape, UNKNOWN)
    known = Collectives(
        row=row,
        kind=np.full(row.shape, REDUCE, dtype=np.int8),
        message_bytes=unknown,
        group_size=unknown.astype(np.int32),
    )
    return timeline(rows, collectives=known)


def test_other_kinds_or_numbers_of_calls_are_not_matched() -> None:
    assert aligned(calls([10, 20]), calls([10, 20], kinds=[REDUCE, GATHER])) is None
    assert aligned(calls([10, 20]), calls([10])) is None


def test_one_rank_and_one_rank_twice_tell_nothing() -> None:
    assert align([(0, calls([10]))]) is None
    assert align([(0, calls([10])), (0, calls([20]))]) is None
    assert aligned(calls([]), calls([])) is None


def test_nobody_is_late_where_waiting_is_immaterial() -> None:
    found = aligned(calls([100, 100]), calls([101, 100]))
    assert found is not None
    assert found.late_ranks == ()


def test_bandwidth_is_of_the_transfer() -> None:
    """128 MiB over 2 ranks in 1 ms: 134.2 GB/s, as nccl-tests counts."""
    ranks = [calls([10_000_000], size=2, message=1 << 27), calls([1_000_000], size=2, message=1 << 27)]
    (row,) = collective_rows(ranks, aligned(*ranks))
    assert row.calls == 2
    assert row.transfer_s == pytest.approx(1e-3)
    assert row.bus_bytes_per_s == pytest.approx((1 << 27) / 1e-3)
    (alone,) = collective_rows(ranks[:1], None)
    assert alone.transfer_s is None
    assert alone.bus_bytes_per_s is None


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        (CollectiveKind.ALL_REDUCE, 1.75),
        (CollectiveKind.ALL_GATHER, 0.875),
        (CollectiveKind.REDUCE_SCATTER, 0.875),
        (CollectiveKind.ALL_TO_ALL, 0.875),
        (CollectiveKind.BROADCAST, 1.0),
        (CollectiveKind.SEND_RECV, 1.0),
    ],
)
def test_factors_of_the_bus_bandwidth(kind: CollectiveKind, factor: float) -> None:
    """nccl-tests, doc/PERFORMANCE.md."""
    assert bus_bytes_per_s(kind, 8, 1e9, 1.0) == pytest.approx(factor * 1e9)
    assert bus_bytes_per_s(kind, 8, None, 1.0) is None
    assert bus_bytes_per_s(kind, None, 1e9, 1.0) is None
