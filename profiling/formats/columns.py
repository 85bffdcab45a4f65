"""Growing columns of device work and of host calls, filled batch by batch while a file streams by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.limits import Limits
from profiling.intervals import NOTHING, Intervals
from profiling.kernels import COMMUNICATING, Family, classify
from profiling.notes import Refusal, RefusalCode
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN, WorkKind
from profiling.workload import CollectiveKind

_TYPES: dict[str, type] = {
    "start": np.int64, "duration": np.int64, "device": np.int32, "stream": np.int32, "process": np.int16,
    "kind": np.int8, "name": np.int32, "correlation": np.int64, "bytes": np.int64,
    "collective_row": np.int64, "collective_kind": np.int8, "message": np.int64, "group": np.int32,
    "communicator": np.int32, "sequence": np.int64,
}  # fmt: skip
_FIRST_ROWS = 1 << 12
_PIECE = 1 << 16


@dataclass(slots=True)
class Column:
    """A growing array in one block of memory, at most a quarter larger than what it holds."""

    dtype: type
    size: int = 0
    _block: NDArray[Any] = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        self._block = np.empty(_FIRST_ROWS, dtype=self.dtype)

    def append(self, values: NDArray[Any]) -> None:
        end = self.size + len(values)
        if end > self._block.size:
            self._block.resize(max(end, self._block.size + self._block.size // 4), refcheck=False)
        self._block[self.size : end] = values
        self.size = end

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Keep the chosen rows alone, in their order."""
        self._block = self._block[rows]
        self.size = len(rows)

    @property
    def values(self) -> NDArray[Any]:
        """What was appended; no view may be held while the column still grows."""
        return self._block[: self.size]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveColumns:
    """What a reader knows of some communication kernels; columns of one shape, ``UNKNOWN`` where it does not.

    ``communicator`` numbers the process groups, ``sequence`` the calls in one of them; None where none is known.
    """

    kind: NDArray[np.int8]
    message: NDArray[np.int64]
    group: NDArray[np.int64]
    communicator: NDArray[np.int64] | None = None
    sequence: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Neighbouring rows of device work as a reader has them: columns of one length.

    ``names``, ``streams`` and ``processes`` may hold anything that a file can hold; they are numbered by value.
    ``kinds`` are ``WorkKind`` by the reader's own categories. ``collectives(places, kinds)`` is asked for the
    communication kernels among the rows, ``kinds`` being what their names tell; without it the names alone count.
    """

    start: NDArray[np.int64]
    duration: NDArray[np.int64]
    names: Sequence[Any]
    kinds: Sequence[int]
    devices: NDArray[np.int64]
    streams: Sequence[Any]
    processes: Sequence[Any]
    correlation: NDArray[np.int64]
    bytes: NDArray[np.int64]
    collectives: Callable[[list[int], list[CollectiveKind | None]], CollectiveColumns] | None = None


@dataclass(slots=True)
class DeviceColumns:
    """Rows of device work in order of the file.

    ``streams`` and ``processes`` number the distinct handles seen, of whatever type; ``names`` the kernel names.
    """

    limits: Limits
    rows: int = 0
    names: dict[str, int] = field(default_factory=dict)
    streams: dict[Any, int] = field(default_factory=dict)
    processes: dict[Any, int] = field(default_factory=dict)
    _columns: dict[str, Column] = field(default_factory=lambda: {name: Column(kind) for name, kind in _TYPES.items()})
    _device_ids: set[int] = field(default_factory=set)
    _name_ids: dict[str, int] = field(default_factory=dict)
    _families: list[int] = field(default_factory=list)
    _family: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    _communicates: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    _collectives: list[CollectiveKind | None] = field(default_factory=list)
    _is_fill: list[bool] = field(default_factory=list)

    def column(self, name: str) -> NDArray[Any]:
        """One whole column, shape ``(rows,)``; columns of collectives have a row per communication kernel."""
        return self._columns[name].values

    def take(self, name: str) -> NDArray[Any]:
        """The same, forgotten here: its memory is free once the caller is done with it."""
        return self._columns.pop(name).values

    def add(self, rows: Rows) -> None:
        """Append rows; kinds are corrected for copies that run as kernels."""
        names = self._numbers_of(rows.names)
        if len(self._families) > self._family.size:
            self._family = np.array(self._families, dtype=np.int8)
            self._communicates = np.isin(self._family, COMMUNICATING)
        family = self._family[names]
        kind = self._corrected(np.array(rows.kinds, dtype=np.int8), family, names)
        self._append("start", rows.start)
        self._append("duration", rows.duration)
        self._append("device", rows.devices)
        self._append("stream", _numbered(self.streams, rows.streams))
        self._append("process", _numbered(self.processes, rows.processes))
        self._refuse_many_devices(rows.devices)
        self._append("kind", kind)
        self._append("name", names)
        self._append("correlation", rows.correlation)
        self._append("bytes", rows.bytes)
        self._add_collectives(rows, np.flatnonzero((kind == WorkKind.KERNEL) & self._communicates[names]), names)
        self.rows += len(rows.names)

    def _refuse_many_devices(self, devices: NDArray[np.int64]) -> None:
        alike = devices.size > 0 and bool((devices == devices[0]).all())
        self._device_ids.update(devices[:1].tolist() if alike else devices.tolist())
        if max(len(self._device_ids), len(self.processes)) > self.limits.devices:
            raise Refusal(RefusalCode.TOO_MANY_DEVICES, {"limit": self.limits.devices})

    def _append(self, name: str, values: NDArray[Any]) -> None:
        self._columns[name].append(values)

    def _numbers_of(self, names: Sequence[Any]) -> NDArray[np.int32]:
        numbers = list(map(self._name_ids.get, names))
        if None in numbers:
            numbers = [self._new_name(name) if one is None else one for name, one in zip(names, numbers, strict=True)]
        return np.array(numbers, dtype=np.int32)

    def _new_name(self, raw: Any) -> int:
        name = str(raw)[: self.limits.name_characters].replace("\x00", "")
        number = self.names.setdefault(name, len(self.names))
        if number == len(self._families):
            if number == self.limits.names:
                raise Refusal(RefusalCode.TOO_MANY_NAMES, {"limit": self.limits.names})
            family, collective = classify(name)
            self._families.append(family)
            self._collectives.append(collective)
            self._is_fill.append("fill" in name.lower())
        if raw == name:
            self._name_ids[name] = number
        return number

    def _corrected(
        self, kind: NDArray[np.int8], family: NDArray[np.int8], names: NDArray[np.int32]
    ) -> NDArray[np.int8]:
        copies = (kind == WorkKind.KERNEL) & (family == Family.COPY)
        if not copies.any():
            return kind
        fills = np.array(self._is_fill)[names]
        return np.where(copies, np.where(fills, WorkKind.FILL, WorkKind.COPY), kind).astype(np.int8)

    def _add_collectives(self, rows: Rows, places: NDArray[np.int64], names: NDArray[np.int32]) -> None:
        if not places.size:
            return
        named = [self._collectives[name] for name in names[places].tolist()]
        describe = rows.collectives or _by_name
        found = describe(places.tolist(), named)
        self._append("collective_row", self.rows + places)
        self._append("collective_kind", found.kind)
        self._append("message", found.message)
        self._append("group", found.group)
        unknown = np.full(len(places), UNKNOWN)
        self._append("communicator", unknown if found.communicator is None else found.communicator)
        self._append("sequence", unknown if found.sequence is None else found.sequence)


def _by_name(places: list[int], named: list[CollectiveKind | None]) -> CollectiveColumns:
    unknown = np.full(len(places), UNKNOWN, dtype=np.int64)
    return CollectiveColumns(kind=kind_column(named), message=unknown, group=unknown)


def kind_column(kinds: Sequence[CollectiveKind | None]) -> NDArray[np.int8]:
    """Places in ``COLLECTIVE_KINDS``."""
    return np.array([COLLECTIVE_KINDS.index(kind or CollectiveKind.UNKNOWN) for kind in kinds], dtype=np.int8)


def _numbered(seen: dict[Any, int], keys: Sequence[Any]) -> NDArray[np.int32]:
    """The number of each key, new keys numbered on; anything but an integer counts by its text."""
    if set(map(type, keys)) != {int}:
        keys = [key if key.__class__ is int else str(key)[:80] for key in keys]
    distinct = set(keys)
    for key in distinct - seen.keys():
        seen[key] = len(seen)
    if len(distinct) == 1:
        return np.full(len(keys), seen[keys[0]], dtype=np.int32)
    return np.array(list(map(seen.__getitem__, keys)), dtype=np.int32)


class Expected(IntEnum):
    """What device work a call must have led to, if the capture is whole."""

    NOTHING = 0
    KERNEL = 1
    GRAPH = 2


@dataclass(slots=True)
class LaunchColumns:
    """Start and correlation id (0 = none) of every runtime and driver call; optional: what it leads to, its process."""

    ids: Column = field(default_factory=lambda: Column(np.int64))
    starts: Column = field(default_factory=lambda: Column(np.int64))
    expected: Column = field(default_factory=lambda: Column(np.int8))
    processes: Column = field(default_factory=lambda: Column(np.int16))
    _answered: NDArray[np.bool_] | None = None

    def add(
        self,
        start: NDArray[np.int64],
        correlation: NDArray[np.int64],
        expected: NDArray[np.int8] | None = None,
        processes: NDArray[np.int32] | None = None,
    ) -> None:
        useful = (correlation > 0) & (start > UNKNOWN)
        self.ids.append(correlation[useful])
        self.starts.append(start[useful])
        for column, values in ((self.expected, expected), (self.processes, processes)):
            column.append(np.zeros(int(useful.sum())) if values is None else values[useful])

    def of_processes(self, numbers: Sequence[int]) -> "LaunchColumns":
        """The calls of some processes alone."""
        mine = np.isin(self.processes.values, numbers)
        part = LaunchColumns()
        part.add(self.starts.values[mine], self.ids.values[mine], self.expected.values[mine])
        return part

    def starts_of(self, correlation: NDArray[np.int64], out: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Start of the call with each id, ``UNKNOWN`` where none has it; the first call wins.

        ``out``: written to instead of a new array; it may be ``correlation`` itself.
        """
        found = np.empty(correlation.shape, dtype=np.int64) if out is None else out
        self._sort()
        for low in range(0, correlation.size, _PIECE):
            found[low : low + _PIECE] = self._starts(correlation[low : low + _PIECE])
        return found

    def led_to(self, expected: Expected, low_ns: int, high_ns: int, without: Intervals = NOTHING) -> tuple[int, int]:
        """Calls between two times that must have led to such work, and those of them that ``starts_of`` met.

        ``without``: when calls lead to no work.
        """
        if self._answered is None:
            return 0, 0
        starts = self.starts.values
        chosen = (self.expected.values == expected) & (starts >= low_ns) & (starts <= high_ns)
        if without.start.size:
            place = np.searchsorted(without.start, starts, side="right") - 1
            chosen &= (place < 0) | (starts >= without.end[place])
        return int(chosen.sum()), int(self._answered[chosen].sum())

    def _sort(self) -> None:
        if self._answered is not None:
            return
        ids = self.ids.values
        if ids.size and not (ids[1:] > ids[:-1]).all():
            _, first = np.unique(ids, return_index=True)
            for column in (self.ids, self.starts, self.expected, self.processes):
                column.keep(first)
        self._answered = np.zeros(self.ids.size, dtype=bool)

    def _starts(self, correlation: NDArray[np.int64]) -> NDArray[np.int64]:
        ids = self.ids.values
        if ids.size == 0 or self._answered is None:
            return np.full(correlation.shape, UNKNOWN, dtype=np.int64)
        place = np.minimum(np.searchsorted(ids, correlation), ids.size - 1)
        hit = (ids[place] == correlation) & (correlation > 0)
        self._answered[place[hit]] = True
        return np.where(hit, self.starts.values[place], UNKNOWN)
