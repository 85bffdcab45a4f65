"""What every drawn job has: numbers of usual sizes, a precision, software."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from numpy.random import Generator

from advisor.training.job import Stack

_Choice = TypeVar("_Choice")


def pick(generator: Generator, options: Sequence[_Choice]) -> _Choice:
    return options[int(generator.integers(len(options)))]


def chosen(generator: Generator, odds: Mapping[_Choice, float]) -> _Choice:
    """One of the keys, each as often as its number says."""
    place = generator.random() * sum(odds.values())
    for option, weight in odds.items():
        place -= weight
        if place < 0:
            return option
    return next(reversed(odds))


def power(generator: Generator, low: int, high: int) -> int:
    """A power of two from ``2 ** low`` to ``2 ** high``."""
    return 2 ** int(generator.integers(low, high + 1))


def spread(generator: Generator, median: float, sigma: float) -> float:
    """Log-normal around ``median``."""
    return float(median * generator.lognormal(0.0, sigma))


_TRAINING = {"bf16": 0.45, "fp16": 0.2, "fp8": 0.15, "tf32": 0.12, "fp32": 0.08}
_SERVING = {"bf16": 0.4, "fp16": 0.25, "fp8": 0.25, "fp4": 0.06, "fp32": 0.04}
_OTHER_MODELS = {"bf16": 0.3, "fp16": 0.32, "tf32": 0.2, "fp32": 0.18}


def precision(generator: Generator, *, serves: bool = False) -> str:
    """Of a transformer."""
    return chosen(generator, _SERVING if serves else _TRAINING)


def wide_precision(generator: Generator) -> str:
    """Of any other model: hardly anyone runs them in 8 bit."""
    return chosen(generator, _OTHER_MODELS)


_TRAINERS: Mapping[str | None, float] = {
    None: 0.4,
    "torch-eager": 0.18,
    "torch-compile": 0.08,
    "torch-fsdp": 0.07,
    "deepspeed": 0.07,
    "megatron-core": 0.08,
    "torch-1": 0.04,
    "tensorflow": 0.04,
    "jax": 0.03,
    "llm.c": 0.01,
}
_SERVERS: Mapping[str | None, float] = {None: 0.6, "torch-eager": 0.25, "torch-compile": 0.15}
_COMPILED = frozenset({"torch-compile", "jax", "megatron-core", "llm.c"})


def software(generator: Generator, *, serves: bool = False) -> str | None:
    """Name of a stack of the engine, None where nobody tells."""
    return chosen(generator, _SERVERS if serves else _TRAINERS)


def stack(generator: Generator, name: str | None = None, *, graphs: float = 0.15) -> Stack:
    """How software of this name runs a job; ``graphs``: how often launches are recorded and replayed."""
    compiled = name in _COMPILED or bool(generator.random() < (0.35 if name is None else 0.1))
    graphed = bool(generator.random() < graphs)
    return Stack(
        matrix_kernels=float(generator.uniform(4, 8)),
        memory_kernels=float(generator.uniform(4, 9) if compiled else generator.uniform(12, 35)),
        host_factor=0.03 if graphed else spread(generator, 0.4 if compiled else 1.0, 0.7),
        traffic_factor=spread(generator, 0.9 if compiled else 1.5, 0.4),
        streaming_share=float(generator.beta(1, 8)),
        fused_attention=bool(generator.random() < 0.75),
    )
