"""Jobs of many kinds, drawn at random: what the classifier is trained on.

Described jobs are transformers whose work the engine counts. Measured ones (convolutions, recommenders, anything
else) are steps with random kernel shares, as a capture would give them, which the engine carries over to other
servers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from numpy.random import Generator

from profiling.workload import (
    CollectiveKind,
    CollectiveWork,
    KernelClass,
    KernelWork,
    MeasuredStep,
    Mode,
    ModelShape,
    Workload,
)


class Family(StrEnum):
    DENSE = "dense language model"
    LONG_CONTEXT = "long context"
    SMALL = "small transformer"
    ENCODER = "encoder"
    PREFILL = "prompt processing"
    DECODE = "token generation"
    CONVOLUTION = "convolution"
    RECOMMENDER = "recommender"
    OTHER = "other captured job"


PARTS: Mapping[Family, int] = {family: 3 if family is Family.DECODE else 1 for family in Family}
"""How often each family is drawn. Serving is common, and its captures look like those of other jobs: were it rare
here, the classifier would be sure of compute wherever matrix kernels lead."""


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
    """``cached_tokens``: tokens of context whose keys and values one generated token reads, per sequence."""

    family: Family
    workload: Workload
    stack: Stack
    cached_tokens: float = 0.0


_Choice = TypeVar("_Choice")

_DENSE = (
    (12, 768, 12, 12), (24, 1024, 16, 16), (24, 2048, 16, 16), (28, 3072, 24, 8), (32, 4096, 32, 8),
    (32, 4096, 32, 32), (40, 5120, 40, 40), (36, 4096, 32, 8), (64, 5120, 40, 8), (80, 8192, 64, 8),
)  # fmt: skip
"""(layers, hidden, heads, KV heads) of models with 0.1 to 70 billion parameters."""

_ENCODERS = ((6, 384, 6), (12, 512, 8), (12, 768, 12), (24, 1024, 16), (32, 1280, 16), (48, 1664, 16))


def draw_job(family: Family, generator: Generator) -> Job:
    """One job of a family."""
    return _DRAWN[family](generator)


def _pick(generator: Generator, options: Sequence[_Choice]) -> _Choice:
    return options[int(generator.integers(len(options)))]


def _power(generator: Generator, low: int, high: int) -> int:
    """A power of two from ``2 ** low`` to ``2 ** high``."""
    return 2 ** int(generator.integers(low, high + 1))


def _spread(generator: Generator, median: float, sigma: float) -> float:
    return float(median * generator.lognormal(0.0, sigma))


def _precision(generator: Generator) -> str:
    return _pick(generator, ("bf16", "bf16", "bf16", "bf16", "fp16", "fp16", "tf32", "fp32", "fp8"))


def _stack(generator: Generator, *, graphs: float = 0.15) -> Stack:
    compiled = bool(generator.random() < 0.35)
    graphed = bool(generator.random() < graphs)
    return Stack(
        matrix_kernels=float(generator.uniform(4, 8)),
        memory_kernels=float(generator.uniform(4, 9) if compiled else generator.uniform(12, 35)),
        host_factor=0.03 if graphed else _spread(generator, 0.4 if compiled else 1.0, 0.7),
        traffic_factor=_spread(generator, 0.9 if compiled else 1.5, 0.4),
        streaming_share=float(generator.beta(1, 8)),
        fused_attention=bool(generator.random() < 0.75),
    )


def _transformer(
    generator: Generator, family: Family, shape: ModelShape, batch: int, mode: Mode, micro_batch: int | None = None
) -> Job:
    stack = _stack(generator, graphs=0.5 if family is Family.DECODE else 0.15)
    return Job(
        family=family,
        stack=stack,
        workload=Workload(
            name=family,
            mode=mode,
            precision=_precision(generator),
            batch_per_step=float(batch),
            micro_batch=micro_batch,
            model=shape,
            recompute_activations=bool(generator.random() < 0.2),
            flash_attention=stack.fused_attention or family is Family.LONG_CONTEXT,
        ),
    )


def _shape(generator: Generator, sizes: Sequence[tuple[int, int, int, int]], sequence: int) -> ModelShape:
    layers, hidden, heads, kv_heads = _pick(generator, sizes)
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        vocabulary=_pick(generator, (32_000, 50_304, 128_256)),
        sequence_length=sequence,
        gated_mlp=hidden > 2048 or bool(generator.random() < 0.3),
    )


def _dense(generator: Generator) -> Job:
    shape = _shape(generator, _DENSE, _power(generator, 9, 12))
    return _transformer(generator, Family.DENSE, shape, _power(generator, 3, 9), Mode.TRAINING)


def _long_context(generator: Generator) -> Job:
    shape = _shape(generator, _DENSE[1:8], _power(generator, 13, 16))
    return _transformer(generator, Family.LONG_CONTEXT, shape, _power(generator, 3, 5), Mode.TRAINING)


def _small(generator: Generator) -> Job:
    heads = int(generator.choice([2, 4, 8, 12]))
    shape = ModelShape(
        layers=int(generator.integers(2, 13)),
        hidden=heads * 64,
        heads=heads,
        vocabulary=_pick(generator, (256, 8_000, 30_522, 50_304)),
        sequence_length=_power(generator, 5, 10),
        gated_mlp=False,
    )
    return _transformer(generator, Family.SMALL, shape, _power(generator, 3, 11), Mode.TRAINING)


def _encoder(generator: Generator) -> Job:
    layers, hidden, heads = _pick(generator, _ENCODERS)
    shape = ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        vocabulary=_pick(generator, (1_000, 1_000, 30_522)),
        sequence_length=_pick(generator, (128, 197, 256, 384, 577, 1_500)),
        gated_mlp=False,
    )
    mode = Mode.TRAINING if generator.random() < 0.6 else Mode.INFERENCE
    return _transformer(generator, Family.ENCODER, shape, _power(generator, 3, 10), mode)


def _prefill(generator: Generator) -> Job:
    shape = _shape(generator, _DENSE, _power(generator, 7, 13))
    return _transformer(generator, Family.PREFILL, shape, _power(generator, 0, 5), Mode.INFERENCE)


def _decode(generator: Generator) -> Job:
    shape, batch = _shape(generator, _DENSE[2:], 1), _power(generator, 0, 8)
    job = _transformer(generator, Family.DECODE, shape, batch, Mode.INFERENCE, micro_batch=batch)
    return Job(family=job.family, workload=job.workload, stack=job.stack, cached_tokens=_power(generator, 7, 14))


def _measured(
    generator: Generator, family: Family, alpha: dict[KernelClass, float], kind: CollectiveKind, streaming: float
) -> Job:
    """A captured step with kernel shares from a Dirichlet distribution, alone or with one kind of collective."""
    gpus = _power(generator, 0, 3)
    busy_s = _spread(generator, 0.08, 1.2)
    shares = generator.dirichlet(list(alpha.values()))
    kernels = tuple(
        KernelWork(
            kernel_class=kernel_class,
            busy_s=float(share * busy_s),
            launches=float(max(1.0, share * busy_s / _spread(generator, 5e-5, 1.0))),
        )
        for kernel_class, share in zip(alpha, shares, strict=True)
    )
    collectives = (_exchange(generator, gpus, kind, busy_s),) if gpus > 1 else ()
    step = MeasuredStep(
        device_name=None,
        accelerator_key=None,
        gpu_count=gpus,
        step_s=busy_s + sum(work.exposed_s for work in collectives),
        idle_s=0.0,
        kernels=kernels,
        collectives=collectives,
        waiting_s=0.0,
    )
    workload = Workload(
        name=family, mode=Mode.TRAINING, precision=_precision(generator), batch_per_step=1.0, measured=step
    )
    stack = _stack(generator)
    mixed = Stack(
        matrix_kernels=stack.matrix_kernels,
        memory_kernels=stack.memory_kernels,
        host_factor=stack.host_factor,
        traffic_factor=1.0,
        streaming_share=float(generator.beta(2, 2 / streaming - 2)),
        fused_attention=stack.fused_attention,
    )
    return Job(family=family, workload=workload, stack=mixed)


def _exchange(generator: Generator, gpus: int, kind: CollectiveKind, busy_s: float) -> CollectiveWork:
    calls, moved_s = float(_power(generator, 0, 6)), busy_s * _spread(generator, 0.25, 1.0)
    hidden = float(generator.beta(1.0, 1.0)) if generator.random() < 0.7 else 0.0
    return CollectiveWork(
        kind=kind,
        calls=calls,
        message_bytes=moved_s / calls * _spread(generator, 4e10, 1.0),
        group_size=gpus,
        busy_s=moved_s,
        exposed_s=moved_s * (1 - hidden),
    )


def _convolution(generator: Generator) -> Job:
    alpha = {KernelClass.MATMUL: 6.0, KernelClass.MEMORY: 4.0, KernelClass.OTHER: 0.2, KernelClass.COPY: 0.2}
    return _measured(generator, Family.CONVOLUTION, alpha, CollectiveKind.ALL_REDUCE, streaming=0.2)


def _recommender(generator: Generator) -> Job:
    alpha = {KernelClass.MATMUL: 2.0, KernelClass.MEMORY: 3.5, KernelClass.OTHER: 0.3, KernelClass.COPY: 0.5}
    return _measured(generator, Family.RECOMMENDER, alpha, CollectiveKind.ALL_TO_ALL, streaming=0.15)


def _other(generator: Generator) -> Job:
    alpha = {
        KernelClass.MATMUL: 1.0,
        KernelClass.ATTENTION: 0.4,
        KernelClass.MEMORY: 0.9,
        KernelClass.OTHER: 0.25,
        KernelClass.COPY: 0.15,
    }
    return _measured(generator, Family.OTHER, alpha, _pick(generator, _ANY_COLLECTIVE), streaming=0.15)


_ANY_COLLECTIVE = (
    CollectiveKind.ALL_REDUCE,
    CollectiveKind.ALL_GATHER,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.ALL_TO_ALL,
)
_DRAWN: Mapping[Family, Callable[[Generator], Job]] = {
    Family.DENSE: _dense,
    Family.LONG_CONTEXT: _long_context,
    Family.SMALL: _small,
    Family.ENCODER: _encoder,
    Family.PREFILL: _prefill,
    Family.DECODE: _decode,
    Family.CONVOLUTION: _convolution,
    Family.RECOMMENDER: _recommender,
    Family.OTHER: _other,
}
