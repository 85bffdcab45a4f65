"""NCCL Inspector (NCCL 2.28 and later): one JSON object per collective, or its Prometheus text.

Source of the fields: NVIDIA/nccl, plugins/profiler/inspector/README.md. Names of hosts, jobs and devices are not read.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from profiling.evidence import CollectiveTiming, CollectiveTimings
from profiling.formats.capture import Capture, Format
from profiling.formats.json_records import Records
from profiling.formats.nccl_tests_figures import MOST_BUS_BYTES_PER_S, number, peaks
from profiling.formats.numbers import MOST_BYTES, integer
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode
from profiling.workload import CollectiveKind

KINDS: Mapping[str, CollectiveKind] = {
    "AllReduce": CollectiveKind.ALL_REDUCE,
    "AllGather": CollectiveKind.ALL_GATHER,
    "ReduceScatter": CollectiveKind.REDUCE_SCATTER,
    "AlltoAll": CollectiveKind.ALL_TO_ALL,
    "AllToAll": CollectiveKind.ALL_TO_ALL,
    "Broadcast": CollectiveKind.BROADCAST,
    "Send": CollectiveKind.SEND_RECV,
    "Recv": CollectiveKind.SEND_RECV,
    "SendRecv": CollectiveKind.SEND_RECV,
}
"""NCCL's own names (``ncclFuncToString``)."""
_PER_RANK = (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER)
_NAME = re.compile(r"[A-Za-z]\w{0,39}")
_HOST_TIMED = "collective_cpu"
_SCALED = 0.15
"""How far whole microseconds may let the factor of the size be off."""
_MOST_SECONDS = 86_400.0
_METRIC = re.compile(
    r"^nccl_(bus_bandwidth_gbs|collective_exec_time_microseconds|p2p_bus_bandwidth_gbs|"
    r"p2p_exec_time_microseconds)\{(.{0,2000})\} +(\S{1,40})"
)
_LABEL = re.compile(r'\b(nranks|n_nodes|collective|p2p_operation|message_size)="([^"]{0,40})"')
_RANGE = re.compile(r"(\d{1,4})(?:-\d{1,4})?([KMGT]?B)")
_UNITS = {unit: 1024**power for power, unit in enumerate(("B", "KB", "MB", "GB", "TB"))}


def recognises(head: Head) -> bool:
    text = head.text
    if text.lstrip(" \t\r\n[")[:1] == "{":
        return '"n_ranks"' in text and re.search(r'"(?:coll|p2p)_perf"|"dump_stats"|"proxy_', text) is not None
    return re.search(r"^nccl_(?:p2p_)?bus_bandwidth_gbs\{", text, re.MULTILINE) is not None


@dataclass(slots=True)
class _Sum:
    calls: int = 0
    timed: int = 0
    time_s: float = 0.0
    weighted: float = 0.0
    """Sum of bus bandwidth times time: of calls of one size the mean by time is that of all of them together."""


class Sums:
    """Calls added up by kind, operation and size; ranks and nodes of the largest communicator."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.sums: dict[tuple[CollectiveKind, str, float | None], _Sum] = {}
        self.counts: Counter[NoteCode] = Counter()
        self.ranks = 0
        self.nodes = 0

    def group(self, ranks: int | None, nodes: int | None) -> None:
        if ranks is not None and ranks >= self.ranks:
            self.nodes = max(nodes or 0, self.nodes if ranks == self.ranks else 0)
            self.ranks = ranks

    def add(self, name: str, size: float | None, time_s: float | None, bus_gb: float | None) -> None:
        name = name if _NAME.fullmatch(name) else "unknown"
        self.counts[NoteCode.SOME_SIZES_UNKNOWN] += size is None
        key = (KINDS.get(name, CollectiveKind.UNKNOWN), name, size)
        if key not in self.sums and len(self.sums) >= self.most:
            raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": self.most})
        one = self.sums.setdefault(key, _Sum())
        one.calls += 1
        if time_s is None or bus_gb is None:
            return
        if not 0 < time_s < _MOST_SECONDS or not 0 < bus_gb * 1e9 <= MOST_BUS_BYTES_PER_S:
            self.counts[NoteCode.IMPOSSIBLE_BANDWIDTHS] += 1
            return
        one.timed += 1
        one.time_s += time_s
        one.weighted += bus_gb * 1e9 * time_s

    def rows(self) -> Iterable[CollectiveTiming]:
        for (kind, name, size), one in sorted(
            self.sums.items(), key=lambda item: (item[0][0], item[0][1], item[0][2] or 0)
        ):
            yield CollectiveTiming(
                kind=kind,
                operation=name,
                message_bytes=size,
                calls=one.calls,
                time_s=one.time_s / one.timed if one.timed else None,
                total_time_s=one.time_s if one.timed == one.calls else None,
                bus_bytes_per_s=one.weighted / one.time_s if one.timed else None,
            )

    def capture(self, kind: Format, tool: str, source: Source, notes: Iterable[Note] = ()) -> Capture:
        rows = tuple(self.rows())
        if not rows:
            raise Refusal(RefusalCode.NO_ROWS, {"kind": "NCCL profile"})
        timings = CollectiveTimings(
            tool=tool,
            ranks=self.ranks or None,
            nodes=self.nodes or None,
            device_name=None,
            rows=rows,
            peak_bus_bytes_per_s=peaks(rows),
        )
        counted = [Note(code, {"count": count}) for code, count in self.counts.items() if count]
        return Capture(format=kind, evidence=(timings,), notes=(*source.notes, *counted, *notes))


def read(source: Source) -> Capture:
    """Sums by kind and size over all records. Raises Refusal."""
    if source.head().text.lstrip(" \t\r\n[")[:1] != "{":
        return _prometheus(source)
    sums, records = Sums(source.limits.rows), Records(source)
    for record in records:
        _add(sums, record)
    return sums.capture(Format.NCCL_INSPECTOR, "NCCL Inspector", source, reading_notes(records))


def reading_notes(records: Records) -> list[Note]:
    notes = []
    if records.lost:
        notes.append(Note(NoteCode.EVENTS_UNREADABLE, {"count": records.lost}))
    if records.cut:
        notes.append(Note(NoteCode.FILE_TRUNCATED, {"events": records.read}))
    return notes


def _add(sums: Sums, record: Mapping[str, Any]) -> None:
    header = record.get("header")
    header = header if isinstance(header, dict) else record
    ranks = integer(header.get("n_ranks"), low=1, high=1 << 24)
    stats = record.get("dump_stats")
    if isinstance(stats, dict):
        _dropped(sums, stats)
    for part, prefix in (("coll_perf", "coll"), ("p2p_perf", "p2p")):
        perf = record.get(part)
        if isinstance(perf, dict) and isinstance(perf.get(prefix), str):
            sums.group(ranks, integer(header.get("nnodes"), low=1, high=1 << 24))
            _timed(sums, perf, prefix, ranks)


def _dropped(sums: Sums, stats: Mapping[str, Any]) -> None:
    for value in (stats, *(one for one in stats.values() if isinstance(one, dict))):
        if integer(value.get("dropped_total"), low=1):
            sums.counts[NoteCode.EVENTS_DROPPED] = 1


def _timed(sums: Sums, perf: Mapping[str, Any], prefix: str, ranks: int | None) -> None:
    name = perf[prefix][:40]
    size = integer(perf.get(f"{prefix}_msg_size_bytes"), high=MOST_BYTES)
    time_us, algorithm, bus = (
        number(perf.get(f"{prefix}_{key}")) for key in ("exec_time_us", "algobw_gbs", "busbw_gbs")
    )
    time_s = None if time_us is None else time_us / 1e6
    full = None if size is None else float(size) * _factor(name, size, time_s, algorithm, ranks)
    if perf.get(f"{prefix}_timing_source") == _HOST_TIMED:
        sums.counts[NoteCode.TIMED_ON_HOST] += 1
        time_s = None
    sums.add(name, full, time_s, bus)


def _factor(name: str, size: int, time_s: float | None, algorithm_gb: float | None, ranks: int | None) -> int:
    """What makes one rank's part of a gather the full buffer: the ranks, where the bandwidth was taken with them."""
    if KINDS.get(name) not in _PER_RANK or not ranks or not size or not time_s or not algorithm_gb:
        return 1
    return ranks if abs(algorithm_gb * 1e9 * time_s / size / ranks - 1) < _SCALED else 1


def _prometheus(source: Source) -> Capture:
    """Means by device and range of sizes; the lower end of a range stands for it."""
    sums = Sums(source.limits.rows)
    pending: dict[str, float] = {}
    for line in source.lines():
        match = _METRIC.match(line)
        if match is None:
            continue
        value = number(match[3])
        if match[1].endswith("_gbs"):
            pending = {match[2]: value} if value is not None else {}
        elif value is not None:
            _add_metric(sums, match[2], value / 1e6, pending.pop(match[2], None))
    return sums.capture(Format.NCCL_INSPECTOR, "NCCL Inspector", source)


def _add_metric(sums: Sums, labels: str, time_s: float, bus_gb: float | None) -> None:
    told = dict(_LABEL.findall(labels))
    name = told.get("collective") or told.get("p2p_operation")
    size = _RANGE.fullmatch(told.get("message_size", ""))
    if name is None or size is None:
        return
    sums.group(integer(told.get("nranks"), low=1), integer(told.get("n_nodes"), low=1))
    sums.add(name, float(int(size[1]) * _UNITS[size[2]]), time_s, bus_gb)
