"""What a KinetoCollector gathered, as Timelines: by rank, linked to launches, sorted, implausible rows clipped."""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.assemble import Around, assemble_groups
from profiling.formats.columns import Expected, LaunchColumns
from profiling.formats.kineto import KinetoCollector
from profiling.formats.kineto_machine import device_names, distributed, epoch_ns, vendor
from profiling.formats.numbers import integer
from profiling.intervals import Intervals
from profiling.notes import Note, NoteCode
from profiling.timeline import UNKNOWN, HostSide, Timeline, WorkKind

_RANK_IN_NAME = re.compile(
    r"(?:^|[^a-z])rank[-_.]?([0-9]+)|(?:^|[^a-z])worker[-_.]?([0-9]+)|-TP-([0-9]+)(?![0-9]|-(?:DP|PP|EP)-)",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"\[((?:rank|TP|DP|PP|EP)[^\]]{1,40})\]", re.IGNORECASE)
_ALONE = re.compile(r"(?:rank|TP)[ _:=-]?([0-9]{1,6})", re.IGNORECASE)
_A_FEW = 2
_SMALL = 0.05
_LOST = re.compile(r"drop|lost|overflow|missing|out of (?:memory|space)", re.IGNORECASE)


Label = int | str | None
"""A rank by its number; by its place in several kinds of parallelism, which tells no number; or not at all."""
Split = list[tuple[Label, list[int]]]


def timelines(
    seen: KinetoCollector, metadata: Mapping[str, Any], source: str, *, cut: bool
) -> tuple[tuple[Timeline, ...], list[Note]]:
    """One Timeline per rank in the file, in order of rank, and what is to be told about them.

    ``cut``: the file ends early. Uses ``seen`` up: large columns are handed over, not copied.
    """
    seen.called.complete(seen.device)
    window = _window(seen)
    split = _rank_of_process(seen)
    launched = _launched(seen, split)
    unlinked = int(((seen.device.column("kind") == WorkKind.KERNEL) & (launched == UNKNOWN)).sum())
    notes = _missing_notes(seen, window, unlinked)
    around = _around(seen, metadata, source, idle_known=not notes, cut=cut)
    if split is None:
        groups = [(list(seen.device.processes.values()), replace(around, rank=_single_rank(seen, metadata, source)))]
    else:
        notes.append(Note(NoteCode.RANKS_MERGED, {"count": len(split)}))
        groups = [
            (members, replace(around, rank=label if isinstance(label, int) else None)) for label, members in split
        ]
    seen.calls = LaunchColumns()
    lines, told = assemble_groups(seen.device, launched, groups)
    return lines, [*told, *notes]


def _window(seen: KinetoCollector) -> tuple[int, int]:
    start = seen.device.column("start")
    return int(start.min()), int(start.max())


def _launched(seen: KinetoCollector, split: Split | None) -> NDArray[np.int64]:
    """Start of the call that launched each row.

    Correlation ids repeat from rank to rank in a merged file: there, calls of a rank's own processes alone count.
    """
    correlation = seen.device.take("correlation")
    if split is None:
        return seen.calls.starts_of(correlation, out=correlation)
    launched = np.full(correlation.shape, UNKNOWN, dtype=np.int64)
    for label, members in split:
        owners = [number for pid, number in seen.call_processes.items() if _label(seen, pid) == label]
        if label is not None and owners:
            mine = np.flatnonzero(np.isin(seen.device.column("process"), members))
            launched[mine] = seen.calls.of_processes(owners).starts_of(correlation[mine])
    return launched


def _missing_notes(seen: KinetoCollector, window: tuple[int, int], unlinked: int) -> list[Note]:
    """Launches while the device worked of which no work was recorded: what seems idle may have been busy.

    ``unlinked``: kernels without a launch; each may be what became of one that seems to have led to nothing.
    """
    found = []
    captured = _captured(seen)
    for expected, code in (
        (Expected.GRAPH, NoteCode.GRAPHS_UNDER_RECORDED),
        (Expected.KERNEL, NoteCode.KERNELS_MISSING),
    ):
        count, answered = seen.calls.led_to(expected, *window, captured)
        if count - answered - unlinked > max(_A_FEW, _SMALL * count):
            found.append(Note(code, {"count": count, "seen": answered}))
    return found


def _captured(seen: KinetoCollector) -> Intervals:
    """When kernels were recorded into a graph."""
    events = sorted(seen.captures)
    pairs = [(begin, end) for (begin, begins), (end, again) in pairwise(events) if begins and not again]
    times = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Intervals(times[:, 0], times[:, 1])


def _label(seen: KinetoCollector, pid: Any) -> Label:
    """Rank of a process by its label, else what a merge wrote before its id (``[TP01-DP00] 4242``)."""
    if pid in seen.rank_labels:
        return seen.rank_labels[pid]
    match = _PREFIX.match(pid) if isinstance(pid, str) else None
    if match is None:
        return None
    alone = _ALONE.fullmatch(match[1])
    return int(alone[1]) if alone else match[1]


def _rank_of_process(seen: KinetoCollector) -> Split | None:
    """Process numbers of each rank in a merged file; None where the file holds one rank."""
    numbers = seen.device.processes
    labelled = {pid: label for pid in numbers if (label := _label(seen, pid)) is not None}
    if len(set(labelled.values())) > 1:
        labels = sorted(set(labelled.values()), key=lambda label: (isinstance(label, str), label))
        split: Split = [(label, [numbers[pid] for pid, one in labelled.items() if one == label]) for label in labels]
        rest = [number for pid, number in numbers.items() if pid not in labelled]
        return [*split, (None, rest)] if rest else split
    if len(numbers) > 1 and _share_a_device(seen):
        return [(None, [number]) for number in numbers.values()]
    return None


def _share_a_device(seen: KinetoCollector) -> bool:
    """True where rows of several processes name the same device: process ids were rewritten by a merge."""
    process, device = seen.device.column("process").astype(np.int64), seen.device.column("device")
    pairs = np.unique((process << 32) + device)
    devices = pairs & (2**32 - 1)
    return bool(np.unique(devices).size < pairs.size) and bool(np.unique(pairs >> 32).size == pairs.size)


def _single_rank(seen: KinetoCollector, metadata: Mapping[str, Any], source: str) -> int | None:
    rank = integer(distributed(metadata).get("rank"), high=10**6)
    if rank is not None:
        return rank
    if seen.arg_rank is not None:
        return seen.arg_rank
    match = _RANK_IN_NAME.search(PurePath(source).name)
    digits = next((one for one in match.groups() if one), "") if match else ""
    return int(digits) if 0 < len(digits) < 7 else None


def _around(seen: KinetoCollector, metadata: Mapping[str, Any], source: str, *, idle_known: bool, cut: bool) -> Around:
    """What all ranks of the file share."""
    flops, moved_bytes = seen.shaped.columns(seen.device)
    known = seen.occupancies or seen.occupancies_lost
    names = device_names(metadata)
    return Around(
        source=source,
        world_size=integer(distributed(metadata).get("world_size"), low=1, high=10**6),
        host=_host(seen),
        steps=tuple(sorted(seen.steps, key=lambda step: step.start_ns)),
        device_names=names,
        vendor=vendor(metadata, names, seen.call_names) or seen.named.maker,
        epoch_ns=epoch_ns(metadata, int(seen.device.column("start").min())),
        peak_memory_bytes=seen.peak_memory,
        occupancy_known=seen.occupancies if known else None,
        incomplete=cut or any(_LOST.search(text) for text in warnings(metadata)),
        idle_known=idle_known,
        communicators=tuple(seen.called.communicators.names),
        flops=flops,
        moved_bytes=moved_bytes,
    )


def warnings(metadata: Mapping[str, Any]) -> list[str]:
    """What the profiler itself logged as going wrong."""
    texts = metadata.get("WARNING")
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []


def _host(seen: KinetoCollector) -> HostSide:
    return HostSide(
        operators=seen.operators,
        launches=seen.launches,
        graph_launches=seen.graph_launches,
        has_backward=seen.has_backward,
        waits=seen.waits.intervals,
        input=seen.input.intervals,
        orders_ns=np.sort(seen.orders.values) if seen.call_names else None,
    )
