"""Figures of nccl-tests, whatever they were printed as: sizes, times, bandwidths, and their peak."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from profiling.evidence import CollectiveTiming
from profiling.notes import NoteCode
from profiling.workload import CollectiveKind

MOST_BUS_BYTES_PER_S = 20e12
"""No link of any accelerator is near: a clock that stood still, or a wrong number of ranks."""
PLATEAU = 8
"""Sizes down to this part of the largest count for the peak: smaller ones measure latency."""
PROGRAM = re.compile(r"\b(all_reduce|all_gather|reduce_scatter|alltoallv?|broadcast|sendrecv|[a-z]{4,12})_perf\b")

_FILE = re.compile(r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|send_?recv)", re.IGNORECASE)
_KINDS: Mapping[str, CollectiveKind] = {
    "allreduce": CollectiveKind.ALL_REDUCE,
    "allgather": CollectiveKind.ALL_GATHER,
    "reducescatter": CollectiveKind.REDUCE_SCATTER,
    "alltoall": CollectiveKind.ALL_TO_ALL,
    "alltoallv": CollectiveKind.ALL_TO_ALL,
    "broadcast": CollectiveKind.BROADCAST,
    "sendrecv": CollectiveKind.SEND_RECV,
}


@dataclass(slots=True)
class Direction:
    """What one direction of one size shows; seconds and bytes per second, None where the file has no number."""

    time_s: float | None = None
    algorithm_bytes_per_s: float | None = None
    bus_bytes_per_s: float | None = None


@dataclass(slots=True)
class Row:
    size: int
    redop: str
    root: int
    out: Direction
    inside: Direction


def number(word: Any) -> float | None:
    try:
        value = float(word) if not isinstance(word, str) or len(word) <= 32 else math.nan
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def direction(time_s: Any, algorithm_gb: Any, bus_gb: Any, counts: Counter[NoteCode]) -> Direction:
    """Figures as printed, bandwidths in GB/s (1e9); what is missing or impossible is counted once and left out."""
    time, algorithm, bus = number(time_s), number(algorithm_gb), number(bus_gb)
    if time is None or algorithm is None or bus is None:
        counts[NoteCode.VALUES_MISSING] += 1
    if (
        min(time or 0.0, algorithm or 0.0, bus or 0.0) < 0
        or max(algorithm or 0.0, bus or 0.0) * 1e9 > MOST_BUS_BYTES_PER_S
    ):
        counts[NoteCode.IMPOSSIBLE_BANDWIDTHS] += 1
        return Direction()
    return Direction(time or None, algorithm * 1e9 if algorithm else None, bus * 1e9 if bus else None)


def timings(rows: Sequence[Row], program: str | None, name: str) -> list[CollectiveTiming]:
    kind = _kind(rows, program, name)
    return [
        CollectiveTiming(
            kind=kind,
            message_bytes=float(row.size),
            time_s=row.out.time_s,
            bus_bytes_per_s=row.out.bus_bytes_per_s,
            in_place_time_s=row.inside.time_s,
            in_place_bus_bytes_per_s=row.inside.bus_bytes_per_s,
        )
        for row in rows
    ]


def _kind(rows: Sequence[Row], program: str | None, name: str) -> CollectiveKind:
    """By the program's name, else by what the columns leave open, else by the file's name.

    busbw / algbw is 2(n-1)/n for all-reduce, (n-1)/n for reduce-scatter, all-gather and all-to-all, 1 for broadcast
    (nccl-tests, doc/PERFORMANCE.md): of those that reduce, all-reduce alone is not below 1.
    """
    if program is not None:
        return _KINDS.get(program.replace("_", ""), CollectiveKind.UNKNOWN)
    largest = max(rows, key=lambda row: row.size)
    algorithm, bus = largest.out.algorithm_bytes_per_s, largest.out.bus_bytes_per_s
    ratio = bus / algorithm if algorithm and bus is not None else None
    if largest.redop not in ("", "none") and largest.root < 0 and ratio is not None:
        return CollectiveKind.ALL_REDUCE if ratio > 0.995 else CollectiveKind.REDUCE_SCATTER
    if largest.redop in ("", "none") and largest.root >= 0 and ratio is not None and ratio > 0.995:
        return CollectiveKind.BROADCAST
    match = _FILE.search(name)
    return _KINDS[match[1].lower().replace("_", "")] if match else CollectiveKind.UNKNOWN


def peaks(rows: Iterable[CollectiveTiming]) -> dict[CollectiveKind, float]:
    """The best bus bandwidth on the plateau: of sizes not below an eighth of the largest, in either direction."""
    measured = [
        (row.kind, row.message_bytes, max(row.bus_bytes_per_s or 0.0, row.in_place_bus_bytes_per_s or 0.0))
        for row in rows
        if row.message_bytes is not None
    ]
    largest: dict[CollectiveKind, float] = {}
    for kind, size, bus in measured:
        if bus:
            largest[kind] = max(largest.get(kind, 0.0), size)
    peak = dict.fromkeys(largest, 0.0)
    for kind, size, bus in measured:
        if bus and size * PLATEAU >= largest[kind]:
            peak[kind] = max(peak[kind], bus)
    return peak
