"""One rank of a job, broken down: what is kept once its timeline is gone, and all that joining the ranks needs."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import Breakdown, DeviceWork, Window, breakdown, device_work, whole_window
from profiling.features import DeviceShare, device_share
from profiling.idle import IdleCauses, idle_by_cause
from profiling.kernels import Family
from profiling.measured_step import is_training, measured_step, spent_precision
from profiling.rates import ClassRate, class_rates
from profiling.steps import Steps, find_steps
from profiling.timeline import UNKNOWN, Timeline, WorkKind
from profiling.waiting import Calls, calls_of
from profiling.workload import MeasuredStep

_NCCL = re.compile(r"(void )?[nr]ccl", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReading:
    """One device of a rank over the whole window, and its share of the time that speaks for the run (``region``).

    ``kernel_sum_ns``: durations of all kernels added up, overlapping ones several times. ``waiting_kernels_ns``: of
    kernels that only wait for their peers. ``peer_bytes``: copied between devices. ``concurrency``: most rows at work
    at one moment. ``linked_kernels``: kernels whose launch is in the capture, None where it records no launches;
    ``launch_delay_ns``: median time from launch to start, None where clocks differ or nothing is linked. ``rates``: of
    the kernel classes whose shapes are known.
    """

    whole: Breakdown
    region: DeviceShare
    kernel_sum_ns: int
    waiting_kernels_ns: int
    peer_bytes: int | None
    streams: int
    concurrency: int
    linked_kernels: int | None
    launch_delay_ns: int | None
    idle: IdleCauses
    rates: tuple[ClassRate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReading:
    """``first_unix_ns``: Unix time of the first device work. ``step``: the typical step, of the busiest device.

    ``gpus_visible``: devices that the capture lists, used or not. ``unsized_nccl`` and ``unsized_other``: collective
    kernels without a message size, those that a distributed job's profiler should have sized and the rest.
    """

    rank: int | None
    world_size: int | None
    source: str
    vendor: str | None
    first_unix_ns: int | None
    gpus_visible: int | None
    device_named: bool
    operators: int | None
    launches: int | None
    graph_launches: int
    occupancy_known: int | None
    clocks_agree: bool
    idle_known: bool
    incomplete: bool
    devices: tuple[DeviceReading, ...]
    steps: Steps
    step: MeasuredStep
    step_parts: Breakdown
    precision: str | None
    training: bool
    peak_memory_bytes: int | None
    calls: Calls
    unsized_nccl: int
    unsized_other: int

    @property
    def copies_alone(self) -> bool:
        """Kernels were not recorded: nothing but the copies is known."""
        return self.incomplete and not any(device.whole.kernels for device in self.devices)


def read_rank(line: Timeline, alive: Callable[[], None]) -> RankReading:
    """Everything that is kept of a timeline; ``alive()`` is called before each of its devices."""
    steps = find_steps(line)
    whole = whole_window(line)
    step, step_parts = measured_step(line, steps)
    nccl, other = _unsized(line)
    return RankReading(
        rank=line.rank,
        world_size=line.world_size,
        source=line.source,
        vendor=line.vendor,
        first_unix_ns=None if line.epoch_ns is None else line.epoch_ns + whole.low_ns,
        gpus_visible=len(line.device_names) or None,
        device_named=any(line.device_names.values()),
        operators=line.host.operators,
        launches=line.host.launches,
        graph_launches=line.host.graph_launches,
        occupancy_known=line.occupancy_known,
        clocks_agree=line.clocks_agree,
        idle_known=line.idle_known,
        incomplete=line.incomplete,
        devices=tuple(_device(line, device, steps, whole, alive) for device in line.devices),
        steps=steps,
        step=step,
        step_parts=step_parts,
        precision=spent_precision(line),
        training=is_training(line),
        peak_memory_bytes=line.peak_memory_bytes,
        calls=calls_of(line),
        unsized_nccl=nccl,
        unsized_other=other,
    )


def _device(line: Timeline, device: int, steps: Steps, whole: Window, alive: Callable[[], None]) -> DeviceReading:
    alive()
    work = device_work(line, device)
    parts = breakdown(line, device, work=work)
    idle = idle_by_cause(line, device, whole, work)
    alike = (parts, idle) if steps.region == whole else None
    region = device_share(line, device, steps.region, alike)
    duration = work.end - work.start
    linked, delay = _launching(line, work)
    return DeviceReading(
        whole=parts,
        region=region,
        kernel_sum_ns=int(duration[work.is_kernel].sum()),
        waiting_kernels_ns=int(duration[work.is_kernel & (work.family == Family.WAITING)].sum()),
        peer_bytes=_peer_bytes(line, work),
        streams=int(np.unique(line.stream[work.row]).size),
        concurrency=_concurrency(work.start, work.end),
        linked_kernels=linked,
        launch_delay_ns=delay,
        idle=idle,
        rates=class_rates(line, device, whole, work),
    )


def _peer_bytes(line: Timeline, work: DeviceWork) -> int | None:
    """0 where no copy between devices is seen; None where one is whose size is unknown."""
    sizes = line.bytes[work.row[work.kind == WorkKind.PEER_COPY]]
    return None if (sizes == UNKNOWN).any() else int(sizes.sum())


def _concurrency(start: NDArray[np.int64], end: NDArray[np.int64]) -> int:
    """Most intervals over one moment; ``start`` is sorted. One that ends when another starts does not overlap it."""
    if not (end[:-1] > start[1:]).any():
        return 1
    over = np.searchsorted(np.sort(end), start, side="right")
    return int((np.arange(1, start.size + 1) - over).max())


def _launching(line: Timeline, work: DeviceWork) -> tuple[int | None, int | None]:
    launched = line.launched_ns[work.row]
    known = work.is_kernel & (launched != UNKNOWN)
    linked = int(known.sum())
    if not linked:
        return (None if line.host.launches is None else 0), None
    delay = int(np.median((work.start - launched)[known]))
    return linked, delay if line.clocks_agree and delay >= 0 else None


def _unsized(line: Timeline) -> tuple[int, int]:
    """Sizes that the profiler should have recorded, and sizes that such captures or kernels never carry."""
    missing = line.collectives.row[line.collectives.message_bytes == UNKNOWN]
    nccl = np.array([bool(_NCCL.match(name)) for name in line.names], dtype=bool)[line.name_id[missing]]
    expected = int(nccl.sum()) if line.world_size is not None else 0
    return expected, missing.size - expected
