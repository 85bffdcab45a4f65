"""nccl-tests and rccl-tests: the table that they print (2017 to now), and the JSON report that they write since 2025.

Columns by age, each direction (out-of-place, then in-place) with the same ones: ``time algbw busbw res`` (2017, time in
ms), ``error`` (2019), ``#wrong``, ``cputime`` with ``-C``, and ``i_min i_max i_p99 i_cv%`` per iteration.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from profiling.evidence import CollectiveTiming, CollectiveTimings
from profiling.formats.capture import Capture, Format
from profiling.formats.damaged_json import invalid_json
from profiling.formats.json_repair import repaired
from profiling.formats.limits import MIB
from profiling.formats.numbers import MOST_BYTES, integer
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode, shown
from profiling.workload import CollectiveKind

MOST_BUS_BYTES_PER_S = 20e12
"""No link of any accelerator is near: a clock that stood still, or a wrong number of ranks."""
PLATEAU = 8
"""Sizes down to this part of the largest count for the peak: smaller ones measure latency."""

_REPORT_BYTES = 16 * MIB
_MPI = re.compile(r"\[\d+,\d+\]<std(?:out|err)>:")
_DEVICE = re.compile(
    r"#\s+Rank\s+\d{1,7} (?:Group\s+\d{1,7} )?\s*Pid\s+\d{1,10} on\s+(\S{1,255}) device\s+\d{1,4} "
    r"\[[0-9a-fx:.]{1,20}\] (.{1,80})",
    re.IGNORECASE,
)
_TITLES = re.compile(r"#.{0,200}\b(?:cpu)?time +algbw +busbw ")
_SHAPE = re.compile(r"# nThreads? (\d{1,5}) nGpus (\d{1,5}) ")
_PROGRAM = re.compile(r"\b(all_reduce|all_gather|reduce_scatter|alltoallv?|broadcast|sendrecv|[a-z]{4,12})_perf\b")
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
_REPORT = re.compile(
    r'\{\s*"version"\s*:\s*[\d".]{1,20}\s*,\s*(?:"start_time"\s*:\s*"[^"]{0,40}"\s*,\s*)?"args"\s*:\s*\['
)
_TIMES = ("time", "cputime")
_VALUE = re.compile(r"-?[\d.]{1,30}(?:e[+-]?\d{1,3})?|[+-]?(?:nan|inf|n/a)", re.IGNORECASE)


def recognises(head: Head) -> bool:
    text = head.text
    return _TITLES.search(text) is not None or _SHAPE.search(text) is not None


def recognises_report(head: Head) -> bool:
    """True by its results, and by its first keys where a long environment stands before them."""
    text = head.text.lstrip()
    results = '"out_of_place"' in text and '"bus_bw"' in text
    return text.startswith("{") and (results or (_REPORT.match(text) is not None and _PROGRAM.search(text) is not None))


def read(source: Source) -> Capture:
    """The table in the text. Raises Refusal where there is none."""
    table = Table(source.name, source.limits.rows)
    for line in source.lines():
        table.line(line)
    found = table.evidence()
    if found is None:
        raise Refusal(RefusalCode.NO_ROWS, {"kind": "nccl-tests output"})
    return Capture(format=Format.NCCL_TESTS, evidence=(found,), notes=(*source.notes, *table.notes()))


@dataclass(slots=True)
class _Direction:
    """What one direction of one size shows; seconds and bytes per second, None where the file has no number."""

    time_s: float | None = None
    algorithm_bytes_per_s: float | None = None
    bus_bytes_per_s: float | None = None


@dataclass(slots=True)
class _Row:
    size: int
    redop: str
    root: int
    out: _Direction
    inside: _Direction


@dataclass(slots=True)
class _Run:
    """One table. ``columns``: names of one direction's columns; ``milliseconds``: the unit of 2017."""

    program: str | None
    columns: tuple[str, ...] = ()
    has_root: bool = False
    milliseconds: bool = False
    rows: list[_Row] = field(default_factory=list)


class Table:
    """Collects tables line by line out of any text. Host names are counted and never kept in the answer."""

    def __init__(self, name: str, most: int) -> None:
        self.name = name
        self.most = most
        self.runs: list[_Run] = []
        self.program: str | None = None
        self.devices: Counter[str] = Counter()
        self.hosts: set[str] = set()
        self.listed = 0
        self.local_ranks = 0
        self.counts: Counter[NoteCode] = Counter()
        self.rows = 0

    def line(self, line: str) -> None:
        if "#" in line:
            line = _MPI.sub(" ", line)
            self._comment(line[line.index("#") :])
        elif "_perf" in line:
            self._program(line)
        elif self.runs and (line := _MPI.sub(" ", line).strip())[:1].isdigit():
            self._row(line)

    def _program(self, line: str) -> None:
        if match := _PROGRAM.search(line):
            self.program = match[1]

    def _comment(self, line: str) -> None:
        self._program(line)
        if match := _DEVICE.match(line):
            self._device(match[1], match[2].strip())
        elif match := _SHAPE.match(line):
            self.local_ranks = int(match[1]) * int(match[2])
        elif "algbw" in line and "busbw" in line:
            self._header(line.strip("# \t").split())

    def _device(self, host: str, name: str) -> None:
        self.listed += 1
        if len(self.devices) < 100:
            self.devices[name] += 1
        if len(self.hosts) < self.most:
            self.hosts.add(host)

    def _header(self, names: list[str]) -> None:
        starts = [place for place, name in enumerate(names) if name in _TIMES]
        columns = tuple(names[starts[0] : starts[1] if len(starts) > 1 else None]) if starts else ()
        if "busbw" not in columns:
            return
        self.runs = [run for run in self.runs if run.rows]
        self.runs.append(
            _Run(
                program=self.program,
                columns=columns,
                has_root="root" in names[: starts[0]],
                milliseconds=names[0] == "bytes",
            )
        )

    def _row(self, line: str) -> None:
        run = self.runs[-1]
        words = line.split(maxsplit=80)[:80]
        size, count = (integer(word, high=MOST_BYTES) for word in (*words[:2], "", "")[:2])
        if size is None or count is None or len(words) < 4 or not words[2][0].isalpha():
            return
        rest = words[3:]
        redop = rest.pop(0) if rest[0][0].isalpha() and rest[0].lower() not in ("n/a", "nan", "inf") else ""
        width = len(run.columns)
        root = integer(rest[0], low=-1) if run.has_root and rest and (redop or len(rest) > 2 * width) else None
        values = rest[1:] if root is not None else rest
        if len(values) <= run.columns.index("busbw") or not _VALUE.fullmatch(values[0]):
            return
        self.rows += 1
        if self.rows > self.most:
            raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": self.most})
        out, inside = values[:width], values[width : 2 * width]
        if not inside and re.search(r"\S\s{30,}\S", line):
            out, inside = inside, out
        run.rows.append(
            _Row(size, redop, -1 if root is None else root, self._direction(run, out), self._direction(run, inside))
        )

    def _direction(self, run: _Run, words: Sequence[str]) -> _Direction:
        if not words:
            return _Direction()
        shown = dict(zip(run.columns, words, strict=False))
        if wrong := number(shown.get("#wrong")):
            self.counts[NoteCode.WRONG_RESULTS] += int(min(wrong, 1e15))
        time = number(shown.get("time", shown.get("cputime")))
        unit = 1e3 if run.milliseconds else 1e6
        return direction(
            None if time is None else time / unit, number(shown.get("algbw")), number(shown.get("busbw")), self.counts
        )

    def evidence(self) -> CollectiveTimings | None:
        """All tables of the text, or None without a row."""
        runs = [run for run in self.runs if run.rows]
        if not runs:
            return None
        rows = [timing for run in runs for timing in _timings(run.rows, run.program, self.name)]
        return CollectiveTimings(
            tool="nccl-tests",
            ranks=max(self.listed, self.local_ranks) or None,
            ranks_listed=self.listed or None,
            nodes=len(self.hosts) or None,
            device_name=next((shown(name) for name, _ in self.devices.most_common(1)), None),
            rows=tuple(rows),
            peak_bus_bytes_per_s=peaks(rows),
        )

    def notes(self) -> list[Note]:
        return [Note(code, {"count": count}) for code, count in self.counts.items() if count]


def number(word: Any) -> float | None:
    try:
        value = float(word) if not isinstance(word, str) or len(word) <= 32 else math.nan
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def direction(time_s: Any, algorithm_gb: Any, bus_gb: Any, counts: Counter[NoteCode]) -> _Direction:
    """Figures as printed, bandwidths in GB/s (1e9); what is missing or impossible is counted once and left out."""
    time, algorithm, bus = number(time_s), number(algorithm_gb), number(bus_gb)
    if time is None or algorithm is None or bus is None:
        counts[NoteCode.VALUES_MISSING] += 1
    if (
        min(time or 0.0, algorithm or 0.0, bus or 0.0) < 0
        or max(algorithm or 0.0, bus or 0.0) * 1e9 > MOST_BUS_BYTES_PER_S
    ):
        counts[NoteCode.IMPOSSIBLE_BANDWIDTHS] += 1
        return _Direction()
    return _Direction(time or None, algorithm * 1e9 if algorithm else None, bus * 1e9 if bus else None)


def _timings(rows: Sequence[_Row], program: str | None, name: str) -> list[CollectiveTiming]:
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


def _kind(rows: Sequence[_Row], program: str | None, name: str) -> CollectiveKind:
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


class _Result(msgspec.Struct):
    size: Any = None
    redop: Any = None
    root: Any = None
    out_of_place: Any = None
    in_place: Any = None


class _Device(msgspec.Struct):
    hostname: Any = None
    device_info: Any = None


class _Config(msgspec.Struct):
    nthreads: Any = None
    ngpus: Any = None
    devices: list[_Device] = []


class _Report(msgspec.Struct):
    """What is read of a report: the environment is not among it, so no value of it is ever decoded."""

    args: list[Any] = []
    config: _Config | None = None
    devices: list[_Device] = []
    results: list[_Result] = []


def read_report(source: Source) -> Capture:
    """The JSON report of nccl-tests. Raises Refusal."""
    text = source.whole(_REPORT_BYTES)
    counts: Counter[NoteCode] = Counter()
    cut = False
    try:
        report = msgspec.json.decode(text, type=_Report)
    except msgspec.ValidationError:
        raise Refusal(RefusalCode.NO_ROWS, {"kind": "nccl-tests output"}) from None
    except (msgspec.DecodeError, RecursionError):
        report, cut = _mended(text, counts)
    rows = [row for result in report.results if (row := _row_of(result, counts))]
    if len(rows) > source.limits.rows:
        raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": source.limits.rows})
    if not any(row.out.time_s is not None or row.inside.time_s is not None for row in rows):
        raise Refusal(RefusalCode.NO_ROWS, {"kind": "nccl-tests output"})
    notes = [*source.notes, *(Note(code, {"count": count}) for code, count in counts.items() if count)]
    if re.search(rb'"env"\s*:\s*\[\s*"', text):
        notes.append(Note(NoteCode.ENVIRONMENT_NOT_READ))
    if cut:
        notes.append(Note(NoteCode.FILE_TRUNCATED, {"events": len(rows)}))
    return Capture(format=Format.NCCL_TESTS_JSON, evidence=(_of_report(report, rows, source.name),), notes=tuple(notes))


def _mended(text: bytes, counts: Counter[NoteCode]) -> tuple[_Report, bool]:
    """A report with bare ``inf``, or one that is cut: the results before the cut."""
    text = repaired(text, counts)
    try:
        return msgspec.json.decode(text, type=_Report), False
    except (msgspec.DecodeError, RecursionError) as error:
        start = re.search(rb'"results"\s*:\s*\[', text)
        if start is None or "truncated" not in str(error):
            raise invalid_json(str(error), 0) from None
    results: list[_Result] = []
    for part in re.split(rb'(?=\{\s*"size"\s*:)', text[start.end() :])[1:]:
        try:
            results.append(msgspec.json.decode(part.rstrip(b", \t\r\n"), type=_Result))
        except msgspec.DecodeError:
            break
    arguments = re.search(rb'"args"\s*:\s*\[\s*"((?:[^"\\]|\\.){0,4096})"', text[:65536])
    return _Report(args=[arguments[1].decode(errors="replace")] if arguments else [], results=results), True


def _row_of(result: _Result, counts: Counter[NoteCode]) -> _Row | None:
    size = integer(result.size, high=MOST_BYTES)
    if size is None:
        counts[NoteCode.VALUES_MISSING] += 1
        return None
    root = integer(result.root.strip() if isinstance(result.root, str) else result.root, low=-1)
    redop = result.redop if isinstance(result.redop, str) else ""
    return _Row(
        size, redop, -1 if root is None else root, _side(result.out_of_place, counts), _side(result.in_place, counts)
    )


def _side(value: Any, counts: Counter[NoteCode]) -> _Direction:
    if not isinstance(value, dict):
        return _Direction()
    if wrong := number(value.get("nwrong")):
        counts[NoteCode.WRONG_RESULTS] += int(min(max(wrong, 0), 1e15))
    time = number(value.get("time", value.get("cpu_time")))
    return direction(None if time is None else time / 1e6, value.get("alg_bw"), value.get("bus_bw"), counts)


def _of_report(report: _Report, rows: Sequence[_Row], name: str) -> CollectiveTimings:
    program = next((match[1] for word in report.args[:1] if (match := _PROGRAM.search(str(word)[:4096]))), None)
    config = report.config or _Config()
    devices = report.devices or config.devices
    names = Counter(one.device_info for one in devices if isinstance(one.device_info, str))
    local = (integer(config.nthreads) or 0) * (integer(config.ngpus) or 0)
    found = _timings(rows, program, name)
    return CollectiveTimings(
        tool="nccl-tests",
        ranks=max(len(devices), local) or None,
        ranks_listed=len(devices) or None,
        nodes=len({one.hostname for one in devices if isinstance(one.hostname, str)}) or None,
        device_name=next((shown(text) for text, _ in names.most_common(1)), None),
        rows=tuple(found),
        peak_bus_bytes_per_s=peaks(found),
    )
