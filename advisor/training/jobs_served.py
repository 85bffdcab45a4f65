"""Passes of language models that serve: prompts, tokens, and both in one pass."""

from dataclasses import replace
from typing import Any

from numpy.random import Generator

from advisor.training.draws import chosen, pick, power
from advisor.training.job import Family, Job
from advisor.training.jobs_described import transformer
from advisor.training.model_shapes import known_shape, made_up_decoder, made_up_experts
from profiling.workload import Mode, ModelShape

_LARGEST = 4.1e11


def prefill(generator: Generator) -> Job:
    shape = _served(generator, power(generator, 7, 14))
    return _job(generator, Family.PREFILL, shape, power(generator, 0, 5))


def decode(generator: Generator) -> Job:
    """One token for each request in flight, now and then a few guessed ones to check; often on several replicas."""
    shape = _served(generator, pick(generator, (1, 1, 1, 1, 1, 1, 3, 5)))
    requests, replicas = power(generator, 0, 8), pick(generator, (1, 1, 1, 2, 4))
    job = _job(generator, Family.DECODE, shape, requests * replicas, micro_batch=requests)
    return replace(job, cached_tokens=float(power(generator, 7, 14)))


def mixed(generator: Generator) -> Job:
    """Part of a prompt in one pass with a token for each request that is being answered (2308.16369).

    It is one sequence of all these rows; what each of the requests has cached is read in the same pass.
    """
    prompt, answered = power(generator, 6, 13), power(generator, 0, 8)
    job = _job(generator, Family.MIXED, _served(generator, prompt + answered), 1, micro_batch=1)
    return replace(job, cached_tokens=float(answered * power(generator, 7, 13)))


def _served(generator: Generator, sequence: int) -> ModelShape:
    """Mostly public models; half of those with experts are known, none has latent attention."""
    kind = chosen(generator, {"known": 0.6, "made up": 0.2, "experts": 0.2})
    if kind == "made up":
        return made_up_decoder(generator, sequence)
    if kind == "known":
        return known_shape(generator, "decoder", sequence, least=5e8, most=_LARGEST)
    shape = known_shape(generator, "experts", sequence, most=_LARGEST)
    return made_up_experts(generator, sequence) if shape.kv_latent else shape


def _job(generator: Generator, family: Family, shape: ModelShape, batch: int, **changed: Any) -> Job:
    """Weights are now and then kept in fewer bits (AWQ, GPTQ), which saves their reading."""
    bits = chosen(generator, {None: 0.75, 4: 0.15, 8: 0.1})
    return transformer(generator, family, shape, batch, Mode.INFERENCE, weight_bits=bits, **changed)
