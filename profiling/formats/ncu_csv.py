"""The reader of Nsight Compute: the raw and the details page as CSV, and the report that it prints on a terminal.

The launches of one kernel are one entry of the evidence, with their number.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from profiling.evidence import KernelProfiles
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits
from profiling.formats.ncu_metrics import Launch, is_known, profile
from profiling.formats.quantities import uses_decimal_comma
from profiling.formats.source import Head, Source
from profiling.formats.tables import Columns, Table, cut, header_in, ruled_columns, tables
from profiling.notes import Note, NoteCode, Refusal, RefusalCode

KIND = "Nsight Compute table"
_BANNER = re.compile(r"^==(?:PROF|ERROR|WARNING)==", re.MULTILINE)
_NO_PERMISSION = "ERR_NVGPUCTRPERM"
_DEVICE_NAMES = ("device__attribute_display_name",)
_SHAPE = re.compile(r" \([\d, ]{1,60}\)x\([\d, ]{1,60}\)")
_DATE = re.compile(r", \d{4}-[A-Z][a-z]{2}-\d{2} ")


@dataclass(slots=True)
class _Found:
    """Launches by process and number, in order; ``decimal_comma``: the numbers of the file have one."""

    limits: Limits
    launches: dict[tuple[str, ...], Launch] = field(default_factory=dict)
    decimal_comma: bool = False
    device_name: str | None = None
    forbidden: bool = False

    def launch(self, key: tuple[str, ...], name: str) -> Launch:
        known = self.launches.get(key)
        if known is None:
            if len(self.launches) == self.limits.rows:
                raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": self.limits.rows})
            known = self.launches[key] = Launch(name[: self.limits.name_characters])
        return known

    def add(self, launch: Launch, metric: str, unit: str, text: str) -> None:
        self.decimal_comma = self.decimal_comma or uses_decimal_comma([text])
        launch.add(metric, unit, text)


def recognises(head: Head) -> bool:
    """A title row of either page, or what Nsight Compute prints around its pages."""
    return header_in(head.lines, _is_header) or _BANNER.search(head.text) is not None


def read(source: Source) -> Capture:
    """A profile per kernel. Raises Refusal where no kernel was profiled."""
    found = _Found(source.limits)
    text = _TextReport(found)
    for table in tables(_heard(source, found, text), _is_header, source.limits, most=source.limits.events):
        (_add_details if _is_details(table.titles) else _add_raw)(found, table)
    by_kernel: dict[str, list[dict[str, float]]] = {}
    missing = 0
    for launch in found.launches.values():
        values = launch.values(decimal_comma=found.decimal_comma)
        missing += len(launch.figures) - len(values)
        by_kernel.setdefault(launch.name, []).append(values)
    if not any(values for rows in by_kernel.values() for values in rows):
        raise Refusal(RefusalCode.NO_COUNTERS) if found.forbidden else Refusal(RefusalCode.NO_ROWS, {"kind": KIND})
    kernels = tuple(profile(name, rows) for name, rows in by_kernel.items())
    notes = [Note(NoteCode.VALUES_MISSING, {"count": missing})] if missing else []
    evidence = KernelProfiles(device_name=found.device_name, kernels=kernels)
    return Capture(format=Format.NCU, evidence=(evidence,), notes=(*source.notes, *notes))


def _heard(source: Source, found: _Found, text: "_TextReport") -> Iterator[str]:
    """The lines, of which errors and the report for terminals are noted."""
    for line in source.lines():
        if _NO_PERMISSION in line:
            found.forbidden = True
        text.add(line)
        yield line


def _is_header(titles: Sequence[str]) -> bool:
    folded = [title.casefold() for title in titles]
    return "kernel name" in folded and (_is_details(folded) or any("__" in title for title in folded))


def _is_details(titles: Sequence[str]) -> bool:
    return {"metric name", "metric value"} <= {title.casefold() for title in titles}


def _add_details(found: _Found, table: Table) -> None:
    """One row per launch and metric; rows of rules have no metric."""
    name, metric, value = (table.column(title) for title in ("Kernel Name", "Metric Name", "Metric Value"))
    unit = table.place("Metric Unit")
    identity = [place for place in (table.place("Process ID"), table.place("ID")) if place is not None]
    for row in table.rows:
        if row[name] and row[metric]:
            launch = found.launch((row[name], *(row[place] for place in identity)), row[name])
            found.add(launch, row[metric], row[unit] if unit is not None else "", row[value])


def _add_raw(found: _Found, table: Table) -> None:
    """One row per launch, one column per metric; a row without a kernel holds the units."""
    name = table.column("Kernel Name")
    device = table.place(*_DEVICE_NAMES)
    metrics = [(place, title) for place, title in enumerate(table.titles) if is_known(title)]
    units = [""] * len(table.titles)
    for row in table.rows:
        if not row[name]:
            units = row
            continue
        launch = found.launch(("raw", str(len(found.launches))), row[name])
        if device is not None and row[device] and found.device_name is None:
            found.device_name = row[device][:120]
        for place, metric in metrics:
            found.add(launch, metric, units[place], row[place])


@dataclass(slots=True)
class _TextReport:
    """The report for terminals: a line with the kernel and its shape, then ruled tables of metric, unit and value."""

    found: _Found
    launch: Launch | None = None
    columns: Columns | None = None

    def add(self, line: str) -> None:
        if line.startswith("  ") and ", Context " in line and ", Stream " in line:
            self._open(line.strip())
        elif self.launch is not None and line.startswith("    "):
            columns = ruled_columns(line)
            if columns is not None and len(columns) == 3:
                self.columns = columns
            elif self.columns is not None:
                cells = cut(line, self.columns)
                if len(cells) == 3 and cells[2]:
                    self.found.add(self.launch, *cells)
        elif not line.strip():
            self.columns = None

    def _open(self, line: str) -> None:
        shapes = list(_SHAPE.finditer(line))
        end = shapes[-1].start() if shapes else line.rfind(", Context ")
        name = _DATE.split(line[:end])[0].strip()
        self.launch = self.found.launch(("text", str(len(self.found.launches))), name)
        self.columns = None
