"""Workload: what one step of a job demands, free of any machine. The contract between profiling and the engine.

Two kinds of evidence meet here. A *described* job has ``model`` (the engine counts its work from the shape); a
*traced* job has ``measured`` (work per kernel class, seen on a known accelerator). A job may have both: then the
capture says how long the kernels take and the description says what another partitioning would exchange.

Units: seconds, bytes, FLOPs. Unknown is ``None``.
"""

from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    TRAINING = "training"
    INFERENCE = "inference"


class KernelClass(StrEnum):
    """What a kernel's time depends on when it moves to another accelerator."""

    MATMUL = "matmul"
    ATTENTION = "attention"
    MEMORY = "memory"
    COPY = "copy"
    OTHER = "other"


class CollectiveKind(StrEnum):
    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    SEND_RECV = "send_recv"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A transformer (dense, decoder or encoder). ``parameters`` overrides the count that the shape implies."""

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    sequence_length: int
    kv_heads: int | None = None
    ffn_hidden: int | None = None
    gated_mlp: bool = True
    parameters: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWork:
    """Work of one kernel class in one step on one GPU, as measured.

    ``busy_s``: time of this class alone in the union of GPU work, so that the classes of a step add up to its
    computing time. ``flops`` and ``bytes`` where the capture has shapes.
    """

    kernel_class: KernelClass
    busy_s: float
    launches: float
    flops: float | None = None
    bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveWork:
    """One kind of collective in one step on one GPU.

    ``message_bytes``: size of one call as nccl-tests counts it (the whole buffer for all-reduce and all-gather).
    ``busy_s`` and ``exposed_s``: time in these kernels, and the part not hidden by computing, as captured; a single
    rank's figure contains waiting for the others.
    """

    kind: CollectiveKind
    calls: float
    message_bytes: float | None
    group_size: int | None
    busy_s: float
    exposed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """One step of the captured run, seen from one GPU (the median rank where there are several).

    ``step_s`` = sum of ``kernels[].busy_s`` (copies included) + exposed communication + ``idle_s``.
    ``device_name`` is what the capture prints; ``accelerator_key`` the catalog's key, None until matched.
    ``waiting_s``: part of the exposed communication that was waiting for a slower rank; None where ranks are missing.
    """

    device_name: str | None
    accelerator_key: str | None
    gpu_count: int
    step_s: float
    idle_s: float
    kernels: tuple[KernelWork, ...]
    collectives: tuple[CollectiveWork, ...]
    steps_observed: int | None = None
    waiting_s: float | None = None
    host_launches: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One job.

    ``batch_per_step``: samples (sequences, images, requests) that one step of the whole job works through.
    ``micro_batch``: samples per GPU per forward pass, None = chosen by the engine.
    ``precision``: dtype of the matrix products (``fp32 tf32 fp16 bf16 fp8``).
    ``peak_memory_bytes``: per GPU, as measured, where known.
    """

    name: str
    mode: Mode
    precision: str
    batch_per_step: float
    micro_batch: int | None = None
    model: ModelShape | None = None
    parameters: float | None = None
    measured: MeasuredStep | None = None
    peak_memory_bytes: float | None = None
    recompute_activations: bool = False
    flash_attention: bool = True

    def __post_init__(self) -> None:
        if self.model is None and self.measured is None:
            raise ValueError("a workload needs a model shape or a measured step")
