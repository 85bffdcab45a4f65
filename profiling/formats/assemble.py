"""From columns of device work to a Timeline: linked to launches, sorted, implausible rows clipped."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.columns import DeviceColumns
from profiling.notes import Note, NoteCode
from profiling.timeline import UNKNOWN, Collectives, HostSide, StepSource, StepSpan, Timeline, WorkKind

_RUNAWAY = 1000
_CLOCK_TOLERANCE_NS = 2000
_MANY = 0.01
_UNLINKED = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a reader knows besides the rows; fields as in ``Timeline`` and ``Collectives``.

    ``flops`` and ``moved_bytes`` are in order of the rows as they were added.
    """

    source: str
    rank: int | None = None
    world_size: int | None = None
    host: HostSide = field(default_factory=HostSide)
    steps: tuple[StepSpan, ...] = ()
    steps_from: StepSource = StepSource.PROFILER
    device_names: Mapping[int, str] = field(default_factory=dict)
    vendor: str | None = None
    epoch_ns: int | None = None
    peak_memory_bytes: int | None = None
    occupancy_known: int | None = None
    incomplete: bool = False
    idle_known: bool = True
    communicators: tuple[str, ...] = ()
    flops: NDArray[np.floating] | None = None
    moved_bytes: NDArray[np.floating] | None = None


def assemble(device: DeviceColumns, launched: NDArray[np.int64] | None, around: Around) -> tuple[Timeline, list[Note]]:
    """The one Timeline of all rows, and what is to be told about it. Uses ``device`` up: large columns are handed over.

    ``launched``: start of the host call that launched each row in ns, ``UNKNOWN`` where none is known; None where the
    capture records no calls. The rows must not be empty.
    """
    notes = runaway_notes(device)
    linked = launched is not None
    if launched is None:
        launched = np.full(device.rows, UNKNOWN, dtype=np.int64)
    agree = clocks_agree(device.column("start"), launched, notes)
    if linked and around.host.launches:
        _tell_unlinked(device, launched, notes)
    rows = in_order(device.column("start"), np.arange(device.rows))
    return timeline_of(device, device.take, rows, launched, around, agree=agree), notes


def assemble_groups(
    device: DeviceColumns, launched: NDArray[np.int64] | None, groups: Sequence[tuple[Sequence[int], Around]]
) -> tuple[tuple[Timeline, ...], list[Note]]:
    """The same with a Timeline per group of processes; each group names those of ``device.processes`` that it has."""
    if len(groups) == 1:
        line, notes = assemble(device, launched, groups[0][1])
        return (line,), notes
    notes = runaway_notes(device)
    known = np.full(device.rows, UNKNOWN, dtype=np.int64) if launched is None else launched
    agree = clocks_agree(device.column("start"), known, notes)
    if launched is not None:
        _tell_unlinked(device, known, notes)
    lines = []
    for members, around in groups:
        mine = np.flatnonzero(np.isin(device.column("process"), members))
        rows = in_order(device.column("start"), mine)
        lines.append(timeline_of(device, device.column, rows, known, around, agree=agree))
    return tuple(lines), notes


def runaway_notes(device: DeviceColumns) -> list[Note]:
    """Clips absurdly long kernels; a note where there are any."""
    count = clip_runaways(device)
    return [Note(NoteCode.RUNAWAY_KERNELS, {"count": count})] if count else []


def in_order(start: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return rows[np.argsort(start[rows], kind="stable")]


def clip_runaways(columns: DeviceColumns) -> int:
    """End absurdly long kernels where the next one on their stream starts; work of one stream runs in order.

    Absurd: longer than ``_RUNAWAY`` times the median of its stream and covering its successor whole.
    Changes the durations; returns the number of rows changed.
    """
    start, duration = columns.column("start"), columns.column("duration")
    device, stream = columns.column("device"), columns.column("stream")
    if duration.max() <= _RUNAWAY * max(1, int(duration.min())):
        return 0
    order = np.lexsort((start, stream, device))
    if order.size < 3:
        return 0
    queue = np.concatenate(([0], np.cumsum((np.diff(device[order]) != 0) | (np.diff(stream[order]) != 0))))
    end = (start + duration)[order]
    suspects = np.flatnonzero((queue[1:] == queue[:-1]) & (end[:-1] > end[1:]))
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


def clocks_agree(start: NDArray[np.int64], launched: NDArray[np.int64], notes: list[Note]) -> bool:
    """False where many kernels start before their launch; the user is told by how much."""
    linked = launched != UNKNOWN
    lead = (launched - start)[linked]
    early = lead > _CLOCK_TOLERANCE_NS
    if not early.any() or early.mean() <= _MANY:
        return True
    notes.append(Note(NoteCode.CLOCKS_DIFFER, {"lead_us": round(float(np.median(lead[early])) / 1000, 3)}))
    return False


def _tell_unlinked(device: DeviceColumns, launched: NDArray[np.int64], notes: list[Note]) -> None:
    kernels = device.column("kind") == WorkKind.KERNEL
    unlinked = int((kernels & (launched == UNKNOWN)).sum())
    if unlinked > _UNLINKED * max(1, int(kernels.sum())):
        notes.append(Note(NoteCode.KERNELS_WITHOUT_LAUNCH, {"count": unlinked}))


def timeline_of(
    device: DeviceColumns,
    column: Callable[[str], NDArray[Any]],
    rows: NDArray[np.int64],
    launched: NDArray[np.int64],
    around: Around,
    *,
    agree: bool,
) -> Timeline:
    """The Timeline of the chosen rows, in their order."""
    return Timeline(
        collectives=_collectives(device, rows, around.communicators),
        rank=around.rank,
        world_size=around.world_size,
        source=around.source,
        start_ns=column("start")[rows],
        duration_ns=column("duration")[rows],
        device=_one_value(column("device")[rows]),
        stream=column("stream")[rows],
        kind=column("kind")[rows],
        name_id=column("name")[rows],
        names=tuple(device.names),
        launched_ns=launched[rows],
        bytes=_bytes(column("bytes"), rows),
        host=around.host,
        steps=around.steps,
        steps_from=around.steps_from,
        device_names=around.device_names,
        clocks_agree=agree,
        peak_memory_bytes=around.peak_memory_bytes,
        epoch_ns=around.epoch_ns,
        vendor=around.vendor,
        occupancy_known=around.occupancy_known,
        incomplete=around.incomplete,
        idle_known=around.idle_known and not around.incomplete,
        flops=None if around.flops is None else around.flops[rows],
        moved_bytes=None if around.moved_bytes is None else around.moved_bytes[rows],
    )


def _one_value(values: NDArray[Any]) -> NDArray[Any]:
    """The column without memory of its own where all rows have the same value, as in captures of one device."""
    return values if (values != values[0]).any() else np.broadcast_to(values[:1].copy(), values.shape)


def _bytes(column: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Without memory where no payload is known."""
    return column[rows] if (column != UNKNOWN).any() else np.broadcast_to(np.int64(UNKNOWN), rows.shape)


def _collectives(device: DeviceColumns, rows: NDArray[np.int64], communicators: tuple[str, ...]) -> Collectives:
    place = np.full(device.rows, UNKNOWN, dtype=np.int64)
    place[rows] = np.arange(rows.size)
    mine = place[device.column("collective_row")]
    order = np.argsort(mine, kind="stable")
    order = order[mine[order] != UNKNOWN]
    communicator, sequence = device.column("communicator")[order], device.column("sequence")[order]
    return Collectives(
        row=mine[order],
        kind=device.column("collective_kind")[order],
        message_bytes=device.column("message")[order],
        group_size=device.column("group")[order],
        communicator=communicator if (communicator != UNKNOWN).any() else None,
        sequence=sequence if (sequence != UNKNOWN).any() else None,
        communicators=communicators,
    )
