"""Growing columns of device work and of host calls, filled while a file streams by."""

from array import array
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.chrome_json import Event
from profiling.formats.kineto_args import Args, integer, kind_of, message_bytes
from profiling.kernels import Family, classify
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN, WorkKind
from profiling.workload import CollectiveKind


def ints(code: str, values: "array[int]") -> NDArray[Any]:
    return np.frombuffer(values, dtype=np.dtype(code)).copy() if len(values) else np.zeros(0, dtype=np.dtype(code))


@dataclass(slots=True)
class DeviceColumns:
    """Rows of device work in order of the file. ``process`` numbers the distinct process ids seen."""

    times: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=list)
    device: "array[int]" = field(default_factory=partial(array, "i"))
    stream: "array[int]" = field(default_factory=partial(array, "i"))
    process: "array[int]" = field(default_factory=partial(array, "i"))
    kind: "array[int]" = field(default_factory=partial(array, "b"))
    name: "array[int]" = field(default_factory=partial(array, "i"))
    correlation: "array[int]" = field(default_factory=partial(array, "q"))
    bytes: "array[int]" = field(default_factory=partial(array, "q"))
    collective_row: "array[int]" = field(default_factory=partial(array, "q"))
    collective_kind: "array[int]" = field(default_factory=partial(array, "b"))
    message: "array[int]" = field(default_factory=partial(array, "q"))
    group: "array[int]" = field(default_factory=partial(array, "i"))
    names: dict[str, int] = field(default_factory=dict)
    families: list[tuple[Family, CollectiveKind | None]] = field(default_factory=list)
    streams: dict[Any, int] = field(default_factory=dict)
    processes: dict[Any, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.kind)

    def add_times(self, start: NDArray[np.int64], duration: NDArray[np.int64]) -> None:
        self.times.append((start, duration))

    def add_row(self, event: Event, args: Args, kind: WorkKind, name: str) -> None:
        name_id = self.names.get(name)
        if name_id is None:
            name_id = self.names[name] = len(self.names)
            self.families.append(classify(name))
        family, collective = self.families[name_id]
        if kind is WorkKind.KERNEL and family is Family.COPY:
            kind = WorkKind.FILL if "fill" in name.lower() else WorkKind.COPY
        pid = event.pid if event.pid.__class__ is int else str(event.pid)
        self.device.append(_device_index(args, pid))
        self.stream.append(_number(self.streams, args.stream if args.stream is not None else event.tid))
        self.process.append(_number(self.processes, pid))
        self.kind.append(kind)
        self.name.append(name_id)
        self.correlation.append(integer(args.correlation, low=1) or 0)
        size = integer(args.bytes)
        self.bytes.append(UNKNOWN if size is None else size)
        if kind is WorkKind.KERNEL and family is Family.COMMUNICATION:
            self._add_collective(args, kind_of(args.collective) or collective or CollectiveKind.UNKNOWN)

    def _add_collective(self, args: Args, kind: CollectiveKind) -> None:
        self.collective_row.append(len(self.kind) - 1)
        self.collective_kind.append(COLLECTIVE_KINDS.index(kind))
        self.message.append(message_bytes(args, kind))
        group = integer(args.group_size, low=1, high=10**6)
        self.group.append(UNKNOWN if group is None else group)

    def all_times(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        start = np.concatenate([one for one, _ in self.times])
        return start, np.concatenate([one for _, one in self.times])


def _device_index(args: Args, pid: Any) -> int:
    """Device number: by argument, for a peer copy the device it runs in, else by the row's process id."""
    for value in (args.device, args.in_device, args.from_device, pid):
        index = integer(value, high=2**31 - 1)
        if index is not None:
            return index
    return 0


def _number(seen: dict[Any, int], key: Any) -> int:
    if key.__class__ is not int:
        key = str(key)
    return seen.setdefault(key, len(seen))


@dataclass(slots=True)
class LaunchColumns:
    """Start and correlation id (0 = none) of every runtime and driver call."""

    parts: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=list)

    def add(self, start: NDArray[np.int64], correlation: list[int]) -> None:
        ids = np.array(correlation, dtype=np.int64)
        useful = (ids > 0) & (start > UNKNOWN)
        self.parts.append((ids[useful], start[useful]))

    def starts_of(self, correlation: NDArray[np.int64]) -> NDArray[np.int64]:
        """Start of the call with each id, ``UNKNOWN`` where none has it; the first call wins."""
        found = np.full(correlation.shape, UNKNOWN, dtype=np.int64)
        ids = np.concatenate([np.zeros(0, dtype=np.int64), *(part for part, _ in self.parts)])
        if ids.size == 0:
            return found
        starts = np.concatenate([part for _, part in self.parts])
        ids, first = np.unique(ids, return_index=True)
        place = np.minimum(np.searchsorted(ids, correlation), ids.size - 1)
        hit = (ids[place] == correlation) & (correlation > 0)
        found[hit] = starts[first][place[hit]]
        return found
