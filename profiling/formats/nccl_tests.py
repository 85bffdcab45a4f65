"""The table that nccl-tests and rccl-tests print, 2017 to now.

Columns by age, each direction (out-of-place, then in-place) with the same ones: ``time algbw busbw res`` (2017, time in
ms), ``error`` (2019), ``#wrong``, ``cputime`` with ``-C``, and ``i_min i_max i_p99 i_cv%`` per iteration.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiling.evidence import CollectiveTimings
from profiling.formats.capture import Capture, Format
from profiling.formats.nccl_tests_figures import PROGRAM, Direction, Row, direction, number, peaks, timings
from profiling.formats.numbers import MOST_BYTES, integer
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode, shown

_MPI = re.compile(r"\[\d+,\d+\]<std(?:out|err)>:")
_DEVICE = re.compile(
    r"#\s+Rank\s+\d{1,7} (?:Group\s+\d{1,7} )?\s*(?:Pid\s+\d{1,10} )?on\s+(\S{1,255}) device\s+\d{1,4} "
    r"\[[0-9a-fx:.]{1,20}\] (.{1,80})",
    re.IGNORECASE,
)
_TITLES = re.compile(r"#[^#\n]{0,200}\b(?:cpu)?time +algbw +busbw ")
_SHAPE = re.compile(r"# nThreads? (\d{1,5}) nGpus (\d{1,5}) ")
_TIMES = ("time", "cputime")
_VALUE = re.compile(r"-?[\d.]{1,30}(?:e[+-]?\d{1,3})?|[+-]?(?:nan|inf|n/a)", re.IGNORECASE)


def recognises(head: Head) -> bool:
    text = head.text
    return _TITLES.search(text) is not None or _SHAPE.search(text) is not None


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
class _Run:
    """One table. ``columns``: names of one direction's columns; ``milliseconds``: the unit of 2017."""

    program: str | None
    columns: tuple[str, ...] = ()
    has_root: bool = False
    milliseconds: bool = False
    rows: list[Row] = field(default_factory=list)


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
        if match := PROGRAM.search(line):
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
            Row(size, redop, -1 if root is None else root, self._direction(run, out), self._direction(run, inside))
        )

    def _direction(self, run: _Run, words: Sequence[str]) -> Direction:
        if not words:
            return Direction()
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
        rows = [timing for run in runs for timing in timings(run.rows, run.program, self.name)]
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
