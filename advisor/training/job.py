"""What a training job is: a workload, how its software runs it, and the family that it belongs to."""

from dataclasses import dataclass
from enum import StrEnum

from profiling.workload import Workload


class Family(StrEnum):
    DENSE = "dense language model"
    LONG_CONTEXT = "long context"
    SMALL = "small transformer"
    EXPERTS = "mixture of experts"
    ADAPTERS = "adapter fine-tuning"
    ENCODER = "encoder"
    VISION = "vision or diffusion transformer"
    PREFILL = "prompt processing"
    DECODE = "token generation"
    MIXED = "prompts mixed with generation"
    NETWORK = "convolutional network"
    DIFFUSION = "diffusion network"
    KNOWN = "speech, translation, recommender or scientific model"
    CONVOLUTION = "convolution"
    RECOMMENDER = "recommender"
    STENCIL = "stencil or spectral code"
    OTHER = "other captured job"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """How software runs a job. Kernel counts are per layer and forward pass.

    ``host_factor``: host time over the engine's typical launch time (0.03 for CUDA graphs). ``traffic_factor``:
    element-wise traffic over the engine's (fused code). ``streaming_share``: part of the time in matrix kernels that
    memory bounds, on top of what the shapes say (small channels, gathers in the kernel).
    """

    matrix_kernels: float
    memory_kernels: float
    host_factor: float
    traffic_factor: float
    streaming_share: float
    fused_attention: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """``cached_tokens``: tokens of earlier context whose keys and values one pass reads, per sequence."""

    family: Family
    workload: Workload
    stack: Stack
    cached_tokens: float = 0.0
