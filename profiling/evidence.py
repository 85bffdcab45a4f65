"""What files tell that hold no timeline: sums, samples, sizes, and facts about the machine.

A figure that the file does not have is None, never 0. Seconds, bytes, bytes per second in one direction, fractions
from 0 to 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from profiling.timeline import WorkKind
from profiling.workload import CollectiveKind


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedKernel:
    """All launches of one kernel, or all copies of one kind, added up."""

    name: str
    kind: WorkKind
    count: int | None
    total_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSums:
    """A table of sums: no timeline, so nothing is known of overlap and idle time."""

    device_name: str | None
    rows: tuple[SummedKernel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProfile:
    """One kernel in a kernel profiler. ``compute_fraction`` and ``memory_fraction``: of the peak that it reached.

    ``bound``: ``compute``, ``memory``, ``latency`` (neither is near its peak), or None.
    """

    name: str
    duration_s: float | None = None
    compute_fraction: float | None = None
    memory_fraction: float | None = None
    dram_bytes: float | None = None
    dram_bytes_per_s: float | None = None
    flops: float | None = None
    flops_per_s: float | None = None
    bound: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProfiles:
    device_name: str | None
    kernels: tuple[KernelProfile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLoad:
    """Means over the samples of one device, or of one slice of it (``is_slice``: MIG).

    ``utilisation``: part of the time in which any kernel ran. ``peak_memory_bytes``: the most that was in use.
    """

    entity: str
    samples: int
    is_slice: bool = False
    device_name: str | None = None
    utilisation: float | None = None
    sm_active: float | None = None
    tensor_active: float | None = None
    dram_active: float | None = None
    nvlink_tx_bytes_per_s: float | None = None
    nvlink_rx_bytes_per_s: float | None = None
    pcie_tx_bytes_per_s: float | None = None
    pcie_rx_bytes_per_s: float | None = None
    power_w: float | None = None
    peak_memory_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLoads:
    devices: tuple[DeviceLoad, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """How the devices of one machine are joined, as its driver prints it.

    ``links``: ``"GPU0-GPU1"`` to ``NV4``, ``PIX``, ``SYS`` …, each pair once, GPU first. ``numa``: node of each device
    that the matrix gives one. ``worst_link`` between GPUs; ``full_mesh``: every pair of GPUs is joined by NVLink.
    """

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    links: Mapping[str, str]
    numa: Mapping[str, int | None]
    nvlink: bool
    full_mesh: bool
    worst_link: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedDevice:
    """``link_bytes_per_s``: of each link, one direction; None where it is inactive."""

    entity: str
    device_name: str | None
    link_bytes_per_s: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkStates:
    devices: tuple[LinkedDevice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclFacts:
    """What a NCCL log says of the job's fabric; of the largest communicator where there are several.

    ``gpudirect``: ``yes``, ``no``, ``partial``. ``without_gpudirect``: pairs of ranks. ``rings``: order of the ranks
    on each channel. ``bus_bytes_per_s``: NCCL's own estimate.
    """

    nccl_version: str | None
    cuda_version: str | None
    ranks: int | None
    nodes: int | None
    channels: int | None
    transports_intra: tuple[str, ...]
    transports_inter: tuple[str, ...]
    gpudirect: str | None
    without_gpudirect: tuple[tuple[int, int], ...]
    nvls: bool | None
    rings: tuple[tuple[int, ...], ...]
    bus_bytes_per_s: float | None
    warnings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTiming:
    """One collective of one size as measured; ``message_bytes`` and bus bandwidth as nccl-tests counts them."""

    kind: CollectiveKind
    message_bytes: float
    calls: int | None = None
    time_s: float | None = None
    bus_bytes_per_s: float | None = None
    in_place_time_s: float | None = None
    in_place_bus_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTimings:
    """``peak_bus_bytes_per_s``: the best of the table, by kind of collective."""

    tool: str
    ranks: int | None
    nodes: int | None
    device_name: str | None
    rows: tuple[CollectiveTiming, ...]
    peak_bus_bytes_per_s: Mapping[CollectiveKind, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedCollective:
    kind: CollectiveKind
    message_bytes: float | None
    group_size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionGraph:
    """What a job executes, without times: collectives in order of execution, and the products that have shapes."""

    rank: int | None
    world_size: int | None
    operators: int
    collectives: tuple[SizedCollective, ...]
    matmul_flops: float | None
    attention_flops: float | None = None


Evidence = (
    KernelSums | KernelProfiles | DeviceLoads | Topology | LinkStates | NcclFacts | CollectiveTimings | ExecutionGraph
)
