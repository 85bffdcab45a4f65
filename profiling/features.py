"""The classifier's inputs: a step's shares, readable by a person.

Every share is a fraction of the window (0 to 1), summed over the ranks and devices of the job, so that
``matmul + attention + memory_kernel + other_kernel + copy + exposed_communication + idle = 1``. A predicted step
gives the same shares: each part over the step's length.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from profiling.breakdown import Breakdown, DeviceWork, Window, breakdown, device_work
from profiling.copies import Way, ways
from profiling.idle import IdleCauses, idle_by_cause
from profiling.intervals import join, length_without
from profiling.kernels import Family
from profiling.signs import Signs, signs
from profiling.timeline import Timeline, WorkKind
from profiling.waiting import Waited
from profiling.workload import KernelClass

SHORT_KERNEL_NS = 10_000
_TOLD_ENOUGH = 0.5
"""Part of the time that names or shapes must tell of for a share of it to be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """None where the capture cannot tell.

    matmul_share            time of matrix and convolution kernels
    attention_share         time of fused attention kernels not covered by matmul
    memory_kernel_share     time of element-wise, normalisation, reduction, optimiser kernels not covered by these
    other_kernel_share      time of all other computing kernels not covered by these
    copy_share              time of copies and fills under which nothing else runs
    exposed_communication_share  collectives and peer copies that no computing covers, waiting included
    hidden_communication_share   collectives and peer copies under computing, without the waiting that is known of (not
                            part of the sum)
    idle_share              no device work at all
    host_gap_share          part of idle in which the next work had not yet been launched when the device ran dry;
                            None without launches or with clocks that disagree. A prediction has its host part here
    waiting_share           part of the window in which collectives waited for a later rank and nothing computed; None
                            where that is unknown (one rank, a group that is not all there). For
                            the limit that faster links could reach, take it from exposed_communication_share
    overlap_ratio           hidden over all communication; None without communication
    short_kernel_share      number of computing kernels under 10 us over their number
    mean_kernel_s           mean duration of a computing kernel in seconds
    kernels_per_s           computing kernels over window length, per device
    unclassified_share      duration of kernels whose name no rule knows over duration of all computing kernels
    streaming_share         part of the matrix kernels' time in those that do too little arithmetic per byte for the
                            arithmetic to bind them, by their shapes; None where shapes tell of less than half of it
    narrow_share            part of the matrix kernels' time in those whose tile is at most 32 wide (matrix times vector
                            included), which is how few rows are multiplied, as in token generation; by their names,
                            None where names tell the tile of less than half of it
    cached_attention_share  part of the attention kernels' time in those whose name tells that they read the cached keys
                            and values of earlier tokens, as in token generation
    mean_matmul_s           mean duration of a matrix kernel in seconds
    host_copy_share         part of copy_share that goes to or comes from the host
    uneven_share            part of the collectives' time by which calls take longer than the quick ones of their kind
                            and size: on one rank alone the sign of waiting; None where too few calls are alike
    late_share              part of waiting_share in which the late rank had nothing to do, so that its host was late
    input_share             part of host_gap_share under input loading
    trains                  whether backward or optimizer work is seen; without it the job probably serves
    kernels                 computing kernels in the window, over all ranks: how much there is to judge by
    steps                   steps that the window holds on each rank; 1 where nothing marks them
    gpus                    devices in the job: its world size where known, else the devices seen
    """

    matmul_share: float
    attention_share: float
    memory_kernel_share: float
    other_kernel_share: float
    copy_share: float
    exposed_communication_share: float
    hidden_communication_share: float
    idle_share: float
    host_gap_share: float | None
    waiting_share: float | None
    overlap_ratio: float | None
    short_kernel_share: float | None
    mean_kernel_s: float | None
    kernels_per_s: float | None
    unclassified_share: float | None
    streaming_share: float | None
    narrow_share: float | None
    cached_attention_share: float | None
    mean_matmul_s: float | None
    host_copy_share: float | None
    uneven_share: float | None
    late_share: float | None
    input_share: float | None
    trains: bool
    kernels: int
    steps: int
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceShare:
    """What one device adds to the features, over the window that speaks for the run.

    ``host_copy_ns``: copies to and from the host under which nothing computes or communicates, None where the way of
    most copies is not told. ``input_ns``: idle time under input loading, None where that is unknown.
    """

    parts: Breakdown
    signs: Signs
    host_copy_ns: int | None
    host_gap_ns: int | None
    input_ns: int | None
    kernels: int
    short_kernels: int
    kernel_ns: int
    unclassified_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What it takes the ranks to tell, in their windows. None where it is unknown.

    ``late_ns``: part of the exposed waiting in which the late rank had nothing to do. ``uneven``: see ``Features``.
    """

    waited: Waited | None = None
    late_ns: int | None = None
    uneven: float | None = None
    trains: bool = False
    steps: int = 1


def features(shares: Sequence[DeviceShare], *, joined: Joined, gpus: int) -> Features:
    """Features of a job from all of its devices."""
    parts = [one.parts for one in shares]
    total = sum(part.window_ns for part in parts) or 1
    communication = sum(part.comm_ns for part in parts)
    hidden = sum(part.hidden_comm_ns for part in parts)
    kernels = sum(one.kernels for one in shares)
    seen = [one.signs for one in shares]
    matmul_ns, attention_ns = sum(one.matmul_ns for one in seen), sum(one.attention_ns for one in seen)
    waited = joined.waited
    return Features(
        matmul_share=_class_share(parts, KernelClass.MATMUL, total),
        attention_share=_class_share(parts, KernelClass.ATTENTION, total),
        memory_kernel_share=_class_share(parts, KernelClass.MEMORY, total),
        other_kernel_share=_class_share(parts, KernelClass.OTHER, total),
        copy_share=sum(part.copy_only_ns for part in parts) / total,
        exposed_communication_share=sum(part.exposed_comm_ns for part in parts) / total,
        hidden_communication_share=(hidden - (0 if waited is None else waited.hidden_ns)) / total,
        idle_share=sum(part.idle_ns for part in parts) / total,
        host_gap_share=_known_share([one.host_gap_ns for one in shares], total),
        waiting_share=None if waited is None else waited.exposed_ns / total,
        overlap_ratio=_ratio(hidden, communication),
        short_kernel_share=_ratio(sum(one.short_kernels for one in shares), kernels),
        mean_kernel_s=_ratio(sum(one.kernel_ns for one in shares) / 1e9, kernels),
        kernels_per_s=_ratio(kernels * 1e9, total),
        unclassified_share=_ratio(sum(one.unclassified_ns for one in shares), sum(one.kernel_ns for one in shares)),
        streaming_share=_told(sum(one.streaming_ns for one in seen), sum(one.shaped_ns for one in seen), matmul_ns),
        narrow_share=_told(sum(one.narrow_ns for one in seen), sum(one.tiled_ns for one in seen), matmul_ns),
        cached_attention_share=_ratio(sum(one.cached_ns for one in seen), attention_ns),
        mean_matmul_s=_ratio(matmul_ns / 1e9, sum(one.matmuls for one in seen)),
        host_copy_share=_known_share([one.host_copy_ns for one in shares], total),
        uneven_share=joined.uneven,
        late_share=None if joined.late_ns is None else joined.late_ns / total,
        input_share=_known_share([one.input_ns for one in shares], total),
        trains=joined.trains,
        kernels=kernels,
        steps=joined.steps,
        gpus=gpus,
    )


def _class_share(parts: Iterable[Breakdown], kernel_class: KernelClass, total: int) -> float:
    return sum(part.class_ns[kernel_class] for part in parts) / total


def _known_share(lengths: Sequence[int | None], total: int) -> float | None:
    known = [length for length in lengths if length is not None]
    return sum(known) / total if len(known) == len(lengths) else None


def _told(part: int, told: int, whole: int) -> float | None:
    """Share of what is told, None where less than half of the whole is."""
    return part / told if told and told >= _TOLD_ENOUGH * whole else None


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def device_share(
    timeline: Timeline, device: int, window: Window, known: tuple[Breakdown, IdleCauses] | None = None
) -> DeviceShare:
    """The share of one device; ``known``: its breakdown and idle causes over the window, where these are there."""
    work = device_work(timeline, device, window)
    duration = work.end - work.start
    kernels = work.is_compute
    parts, idle = known or (breakdown(timeline, device, window), idle_by_cause(timeline, device, window))
    if not timeline.idle_known:
        parts = replace(parts, window_ns=parts.gpu_busy_ns, idle_ns=0)
    return DeviceShare(
        parts=parts,
        signs=signs(timeline, work),
        host_copy_ns=_host_copy_ns(timeline, work),
        host_gap_ns=idle.host_ns,
        input_ns=idle.input_ns,
        kernels=int(kernels.sum()),
        short_kernels=int((kernels & (duration < SHORT_KERNEL_NS)).sum()),
        kernel_ns=int(duration[kernels].sum()),
        unclassified_ns=int(duration[kernels & (work.family == Family.UNKNOWN)].sum()),
    )


def _host_copy_ns(timeline: Timeline, work: DeviceWork) -> int | None:
    """Copies that do not tell their way count as the device's own, unless most do not tell."""
    is_copy = work.kind == WorkKind.COPY
    if not is_copy.any():
        return 0
    way = ways(timeline.names)[timeline.name_id[work.row]]
    duration = work.end - work.start
    if duration[is_copy & (way == Way.UNKNOWN)].sum() > (1 - _TOLD_ENOUGH) * duration[is_copy].sum():
        return None
    covered = join(work.union_of(work.is_compute), work.union_of(work.is_communication))
    return length_without(work.union_of(is_copy & (way == Way.HOST)), covered)
