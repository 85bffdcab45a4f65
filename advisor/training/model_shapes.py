"""Transformers to draw from: public models at their real sizes, and made-up ones between them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from numpy.random import Generator

from advisor.engine.shapes import counted
from advisor.training.draws import pick
from profiling.known_models import known_models
from profiling.workload import ModelShape

_IMAGES = ("ViT",)
_VIDEO = 10_000
"""Tokens of a sample from which a known encoder is one of videos."""


@cache
def parameters_of(shape: ModelShape) -> float:
    return counted(shape).parameters


@cache
def _known() -> Mapping[str, tuple[ModelShape, ...]]:
    """Public models by kind, smallest first."""
    kinds: dict[str, list[ModelShape]] = {"decoder": [], "experts": [], "encoder": [], "vision": []}
    for known in known_models():
        shape = known.model
        if isinstance(shape, ModelShape):
            kinds[_kind(known.key, shape)].append(shape)
    return {name: tuple(sorted(shapes, key=parameters_of)) for name, shapes in kinds.items()}


def _kind(key: str, shape: ModelShape) -> str:
    if shape.experts:
        return "experts"
    if shape.causal:
        return "decoder"
    return "vision" if key.startswith(_IMAGES) or shape.sequence_length > _VIDEO else "encoder"


@cache
def _between(kind: str, least: float, most: float) -> tuple[ModelShape, ...]:
    return tuple(shape for shape in _known()[kind] if least <= parameters_of(shape) <= most)


def known_shape(generator: Generator, kind: str, sequence: int, *, least: float = 0.0, most: float) -> ModelShape:
    """A public model with ``least`` to ``most`` parameters: a ``decoder``, one with ``experts``, an ``encoder``, or one
    of images or videos (``vision``)."""
    return replace(pick(generator, _between(kind, least, most)), sequence_length=sequence)


_SIZES = (
    (12, 768, 12, 12), (24, 1024, 16, 16), (24, 2048, 16, 16), (28, 3072, 24, 8), (32, 4096, 32, 8),
    (32, 4096, 32, 32), (40, 5120, 40, 40), (36, 4096, 32, 8), (64, 5120, 40, 8), (80, 8192, 64, 8),
)  # fmt: skip
"""(layers, hidden, heads, KV heads) of models with 0.1 to 70 billion parameters."""


def made_up_decoder(generator: Generator, sequence: int) -> ModelShape:
    """A usual size with more or fewer layers, as a research group's own model has."""
    layers, hidden, heads, kv_heads = pick(generator, _SIZES)
    return ModelShape(
        layers=max(4, round(layers * float(generator.uniform(0.5, 1.2)) / 4) * 4),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        vocabulary=pick(generator, (32_000, 50_304, 128_256)),
        sequence_length=sequence,
        gated_mlp=hidden > 2048 or bool(generator.random() < 0.3),
    )


def made_up_experts(generator: Generator, sequence: int) -> ModelShape:
    """Few wide experts, as Mixtral has, or many narrow ones, as OLMoE has."""
    hidden = pick(generator, (512, 1024, 2048, 3072, 4096))
    narrow = bool(generator.random() < 0.6)
    return ModelShape(
        layers=int(generator.integers(2, 9)) * 4,
        hidden=hidden,
        heads=hidden // 128 if hidden > 1024 else hidden // 64,
        vocabulary=pick(generator, (32_000, 50_304, 128_256)),
        sequence_length=sequence,
        experts=pick(generator, (32, 64, 128) if narrow else (4, 8, 16)),
        experts_per_token=pick(generator, (4, 6, 8) if narrow else (1, 2)),
        expert_ffn=hidden // 2 if narrow else hidden * 3,
        shared_expert_ffn=pick(generator, (0, 0, hidden)),
    )
