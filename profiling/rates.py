"""Achieved rates by class of kernels, where the capture has the shapes that tell the work of a kernel."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import DeviceWork, Window, device_work
from profiling.kernels import CLASS_OF
from profiling.timeline import Timeline, WorkKind
from profiling.workload import KernelClass

BEYOND_FLOPS_PER_S = 20e15
"""No accelerator does as much, whatever the number format (dense): the work belongs to other kernels."""
BEYOND_BYTES_PER_S = 20e12
_BEYOND_A_KERNEL = 1e24
"""FLOPs or bytes that no kernel has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRate:
    """What the kernels of one class with known work did in a window, on one device.

    ``busy_s``: time in which at least one of them ran. ``flops`` and ``moved_bytes``: their work, None where unknown;
    or so much that no accelerator could do it, being that of other kernels then. ``flops_per_s`` and ``bytes_per_s``
    are over the busy time of the kernels whose work of that sort is known. ``covered``: part of the class's kernel time
    that kernels with known work make up.
    """

    kernel_class: KernelClass
    busy_s: float
    flops: float | None
    moved_bytes: float | None
    flops_per_s: float | None
    bytes_per_s: float | None
    covered: float


def class_rates(
    timeline: Timeline, device: int, window: Window, work: DeviceWork | None = None
) -> tuple[ClassRate, ...]:
    """Rates of the classes that have kernels with known work, in the order of ``CLASS_OF``.

    Only kernels that lie wholly in the window count: the work of one that is cut cannot be split. ``work``: what is in
    the window, where it is known.
    """
    if timeline.flops is None and timeline.moved_bytes is None:
        return ()
    if work is None:
        work = device_work(timeline, device, window)
    whole = (work.kind == WorkKind.KERNEL) & (work.end - work.start == timeline.duration_ns[work.row])
    flops, moved = _known(timeline.flops, work), _known(timeline.moved_bytes, work)
    rates = (_rate(kernel_class, work, whole, flops, moved) for kernel_class in dict.fromkeys(CLASS_OF.values()))
    return tuple(rate for rate in rates if rate is not None)


def _known(column: NDArray[np.float64] | None, work: DeviceWork) -> NDArray[np.float64]:
    """Amounts by row, NaN where unknown; amounts that cannot be are unknown."""
    if column is None:
        return np.full(work.row.shape, np.nan)
    amount = column[work.row]
    return np.where((amount >= 0) & (amount < _BEYOND_A_KERNEL), amount, np.nan)


def _rate(
    kernel_class: KernelClass,
    work: DeviceWork,
    whole: NDArray[np.bool_],
    flops: NDArray[np.float64],
    moved: NDArray[np.float64],
) -> ClassRate | None:
    families = [family for family, of_family in CLASS_OF.items() if of_family == kernel_class]
    chosen = whole & np.isin(work.family, families)
    known = chosen & ~(np.isnan(flops) & np.isnan(moved))
    duration = work.end - work.start
    flops_done, flops_per_s = _amount(work, chosen, flops, BEYOND_FLOPS_PER_S)
    bytes_moved, bytes_per_s = _amount(work, chosen, moved, BEYOND_BYTES_PER_S)
    if flops_done is None and bytes_moved is None:
        return None
    return ClassRate(
        kernel_class=kernel_class,
        busy_s=work.union_of(known).length / 1e9,
        flops=flops_done,
        moved_bytes=bytes_moved,
        flops_per_s=flops_per_s,
        bytes_per_s=bytes_per_s,
        covered=float(duration[known].sum() / duration[chosen].sum()),
    )


def _amount(
    work: DeviceWork, chosen: NDArray[np.bool_], amount: NDArray[np.float64], beyond: float
) -> tuple[float | None, float | None]:
    """Sum of the known amounts and their rate, neither where the rate is beyond any accelerator."""
    known = chosen & ~np.isnan(amount)
    busy_ns = work.union_of(known).length
    if not busy_ns:
        return None, None
    total = float(amount[known].sum())
    rate = total * 1e9 / busy_ns
    return (total, rate) if rate <= beyond else (None, None)
