"""Device work of an Nsight Systems export: kernels, copies, fills and whole CUDA graphs as columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.columns import DeviceColumns, Rows
from profiling.formats.nsys_tables import NONE, Export, pid_of, processes, times
from profiling.formats.numbers import MOST_BYTES, integers
from profiling.timeline import UNKNOWN, WorkKind

KERNELS, COPIES, FILLS, GRAPHS = (
    f"cupti_activity_kind_{kind}" for kind in ("kernel", "memcpy", "memset", "graph_trace")
)
_WORK = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")
_ON_DEVICE, _BETWEEN_DEVICES = 8, 10
_COPY_NAMES = {
    1: "Memcpy HtoD", 2: "Memcpy DtoH", 3: "Memcpy HtoA", 4: "Memcpy AtoH", 5: "Memcpy AtoA", 6: "Memcpy AtoD",
    7: "Memcpy DtoA", _ON_DEVICE: "Memcpy DtoD", 9: "Memcpy HtoH", _BETWEEN_DEVICES: "Memcpy PtoP",
    11: "Memcpy UVM HtoD", 12: "Memcpy UVM DtoH", 13: "Memcpy UVM DtoD",
}  # fmt: skip
"""``CUpti_ActivityMemcpyKind``; the names are those of Kineto traces, so that both tell the same."""
_CALL_BITS = 40


@dataclass(slots=True)
class DeviceWork:
    """What the device tables hold. ``gpus``: physical GPU of a process's device, where the export tells.

    ``processes`` numbers the processes that have device work. Rows without a usable time are counted in ``bad_times``,
    those that end before they start in ``negative``.
    """

    export: Export
    columns: DeviceColumns
    gpus: dict[tuple[int, int], int] = field(default_factory=dict)
    processes: dict[int, int] = field(default_factory=dict)
    bad_times: int = 0
    negative: int = 0
    graphs: int = 0

    def read(self) -> None:
        for names in self.export.batches(KERNELS, (*_WORK, "demangledName", "shortName", "mangledName")):
            self._add(names, WorkKind.KERNEL, _names(self.export, names[len(_WORK) :]))
        for batch in self.export.batches(COPIES, (*_WORK, "bytes", "copyKind", "srcDeviceId", "dstDeviceId")):
            sizes, kinds, source, target = batch[len(_WORK) :]
            named = [_COPY_NAMES.get(kind, "Memcpy") if type(kind) is int else "Memcpy" for kind in kinds]
            self._add(batch, _copy_kinds(kinds, source, target), named, sizes)
        for batch in self.export.batches(FILLS, (*_WORK, "bytes")):
            self._add(batch, WorkKind.FILL, ["Memset (Device)"] * len(batch[0]), batch[-1])
        for batch in self.export.batches(GRAPHS, _WORK):
            before = self.columns.rows
            self._add(batch, WorkKind.GRAPH, ["CUDA graph"] * len(batch[0]))
            self.graphs += self.columns.rows - before

    def numbers_of(self, process: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of each process, -1 where it has no device work."""
        found, back = np.unique(process, return_inverse=True)
        return np.array([self.processes.get(one, -1) for one in found.tolist()], dtype=np.int64)[back]

    def calls_of(self, number: NDArray[np.int64], correlation: NDArray[np.int64]) -> NDArray[np.int64]:
        """One id for a call of a numbered process: correlation ids repeat in every process; 0 where there is none."""
        return np.where((correlation > 0) & (number >= 0), (number << _CALL_BITS) + correlation, 0)

    def _add(
        self, batch: list[tuple[Any, ...]], kinds: int | Sequence[int], names: list[str], sizes: Sequence[Any] = ()
    ) -> None:
        start, end = times(batch[0]), times(batch[1])
        timed = (start != NONE) & (end != NONE) & ((start != 0) | (end != 0))
        kept = np.flatnonzero(timed & (end >= start))
        self.bad_times += int((~timed).sum())
        self.negative += int((timed & (end < start)).sum())
        if not kept.size:
            return
        process = processes(batch[6])
        for one in np.unique(process[kept]).tolist():
            self.processes.setdefault(one, len(self.processes))
        count = len(names)
        of_each = np.full(count, kinds) if isinstance(kinds, int) else np.array(kinds)
        size = integers(sizes, missing=UNKNOWN, high=MOST_BYTES) if sizes else np.full(count, UNKNOWN)
        self.columns.add(
            Rows(
                start=start[kept],
                duration=(end - start)[kept],
                names=[names[place] for place in kept.tolist()],
                kinds=of_each[kept].tolist(),
                devices=self._devices(process, batch[2])[kept],
                streams=_streams(process, batch[3], batch[4])[kept].tolist(),
                processes=process[kept].tolist(),
                correlation=self.calls_of(self.numbers_of(process), correlations(batch[5]))[kept],
                bytes=size[kept],
            )
        )

    def _devices(self, process: NDArray[np.int64], ids: Sequence[Any]) -> NDArray[np.int64]:
        """Physical GPU of each row: processes number the devices that they see, each from 0."""
        device = integers(ids, missing=0, high=1 << 30)
        if not self.gpus:
            return device
        pairs = zip(process.tolist(), device.tolist(), strict=True)
        return np.array([self.gpus.get((pid_of(one), number), number) for one, number in pairs], dtype=np.int64)


def _names(export: Export, columns: Sequence[tuple[Any, ...]]) -> list[str]:
    """The first name of each row that the export knows: demangled, short, mangled."""
    texts = export.texts({one for column in columns for one in set(column)})
    return [_name(row, texts) for row in zip(*columns, strict=True)]


def _name(row: tuple[Any, ...], texts: dict[int, str]) -> str:
    for one in row:
        if isinstance(one, str):
            return one
        if type(one) is int and one in texts:
            return texts[one]
    return "?"


def _copy_kinds(kinds: Sequence[Any], source: Sequence[Any], target: Sequence[Any]) -> list[int]:
    """A copy between two devices is communication; one that the profiler calls so on one device is not."""
    return [
        WorkKind.PEER_COPY
        if (kind == _BETWEEN_DEVICES and (one is None or other is None or one != other))
        or (kind == _ON_DEVICE and one is not None and other is not None and one != other)
        else WorkKind.COPY
        for kind, one, other in zip(kinds, source, target, strict=True)
    ]


def correlations(ids: Sequence[Any]) -> NDArray[np.int64]:
    """Correlation ids, 0 for none."""
    return integers(ids, missing=0, high=(1 << _CALL_BITS) - 1)


def _streams(process: NDArray[np.int64], contexts: Sequence[Any], streams: Sequence[Any]) -> NDArray[np.int64]:
    """One number per stream: stream ids repeat from context to context, and context ids from process to process."""
    context = integers(contexts, missing=0) & 0xFFF
    stream = integers(streams, missing=0) & 0xFFFFFFFF
    return ((process & 0x7FFFF) << 44) + (context << 32) + stream
