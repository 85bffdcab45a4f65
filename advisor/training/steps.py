"""A training job's step on servers by kind of kernel, as a profiler would name it, and what speeds it up.

The engine says how long each piece takes. What its formulas leave out and real steps have is added here: code that is
more or less efficient, kernels too short to fill the GPU, matrix kernels that memory bounds, cached keys and values.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from advisor.engine.calibrated import constant
from advisor.engine.candidates import AS_IS, Candidates, Speed
from advisor.engine.collectives import Floats
from advisor.engine.demand import demand_of, passes_per_step
from advisor.engine.described import described_parts
from advisor.engine.shapes import bytes_per_value, counted
from advisor.engine.stacks import stack_of
from advisor.engine.step import job_of, step_parts
from advisor.training.jobs import Job
from catalog.specs import AcceleratorSpec
from profiling.workload import KernelClass, KernelWork, MeasuredStep, Mode

RESOURCES = ("compute", "memory", "communication")
FASTER = 1.1
_FLOOR_POWER = 4
_LAYER_LAUNCH_S = 0.0002
"""Host time of a layer's launches in one pass where launching is quick; a job's own stack multiplies it."""
_LAUNCH_SHARE = 1 / 30
"""The engine's launch time is that of a layer; about so much of it is one kernel's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Seconds of one step by what the kernels are named, and their numbers; one row per candidate."""

    matmul_s: Floats
    attention_s: Floats
    memory_s: Floats
    other_s: Floats
    copy_s: Floats
    exposed_s: Floats
    hidden_s: Floats
    host_s: Floats
    matmul_kernels: Floats
    attention_kernels: Floats
    memory_kernels: Floats
    other_kernels: Floats

    @property
    def step_s(self) -> Floats:
        return (
            self.matmul_s + self.attention_s + self.memory_s + self.other_s + self.copy_s + self.exposed_s + self.host_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """What differs from run to run, per row: factors on the engine's times, and time that no resource shortens.

    ``waiting`` over exposed communication; ``extra_idle`` and ``extra_copy`` over the step. ``device_copies``: part of
    the copies that stays within a GPU's memory.
    """

    matmul: Floats
    attention: Floats
    memory: Floats
    link: Floats
    waiting: Floats
    extra_idle: Floats
    extra_copy: Floats
    device_copies: Floats


def draw_odds(rows: int, generator: Generator) -> Odds:
    """Run-to-run differences for so many rows. Waiting and idle are mostly small and now and then nearly all."""

    def factor(sigma: float) -> Floats:
        return generator.lognormal(0.0, sigma, rows)

    def sometimes(share: float, median: float, sigma: float) -> Floats:
        return np.where(generator.random(rows) < share, median * factor(sigma), 0.0)

    return Odds(
        matmul=factor(0.2),
        attention=factor(0.3),
        memory=factor(0.25),
        link=factor(0.35),
        waiting=sometimes(0.6, 0.15, 1.0) + sometimes(0.3, 2.0, 1.0),
        extra_idle=sometimes(0.7, 0.05, 1.2) + sometimes(0.45, 1.5, 1.2),
        extra_copy=sometimes(0.6, 0.005, 1.0) + sometimes(0.08, 0.2, 1.0),
        device_copies=generator.beta(0.7, 0.7, rows),
    )


def spent(job: Job, traced: AcceleratorSpec, candidates: Candidates, odds: Odds, speed: Speed = AS_IS) -> Spent:
    """One step on each candidate without waiting, extra idle and extra copies; ``traced``: where a capture was made."""
    if job.workload.measured is None:
        return _described(job, candidates, odds, speed)
    return _carried(job, traced, candidates, odds, speed)


def sensitivities(job: Job, traced: AcceleratorSpec, candidates: Candidates, odds: Odds) -> Floats:
    """S_r of ``RESOURCES`` and of the host, shape ``[row, 4]``, found by making each 10 % faster in turn."""
    base = spent(job, traced, candidates, odds)
    saved = {
        name: base.step_s - spent(job, traced, candidates, odds, Speed(**{name: FASTER})).step_s
        for name in (*RESOURCES, "host")
    }
    less = 1 - 1 / FASTER
    saved["memory"] = saved["memory"] + less * odds.device_copies * (base.copy_s + odds.extra_copy * base.step_s)
    saved["host"] = saved["host"] + less * odds.extra_idle * base.step_s
    step_s = base.step_s + lasting_s(base, odds)
    return np.stack([np.log(step_s / (step_s - part)) / np.log(FASTER) for part in saved.values()], axis=1)


def lasting_s(base: Spent, odds: Odds) -> Floats:
    """Waiting, extra idle and extra copies of the step."""
    return odds.waiting * base.exposed_s + (odds.extra_idle + odds.extra_copy) * base.step_s


def _described(job: Job, candidates: Candidates, odds: Odds, speed: Speed) -> Spent:
    workload, stack = job.workload, job.stack
    if workload.model is None:
        raise ValueError("a described job has a model shape")
    shape = counted(workload.model, workload.parameters)
    usual = stack_of(workload.stack)
    demand, chip = demand_of(workload, candidates, speed, usual), candidates.hardware.compute.training_scale
    parts = described_parts(workload, candidates, speed)
    passes, counts = demand.passes, _counts(job, shape.layers, candidates)
    zero, fused, pieces = np.zeros(len(candidates)), workload.flash_attention, demand.pieces
    products_s = odds.matmul * passes * pieces.products.total_s * usual.products_scale * chip
    streamed = 1 + stack.streaming_share / (1 - stack.streaming_share) / speed.memory
    attention = pieces.attention.times(usual.attention_scale * chip)
    scores_s = odds.attention * passes * attention.compute_s + passes * _cache_s(job, candidates, speed)
    traffic_factor = stack.traffic_factor * usual.elementwise_scale
    rest_s = passes * (pieces.elementwise.memory_s * traffic_factor + attention.memory_s + pieces.routing.memory_s)
    update_s = demand.update.memory_s
    matmul_s = _floored(products_s * streamed + (0.0 if fused else scores_s), counts.matmul)
    attention_s = _floored(scores_s, counts.attention) if fused else zero
    memory_s = _floored(odds.memory * (rest_s + update_s), counts.memory)
    exposed_s = odds.link * parts.communication_exposed_s
    launching_s = counts.passes * _LAYER_LAUNCH_S * stack.host_factor / speed.host
    return Spent(
        matmul_s=matmul_s,
        attention_s=attention_s,
        memory_s=memory_s,
        other_s=zero,
        copy_s=zero,
        exposed_s=exposed_s,
        hidden_s=odds.link * parts.communication_hidden_s,
        host_s=_host_s(matmul_s + attention_s + memory_s + exposed_s, launching_s),
        matmul_kernels=counts.matmul,
        attention_kernels=counts.attention if fused else zero,
        memory_kernels=counts.memory,
        other_kernels=zero,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """Kernels of one step; ``passes``: layers gone through, a backward pass counting twice."""

    passes: Floats
    matmul: Floats
    attention: Floats
    memory: Floats


def _counts(job: Job, layers: int, candidates: Candidates) -> _Counts:
    training = job.workload.mode is Mode.TRAINING
    passes = passes_per_step(job.workload, candidates)
    forward = passes * layers * (1.0 + candidates.recompute)
    backward = passes * layers * (1.0 if training else 0.0)
    update = layers * 2.0 if training else 1.0
    return _Counts(
        passes=forward + 2 * backward,
        matmul=job.stack.matrix_kernels * (forward + 2 * backward) + passes,
        attention=forward + 2 * backward,
        memory=job.stack.memory_kernels * (forward + 1.5 * backward) + update,
    )


def _host_s(busy_s: Floats, launching_s: Floats) -> Floats:
    """What launching adds: the fourth-power mean of GPU and host time, less the GPU time."""
    return (busy_s**_FLOOR_POWER + launching_s**_FLOOR_POWER) ** (1 / _FLOOR_POWER) - busy_s


def _floored(seconds: Floats, kernels: Floats) -> Floats:
    """Kernels need a shortest time each, however little they do."""
    floor_s = kernels * constant("kernel_launch_floor_s")
    return (seconds**_FLOOR_POWER + floor_s**_FLOOR_POWER) ** (1 / _FLOOR_POWER)


def _cache_s(job: Job, candidates: Candidates, speed: Speed) -> Floats:
    """Reading the keys and values of all earlier tokens, once per generated token."""
    if job.workload.model is None or not job.cached_tokens:
        return np.zeros(len(candidates))
    shape = counted(job.workload.model)
    values = 2 * shape.layers * shape.kv_width * job.cached_tokens * candidates.micro_batch / candidates.tp
    return values * bytes_per_value(job.workload.precision) / (candidates.hardware.memory.bytes_per_s * speed.memory)


def _carried(job: Job, traced: AcceleratorSpec, candidates: Candidates, odds: Odds, speed: Speed) -> Spent:
    """Class by class, for the engine does not tell which of its compute or memory time had which name."""
    step = _measured(job)
    zero = np.zeros(len(candidates))
    seconds, launches = dict.fromkeys(KernelClass, zero), dict.fromkeys(KernelClass, zero)
    for work in step.kernels:
        seconds[work.kernel_class] = _alone_s(job, work, traced, candidates, speed)
        launches[work.kernel_class] = zero + work.launches
    matmul_s = odds.matmul * (
        seconds[KernelClass.MATMUL] * (1 - job.stack.streaming_share) + _streamed_s(job, traced, candidates, speed)
    )
    memory_s = odds.memory * seconds[KernelClass.MEMORY]
    launching_s = sum(launches.values()) * _LAUNCH_SHARE * _LAYER_LAUNCH_S * job.stack.host_factor / speed.host
    whole = step_parts(job_of(job.workload, traced), candidates, speed)
    return Spent(
        matmul_s=matmul_s,
        attention_s=odds.attention * seconds[KernelClass.ATTENTION],
        memory_s=memory_s,
        other_s=seconds[KernelClass.OTHER],
        copy_s=seconds[KernelClass.COPY],
        exposed_s=odds.link * whole.communication_exposed_s,
        hidden_s=odds.link * whole.communication_hidden_s,
        host_s=_host_s(matmul_s + memory_s, launching_s),
        matmul_kernels=launches[KernelClass.MATMUL],
        attention_kernels=launches[KernelClass.ATTENTION],
        memory_kernels=launches[KernelClass.MEMORY],
        other_kernels=launches[KernelClass.OTHER],
    )


def _measured(job: Job) -> MeasuredStep:
    if job.workload.measured is None:
        raise ValueError("a carried job has a measured step")
    return job.workload.measured


def _alone_s(job: Job, work: KernelWork, traced: AcceleratorSpec, candidates: Candidates, speed: Speed) -> Floats:
    """Seconds of one class of kernels on the candidates."""
    only = replace(job.workload, measured=replace(_measured(job), kernels=(work,), collectives=()))
    parts = step_parts(job_of(only, traced), candidates, speed)
    return parts.compute_s + parts.memory_s + parts.copy_s


def _streamed_s(job: Job, traced: AcceleratorSpec, candidates: Candidates, speed: Speed) -> Floats:
    """The part of the matrix kernels that memory bounds: it moves with the memory bandwidth."""
    (work,) = (work for work in _measured(job).kernels if work.kernel_class is KernelClass.MATMUL)
    part = replace(work, kernel_class=KernelClass.MEMORY, busy_s=work.busy_s * job.stack.streaming_share)
    return _alone_s(job, part, traced, candidates, speed)
