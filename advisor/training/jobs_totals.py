"""Public models that are no plain transformers, by what one sample of them takes: networks of images, audio, graphs."""

from collections.abc import Mapping
from functools import cache
from math import log2

from numpy.random import Generator

from advisor.training.draws import pick, power, software, stack, wide_precision
from advisor.training.job import Family, Job
from profiling.known_models import known_models
from profiling.workload import Mode, ModelTotals, Workload

_FAMILY_OF: Mapping[str, Family] = {
    "cnn": Family.NETWORK,
    "detection": Family.NETWORK,
    "detection-in-regions": Family.NETWORK,
    "vision": Family.NETWORK,
    "vision-transformer": Family.NETWORK,
    "diffusion": Family.DIFFUSION,
}
"""Kinds of ``known_totals.csv``; all others are ``Family.KNOWN``."""


def network(generator: Generator) -> Job:
    return _drawn(generator, Family.NETWORK)


def diffusion(generator: Generator) -> Job:
    return _drawn(generator, Family.DIFFUSION)


def known(generator: Generator) -> Job:
    return _drawn(generator, Family.KNOWN)


@cache
def _models(family: Family) -> Mapping[str, tuple[ModelTotals, ...]]:
    """By kind, so that the fifteen translation models do not crowd out the one of graphs."""
    kinds: dict[str, list[ModelTotals]] = {}
    for one in known_models():
        if isinstance(one.model, ModelTotals) and _FAMILY_OF.get(one.model.family, Family.KNOWN) is family:
            kinds.setdefault(one.model.family, []).append(one.model)
    return {kind: tuple(models) for kind, models in sorted(kinds.items())}


def _drawn(generator: Generator, family: Family) -> Job:
    kinds = _models(family)
    totals = pick(generator, kinds[pick(generator, tuple(kinds))])
    trains = bool(generator.random() < 0.75)
    micro_batch = _micro_batch(generator, totals)
    batch = micro_batch * power(generator, 0, 6 if trains else 2)
    name = software(generator, serves=not trains)
    workload = Workload(
        name=family,
        mode=Mode.TRAINING if trains else Mode.INFERENCE,
        precision=wide_precision(generator),
        batch_per_step=float(batch),
        micro_batch=micro_batch if generator.random() < 0.7 else None,
        totals=totals,
        stack=name,
    )
    return Job(family=family, workload=workload, stack=stack(generator, name, graphs=0.1))


_PASS_FLOPS = (35.0, 43.0)
"""log2 of the FLOPs of a usual forward pass of one GPU, 0.03 to 9 TFLOP: 4 to 1,000 images of ResNet-50, one to ten of
a diffusion network."""
_LARGEST_BATCH = 2**16


def _micro_batch(generator: Generator, totals: ModelTotals) -> int:
    wanted = float(generator.uniform(*_PASS_FLOPS)) - log2(totals.flops_per_sample)
    return min(2 ** max(round(wanted), 0), _LARGEST_BATCH)
