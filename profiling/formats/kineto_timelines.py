"""What a KinetoCollector gathered, as Timelines: by rank, linked to launches, sorted, implausible rows clipped."""

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.kineto import KinetoCollector
from profiling.formats.kineto_args import integer
from profiling.notes import Note, NoteCode
from profiling.timeline import UNKNOWN, Collectives, HostSide, Timeline, WorkKind

_RANK_IN_NAME = re.compile(r"(?:^|[^a-z])rank[-_.]?([0-9]+)|(?:^|[^a-z])worker[-_.]?([0-9]+)", re.IGNORECASE)
_RUNAWAY = 1000
_CLOCK_TOLERANCE_NS = 2000
_MANY = 0.01
_UNLINKED = 0.1


def timelines(
    seen: KinetoCollector, metadata: Mapping[str, Any], source: str
) -> tuple[tuple[Timeline, ...], list[Note]]:
    """One Timeline per rank in the file, in order of rank, and what is to be told about them.

    Uses ``seen`` up: large columns are handed over, not copied.
    """
    notes: list[Note] = []
    runaways = clip_runaways(seen)
    if runaways:
        notes.append(Note(NoteCode.RUNAWAY_KERNELS, {"count": runaways}))
    common = _common(seen, metadata, source)
    split = _rank_of_process(seen)
    if split is None:
        rank = _single_rank(seen, metadata, source)
        return (_only_rank(seen, common, rank, notes),), notes
    notes.append(Note(NoteCode.RANKS_MERGED, {"count": len(split)}))
    return tuple(_one_of_many(seen, common, rank, members) for rank, members in split), notes


def _only_rank(seen: KinetoCollector, common: dict[str, Any], rank: int | None, notes: list[Note]) -> Timeline:
    device = seen.device
    launched = seen.calls.starts_of(device.take("correlation"))
    agree = _clocks_agree(device.column("start"), launched, notes)
    _tell_unlinked(seen, launched, notes)
    rows = _in_order(device.column("start"), np.arange(device.rows))
    collectives = _collectives(seen, rows)
    return _timeline(device.take, rows, launched, rank=rank, clocks_agree=agree, collectives=collectives, **common)


def _one_of_many(seen: KinetoCollector, common: dict[str, Any], rank: int | None, members: list[int]) -> Timeline:
    """A rank of a merged file. Correlation ids repeat from rank to rank there, so nothing is linked to its launch."""
    device = seen.device
    mine = np.flatnonzero(np.isin(device.column("process"), members))
    rows = _in_order(device.column("start"), mine)
    launched = np.full(device.rows, UNKNOWN, dtype=np.int64)
    collectives = _collectives(seen, rows)
    return _timeline(device.column, rows, launched, rank=rank, clocks_agree=True, collectives=collectives, **common)


def _in_order(start: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return rows[np.argsort(start[rows], kind="stable")]


def clip_runaways(seen: KinetoCollector) -> int:
    """End absurdly long kernels where the next one on their stream starts; work of one stream runs in order.

    Absurd: longer than ``_RUNAWAY`` times the median of its stream and covering at least two successors whole.
    Changes the durations; returns the number of rows changed.
    """
    start, duration = seen.device.column("start"), seen.device.column("duration")
    device, stream = seen.device.column("device"), seen.device.column("stream")
    if duration.max() <= _RUNAWAY * max(1, int(duration.min())):
        return 0
    order = np.lexsort((start, stream, device))
    if order.size < 3:
        return 0
    queue = np.concatenate(([0], np.cumsum((np.diff(device[order]) != 0) | (np.diff(stream[order]) != 0))))
    end = (start + duration)[order]
    suspects = np.flatnonzero((queue[2:] == queue[:-2]) & (end[:-2] > end[1:-1]) & (end[:-2] > end[2:]))
    absurd = suspects[duration[order[suspects]] > _believed_ns(duration[order], queue, queue[suspects])]
    duration[order[absurd]] = start[order[absurd + 1]] - start[order[absurd]]
    return int(absurd.size)


def _believed_ns(
    duration: NDArray[np.int64], queue: NDArray[np.int64], wanted: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The longest duration that is taken as true in each of the ``wanted`` queues; ``queue`` is sorted."""
    found, back = np.unique(wanted, return_inverse=True)
    borders = zip(np.searchsorted(queue, found), np.searchsorted(queue, found, side="right"), strict=True)
    medians = np.array([np.median(duration[low:high]) for low, high in borders])
    return _RUNAWAY * np.maximum(1, medians)[back]


def _rank_of_process(seen: KinetoCollector) -> list[tuple[int | None, list[int]]] | None:
    """Process numbers of each rank in a merged file; None where the file holds one rank."""
    numbers = seen.device.processes
    labelled = {pid: rank for pid, rank in seen.rank_labels.items() if pid in numbers}
    if len(set(labelled.values())) > 1:
        ranks = sorted(set(labelled.values()))
        split: list[tuple[int | None, list[int]]] = [
            (rank, [numbers[pid] for pid, label in labelled.items() if label == rank]) for rank in ranks
        ]
        rest = [number for pid, number in numbers.items() if pid not in labelled]
        return [*split, (None, rest)] if rest else split
    if len(numbers) > 1 and _share_a_device(seen):
        return [(None, [number]) for number in numbers.values()]
    return None


def _share_a_device(seen: KinetoCollector) -> bool:
    """True where rows of several processes name the same device: process ids were rewritten by a merge."""
    pairs = np.unique(np.stack((seen.device.column("process"), seen.device.column("device"))), axis=1)
    return bool(np.unique(pairs[1]).size < pairs.shape[1]) and bool(np.unique(pairs[0]).size == pairs.shape[1])


def _single_rank(seen: KinetoCollector, metadata: Mapping[str, Any], source: str) -> int | None:
    rank = integer(_distributed(metadata).get("rank"), high=10**6)
    if rank is not None:
        return rank
    if seen.arg_rank is not None:
        return seen.arg_rank
    match = _RANK_IN_NAME.search(PurePath(source).name)
    return int(match[1] or match[2]) if match and len(match[1] or match[2]) < 7 else None


def _distributed(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    info = metadata.get("distributedInfo")
    return info if isinstance(info, dict) else {}


def _device_names(metadata: Mapping[str, Any]) -> dict[int, str]:
    listed = metadata.get("deviceProperties")
    names: dict[int, str] = {}
    for place, entry in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(entry, dict):
            name = entry.get("name")
            index = integer(entry.get("id"))
            names[place if index is None else index] = name.strip()[:120] if isinstance(name, str) else ""
    return names


def _clocks_agree(start: NDArray[np.int64], launched: NDArray[np.int64], notes: list[Note]) -> bool:
    """False where many kernels start before their launch; the user is told by how much."""
    linked = launched != UNKNOWN
    lead = (launched - start)[linked]
    early = lead > _CLOCK_TOLERANCE_NS
    if not early.any() or early.mean() <= _MANY:
        return True
    notes.append(Note(NoteCode.CLOCKS_DIFFER, {"lead_us": round(float(np.median(lead[early])) / 1000, 3)}))
    return False


def _tell_unlinked(seen: KinetoCollector, launched: NDArray[np.int64], notes: list[Note]) -> None:
    if not seen.launches:
        return
    kernels = seen.device.column("kind") == WorkKind.KERNEL
    unlinked = int((kernels & (launched == UNKNOWN)).sum())
    if unlinked > _UNLINKED * max(1, int(kernels.sum())):
        notes.append(Note(NoteCode.KERNELS_WITHOUT_LAUNCH, {"count": unlinked}))


def _common(seen: KinetoCollector, metadata: Mapping[str, Any], source: str) -> dict[str, Any]:
    """What all ranks of the file share."""
    return {
        "source": source,
        "world_size": integer(_distributed(metadata).get("world_size"), low=1, high=10**6),
        "names": tuple(seen.device.names),
        "host": _host(seen),
        "steps": tuple(sorted(seen.steps, key=lambda step: step.start_ns)),
        "device_names": _device_names(metadata),
        "peak_memory_bytes": seen.peak_memory,
    }


def _timeline(
    column: Callable[[str], NDArray[Any]], rows: NDArray[np.int64], launched: NDArray[np.int64], **known: Any
) -> Timeline:
    return Timeline(
        start_ns=column("start")[rows],
        duration_ns=column("duration")[rows],
        device=column("device")[rows],
        stream=column("stream")[rows],
        kind=column("kind")[rows],
        name_id=column("name")[rows],
        launched_ns=launched[rows],
        bytes=column("bytes")[rows],
        **known,
    )


def _host(seen: KinetoCollector) -> HostSide:
    return HostSide(
        operators=seen.operators,
        launches=seen.launches,
        synchronise_ns=seen.synchronise_ns,
        has_backward=seen.has_backward,
    )


def _collectives(seen: KinetoCollector, rows: NDArray[np.int64]) -> Collectives:
    place = np.full(seen.device.rows, UNKNOWN, dtype=np.int64)
    place[rows] = np.arange(rows.size)
    mine = place[seen.device.column("collective_row")]
    order = np.argsort(mine, kind="stable")
    order = order[mine[order] != UNKNOWN]
    return Collectives(
        row=mine[order],
        kind=seen.device.column("collective_kind")[order],
        message_bytes=seen.device.column("message")[order],
        group_size=seen.device.column("group")[order],
    )
