"""Collectives of several ranks side by side: what of their time is waiting for a late rank.

All ranks leave a collective at about the same moment, so the shortest duration over the ranks is about the transfer
and the rest of each rank's duration is waiting for the last one to arrive (NVIDIA/nccl#470). That takes all ranks of
the process group: with one missing, the time that the others wait for it would look like transfer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import device_work
from profiling.intervals import covered_parts, union
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN, Timeline
from profiling.workload import CollectiveKind

_LATE = 0.6
_MATERIAL = 0.1
_MATCHED_ENOUGH = 0.9
"""Waiting is told where at least this part of the communication time was matched over ranks."""
PARTS = 8
_SEND = COLLECTIVE_KINDS.index(CollectiveKind.SEND_RECV)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The communication kernels of one rank in order of start; columns of shape ``(m,)``, as in ``Collectives``.

    ``shown_ns``, shape ``(m, PARTS + 1)``: how much of each, up to each eighth of it, nothing computes over and no
    earlier call runs beside; the last of them add up to the exposed time.
    ``order``: their places in the order in which the host called them, as far as the capture tells.
    """

    start_ns: NDArray[np.int64]
    duration_ns: NDArray[np.int64]
    shown_ns: NDArray[np.int64]
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
        shown_ns=_shown(line),
        kind=known.kind,
        message_bytes=known.message_bytes,
        group_size=known.group_size,
        communicator=known.communicator,
        sequence=known.sequence,
        communicators=known.communicators,
        order=_order(line),
    )


def _shown(line: Timeline) -> NDArray[np.int64]:
    row = line.collectives.row
    shown = np.zeros((row.size, PARTS + 1), dtype=np.int64)
    for device in np.unique(line.device[row]).tolist():
        mine = np.flatnonzero(line.device[row] == device)
        start, end = line.start_ns[row[mine]], line.end_ns[row[mine]]
        latest = np.maximum.accumulate(end)
        begin = np.minimum(np.maximum(start, np.concatenate((start[:1], latest[:-1]))), end)
        work = device_work(line, device)
        computing = work.union_of(work.is_compute)
        for part in range(1, PARTS + 1):
            until = np.maximum(begin, start + (end - start) * part // PARTS)
            shown[mine, part] = until - begin - covered_parts(computing, begin, until)
    return shown


def _order(line: Timeline) -> NDArray[np.int64]:
    launched = line.launched_ns[line.collectives.row]
    keys = line.start_ns[line.collectives.row] if (launched == UNKNOWN).any() else launched
    return np.argsort(keys, kind="stable")


@dataclass(frozen=True, slots=True)
class Waited:
    """Time in ns in which calls wait, what several wait at once counted once: without and under computing."""

    exposed_ns: int
    hidden_ns: int


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

    def of_rank(self, calls: Calls, place: int) -> int:
        """Time in which calls of one rank wait, in ns; what several wait at once counts once."""
        waited = np.maximum(self.per_call_ns[place], 0)
        return union(calls.start_ns, calls.start_ns + waited).length

    def within(self, calls: Calls, place: int, low_ns: int, high_ns: int) -> Waited:
        """Waiting of one rank in calls that start in ``[low_ns, high_ns)``."""
        inside = np.flatnonzero((calls.start_ns >= low_ns) & (calls.start_ns < high_ns))
        start, waited = calls.start_ns[inside], np.maximum(self.per_call_ns[place][inside], 0)
        parts = waited * PARTS / np.maximum(calls.duration_ns[inside], 1)
        whole = np.minimum(parts.astype(np.int64), PARTS - 1)
        shown = calls.shown_ns.reshape(-1, PARTS + 1)
        before, after = shown[inside, whole], shown[inside, whole + 1]
        exposed_ns = round(float((before + (parts - whole) * (after - before)).sum()))
        return Waited(exposed_ns, max(union(start, start + waited).length - exposed_ns, 0))


@dataclass(frozen=True, slots=True)
class _Matched:
    """One communicator: ``places[k]`` of the ranks, and the index of each rank's call, shape ``(k, calls)``."""

    places: tuple[int, ...]
    index: NDArray[np.int64]


def align(ranks: Sequence[tuple[int | None, Calls]], *, world_size: int | None = None) -> Waiting | None:
    """Match the calls of every rank (number and calls of each); None where too little can be matched.

    Calls of one process group are matched by their sequence numbers, else in order, if all of its ranks ran the same
    kinds in the same order; where the capture names no groups, all calls of a rank count as one group. A group that
    lacks a rank is not matched. Ranks without numbers are processes of one capture: they share a clock, and matched
    calls must overlap.
    """
    numbers = [rank for rank, _ in ranks if rank is not None]
    if len(ranks) < 2 or len(set(numbers)) < len(numbers) or 0 < len(numbers) < len(ranks):
        return None
    calls = [one for _, one in ranks]
    known = world_size if numbers else None
    matched = [group for group in _matched(calls, known) if numbers or _overlap(group, calls)]
    waiting = tuple(np.full(one.duration_ns.shape, UNKNOWN, dtype=np.int64) for one in calls)
    late: dict[int, float] = {}
    for group in matched:
        durations = np.stack(
            [calls[place].duration_ns[at] for place, at in zip(group.places, group.index, strict=True)]
        )
        collective = calls[group.places[0]].kind[group.index[0]] != _SEND
        own = durations - durations.min(axis=0)
        for place, at, column in zip(group.places, group.index, own, strict=True):
            waiting[place][at] = column
        late |= _late(group.places, own[:, collective], durations[:, collective])
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
    """Ranks of one group that wait much less than the one that waits most, and by how much they are late per call.

    Without sends: the stages of a pipeline wait for each other in turn, and none of them is late.
    """
    total = waiting.sum(axis=1)
    if not waiting.size or waiting.sum() < _MATERIAL * durations.sum():
        return {}
    late = total < _LATE * total.max()
    if not late.any():
        return {}
    behind = float(total[~late].mean() - total[late].mean()) / waiting.shape[1]
    return {places[at]: behind for at in np.flatnonzero(late)}


def _overlap(group: _Matched, calls: Sequence[Calls]) -> bool:
    found = list(zip(group.places, group.index, strict=True))
    start = np.stack([calls[place].start_ns[at] for place, at in found])
    end = np.stack([calls[place].start_ns[at] + calls[place].duration_ns[at] for place, at in found])
    return bool((start.max(axis=0) < end.min(axis=0)).mean() >= _MATCHED_ENOUGH)


def _matched(calls: Sequence[Calls], world_size: int | None) -> Iterator[_Matched]:
    if any(one.communicator is None for one in calls):
        places, at = tuple(range(len(calls))), [np.arange(one.kind.size) for one in calls]
        whole = _in_order(places, at, calls) if _complete(places, at, calls, world_size) else None
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
        group = _one_group(found, calls, world_size)
        if group is not None:
            yield group


def _one_group(
    found: list[tuple[int, NDArray[np.int64]]], calls: Sequence[Calls], world_size: int | None
) -> _Matched | None:
    """None for a group of one rank, and for one whose ranks are not all there."""
    places = tuple(place for place, _ in found)
    if not _complete(places, [at for _, at in found], calls, world_size):
        return None
    numbered = [_numbered(calls[place], at) for place, at in found]
    if all(one is not None for one in numbered):
        return _by_number(places, [at for _, at in found], [one for one in numbered if one is not None])
    return _in_order(places, [at for _, at in found], calls)


def _complete(
    places: tuple[int, ...], at: list[NDArray[np.int64]], calls: Sequence[Calls], world_size: int | None
) -> bool:
    """Whether these are all ranks of one group. A name that more ranks use than the group has means several groups.

    Where sizes are unknown all ranks of the job must be there, as far as their number is known.
    """
    sizes = (calls[place].group_size[mine].max(initial=UNKNOWN) for place, mine in zip(places, at, strict=True))
    size = int(max(sizes))
    if size == UNKNOWN:
        return len(places) > 1 and (world_size is None or len(calls) >= world_size)
    return len(places) > 1 and len(places) == size


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
