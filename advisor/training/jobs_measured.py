"""Captured steps with random shares of each class of kernels, which the engine carries over to other servers."""

from collections.abc import Mapping
from dataclasses import replace

from numpy.random import Generator

from advisor.training.draws import chosen, pick, power, precision, software, spread, stack, wide_precision
from advisor.training.job import Family, Job
from profiling.workload import CollectiveKind, CollectiveWork, KernelClass, KernelWork, MeasuredStep, Mode, Workload

_ANY_COLLECTIVE = (
    CollectiveKind.ALL_REDUCE,
    CollectiveKind.ALL_GATHER,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.ALL_TO_ALL,
)


_GPUS = {1: 0.15, 2: 0.2, 4: 0.25, 8: 0.4}


def convolution(generator: Generator) -> Job:
    alpha = {KernelClass.MATMUL: 6.0, KernelClass.MEMORY: 4.0, KernelClass.OTHER: 0.2, KernelClass.COPY: 0.2}
    return _measured(generator, Family.CONVOLUTION, alpha, (CollectiveKind.ALL_REDUCE,), streaming=0.2)


def recommender(generator: Generator) -> Job:
    alpha = {KernelClass.MATMUL: 2.0, KernelClass.MEMORY: 3.5, KernelClass.OTHER: 0.3, KernelClass.COPY: 0.5}
    kinds = pick(generator, ((CollectiveKind.ALL_TO_ALL,), (CollectiveKind.ALL_TO_ALL, CollectiveKind.ALL_REDUCE)))
    return _measured(generator, Family.RECOMMENDER, alpha, kinds, streaming=0.15)


def stencil(generator: Generator) -> Job:
    """Sweeps over a grid that exchange its borders with the neighbours, or transpose it to transform it."""
    alpha = {KernelClass.MATMUL: 0.1, KernelClass.MEMORY: 6.0, KernelClass.OTHER: 0.5, KernelClass.COPY: 0.4}
    kinds = pick(
        generator,
        (
            (CollectiveKind.SEND_RECV,),
            (CollectiveKind.SEND_RECV, CollectiveKind.ALL_REDUCE),
            (CollectiveKind.ALL_TO_ALL,),
        ),
    )
    job = _measured(generator, Family.STENCIL, alpha, kinds, streaming=0.15)
    wide = pick(generator, ("fp32", "fp32", "fp32", "fp16"))
    return replace(job, workload=replace(job.workload, precision=wide, stack=None))


def other(generator: Generator) -> Job:
    alpha = {
        KernelClass.MATMUL: 1.0,
        KernelClass.ATTENTION: 0.4,
        KernelClass.MEMORY: 0.9,
        KernelClass.OTHER: 0.25,
        KernelClass.COPY: 0.15,
    }
    return _measured(generator, Family.OTHER, alpha, (pick(generator, _ANY_COLLECTIVE),), streaming=0.15)


def _measured(
    generator: Generator,
    family: Family,
    alpha: Mapping[KernelClass, float],
    kinds: tuple[CollectiveKind, ...],
    streaming: float,
) -> Job:
    """Kernel shares from a Dirichlet distribution, alone or with these kinds of collectives."""
    gpus = chosen(generator, _GPUS)
    busy_s = spread(generator, 0.08, 1.2)
    shares = generator.dirichlet(list(alpha.values()))
    kernels = tuple(
        KernelWork(
            kernel_class=kernel_class,
            busy_s=float(share * busy_s),
            launches=float(max(1.0, share * busy_s / spread(generator, 5e-5, 1.0))),
        )
        for kernel_class, share in zip(alpha, shares, strict=True)
    )
    collectives = tuple(_exchange(generator, gpus, kind, busy_s) for kind in kinds) if gpus > 1 else ()
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
    name = software(generator)
    workload = Workload(
        name=family,
        mode=Mode.TRAINING,
        precision=precision(generator) if family is Family.OTHER else wide_precision(generator),
        batch_per_step=1.0,
        measured=step,
        stack=name,
    )
    mixed = replace(
        stack(generator, name), traffic_factor=1.0, streaming_share=float(generator.beta(2, 2 / streaming - 2))
    )
    return Job(family=family, workload=workload, stack=mixed)


def _exchange(generator: Generator, gpus: int, kind: CollectiveKind, busy_s: float) -> CollectiveWork:
    calls, moved_s = float(power(generator, 0, 6)), busy_s * spread(generator, 0.35, 1.0)
    hidden = float(generator.beta(1.0, 1.0)) if generator.random() < 0.7 else 0.0
    return CollectiveWork(
        kind=kind,
        calls=calls,
        message_bytes=moved_s / calls * spread(generator, 4e10, 1.0),
        group_size=gpus,
        busy_s=moved_s,
        exposed_s=moved_s * (1 - hidden),
    )
