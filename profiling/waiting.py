"""Collectives of several ranks side by side: what of their time is waiting for a late rank.

All ranks leave a collective at about the same moment, so the shortest duration over the ranks is about the transfer
and the rest of each rank's duration is waiting for the last one to arrive (NVIDIA/nccl#470).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.timeline import UNKNOWN, Timeline

_LATE = 0.6
_MATERIAL = 0.1
_MATCHED_ENOUGH = 0.9
"""Waiting is told where at least this part of the communication time was matched over ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The communication kernels of one rank in order of start; columns of shape ``(m,)``, as in ``Collectives``.

    ``order``: their places in the order in which the host called them, as far as the capture tells.
    """

    start_ns: NDArray[np.int64]
    duration_ns: NDArray[np.int64]
    kind: NDArray[np.int8]
    message_bytes: NDArray[np.int64]
    group_size: NDArray[np.int32]
    communicator: NDArray[np.int32] | None
    sequence: NDArray[np.int64] | None
    communicators: tuple[str, ...]
    order: NDArray[np.int64]


def calls_of(line: Timeline) -> Calls:
    known = line.collectives
    return Calls(
        start_ns=line.start_ns[known.row],
        duration_ns=line.duration_ns[known.row],
        kind=known.kind,
        message_bytes=known.message_bytes,
        group_size=known.group_size,
        communicator=known.communicator,
        sequence=known.sequence,
        communicators=known.communicators,
        order=_order(line),
    )


def _order(line: Timeline) -> NDArray[np.int64]:
    launched = line.launched_ns[line.collectives.row]
    keys = line.start_ns[line.collectives.row] if (launched == UNKNOWN).any() else launched
    return np.argsort(keys, kind="stable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """``per_call_ns[r][i]``: waiting of rank ``r`` in its ``i``-th call, ``UNKNOWN`` where no call of others matches.

    ``share``: waiting over duration of all matched calls. ``late_ranks``: those that the others wait for (numbers, or
    places where ranks have none), empty where waiting is immaterial; ``late_ns`` by how much they are late in the mean
    call.
    """

    per_call_ns: tuple[NDArray[np.int64], ...]
    share: float
    late_ranks: tuple[int, ...]
    late_ns: float

    def of_rank(self, place: int) -> int:
        """All waiting of one rank in ns."""
        known = self.per_call_ns[place]
        return int(known[known != UNKNOWN].sum())

    def within(self, calls: Calls, place: int, low_ns: int, high_ns: int) -> int:
        """Waiting of one rank in calls that start in ``[low_ns, high_ns)``."""
        known = self.per_call_ns[place]
        inside = (calls.start_ns >= low_ns) & (calls.start_ns < high_ns) & (known != UNKNOWN)
        return int(known[inside].sum())


@dataclass(frozen=True, slots=True)
class _Matched:
    """One communicator: ``places[k]`` of the ranks, and the index of each rank's call, shape ``(k, calls)``."""

    places: tuple[int, ...]
    index: NDArray[np.int64]


def align(ranks: Sequence[tuple[int | None, Calls]]) -> Waiting | None:
    """Match the calls of every rank (number and calls of each); None where too little can be matched.

    Calls of one process group are matched by their sequence numbers, else in order, if all of its ranks ran the same
    kinds in the same order; where the capture names no groups, all calls of a rank count as one group.
    """
    if len(ranks) < 2 or len({rank for rank, _ in ranks}) < len(ranks):
        return None
    calls = [one for _, one in ranks]
    matched = list(_matched(calls))
    waiting = tuple(np.full(one.duration_ns.shape, UNKNOWN, dtype=np.int64) for one in calls)
    late: dict[int, float] = {}
    for group in matched:
        durations = np.stack(
            [calls[place].duration_ns[at] for place, at in zip(group.places, group.index, strict=True)]
        )
        own = durations - durations.min(axis=0)
        for place, at, column in zip(group.places, group.index, own, strict=True):
            waiting[place][at] = column
        late |= _late(group.places, own, durations)
    total = sum(int(one.duration_ns.sum()) for one in calls)
    seen = sum(int(one.duration_ns[known != UNKNOWN].sum()) for one, known in zip(calls, waiting, strict=True))
    if not total or seen < _MATCHED_ENOUGH * total:
        return None
    return Waiting(
        per_call_ns=waiting,
        share=sum(int(known[known != UNKNOWN].sum()) for known in waiting) / max(1, seen),
        late_ranks=tuple(sorted(_number(ranks, place) for place in late)),
        late_ns=max(late.values(), default=0.0),
    )


def _number(ranks: Sequence[tuple[int | None, Calls]], place: int) -> int:
    rank = ranks[place][0]
    return place if rank is None else rank


def _late(places: Sequence[int], waiting: NDArray[np.int64], durations: NDArray[np.int64]) -> dict[int, float]:
    """Ranks of one group that wait much less than the one that waits most, and by how much they are late per call."""
    total = waiting.sum(axis=1)
    if waiting.sum() < _MATERIAL * durations.sum():
        return {}
    late = total < _LATE * total.max()
    if not late.any():
        return {}
    behind = float(total[~late].mean() - total[late].mean()) / waiting.shape[1]
    return {places[at]: behind for at in np.flatnonzero(late)}


def _matched(calls: Sequence[Calls]) -> Iterator[_Matched]:
    if any(one.communicator is None for one in calls):
        whole = _in_order(tuple(range(len(calls))), [np.arange(one.kind.size) for one in calls], calls)
        if whole is not None:
            yield whole
        return
    members: dict[str, list[tuple[int, NDArray[np.int64]]]] = {}
    for place, one in enumerate(calls):
        if one.communicator is None:
            continue
        order = np.argsort(one.communicator, kind="stable")
        borders = np.searchsorted(one.communicator[order], np.arange(len(one.communicators) + 1))
        for number, name in enumerate(one.communicators):
            at = order[borders[number] : borders[number + 1]]
            if at.size:
                members.setdefault(name, []).append((place, at))
    for found in members.values():
        group = _one_group(found, calls)
        if group is not None:
            yield group


def _one_group(found: list[tuple[int, NDArray[np.int64]]], calls: Sequence[Calls]) -> _Matched | None:
    """None for a group of one rank, and for a name that more ranks use than the group has: it means several groups."""
    places = tuple(place for place, _ in found)
    size = max(int(calls[place].group_size[at].max()) for place, at in found)
    if len(places) < 2 or (size != UNKNOWN and len(places) > size):
        return None
    numbered = [_numbered(calls[place], at) for place, at in found]
    if all(one is not None for one in numbered):
        return _by_number(places, [at for _, at in found], [one for one in numbered if one is not None])
    return _in_order(places, [at for _, at in found], calls)


def _numbered(calls: Calls, at: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Sequence numbers of the calls, None unless each has its own."""
    if calls.sequence is None:
        return None
    numbers = calls.sequence[at]
    return numbers if (numbers != UNKNOWN).all() and np.unique(numbers).size == numbers.size else None


def _by_number(
    places: tuple[int, ...], calls: list[NDArray[np.int64]], numbers: list[NDArray[np.int64]]
) -> _Matched | None:
    common = numbers[0]
    for one in numbers[1:]:
        common = np.intersect1d(common, one)
    if not common.size:
        return None
    index = []
    for at, one in zip(calls, numbers, strict=True):
        order = np.argsort(one, kind="stable")
        index.append(at[order[np.searchsorted(one[order], common)]])
    return _Matched(places, np.stack(index))


def _in_order(places: tuple[int, ...], at: list[NDArray[np.int64]], calls: Sequence[Calls]) -> _Matched | None:
    kinds = [calls[place].kind[mine] for place, mine in zip(places, at, strict=True)]
    if not kinds[0].size or any(not np.array_equal(kind, kinds[0]) for kind in kinds[1:]):
        return None
    return _Matched(places, np.stack(at))
