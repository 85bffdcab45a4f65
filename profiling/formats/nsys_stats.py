"""The reader of ``nsys stats`` reports, as CSV or as the text that ``nsys profile --stats=true`` prints.

A sum tells nothing of overlap; only the GPU trace report has a timeline.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from profiling.evidence import KernelSums, SummedKernel
from profiling.formats.assemble import Around, assemble
from profiling.formats.capture import Capture, Format
from profiling.formats.columns import DeviceColumns
from profiling.formats.limits import Limits
from profiling.formats.nsys_gpu_trace import GpuTrace, nanoseconds, operation_kind, unit_of_time
from profiling.formats.numbers import MOST_CALLS, integer
from profiling.formats.quantities import Titles, bytes_per, nanoseconds_per, number, uses_decimal_comma
from profiling.formats.source import Head, Source
from profiling.formats.tables import Table, tables
from profiling.notes import Note, NoteCode, Refusal, RefusalCode
from profiling.timeline import NVIDIA, WorkKind

KIND = "Nsight Systems summary"
_SIGNS = re.compile(
    r"^(?:Processing \[[^\]\n]{1,4000}\] with \[[^\]\n]{1,4000}\.py\]| ?\*\* CUDA [^\n]{1,80}:$"
    r"|Generating '[^'\n]{1,500}\.qdstrm'$)",
    re.MULTILINE,
)
_NOT_TRACED = re.compile(r"does not contain (?:any )?CUDA (?:kernel|trace|GPU)", re.IGNORECASE)
_TRACE, _KERNELS, _BY_GRID, _COPIES, _ALL = "trace", "kernels", "kernels by grid", "copies", "all"
_COUNTS = ("instances", "count", "operations")


@dataclass(slots=True)
class _Found:
    """What the reports of one stream hold: tables of each kind, those that are printed twice once."""

    limits: Limits
    sums: dict[str, dict[tuple[SummedKernel, ...], None]] = field(default_factory=dict)
    summed_rows: int = 0
    trace: GpuTrace = field(init=False)
    missing: int = 0
    not_traced: bool = False

    def __post_init__(self) -> None:
        self.trace = GpuTrace(DeviceColumns(self.limits))

    def add(self, table: Table) -> None:
        titles = Titles.of(table.titles)
        report = _report(titles)
        if report == _TRACE:
            self.trace.add(titles, table)
        elif report:
            self.sums.setdefault(report, {})[tuple(_summed(self, titles, table))] = None

    def summed(self) -> tuple[SummedKernel, ...]:
        """The rows that do not count anything twice: a report by grid only where the plain one is missing."""
        kernels, by_grid, copies, everything = (self._rows(kind) for kind in (_KERNELS, _BY_GRID, _COPIES, _ALL))
        return (kernels or by_grid) + copies or everything

    def _rows(self, kind: str) -> tuple[SummedKernel, ...]:
        return tuple(row for rows in self.sums.get(kind, ()) for row in rows)


def recognises(head: Head) -> bool:
    """A title row of a GPU report, or what nsys prints around its reports."""
    if _SIGNS.search(head.text):
        return True
    found = (_report(Titles.of(table.titles)) for table in tables(head.lines, _is_header, Limits()))
    return any(report is not None for report in found)


def read(source: Source) -> Capture:
    """A Timeline where there is a trace of the GPU, else sums. Raises Refusal where no row is of a GPU."""
    found = _Found(source.limits)
    for table in tables(_watched(source, found), _is_header, source.limits, most=source.limits.events):
        found.add(table)
    notes = [*source.notes, *_notes(found)]
    if found.trace.columns.rows:
        around = Around(source=source.name, device_names=found.trace.device_names, vendor=NVIDIA)
        line, told = assemble(found.trace.columns, None, around)
        return Capture(format=Format.NSYS_STATS, timelines=(line,), notes=(*notes, *told))
    rows = found.summed()
    if rows:
        evidence = KernelSums(device_name=None, rows=rows)
        return Capture(format=Format.NSYS_STATS, evidence=(evidence,), notes=(Note(NoteCode.NO_TIMELINE), *notes))
    if found.not_traced:
        raise Refusal(RefusalCode.CUDA_NOT_TRACED)
    raise Refusal(RefusalCode.NO_ROWS, {"kind": KIND})


def _watched(source: Source, found: _Found) -> Iterator[str]:
    """The lines; hears where nsys says that it has no GPU data."""
    for line in source.lines():
        if line.startswith("SKIPPED") and _NOT_TRACED.search(line[:2000]):
            found.not_traced = True
        yield line


def _notes(found: _Found) -> Iterator[Note]:
    counts = {NoteCode.VALUES_MISSING: found.missing, NoteCode.BAD_TIMES: found.trace.bad_times}
    yield from (Note(code, {"count": count}) for code, count in counts.items() if count)


def _is_header(titles: Sequence[str]) -> bool:
    """Titles of any report, also of those that are not read: their rows must not count as another's."""
    if titles[0][:1].isdigit():
        return False
    split = Titles.of(titles)
    if split.has("total time") or split.has("start", "duration"):
        return True
    measured = sum(unit == "%" or bool(nanoseconds_per(unit) or bytes_per(unit)) for unit in split.units)
    return measured >= 2 and not any(number(title) is not None for title in titles)


def _report(titles: Titles) -> str | None:
    """Which GPU report has these columns; sums of calls, of ranges and of the host are none."""
    if titles.has("start", "duration", "name") and titles.place("strm", "stream", "ctx") is not None:
        return _TRACE
    if not titles.has("total time") or titles.place(*_COUNTS) is None:
        return None
    if titles.has("category", "operation"):
        return _ALL
    if titles.has("operation"):
        return _COPIES
    if titles.has("instances", "name"):
        return _BY_GRID if titles.has("gridxyz") else _KERNELS
    return None


def _summed(found: _Found, titles: Titles, table: Table) -> Iterator[SummedKernel]:
    total, count = titles.names.index("total time"), titles.place(*_COUNTS)
    unit = unit_of_time(titles, "total time")
    name = titles.place("name", "operation")
    category = titles.place("category")
    comma = False
    for row in table.rows:
        found.summed_rows += 1
        if found.summed_rows > found.limits.rows:
            raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": found.limits.rows})
        text = row[name] if name is not None else ""
        comma = comma or uses_decimal_comma(cell for at, cell in enumerate(row) if at != name and "," in cell)
        time = nanoseconds(row[total], unit, decimal_comma=comma)
        if not text or time is None:
            found.missing += 1
            continue
        launches = number(row[count], decimal_comma=comma) if count is not None else None
        kernel = category is None or "KERNEL" in row[category].upper()
        yield SummedKernel(
            name=text[: found.limits.name_characters],
            kind=operation_kind(text) if "[CUDA" in text[:8] or not kernel else WorkKind.KERNEL,
            count=None if launches is None else integer(int(launches), high=MOST_CALLS),
            total_ns=time,
        )
