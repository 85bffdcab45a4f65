"""What one step of a traced job demands of a GPU, from the timeline of one rank."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import Breakdown, DeviceWork, Window, breakdown, device_work
from profiling.graph_building import step_graph
from profiling.intervals import Intervals, join, length_without, union
from profiling.kernels import CLASS_OF, Family, classify, precision_of
from profiling.rates import ClassRate, class_rates
from profiling.steps import Steps
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN, Timeline, WorkKind
from profiling.workload import CollectiveKind, CollectiveWork, KernelClass, KernelWork, MeasuredStep

_COVERED = 0.9
"""Part of a class's time whose work must be known for the work of the class to be told."""
_TRAINING_WORDS = ("backward", "_bwd", "bwd_", "dgrad", "wgrad", "adam", "optimizer", "_grad")


def measured_step(line: Timeline, steps: Steps) -> tuple[MeasuredStep, Breakdown]:
    """The typical step of a rank as its busiest device saw it; ``gpu_count`` counts this rank's devices alone.

    Waiting is unknown here: it takes the other ranks to tell.
    """
    window = steps.typical
    device = _busiest_device(line, window)
    work = device_work(line, device, window)
    parts = breakdown(line, device, window)
    kernels = _kernel_work(work, parts, class_rates(line, device, window))
    collectives, which = _collective_work(line, work)
    step = MeasuredStep(
        device_name=parts.device_name,
        accelerator_key=None,
        gpu_count=len(line.devices),
        step_s=parts.window_ns / 1e9,
        idle_s=parts.idle_ns / 1e9 if line.idle_known else 0.0,
        kernels=kernels if line.idle_known else _with_unseen(kernels, parts.idle_ns / 1e9),
        collectives=collectives,
        steps_observed=steps.observed,
        waiting_s=None,
        host_launches=_host_launches(line, work),
        graph=step_graph(line, device, window, work, which),
    )
    return step, parts


def _busiest_device(line: Timeline, window: Window) -> int:
    if len(line.devices) == 1:
        return line.devices[0]
    return max(line.devices, key=lambda device: (breakdown(line, device, window).gpu_busy_ns, -device))


def _host_launches(line: Timeline, work: DeviceWork) -> float | None:
    launched = line.launched_ns[work.row]
    known = launched[launched != UNKNOWN]
    return float(np.unique(known).size) if known.size else None


def _kernel_work(work: DeviceWork, parts: Breakdown, rates: tuple[ClassRate, ...]) -> tuple[KernelWork, ...]:
    """Classes that occur, copies last."""
    known = {rate.kernel_class: rate for rate in rates if rate.covered >= _COVERED}
    found = [
        KernelWork(
            kernel_class=kernel_class,
            busy_s=busy / 1e9,
            launches=float(_launches(work, kernel_class)),
            flops=known[kernel_class].flops if kernel_class in known else None,
            bytes=known[kernel_class].moved_bytes if kernel_class in known else None,
        )
        for kernel_class, busy in parts.class_ns.items()
        if _launches(work, kernel_class)
    ]
    copies = int(work.is_copy.sum())
    if copies:
        copy_s = parts.copy_only_ns / 1e9
        found.append(KernelWork(kernel_class=KernelClass.COPY, busy_s=copy_s, launches=float(copies)))
    return tuple(found)


def _with_unseen(kernels: tuple[KernelWork, ...], unseen_s: float) -> tuple[KernelWork, ...]:
    """Time in which the capture lacks work that was launched counts as work of unknown kind, never as idle."""
    rest = [work for work in kernels if work.kernel_class is not KernelClass.OTHER]
    other = next((work for work in kernels if work.kernel_class is KernelClass.OTHER), None)
    busy_s, launches = (0.0, 0.0) if other is None else (other.busy_s, other.launches)
    return (*rest, KernelWork(kernel_class=KernelClass.OTHER, busy_s=busy_s + unseen_s, launches=launches))


def _launches(work: DeviceWork, kernel_class: KernelClass) -> int:
    families = [family for family, one in CLASS_OF.items() if one is kernel_class]
    if kernel_class is KernelClass.OTHER:
        families.append(Family.COPY)
    return int((work.is_compute & np.isin(work.family, families)).sum())


@dataclass(frozen=True, slots=True)
class _Calls:
    """Communication rows of a window: index into the DeviceWork, and what is known of each."""

    at: NDArray[np.int64]
    kind: NDArray[np.int8]
    message_bytes: NDArray[np.int64]
    group_size: NDArray[np.int32]


def _calls(line: Timeline, work: DeviceWork) -> _Calls:
    """Collective kernels of the window and copies between devices, which count as sends."""
    at = np.flatnonzero(work.is_communication)
    row = work.row[at]
    known = line.collectives
    place = np.minimum(np.searchsorted(known.row, row), max(0, known.row.size - 1))
    hit = known.row[place] == row if known.row.size else np.zeros(row.shape, dtype=bool)
    peer = line.kind[row] == WorkKind.PEER_COPY
    kind = np.full(row.shape, COLLECTIVE_KINDS.index(CollectiveKind.UNKNOWN), dtype=np.int8)
    kind[peer] = COLLECTIVE_KINDS.index(CollectiveKind.SEND_RECV)
    size = np.where(peer, line.bytes[row], UNKNOWN)
    group = np.where(peer, 2, UNKNOWN).astype(np.int32)
    kind[hit], size[hit] = known.kind[place[hit]], known.message_bytes[place[hit]]
    group[hit] = known.group_size[place[hit]]
    return _Calls(at, kind, size, group)


def _collective_work(line: Timeline, work: DeviceWork) -> tuple[tuple[CollectiveWork, ...], NDArray[np.int32]]:
    """One entry per kind, group size and binary order of the message; exposed times add up to the window's.

    And for each row of the work which entry it belongs to, -1 where it is no communication.
    """
    calls = _calls(line, work)
    magnitude = np.where(calls.message_bytes > 0, np.log2(np.maximum(calls.message_bytes, 1)), UNKNOWN).astype(np.int64)
    keys = np.stack((calls.kind.astype(np.int64), calls.group_size.astype(np.int64), magnitude))
    covered = work.union_of(work.is_compute)
    found = []
    which = np.full(work.row.shape, UNKNOWN, dtype=np.int32)
    for key in np.unique(keys, axis=1).T:
        chosen = (keys == key[:, None]).all(axis=0)
        which[calls.at[chosen]] = len(found)
        mine = union(work.start[calls.at[chosen]], work.end[calls.at[chosen]])
        found.append(_one_kind(calls, chosen, mine, length_without(mine, covered)))
        covered = join(covered, mine)
    return tuple(found), which


def _one_kind(calls: _Calls, chosen: NDArray[np.bool_], busy: Intervals, exposed_ns: int) -> CollectiveWork:
    sizes = calls.message_bytes[chosen]
    group = int(calls.group_size[chosen][0])
    return CollectiveWork(
        kind=COLLECTIVE_KINDS[int(calls.kind[chosen][0])],
        calls=float(chosen.sum()),
        message_bytes=float(sizes.mean()) if sizes[0] > 0 else None,
        group_size=None if group == UNKNOWN else group,
        busy_s=busy.length / 1e9,
        exposed_s=exposed_ns / 1e9,
    )


def spent_precision(line: Timeline) -> str | None:
    """Number format in which most matrix-kernel time is spent, by kernel names."""
    time = np.bincount(line.name_id, weights=line.duration_ns, minlength=len(line.names))
    spent: dict[str, float] = {}
    for name, duration in zip(line.names, time, strict=True):
        if duration and classify(name)[0] in (Family.MATMUL, Family.ATTENTION):
            precision = precision_of(name)
            if precision is not None:
                spent[precision] = spent.get(precision, 0.0) + float(duration)
    return max(spent, key=lambda precision: spent[precision], default=None)


def is_training(line: Timeline) -> bool:
    """Whether backward or optimiser work is seen."""
    return line.host.has_backward or any(word in name.lower() for name in line.names for word in _TRAINING_WORDS)
