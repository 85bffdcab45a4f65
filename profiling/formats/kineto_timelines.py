"""What a KinetoCollector gathered, as Timelines: by rank, linked to launches, sorted, implausible rows clipped."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from profiling.formats.assemble import Around, assemble, in_order, runaway_notes, timeline_of
from profiling.formats.kineto import KinetoCollector
from profiling.formats.numbers import integer
from profiling.notes import Note, NoteCode
from profiling.timeline import UNKNOWN, HostSide, Timeline

_RANK_IN_NAME = re.compile(r"(?:^|[^a-z])rank[-_.]?([0-9]+)|(?:^|[^a-z])worker[-_.]?([0-9]+)", re.IGNORECASE)


def timelines(
    seen: KinetoCollector, metadata: Mapping[str, Any], source: str
) -> tuple[tuple[Timeline, ...], list[Note]]:
    """One Timeline per rank in the file, in order of rank, and what is to be told about them.

    Uses ``seen`` up: large columns are handed over, not copied.
    """
    around = _around(seen, metadata, source)
    split = _rank_of_process(seen)
    if split is None:
        around = replace(around, rank=_single_rank(seen, metadata, source))
        line, notes = assemble(seen.device, seen.calls.starts_of(seen.device.column("correlation")), around)
        return (line,), notes
    notes = [*runaway_notes(seen.device), Note(NoteCode.RANKS_MERGED, {"count": len(split)})]
    return tuple(_one_of_many(seen, replace(around, rank=rank), members) for rank, members in split), notes


def _one_of_many(seen: KinetoCollector, around: Around, members: list[int]) -> Timeline:
    """A rank of a merged file. Correlation ids repeat from rank to rank there, so nothing is linked to its launch."""
    device = seen.device
    mine = np.flatnonzero(np.isin(device.column("process"), members))
    rows = in_order(device.column("start"), mine)
    launched = np.full(device.rows, UNKNOWN, dtype=np.int64)
    return timeline_of(device, device.column, rows, launched, around, agree=True)


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


def _around(seen: KinetoCollector, metadata: Mapping[str, Any], source: str) -> Around:
    """What all ranks of the file share."""
    return Around(
        source=source,
        world_size=integer(_distributed(metadata).get("world_size"), low=1, high=10**6),
        host=_host(seen),
        steps=tuple(sorted(seen.steps, key=lambda step: step.start_ns)),
        device_names=_device_names(metadata),
        peak_memory_bytes=seen.peak_memory,
    )


def _host(seen: KinetoCollector) -> HostSide:
    return HostSide(
        operators=seen.operators,
        launches=seen.launches,
        has_backward=seen.has_backward,
    )
