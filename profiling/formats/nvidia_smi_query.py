"""``nvidia-smi --query-gpu=… --format=csv``, and loggers that keep its titles; units stand in titles or in cells."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from profiling.formats.capture import Capture, Format
from profiling.formats.device_samples import MIB, DeviceSamples, figure, reading_notes
from profiling.formats.quantities import bytes_per, title_and_unit
from profiling.formats.source import Head, Source
from profiling.formats.tables import cells_of, header_in, tables
from profiling.notes import Refusal, RefusalCode, shown

KIND = "nvidia-smi output"

_MEASURES = {
    "utilization.gpu": "utilisation",
    "utilization.memory": "memory_utilisation",
    "memory.used": "peak_memory_bytes",
    "power.draw": "power_w",
    "power.draw.average": "power_w",
    "power.draw.instant": "power_w",
}
_IDENTITIES = ("index", "uuid", "gpu.uuid", "pci.bus.id", "gpu.bus.id")
_NAMES = ("name", "gpu.name")
_VALUE = re.compile(r"\[?N/A\]?|\[Not Supported\]|\d{1,9}(\.\d{1,6})? ?(%|MiB|W|MHz)", re.ASCII | re.IGNORECASE)
_CELL = re.compile(r"\s*[\d.eE+-]{1,40}\s*([%A-Za-z]{1,8})", re.ASCII)
_LEAST_VALUES = 2


@dataclass(slots=True)
class _Devices:
    """``GPU0`` by index where the table has one, else numbered in order of appearance: serial numbers are not kept."""

    names: dict[tuple[str, str], str] = field(default_factory=dict)

    def name(self, row: Mapping[str, str]) -> str:
        title = next((one for one in _IDENTITIES if row.get(one)), None)
        if title == "index" and row["index"].isdecimal():
            return f"GPU{row['index'][:16]}"
        identity = (title or "name", row[title] if title else "")
        return self.names.setdefault(identity, f"GPU{len(self.names)}")


def recognises(head: Head) -> bool:
    """Titles of a query, or its values without titles."""
    return header_in(head.lines, _is_header) or _without_titles(head)


def read(source: Source) -> Capture:
    """Means per GPU. Raises Refusal where the columns have no titles or no row can be read."""
    samples = DeviceSamples(source.limits)
    devices = _Devices()
    rows = 0
    for table in tables(source.lines(), _is_header, source.limits, most=source.limits.events):
        titles = [_folded(title) for title in table.titles]
        for cells in table.rows:
            rows += 1
            row = dict(zip(titles, cells, strict=True))
            name = next((row[one] for one in _NAMES if row.get(one)), None)
            samples.add(
                devices.name(row), _values(table.titles, cells), device_name=None if name is None else shown(name)
            )
    if not rows and _without_titles(source.head()):
        raise Refusal(RefusalCode.COLUMNS_UNNAMED)
    evidence, notes = samples.evidence(KIND)
    return Capture(format=Format.SMI_QUERY, evidence=(evidence,), notes=(*reading_notes(source, rows), *notes))


@lru_cache(maxsize=1 << 10)
def _folded(title: str) -> str:
    """``Utilization.GPU [%]`` and ``utilization_gpu`` are ``utilization.gpu``."""
    return title_and_unit(title)[0].casefold().replace("_", ".")


def _is_header(cells: Sequence[str]) -> bool:
    return any(_folded(cell) in _MEASURES for cell in cells)


def _values(titles: Sequence[str], cells: Sequence[str]) -> dict[str, float | None]:
    """Figures of one row; the first of several titles for one figure that has a value counts."""
    values: dict[str, float | None] = {}
    for title, cell in zip(titles, cells, strict=True):
        name = _MEASURES.get(_folded(title))
        if name is not None and values.get(name) is None:
            value = figure(cell)
            values[name] = None if value is None else value * _factor(name, title, cell)
    return values


def _factor(name: str, title: str, cell: str) -> float:
    """To the unit of DeviceLoad, by the unit in the cell, else in the title, else the one that nvidia-smi uses."""
    if name == "power_w":
        return 1.0
    if name != "peak_memory_bytes":
        return 0.01
    match = _CELL.match(cell)
    return float(bytes_per(match[1] if match else title_and_unit(title)[1]) or MIB)


def _without_titles(head: Head) -> bool:
    """Whether the first line holds values as nvidia-smi prints them."""
    first = next((line for line in head.lines if line.strip()), "")
    return sum(_VALUE.fullmatch(cell) is not None for cell in cells_of(first)) >= _LEAST_VALUES
