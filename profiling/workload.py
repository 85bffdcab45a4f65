"""Workload: what one step of a job demands, free of any machine. The contract between profiling and the engine.

Two kinds of evidence meet here. A *described* job has ``model`` (a transformer, whose work the engine counts from its
shape) or ``totals`` (any other model); a *traced* job has ``measured`` (work per kernel class, seen on a known
accelerator). A job may have both: then the capture says how long the kernels take and the description says what
another partitioning would exchange. A described job may carry an ``anchor``: a step time measured somewhere.

Units: seconds, bytes, FLOPs. Unknown is ``None``.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from profiling.step_graph import StepGraph


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
    """A transformer: dense or mixture of experts, decoder or encoder.

    ``parameters`` overrides the count that the shape implies. ``head_dim``: width of a query and key head where it is
    not hidden / heads; ``value_head_dim``: of a value head where that differs. ``kv_latent`` and ``query_latent``:
    widths of multi-head latent attention (DeepSeek-V2, 2405.04434), positional part included in ``kv_latent``.
    ``attention_window``: tokens that a query sees in layers with a sliding window; ``windowed_layers``: how many
    layers have one. Mixture of experts: ``experts`` routed experts a layer, ``experts_per_token`` of them for each
    token, ``expert_ffn`` wide each, ``shared_expert_ffn`` wide altogether for all tokens; the first ``dense_layers``
    layers keep the dense MLP of ``ffn_hidden``.
    """

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    sequence_length: int
    kv_heads: int | None = None
    ffn_hidden: int | None = None
    gated_mlp: bool = True
    parameters: float | None = None
    head_dim: int | None = None
    value_head_dim: int | None = None
    kv_latent: int | None = None
    query_latent: int | None = None
    causal: bool = True
    attention_window: int | None = None
    windowed_layers: int = 0
    tied_embeddings: bool | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    expert_ffn: int | None = None
    shared_expert_ffn: int = 0
    dense_layers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTotals:
    """Any other model, by the totals of one forward pass of one sample; backward work is twice the forward.

    ``flops_per_sample``: products and convolutions, a multiply-add counted as two. ``traffic_bytes_per_sample``:
    device memory read and written by everything else, at 2 bytes a value. ``kernels_per_pass``: launches of a forward
    pass. ``activation_bytes_per_sample``: kept for the backward pass, at 2 bytes a value.
    ``embedding_parameters``: part of ``parameters`` that lies in sparse tables, divided over the GPUs and exchanged
    all-to-all, ``embedding_values_per_sample`` values a sample, instead of all-reduced.
    """

    family: str
    parameters: float
    flops_per_sample: float
    traffic_bytes_per_sample: float
    kernels_per_pass: int
    activation_bytes_per_sample: float
    embedding_parameters: float = 0.0
    embedding_values_per_sample: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPipeline:
    """What one sample asks of the host before the GPU sees it; None where not known.

    ``cpu_s_per_sample``: seconds of one CPU core. ``bytes_per_sample``: read from storage or the network.
    """

    cpu_s_per_sample: float | None = None
    bytes_per_sample: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A step time that the buyer measured, of this model on ``gpus`` GPUs of a known accelerator.

    ``batch_per_step`` and ``micro_batch`` as they were in that run.
    """

    accelerator_key: str
    gpus: int
    step_s: float
    batch_per_step: float
    micro_batch: int | None = None


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
    ``late_launch_s``: the part of ``waiting_s`` in which the GPU of the late rank had nothing to do, so that its host
    was late; None where not known. ``graph``: what waited for what, where the capture tells.
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
    late_launch_s: float | None = None
    graph: StepGraph | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One job.

    ``batch_per_step``: samples (sequences, images, requests) that one step of the whole job works through.
    ``micro_batch``: samples per GPU per forward pass, None = chosen by the engine.
    ``precision``: dtype of the matrix products (``fp32 tf32 fp16 bf16 fp8 fp4``).
    ``output_tokens``: inference only: tokens generated for each request after its prompt of
    ``model.sequence_length`` tokens; one step is then the whole batch, prompts and answers.
    ``lora_rank``: low-rank adapters are trained and the base is frozen (2106.09685); None = all is trained.
    ``weight_bits``: storage of a weight where it is less than the precision's own (4 for QLoRA, AWQ, GPTQ).
    ``gradient_bits``: size of a gradient value as exchanged, where compressed or kept wide; None = the stack's own.
    ``stack``: software stack (see ``advisor/engine/calibration/stacks.csv``), None = not told.
    ``peak_memory_bytes``: per GPU, as measured, where known.
    """

    name: str
    mode: Mode
    precision: str
    batch_per_step: float
    micro_batch: int | None = None
    model: ModelShape | None = None
    totals: ModelTotals | None = None
    parameters: float | None = None
    measured: MeasuredStep | None = None
    anchor: Anchor | None = None
    peak_memory_bytes: float | None = None
    recompute_activations: bool = False
    flash_attention: bool = True
    output_tokens: int = 0
    lora_rank: int | None = None
    weight_bits: int | None = None
    gradient_bits: int | None = None
    stack: str | None = None
    input_pipeline: InputPipeline | None = None

    def __post_init__(self) -> None:
        if self.model is None and self.totals is None and self.measured is None:
            raise ValueError("a workload needs a model shape, a model's totals or a measured step")
