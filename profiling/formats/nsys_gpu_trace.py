"""Rows of the GPU trace report of ``nsys stats``: the one of its tables that has a timeline."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.columns import DeviceColumns, Rows
from profiling.formats.numbers import MOST_BYTES
from profiling.formats.quantities import Titles, bytes_per, nanoseconds_per, number
from profiling.formats.tables import Table
from profiling.timeline import UNKNOWN, WorkKind

_MOST_NS = 1 << 61
_BATCH = 20_000
_DEVICE = re.compile(r"(?P<name>.{0,200}?)\s*\((?P<number>\d{1,6})\)", re.DOTALL)
_PEER = re.compile(r"p(?:eer)?[ -]?to[ -]?p(?:eer)?\b", re.IGNORECASE)


@dataclass(slots=True)
class GpuTrace:
    """Device work of all trace tables of a stream. ``bad_times``: rows without a usable time."""

    columns: DeviceColumns
    device_names: dict[int, str] = field(default_factory=dict)
    bad_times: int = 0

    def add(self, titles: Titles, table: Table) -> None:
        batch: list[list[str]] = []
        for row in table.rows:
            batch.append(row)
            if len(batch) == _BATCH:
                self._add(titles, batch)
                batch = []
        if batch:
            self._add(titles, batch)

    def _add(self, titles: Titles, batch: list[list[str]]) -> None:
        columns = dict(zip(titles.names, zip(*batch, strict=True), strict=False))
        start, duration = (_times(columns[name], unit_of_time(titles, name)) for name in ("start", "duration"))
        kept = np.flatnonzero((start >= 0) & (duration >= 0))
        self.bad_times += len(batch) - kept.size
        if not kept.size:
            return
        places = kept.tolist()
        names = [columns["name"][place] for place in places]
        nothing = [""] * len(batch)
        queue = [columns.get(name, nothing) for name in ("ctx", "strm", "stream")]
        self.columns.add(
            Rows(
                start=start[kept],
                duration=duration[kept],
                names=names,
                kinds=[operation_kind(name) if name.startswith("[") else WorkKind.KERNEL for name in names],
                devices=np.array([self._device(columns.get("device", nothing)[place]) for place in places]),
                streams=[" ".join(column[place] for column in queue) for place in places],
                processes=[0] * kept.size,
                correlation=np.zeros(kept.size, dtype=np.int64),
                bytes=_sizes(titles, columns)[kept] if titles.has("bytes") else np.full(kept.size, UNKNOWN),
            )
        )

    def _device(self, text: str) -> int:
        """Number of a device that is printed as ``NVIDIA H100 (0)``; 0 where it has none."""
        match = _DEVICE.fullmatch(text[:300])
        device = int(match["number"]) if match else 0
        if match and match["name"]:
            self.device_names.setdefault(device, match["name"][:120])
        return device


def operation_kind(text: str) -> WorkKind:
    """What an operation in brackets is: ``[CUDA memcpy Host-to-Device]``, ``[CUDA memset]``."""
    lower = text[:80].lower()
    if "memset" in lower:
        return WorkKind.FILL
    if "graph" in lower and "memcpy" not in lower:
        return WorkKind.GRAPH
    return WorkKind.PEER_COPY if _PEER.search(lower) else WorkKind.COPY


def unit_of_time(titles: Titles, name: str) -> int | None:
    """How many ns the unit of a column has: 1 where its title has no unit, as old versions print it."""
    unit = titles.unit(name)
    return nanoseconds_per(unit) if unit else 1


def nanoseconds(text: str, unit: int | None, *, decimal_comma: bool = False) -> int | None:
    """A length in ns, rounded where the unit is finer than what is printed; None for what is no time."""
    if text.isdecimal() and len(text) < 19 and unit == 1:
        return int(text)
    value = number(text, decimal_comma=decimal_comma)
    if value is None or unit is None or not 0 <= value * unit <= _MOST_NS:
        return None
    return int((value * unit).to_integral_value())


def _times(texts: Sequence[str], unit: int | None) -> NDArray[np.int64]:
    found = (nanoseconds(text, unit) for text in texts)
    return np.array([UNKNOWN if value is None or value > _MOST_NS else value for value in found], dtype=np.int64)


def _sizes(titles: Titles, columns: dict[str, Any]) -> NDArray[np.int64]:
    """Bytes as printed: of MB with three decimals, so rounded to a thousand bytes."""
    unit = bytes_per(titles.unit("bytes")) or 0
    values = [number(text) for text in columns["bytes"]]
    sizes = [UNKNOWN if value is None or unit == 0 else int(value * unit) for value in values]
    return np.array([size if 0 <= size <= MOST_BYTES else UNKNOWN for size in sizes], dtype=np.int64)
