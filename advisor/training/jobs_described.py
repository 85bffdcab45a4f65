"""Transformers that train (encoders and images now and then serve), known by their shape."""

from typing import Any

from numpy.random import Generator

from advisor.training.draws import chosen, pick, power, precision, software, stack
from advisor.training.job import Family, Job
from advisor.training.model_shapes import known_shape, made_up_decoder, made_up_experts
from profiling.workload import Mode, ModelShape, Workload

_KNOWN = 0.65
"""How often a public model is drawn rather than a made-up one."""
_LARGEST = 1.3e11
_LARGEST_WITH_EXPERTS = 2.5e11


def transformer(generator: Generator, family: Family, shape: ModelShape, batch: int, mode: Mode, **changed: Any) -> Job:
    """A job with this shape, its precision and software drawn; ``changed``: other fields of the workload."""
    serves = mode is Mode.INFERENCE
    name = software(generator, serves=serves)
    runs = stack(generator, name, graphs=0.5 if serves else 0.12)
    drawn: dict[str, Any] = {
        "precision": precision(generator, serves=serves),
        "recompute_activations": bool(generator.random() < 0.2),
        "flash_attention": runs.fused_attention or shape.sequence_length > _ALWAYS_FUSED,
        "gradient_bits": chosen(generator, {None: 0.85, 16: 0.1, 32: 0.05}),
    }
    workload = Workload(
        name=family, mode=mode, batch_per_step=float(batch), model=shape, stack=name, **{**drawn, **changed}
    )
    return Job(family=family, stack=runs, workload=workload)


_ALWAYS_FUSED = 8192
"""Tokens from which nobody writes the scores of attention to memory."""


def dense(generator: Generator) -> Job:
    sequence = pick(generator, (512, 1024, 2048, 2048, 4096, 4096, 8192))
    return transformer(generator, Family.DENSE, _decoder(generator, sequence), power(generator, 3, 9), Mode.TRAINING)


def _decoder(generator: Generator, sequence: int, most: float = _LARGEST) -> ModelShape:
    if generator.random() < _KNOWN:
        return known_shape(generator, "decoder", sequence, most=most)
    return made_up_decoder(generator, sequence)


def long_context(generator: Generator) -> Job:
    exponent = int(generator.integers(13, 18))
    shape = _decoder(generator, 2**exponent, most=4e10)
    batch = power(generator, 0, min(5, _MOST_TOKENS - exponent))
    return transformer(generator, Family.LONG_CONTEXT, shape, batch, Mode.TRAINING)


_MOST_TOKENS = 20
"""log2 of the tokens of a step."""


def small(generator: Generator) -> Job:
    heads = int(generator.choice([2, 4, 8, 12]))
    shape = ModelShape(
        layers=int(generator.integers(2, 13)),
        hidden=heads * 64,
        heads=heads,
        vocabulary=pick(generator, (256, 8_000, 30_522, 50_304)),
        sequence_length=power(generator, 5, 10),
        gated_mlp=False,
    )
    return transformer(generator, Family.SMALL, shape, power(generator, 3, 11), Mode.TRAINING)


def experts(generator: Generator) -> Job:
    sequence = pick(generator, (1024, 2048, 4096, 4096, 8192))
    if generator.random() < _KNOWN:
        shape = known_shape(generator, "experts", sequence, most=_LARGEST_WITH_EXPERTS)
    else:
        shape = made_up_experts(generator, sequence)
    return transformer(generator, Family.EXPERTS, shape, power(generator, 4, 10), Mode.TRAINING)


def adapters(generator: Generator) -> Job:
    """Low-rank adapters on a public model, often with its weights in four bits (2305.14314)."""
    shape = known_shape(generator, "decoder", power(generator, 8, 13), least=5e8, most=7.5e10)
    return transformer(
        generator,
        Family.ADAPTERS,
        shape,
        power(generator, 0, 7),
        Mode.TRAINING,
        lora_rank=pick(generator, (8, 16, 32, 64, 128)),
        weight_bits=chosen(generator, {None: 0.5, 4: 0.4, 8: 0.1}),
        recompute_activations=bool(generator.random() < 0.5),
    )


_ENCODERS = ((6, 384, 6), (12, 512, 8), (12, 768, 12), (24, 1024, 16), (32, 1280, 16), (48, 1664, 16))


def encoder(generator: Generator) -> Job:
    """Text, proteins, speech frames."""
    sequence = pick(generator, (64, 128, 256, 384, 512, 1024, 1_500))
    if generator.random() < _KNOWN:
        shape = known_shape(generator, "encoder", sequence, most=_LARGEST)
    else:
        layers, hidden, heads = pick(generator, _ENCODERS)
        vocabulary = pick(generator, (1_000, 1_000, 30_522))
        shape = _both_ways(layers, hidden, heads, vocabulary, sequence)
    mode = Mode.TRAINING if generator.random() < 0.6 else Mode.INFERENCE
    return transformer(generator, Family.ENCODER, shape, power(generator, 3, 10), mode)


def _both_ways(layers: int, hidden: int, heads: int, vocabulary: int, sequence: int) -> ModelShape:
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        vocabulary=vocabulary,
        sequence_length=sequence,
        gated_mlp=False,
        causal=False,
    )


_DIFFUSION = ((12, 768, 12), (24, 1024, 16), (28, 1152, 16), (24, 1536, 24), (38, 2432, 38), (57, 3072, 24))
"""(layers, width, heads) of DiT-B, L, XL (2212.09748), SD3 medium, SD3.5 large (2403.03206), FLUX.1."""


def vision(generator: Generator) -> Job:
    """Patches of an image; of an image or a video that is denoised, where sequences are long and nothing is causal."""
    kind = chosen(generator, {"image": 0.45, "denoised": 0.4, "video": 0.15})
    trains = generator.random() < 0.6
    if kind == "image":
        sequence = pick(generator, (50, 197, 197, 257, 577, 1025))
        shape, batch = known_shape(generator, "vision", sequence, most=2.5e10), power(generator, 4, 12)
    elif kind == "denoised":
        sequence = pick(generator, (256, 1024, 4096, 4608))
        shape, batch = (
            _both_ways(*pick(generator, _DIFFUSION), 1_000, sequence),
            power(generator, 0 if trains else 1, 8),
        )
    else:
        sequence = pick(generator, (8_192, 16_384, 32_768, 65_536))
        shape, batch = _both_ways(*pick(generator, _DIFFUSION[2:]), 1_000, sequence), power(generator, 0, 5)
    return transformer(generator, Family.VISION, shape, batch, Mode.TRAINING if trains else Mode.INFERENCE)
