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
    """One kernel in a kernel profiler: means over its ``launches``, fractions of peaks weighted by time.

    ``compute_fraction``: busiest part of the multiprocessors; ``memory_fraction``: busiest part of the memory system,
    caches included; ``dram_fraction``: device memory alone; ``tensor_fraction``: tensor cores. ``flops``: None where
    tensor cores work, which the counters of threads leave out. ``bound``: ``compute``, ``memory``, ``latency``
    (neither is near its peak), or None.
    """

    name: str
    launches: int = 1
    duration_s: float | None = None
    compute_fraction: float | None = None
    memory_fraction: float | None = None
    dram_fraction: float | None = None
    tensor_fraction: float | None = None
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

    ``samples``: readings of the figure that was read most often. ``utilisation``: part of the time in which any kernel
    ran; ``memory_utilisation``: in which device memory was read or written. ``..._active``: part of the cycles in which
    the unit worked, as DCGM defines them. ``peak_memory_bytes``: the most that was in use.
    """

    entity: str
    samples: int
    is_slice: bool = False
    device_name: str | None = None
    utilisation: float | None = None
    memory_utilisation: float | None = None
    graphics_active: float | None = None
    sm_active: float | None = None
    tensor_active: float | None = None
    fp64_active: float | None = None
    fp32_active: float | None = None
    fp16_active: float | None = None
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
    that the matrix gives one. ``worst_link`` between GPUs, None where a pair is not told; ``full_mesh``: every pair of
    GPUs is joined by NVLink.
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

    ``library``: ``NCCL`` or ``RCCL``. ``transports_...``: within a node and between nodes. ``gpudirect``: ``yes``,
    ``no``, ``partial``; ``without_gpudirect``: ordered pairs of ranks between nodes that lack it; ``without_peer``:
    pairs in one node that copy through host memory. ``nvls``: NVLink SHARP in use. ``rings``: order of the ranks by
    channel, complete ones only. ``bus_bytes_per_s``: NCCL's own estimate for a ring, all channels; ``gpu_bytes_per_s``:
    what one GPU can move in all, one direction; ``path_...``: NCCL's class of the worst path (``NVL``, ``PIX``, ``SYS``
    …).
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
    library: str = "NCCL"
    hip_version: str | None = None
    without_peer: tuple[tuple[int, int], ...] = ()
    gpu_bytes_per_s: float | None = None
    path_intra: str | None = None
    path_inter: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTiming:
    """One collective of one size as measured; ``message_bytes`` and bus bandwidth as nccl-tests counts them.

    ``operation``: as the tool names it, where that says more than the kind. ``time_s``: of one call; ``total_time_s``:
    of all. ``waiting_s``: part of that in all in which this rank waited for the last one.
    """

    kind: CollectiveKind
    message_bytes: float | None
    operation: str | None = None
    calls: int | None = None
    time_s: float | None = None
    total_time_s: float | None = None
    waiting_s: float | None = None
    bus_bytes_per_s: float | None = None
    in_place_time_s: float | None = None
    in_place_bus_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTimings:
    """``peak_bus_bytes_per_s``: the best of the largest sizes, by kind of collective.

    ``ranks_listed``: how many of the ``ranks`` the file lists with their device.
    """

    tool: str
    ranks: int | None
    nodes: int | None
    device_name: str | None
    rows: tuple[CollectiveTiming, ...]
    peak_bus_bytes_per_s: Mapping[CollectiveKind, float]
    ranks_listed: int | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OpShare:
    """All operations of one type: their part of the time in which the devices work, each without those inside it."""

    name: str
    share: float
    calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSummary:
    """What a page of the TensorFlow profiler says of a job's mean step; in seconds, parts that do not overlap.

    ``device_type``: ``GPU``, as the page has it. ``input_s``: the host waits for data; ``to_device_s``: it sends them.
    ``launch_s``: the host prepares and launches kernels; ``compile_s``: it compiles them; all of that, ``output_s``,
    ``host_compute_s`` and ``unknown_s`` while the device does nothing. ``idle_share``: of the devices' time;
    ``half_share``: part of their computing in 16 bit. ``ops``: the largest ones, possibly not all.
    """

    tool: str
    device_type: str | None
    devices: int | None = None
    steps: int = 0
    step_s: float | None = None
    input_s: float | None = None
    to_device_s: float | None = None
    output_s: float | None = None
    device_compute_s: float | None = None
    device_to_device_s: float | None = None
    collectives_s: float | None = None
    host_compute_s: float | None = None
    launch_s: float | None = None
    compile_s: float | None = None
    unknown_s: float | None = None
    idle_share: float | None = None
    half_share: float | None = None
    ops: tuple[OpShare, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingLoad:
    """What a server that generates text says of its load; means over the times in which it generated.

    ``requests``: at a time; ``rows_per_request``: tokens that a pass computes for each, more than one where tokens are
    drafted. Their product is how many rows the matrix products of such a pass have.
    """

    engine: str
    samples: int
    requests: float
    rows_per_request: float
    prompt_tokens_per_s: float
    generated_tokens_per_s: float


Evidence = (
    KernelSums
    | KernelProfiles
    | DeviceLoads
    | Topology
    | LinkStates
    | NcclFacts
    | CollectiveTimings
    | ExecutionGraph
    | StepSummary
    | ServingLoad
)
