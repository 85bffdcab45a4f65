"""Arithmetic on sets of half-open intervals in integer nanoseconds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Intervals:
    """Sorted, disjoint, non-empty intervals ``[start, end)``; both arrays have shape ``(n,)``."""

    start: Times
    end: Times

    @property
    def length(self) -> int:
        return int((self.end - self.start).sum())


NOTHING = Intervals(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def union(start: Times, end: Times) -> Intervals:
    """The set covered by intervals in any order; overlapping and touching ones are joined."""
    if start.size == 0:
        return Intervals(start, end)
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    end = np.maximum.accumulate(end)
    opens = np.flatnonzero(start[1:] > end[:-1]) + 1
    first = np.concatenate(([0], opens))
    last = np.concatenate((opens - 1, [start.size - 1]))
    begin, finish = start[first], end[last]
    filled = finish > begin
    return Intervals(begin[filled], finish[filled])


def join(first: Intervals, second: Intervals) -> Intervals:
    return union(np.concatenate((first.start, second.start)), np.concatenate((first.end, second.end)))


def length_without(whole: Intervals, cover: Intervals) -> int:
    """Length of the part of ``whole`` that ``cover`` leaves open: ``|A or B| - |B|``."""
    return join(whole, cover).length - cover.length


def gaps(covered: Intervals) -> Intervals:
    """The intervals between the first start and the last end that nothing covers."""
    return Intervals(covered.end[:-1], covered.start[1:])


def clip(start: Times, end: Times, low: int, high: int) -> tuple[Times, Times]:
    """Intervals cut to ``[low, high)``; those outside become empty (start == end)."""
    return np.clip(start, low, high), np.clip(end, low, high)
