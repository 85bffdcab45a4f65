"""Collectives of several ranks: matched by process group, waiting told from transfer, stragglers named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.collectives import bus_bytes_per_s, collective_rows
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN
from profiling.waiting import Calls, Waiting, align
from profiling.workload import CollectiveKind

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
) -> Calls:
    """One call after the other, each of the given duration; ``groups``: the name of the process group of each."""
    duration = np.array(durations, dtype=np.int64)
    names = tuple(dict.fromkeys(groups or ()))
    return Calls(
        start_ns=np.cumsum(np.concatenate(([0], duration[:-1] + 10))).astype(np.int64),
        duration_ns=duration,
        kind=np.array(kinds or [REDUCE] * len(durations), dtype=np.int8),
        message_bytes=np.full(len(durations), message, dtype=np.int64),
        group_size=np.full(len(durations), size, dtype=np.int32),
        communicator=None if groups is None else np.array([names.index(name) for name in groups], dtype=np.int32),
        sequence=None if sequence is None else np.array(sequence, dtype=np.int64),
        communicators=names,
        order=np.arange(len(durations)),
    )


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
