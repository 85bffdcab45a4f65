"""``nvidia-smi --query-gpu=… --format=csv``, and loggers that keep its titles; units stand in titles or in cells."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from profiling.formats.capture import Capture, Format
from profiling.formats.device_samples import MIB, DeviceSamples, figure, reading_notes
from profiling.formats.quantities import bytes_per, title_and_unit
from profiling.formats.source import Head, Source
from profiling.formats.tables import cells_of, header_in, tables
from profiling.notes import Refusal, RefusalCode

KIND = "nvidia-smi output"

_MEMORY = "peak_memory_bytes"
_MEASURES = {
    "utilization.gpu": "utilisation",
    "utilization.memory": "memory_utilisation",
    "memory.used": _MEMORY,
    "power.draw": "power_w",
    "power.draw.average": "power_w",
    "power.draw.instant": "power_w",
}
_IDENTITIES = ("index", "uuid", "gpu.uuid", "pci.bus.id", "gpu.bus.id")
_NAMES = ("name", "gpu.name")
_VALUE = re.compile(r"\[?N/A\]?|\[Not Supported\]|\d{1,9}(\.\d{1,6})? ?(%|MiB|W|MHz)", re.ASCII | re.IGNORECASE)
_CELL = re.compile(r"\s*[\d.eE+-]{1,40}\s*([%A-Za-z]{1,8})", re.ASCII)
_LEAST_VALUES = 2
_LONGEST_TITLE = 60


@dataclass(frozen=True, slots=True)
class _Column:
    """``factor``: to the unit of DeviceLoad, by the unit in the title, else the one that nvidia-smi uses."""

    place: int
    name: str
    factor: float

    @classmethod
    def of(cls, title: str, place: int) -> "_Column":
        name = _MEASURES[_folded(title)]
        if name == _MEMORY:
            return cls(place, name, float(bytes_per(title_and_unit(title)[1]) or MIB))
        return cls(place, name, 1.0 if name == "power_w" else 0.01)

    def value(self, cell: str) -> float | None:
        number = figure(cell)
        if number is None:
            return None
        unit = _CELL.match(cell) if self.name == _MEMORY else None
        return number * ((bytes_per(unit[1]) if unit else None) or self.factor)


@dataclass(slots=True)
class _Devices:
    """``GPU0`` by index where the table has one, else numbered in order of appearance: serial numbers are not kept."""

    names: dict[tuple[str | None, str], str] = field(default_factory=dict)

    def name(self, title: str | None, cell: str) -> str:
        if title == "index" and cell.isdecimal():
            return f"GPU{cell[:16]}"
        return self.names.setdefault((title, cell if title else ""), f"GPU{len(self.names)}")


def recognises(head: Head) -> bool:
    """Titles of a query, or its values without titles."""
    return header_in(head.lines, _is_header) or _one_column(head) or _without_titles(head)


def read(source: Source) -> Capture:
    """Means per GPU. Raises Refusal where the columns have no titles or no row can be read."""
    samples = DeviceSamples(source.limits)
    devices = _Devices()
    rows = 0
    end = "," if _one_column(source.head()) else ""
    lines = (line + end for line in source.lines())
    for table in tables(lines, _is_header, source.limits, most=source.limits.events):
        titles = [_folded(title[:_LONGEST_TITLE]) for title in table.titles]
        columns = [_Column.of(title, place) for place, title in enumerate(table.titles) if titles[place] in _MEASURES]
        name = next((titles.index(one) for one in _NAMES if one in titles), None)
        identity = next((titles.index(one) for one in _IDENTITIES if one in titles), None)
        for cells in table.rows:
            rows += 1
            entity = devices.name(None if identity is None else titles[identity], cells[identity or 0])
            samples.add(entity, _values(columns, cells), device_name=None if name is None else cells[name])
    if not rows and _without_titles(source.head()):
        raise Refusal(RefusalCode.COLUMNS_UNNAMED)
    evidence, notes = samples.evidence(KIND)
    return Capture(format=Format.SMI_QUERY, evidence=(evidence,), notes=(*reading_notes(source, rows), *notes))


@lru_cache(maxsize=1 << 10)
def _folded(title: str) -> str:
    """``Utilization.GPU [%]`` and ``utilization_gpu`` are ``utilization.gpu``."""
    return title_and_unit(title)[0].casefold().replace("_", ".")


def _is_header(cells: Sequence[str]) -> bool:
    return any(cell[:1].isalpha() and len(cell) <= _LONGEST_TITLE and _folded(cell) in _MEASURES for cell in cells)


def _values(columns: Sequence[_Column], cells: Sequence[str]) -> dict[str, float | None]:
    """Figures of one row; the first of several columns for one figure that has a value counts."""
    values: dict[str, float | None] = {}
    for column in columns:
        if values.get(column.name) is None:
            values[column.name] = column.value(cells[column.place])
    return values


def _one_column(head: Head) -> bool:
    """Whether the query asked for one figure alone, so that nothing parts columns."""
    return not header_in(head.lines, _is_header) and any(_is_header([line.strip()]) for line in head.lines)


def _without_titles(head: Head) -> bool:
    """Whether the first line holds values as nvidia-smi prints them."""
    first = next((line for line in head.lines if line.strip()), "")
    return sum(_VALUE.fullmatch(cell) is not None for cell in cells_of(first)) >= _LEAST_VALUES
