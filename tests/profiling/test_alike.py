"""Calls of one rank that should take the same time: how much longer than the quick ones they take."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.alike import uneven_share
from profiling.breakdown import Window
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN
from profiling.waiting import PARTS, Calls
from profiling.workload import CollectiveKind

REDUCE = COLLECTIVE_KINDS.index(CollectiveKind.ALL_REDUCE)


def calls(durations: list[int], message: list[int], group: list[int]) -> Calls:
    duration = np.array(durations, dtype=np.int64)
    return Calls(
        start_ns=np.arange(duration.size, dtype=np.int64) * 10_000,
        duration_ns=duration,
        shown_ns=np.zeros((duration.size, PARTS + 1), dtype=np.int64),
        kind=np.full(duration.size, REDUCE, dtype=np.int8),
        message_bytes=np.array(message, dtype=np.int64),
        group_size=np.array(group, dtype=np.int32),
        communicator=None,
        sequence=None,
        communicators=(),
        order=np.arange(duration.size),
    )


def uneven(*ranks: Calls) -> float | None:
    return uneven_share([(rank, Window(0, 10**9)) for rank in ranks])


def test_uneven_calls() -> None:
    """Three of 1 MB take 10, 20 and 30 beside a quick one of 10; three of 2 MB take 50 each: 30 of 210."""
    assert uneven(calls([10, 50, 20, 50, 30, 50], [1, 2] * 3, [8] * 6)) == pytest.approx(30 / 210)


def test_calls_of_other_groups_or_sizes_are_not_alike() -> None:
    assert uneven(calls([10, 20, 30, 40], [1, 1, 2, 2], [8, 8, 8, 8])) is None
    assert uneven(calls([10, 20, 30, 40], [1] * 4, [8, 8, 4, 4])) is None
    assert uneven(calls([10, 20, 30, 40], [UNKNOWN] * 4, [8] * 4)) is None
    assert uneven(calls([10, 20, 30, 40], [1] * 4, [UNKNOWN] * 4)) is None


def test_calls_alike_must_make_up_half_of_the_time() -> None:
    assert uneven(calls([10, 10, 20, 40], [1, 1, 1, 2], [8] * 4)) == pytest.approx(10 / 40)
    assert uneven(calls([10, 10, 20, 41], [1, 1, 1, 2], [8] * 4)) is None


def test_quick_is_the_tenth_of_many_and_ranks_count_by_their_time() -> None:
    """Of twenty calls the second quickest; a rank of even calls of the same time halves the share."""
    many = calls(list(range(1, 21)), [1] * 20, [8] * 20)
    beyond = sum(max(length - 2, 0) for length in range(1, 21))
    assert uneven(many) == pytest.approx(beyond / 210)
    assert uneven(many, calls([70] * 3, [1] * 3, [8] * 3)) == pytest.approx(beyond / 420)


def test_only_calls_that_start_in_the_window_count() -> None:
    one = calls([10, 10, 10, 999], [1] * 4, [8] * 4)
    assert uneven_share([(one, Window(0, 30_000))]) == 0.0
    assert uneven_share([(one, Window(20_000, 40_000))]) is None


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(-1, 2), st.integers(1, 2)), max_size=30))
def test_uneven_is_a_share_whatever_the_order(found: list[tuple[int, int, int]]) -> None:
    durations, message, group = ([one[at] for one in found] for at in range(3))
    share = uneven(calls(durations, message, group))
    assert share is None or 0 <= share < 1
    turned = uneven(calls(durations[::-1], message[::-1], group[::-1]))
    assert turned == share
    if share is not None:
        assert uneven(calls([7 * one for one in durations], message, group)) == pytest.approx(share)
