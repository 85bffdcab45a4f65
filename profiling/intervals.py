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


_PIECE = 1 << 16


def union(start: Times, end: Times, chosen: NDArray[np.bool_] | None = None) -> Intervals:
    """The set covered by intervals in any order, or by the chosen ones; overlapping and touching ones are joined.

    Sorted input is worked through in pieces: no more than the answer is held besides it.
    """
    if chosen is None:
        chosen = np.broadcast_to(True, start.shape)
    if not _sorted(start, chosen):
        start, end = start[chosen], end[chosen]
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
        chosen = np.broadcast_to(True, start.shape)
    parts = [NOTHING]
    for low in range(0, start.size, _PIECE):
        piece = chosen[low : low + _PIECE]
        merged = _merged(start[low : low + _PIECE][piece], end[low : low + _PIECE][piece])
        if merged.start.size:
            parts[-1:] = _continued(parts[-1], merged)
    return Intervals(np.concatenate([part.start for part in parts]), np.concatenate([part.end for part in parts]))


def _sorted(start: Times, chosen: NDArray[np.bool_]) -> bool:
    last = None
    for low in range(0, start.size, _PIECE):
        piece = start[low : low + _PIECE][chosen[low : low + _PIECE]]
        if piece.size == 0:
            continue
        if (last is not None and piece[0] < last) or (piece[1:] < piece[:-1]).any():
            return False
        last = piece[-1]
    return True


def _merged(start: Times, end: Times) -> Intervals:
    """The union of intervals that are sorted by start."""
    if start.size == 0:
        return NOTHING
    end = np.maximum.accumulate(end)
    opens = np.flatnonzero(start[1:] > end[:-1]) + 1
    begin = start[np.concatenate(([0], opens))]
    finish = end[np.concatenate((opens - 1, [start.size - 1]))]
    filled = finish > begin
    return Intervals(begin[filled], finish[filled])


def _continued(before: Intervals, after: Intervals) -> list[Intervals]:
    """Two unions, the second of which starts no earlier than the first one's last interval."""
    if not before.start.size or after.start[0] > before.end[-1]:
        return [before, after]
    joined = _merged(
        np.concatenate((before.start[-1:], after.start)),
        np.concatenate((before.end[-1:], after.end)),
    )
    return [Intervals(before.start[:-1], before.end[:-1]), joined]


def join(first: Intervals, second: Intervals) -> Intervals:
    return union(np.concatenate((first.start, second.start)), np.concatenate((first.end, second.end)))


def length_without(whole: Intervals, cover: Intervals) -> int:
    """Length of the part of ``whole`` that ``cover`` leaves open."""
    if not whole.start.size or not cover.start.size:
        return whole.length
    low, high = np.searchsorted(cover.end, whole.start[0]), np.searchsorted(cover.start, whole.end[-1])
    start, end = cover.start[low:high], cover.end[low:high]
    before = np.concatenate(([0], np.cumsum(end - start)))
    covered = _covered_before(start, end, before, whole.end) - _covered_before(start, end, before, whole.start)
    return whole.length - int(covered.sum())


def _covered_before(start: Times, end: Times, before: Times, time: Times) -> Times:
    """Length of the cover before each time; ``before``: before each of its intervals."""
    place = np.searchsorted(start, time, side="right")
    beyond = np.maximum(np.concatenate(([0], end))[place] - time, 0)
    return before[place] - np.where(place > 0, beyond, 0)


def covered_parts(cover: Intervals, start: Times, end: Times) -> Times:
    """Length of the covered part of each of these intervals, in any order; shape ``(n,)``."""
    before = np.concatenate(([0], np.cumsum(cover.end - cover.start)))
    return _covered_before(cover.start, cover.end, before, end) - _covered_before(cover.start, cover.end, before, start)


def touching(cover: Intervals, whole: Intervals) -> Intervals:
    """Those intervals of ``cover`` that share time with ``whole``."""
    first = np.searchsorted(whole.end, cover.start, side="right")
    met = np.append(whole.start, np.iinfo(np.int64).max)[first] < cover.end
    return Intervals(cover.start[met], cover.end[met])


def gaps(covered: Intervals) -> Intervals:
    """The intervals between the first start and the last end that nothing covers."""
    return Intervals(covered.end[:-1], covered.start[1:])


def clip(start: Times, end: Times, low: int, high: int) -> tuple[Times, Times]:
    """Intervals cut to ``[low, high)``; those outside become empty (start == end)."""
    return np.clip(start, low, high), np.clip(end, low, high)
