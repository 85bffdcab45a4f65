"""Where the time of one GPU went: unions of its device work in integer nanoseconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from profiling.intervals import Intervals, clip, join, length_without, touching, union
from profiling.kernels import CLASS_OF, COMMUNICATING, families
from profiling.timeline import Timeline, WorkKind
from profiling.workload import KernelClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """One device of one rank over a window. ``*_ns`` are lengths of unions, so overlapping work counts once.

    ``gpu_busy_ns``: kernels, copies and fills. ``compute_ns``: kernels that are not communication.
    ``comm_ns``: collective kernels and copies between devices; ``exposed_comm_ns`` the part that no computing covers,
    ``hidden_comm_ns`` the rest. ``copy_ns``: other copies and fills; ``copy_only_ns`` the part under which nothing
    else runs. ``window_ns``: last end minus first start of the rank's device work (one window for all its devices),
    or the window asked for; ``idle_ns`` the part of it without work.
    ``class_ns`` splits ``compute_ns`` so that the classes add up: where classes overlap, the first of matmul,
    attention, memory, other has the time. ``gpu_busy_ns = compute_ns + exposed_comm_ns + copy_only_ns``.
    ``kernels`` counts kernels, communication included.
    """

    rank: int | None
    device_index: int
    world_size: int | None
    device_name: str | None
    window_ns: int
    gpu_busy_ns: int
    compute_ns: int
    comm_ns: int
    exposed_comm_ns: int
    hidden_comm_ns: int
    copy_ns: int
    copy_only_ns: int
    idle_ns: int
    kernels: int
    class_ns: Mapping[KernelClass, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWork:
    """Rows of one device, clipped to a window; all columns have shape ``(n,)``."""

    row: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    kind: NDArray[np.int8]
    family: NDArray[np.int8]

    @property
    def is_kernel(self) -> NDArray[np.bool_]:
        return self.kind == WorkKind.KERNEL

    @property
    def is_communication(self) -> NDArray[np.bool_]:
        return (self.is_kernel & self._communicates) | (self.kind == WorkKind.PEER_COPY)

    @property
    def is_compute(self) -> NDArray[np.bool_]:
        return (self.is_kernel & ~self._communicates) | (self.kind == WorkKind.GRAPH)

    @property
    def _communicates(self) -> NDArray[np.bool_]:
        return np.isin(self.family, COMMUNICATING)

    @property
    def is_copy(self) -> NDArray[np.bool_]:
        return (self.kind == WorkKind.COPY) | (self.kind == WorkKind.FILL)

    def union_of(self, chosen: NDArray[np.bool_]) -> Intervals:
        return union(self.start, self.end, chosen)


@dataclass(frozen=True, slots=True)
class Window:
    low_ns: int
    high_ns: int


def whole_window(timeline: Timeline) -> Window:
    return Window(int(timeline.start_ns.min()), int(timeline.end_ns.max()))


def device_work(timeline: Timeline, device: int, window: Window | None = None) -> DeviceWork:
    """Work of one device; with a window only what reaches into it, cut at its borders."""
    end = timeline.end_ns
    chosen = timeline.device == device
    if window is not None and window.low_ns <= timeline.start_ns[0] and window.high_ns >= end.max():
        window = None
    if window is not None:
        inside = (timeline.start_ns < window.high_ns) & (timeline.start_ns >= window.low_ns)
        chosen = chosen & (inside | ((timeline.start_ns < window.low_ns) & (end > window.low_ns)))
    row = np.flatnonzero(chosen)
    whole = row.size == chosen.size
    start, finish = (timeline.start_ns, end) if whole else (timeline.start_ns[row], end[row])
    if window is not None:
        start, finish = clip(start, finish, window.low_ns, window.high_ns)
    family = families(timeline.names)[timeline.name_id[row]]
    return DeviceWork(row=row, start=start, end=finish, kind=timeline.kind[row], family=family)


def breakdown(
    timeline: Timeline, device: int, window: Window | None = None, work: DeviceWork | None = None
) -> Breakdown:
    """The breakdown of one device, over all its work or over a window; ``work``: what is in it, where it is known."""
    if work is None:
        work = device_work(timeline, device, window)
    if window is None:
        window = whole_window(timeline)
    compute = work.union_of(work.is_compute)
    communication = work.union_of(work.is_communication)
    copies = work.union_of(work.is_copy)
    exposed = length_without(communication, compute)
    copy_only = length_without(copies, join(touching(compute, copies), touching(communication, copies)))
    busy = compute.length + exposed + copy_only
    span = window.high_ns - window.low_ns
    return Breakdown(
        rank=timeline.rank,
        device_index=device,
        world_size=timeline.world_size,
        device_name=timeline.device_names.get(device) or _only_name(timeline),
        window_ns=span,
        gpu_busy_ns=busy,
        compute_ns=compute.length,
        comm_ns=communication.length,
        exposed_comm_ns=exposed,
        hidden_comm_ns=communication.length - exposed,
        copy_ns=copies.length,
        copy_only_ns=copy_only,
        idle_ns=span - busy,
        kernels=int(work.is_kernel.sum()),
        class_ns=_class_lengths(work),
    )


def breakdowns(timeline: Timeline, window: Window | None = None) -> tuple[Breakdown, ...]:
    """One breakdown per device used, in order of device."""
    return tuple(breakdown(timeline, device, window) for device in timeline.devices)


def _only_name(timeline: Timeline) -> str | None:
    """The listed name where all devices share one: ids of ROCm captures need not match the list."""
    names = {name for name in timeline.device_names.values() if name}
    return names.pop() if len(names) == 1 else None


def _class_lengths(work: DeviceWork) -> Mapping[KernelClass, int]:
    """Computing time by class, each nanosecond counted once."""
    lengths = dict.fromkeys((KernelClass.MATMUL, KernelClass.ATTENTION, KernelClass.MEMORY, KernelClass.OTHER), 0)
    chosen = np.zeros(work.row.shape, dtype=bool)
    covered = 0
    for family, kernel_class in CLASS_OF.items():
        chosen |= work.is_compute & (work.family == family)
        total = work.union_of(chosen).length
        lengths[kernel_class] += total - covered
        covered = total
    copies_as_kernels = work.union_of(work.is_compute).length - covered
    lengths[KernelClass.OTHER] += copies_as_kernels
    return MappingProxyType(lengths)
