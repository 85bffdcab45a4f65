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
from advisor.engine.described import described_parts, passes_per_step
from advisor.engine.kernels import micro_batch_pieces
from advisor.engine.shapes import bytes_per_value, counted
from advisor.engine.step import job_of, step_parts
from advisor.training.jobs import Job
from catalog.specs import AcceleratorSpec
from profiling.workload import KernelClass, Mode

RESOURCES = ("compute", "memory", "communication")
FASTER = 1.1
_FLOOR_POWER = 4


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
        extra_idle=sometimes(0.7, 0.05, 1.2) + sometimes(0.3, 1.5, 1.2),
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
    lasting = lasting_s(base, odds)
    found = []
    for name in RESOURCES:
        faster = spent(job, traced, candidates, odds, Speed(**{name: FASTER}))
        saved = base.step_s - faster.step_s
        if name == "memory":
            saved = saved + _copied(base, odds) * (1 - 1 / FASTER)
        found.append(saved)
    fast_host = spent(job, traced, candidates, odds, Speed(host=FASTER))
    found.append(base.step_s - fast_host.step_s + odds.extra_idle * base.step_s * (1 - 1 / FASTER))
    step_s = base.step_s + lasting
    return np.stack([np.log(step_s / (step_s - saved)) / np.log(FASTER) for saved in found], axis=1)


def lasting_s(base: Spent, odds: Odds) -> Floats:
    """Waiting, extra idle and extra copies of the step."""
    return odds.waiting * base.exposed_s + (odds.extra_idle + odds.extra_copy) * base.step_s


def _copied(base: Spent, odds: Odds) -> Floats:
    return odds.device_copies * (base.copy_s + odds.extra_copy * base.step_s)


def _described(job: Job, candidates: Candidates, odds: Odds, speed: Speed) -> Spent:
    workload, stack = job.workload, job.stack
    if workload.model is None:
        raise ValueError("a described job has a model shape")
    shape = counted(workload.model, workload.parameters)
    pieces = micro_batch_pieces(workload, shape, candidates, speed)
    parts = described_parts(workload, candidates, speed)
    passes = passes_per_step(workload, candidates)
    update_s = parts.memory_s - passes * pieces.total.memory_s
    training = workload.mode is Mode.TRAINING
    forward = passes * shape.layers * (1.0 + candidates.recompute)
    backward = passes * shape.layers * (1.0 if training else 0.0)
    matmul_kernels = stack.matrix_kernels * (forward + 2 * backward) + passes
    attention_kernels = forward + 2 * backward
    memory_kernels = stack.memory_kernels * (forward + 1.5 * backward) + (shape.layers * 2.0 if training else 1.0)
    products_s = odds.matmul * passes * (pieces.products.compute_s + pieces.products.memory_s)
    streamed = 1 + stack.streaming_share / (1 - stack.streaming_share) / speed.memory
    scores_s = odds.attention * passes * pieces.attention.compute_s
    cache_s = passes * _cache_s(job, candidates, speed)
    rest_s = pieces.elementwise.memory_s * stack.traffic_factor + pieces.attention.memory_s
    fused = workload.flash_attention
    unfused_s = 0.0 if fused else scores_s + cache_s
    matmul_s = _floored(products_s * streamed + unfused_s, matmul_kernels)
    attention_s = _floored(scores_s + cache_s, attention_kernels) if fused else np.zeros(len(candidates))
    memory_s = _floored(odds.memory * (passes * rest_s + update_s), memory_kernels)
    exposed_s = odds.link * parts.communication_exposed_s
    busy_s = matmul_s + attention_s + memory_s + exposed_s
    launching_s = (forward + 2 * backward) * constant("host_launch_s") * stack.host_factor / speed.host
    zero = np.zeros(len(candidates))
    return Spent(
        matmul_s=matmul_s,
        attention_s=attention_s,
        memory_s=memory_s,
        other_s=zero,
        copy_s=zero,
        exposed_s=exposed_s,
        hidden_s=odds.link * parts.communication_hidden_s,
        host_s=(busy_s**_FLOOR_POWER + launching_s**_FLOOR_POWER) ** (1 / _FLOOR_POWER) - busy_s,
        matmul_kernels=matmul_kernels + zero,
        attention_kernels=attention_kernels if fused else zero,
        memory_kernels=memory_kernels + zero,
        other_kernels=zero,
    )


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
    step = job.workload.measured
    if step is None:
        raise ValueError("a carried job has a measured step")
    whole = step_parts(job_of(job.workload, traced), candidates, speed)
    seconds = {work.kernel_class: np.zeros(len(candidates)) for work in step.kernels}
    for work in step.kernels:
        alone = replace(job.workload, measured=replace(step, kernels=(work,), collectives=()))
        parts = step_parts(job_of(alone, traced), candidates, speed)
        seconds[work.kernel_class] = parts.compute_s + parts.memory_s + parts.copy_s
    launches = {work.kernel_class: np.full(len(candidates), work.launches) for work in step.kernels}
    zero = np.zeros(len(candidates))
    streaming = job.stack.streaming_share
    matmul_s = odds.matmul * seconds[KernelClass.MATMUL]
    streamed = matmul_s * (1 - streaming) + _streamed_s(job, traced, candidates, speed, streaming) * odds.matmul
    gpu_s = streamed + odds.memory * seconds[KernelClass.MEMORY]
    launching_s = sum(launches.values(), zero) * constant("host_launch_s") / 30 * job.stack.host_factor / speed.host
    return Spent(
        matmul_s=streamed,
        attention_s=odds.attention * seconds.get(KernelClass.ATTENTION, zero),
        memory_s=odds.memory * seconds[KernelClass.MEMORY],
        other_s=seconds.get(KernelClass.OTHER, zero),
        copy_s=seconds.get(KernelClass.COPY, zero),
        exposed_s=odds.link * whole.communication_exposed_s,
        hidden_s=odds.link * whole.communication_hidden_s,
        host_s=(gpu_s**_FLOOR_POWER + launching_s**_FLOOR_POWER) ** (1 / _FLOOR_POWER) - gpu_s,
        matmul_kernels=launches[KernelClass.MATMUL],
        attention_kernels=launches.get(KernelClass.ATTENTION, zero),
        memory_kernels=launches[KernelClass.MEMORY],
        other_kernels=launches.get(KernelClass.OTHER, zero),
    )


def _streamed_s(job: Job, traced: AcceleratorSpec, candidates: Candidates, speed: Speed, streaming: float) -> Floats:
    """The part of the matrix kernels that memory bounds: it moves with the memory bandwidth."""
    step = job.workload.measured
    if step is None:
        raise ValueError("a carried job has a measured step")
    moved = tuple(
        replace(work, kernel_class=KernelClass.MEMORY, busy_s=work.busy_s * streaming)
        for work in step.kernels
        if work.kernel_class is KernelClass.MATMUL
    )
    alone = replace(job.workload, measured=replace(step, kernels=moved, collectives=()))
    return step_parts(job_of(alone, traced), candidates, speed).memory_s
