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
from advisor.engine.demand import Demand, demand_of
from advisor.engine.described import described_parts
from advisor.engine.kernels import Work
from advisor.engine.shapes import bytes_per_value, counted
from advisor.engine.stacks import Stack, stack_of
from advisor.engine.step import job_of, step_parts
from advisor.engine.transformer import tokens_per_pass
from advisor.training.jobs import Job
from catalog.specs import AcceleratorSpec
from profiling.workload import KernelClass, KernelWork, MeasuredStep, Mode, Workload

RESOURCES = ("compute", "memory", "communication", "host")
FASTER = 1.1
_FLOOR_POWER = 4
_LAYER_LAUNCH_S = 0.0002
"""Host time of a layer's launches in one pass where launching is quick; a job's own stack multiplies it."""
_LAUNCH_SHARE = 1 / 30
"""The engine's launch time is that of a layer; about so much of it is one kernel's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Seconds of one step by what the kernels are named, and their numbers; one row per candidate.

    ``streaming_s``: the part of ``matmul_s`` that memory bounds; ``cached_s``: the part of ``attention_s`` that reads
    cached keys and values. ``copy_s``: copies that a captured step shows. ``bubble_s``: pipeline stages without work.
    ``narrow_s``: the part of ``matmul_s`` in products of few rows, NaN where these are not known.
    """

    matmul_s: Floats
    streaming_s: Floats
    attention_s: Floats
    cached_s: Floats
    memory_s: Floats
    other_s: Floats
    copy_s: Floats
    exposed_s: Floats
    hidden_s: Floats
    bubble_s: Floats
    host_s: Floats
    matmul_kernels: Floats
    attention_kernels: Floats
    memory_kernels: Floats
    other_kernels: Floats
    narrow_s: Floats

    @property
    def kernels_s(self) -> Floats:
        return self.matmul_s + self.attention_s + self.memory_s + self.other_s

    @property
    def step_s(self) -> Floats:
        return self.kernels_s + self.copy_s + self.exposed_s + self.bubble_s + self.host_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """What differs from run to run, per row: factors on the engine's times, and time beside them.

    ``waiting`` over exposed communication; ``late``: the part of it for ranks whose hosts are late, the rest is for
    ranks that have more to do. ``extra_idle`` and ``extra_copy`` over the step. ``device_copies``: part of all
    copies that stays within a GPU's memory.
    """

    matmul: Floats
    attention: Floats
    memory: Floats
    link: Floats
    waiting: Floats
    late: Floats
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
        late=generator.beta(0.5, 0.35, rows),
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
    """S_r of ``RESOURCES``, shape ``[row, 4]``, found by making each 10 % faster in turn."""
    base = spent(job, traced, candidates, odds)
    step_s = whole_s(base, base, odds, AS_IS)
    faster = [Speed(**{name: FASTER}) for name in RESOURCES]
    found = [whole_s(base, spent(job, traced, candidates, odds, speed), odds, speed) for speed in faster]
    return np.clip(np.stack([np.log(step_s / one) / np.log(FASTER) for one in found], axis=1), 0.0, 1.0)


def whole_s(base: Spent, now: Spent, odds: Odds, speed: Speed) -> Floats:
    """The step with waiting, extra idle and extra copies: ``base`` is the step as it is, ``now`` that at ``speed``.

    A late host is less late when it is faster, a rank that has more to do when its kernels are.
    """
    waiting = odds.late / speed.host + (1 - odds.late) * now.kernels_s / np.maximum(base.kernels_s, 1e-12)
    copies = odds.device_copies / speed.memory + (1 - odds.device_copies) / speed.host
    idle_s = odds.extra_idle * base.step_s / speed.host
    return now.step_s - now.copy_s + waiting_s(base, odds) * waiting + idle_s + copied_s(base, odds) * copies


def waiting_s(base: Spent, odds: Odds) -> Floats:
    return odds.waiting * base.exposed_s


def copied_s(base: Spent, odds: Odds) -> Floats:
    """All copies under which nothing else runs."""
    return base.copy_s + odds.extra_copy * base.step_s


def _described(job: Job, candidates: Candidates, odds: Odds, speed: Speed) -> Spent:
    workload, stack, zero = job.workload, job.stack, np.zeros(len(candidates))
    usual = stack_of(workload.stack)
    demand, parts = demand_of(workload, candidates, speed, usual), described_parts(workload, candidates, speed)
    passes, counts, fused = demand.passes, _counts(job, demand), workload.flash_attention
    dense, experts = (work.times(odds.matmul * passes) for work in _products(demand, usual, candidates))
    products, narrow_s = dense + experts, _narrow_s(workload, candidates, dense, experts)
    scores = demand.pieces.attention.times(usual.attention_scale * candidates.hardware.compute.training_scale * passes)
    cache_s = passes * _cache_s(job, candidates, speed)
    scores_s = odds.attention * scores.compute_s
    rest = demand.pieces.elementwise.times(stack.traffic_factor * usual.elementwise_scale) + demand.pieces.routing
    rest_s = odds.memory * (passes * rest.memory_s + scores.memory_s + demand.update.memory_s)
    streaming_s = products.memory_s + products.total_s * _more(stack.streaming_share) / speed.memory
    named_matmul_s = products.compute_s + streaming_s
    if not fused:
        streaming_s, narrow_s = streaming_s + cache_s, narrow_s + cache_s
        named_matmul_s = named_matmul_s + scores_s + cache_s
    matmul_s = _floored(named_matmul_s, counts.matmul)
    attention_s = _floored(scores_s + cache_s, counts.attention) if fused else zero
    memory_s, exposed_s = _floored(rest_s, counts.memory), odds.link * parts.communication_exposed_s
    busy_s = matmul_s + attention_s + memory_s + exposed_s
    host_s = _host_s(busy_s, counts.layers * _LAYER_LAUNCH_S * stack.host_factor / speed.host)
    return Spent(
        matmul_s=matmul_s,
        streaming_s=matmul_s * streaming_s / np.maximum(named_matmul_s, 1e-12),
        attention_s=attention_s,
        cached_s=attention_s * cache_s / np.maximum(scores_s + cache_s, 1e-12),
        memory_s=memory_s,
        other_s=zero,
        copy_s=zero,
        exposed_s=exposed_s,
        hidden_s=odds.link * parts.communication_hidden_s,
        bubble_s=(demand.pp - 1) / demand.vpp * (busy_s + host_s) / np.ceil(passes),
        host_s=host_s,
        matmul_kernels=counts.matmul,
        attention_kernels=counts.attention if fused else zero,
        memory_kernels=counts.memory,
        other_kernels=zero,
        narrow_s=matmul_s * narrow_s / np.maximum(named_matmul_s, 1e-12),
    )


def _products(demand: Demand, usual: Stack, candidates: Candidates) -> tuple[Work, Work]:
    """Of the dense layers, and of routed experts."""
    chip = candidates.hardware.compute.training_scale
    dense, experts = demand.pieces.products.times(usual.products_scale), demand.pieces.experts.times(usual.expert_scale)
    return dense.times(chip), experts.times(chip)


def _more(share: float) -> float:
    """What comes on top for this share of the whole."""
    return share / (1 - share)


_FEW_ROWS = ((8, 0.95), (16, 0.9), (32, 0.8), (64, 0.25), (np.inf, 0.04))
"""Products of at most so many rows, and how much of their time libraries spend in kernels with narrow tiles."""


def _narrow_s(workload: Workload, candidates: Candidates, dense: Work, experts: Work) -> Floats:
    """Time of products with few rows: tokens in a pass, of which each expert gets its part."""
    if workload.model is None:
        return np.full(len(candidates), np.nan)
    shape = counted(workload.model, workload.parameters)
    tokens = tokens_per_pass(shape, candidates)
    found = _narrow_share(tokens, workload.precision) * dense.total_s
    if not shape.moe_layers:
        return found
    routed = tokens * shape.experts_per_token * candidates.ep / shape.experts
    return found + _narrow_share(routed, workload.precision) * experts.total_s


def _narrow_share(rows: Floats, precision: str) -> Floats:
    """Without tensor cores a quarter of the rows is enough to compute rather than to read weights."""
    limits, shares = zip(*_FEW_ROWS, strict=True)
    rows = rows * (4 if precision == "fp32" else 1)
    return np.array(shares)[np.searchsorted(np.array(limits), rows)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """Kernels of one step; ``layers``: layers gone through, a backward pass counting twice."""

    layers: Floats
    matmul: Floats
    attention: Floats
    memory: Floats


_BACKWARD_SHARE = 0.85
"""Element-wise kernels of a pass through a layer, forward and backward together, over those of a forward pass alone."""


def _counts(job: Job, demand: Demand) -> _Counts:
    layers = demand.layer_launches * np.ceil(demand.passes)
    once = 2.0 if job.workload.mode is Mode.TRAINING else 0.1
    share = _BACKWARD_SHARE if job.workload.mode is Mode.TRAINING else 1.0
    return _Counts(
        layers=layers,
        matmul=job.stack.matrix_kernels * layers + demand.passes,
        attention=layers,
        memory=job.stack.memory_kernels * share * layers + once * demand.layer_launches + 1.0,
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
    streaming_s = odds.matmul * _streamed_s(job, traced, candidates, speed)
    matmul_s = odds.matmul * seconds[KernelClass.MATMUL] * (1 - job.stack.streaming_share) + streaming_s
    memory_s = odds.memory * seconds[KernelClass.MEMORY]
    launching_s = sum(launches.values()) * _LAUNCH_SHARE * _LAYER_LAUNCH_S * job.stack.host_factor / speed.host
    whole = step_parts(job_of(job.workload, traced), candidates, speed)
    return Spent(
        matmul_s=matmul_s,
        streaming_s=streaming_s,
        cached_s=zero,
        attention_s=odds.attention * seconds[KernelClass.ATTENTION],
        memory_s=memory_s,
        other_s=seconds[KernelClass.OTHER],
        copy_s=seconds[KernelClass.COPY],
        exposed_s=odds.link * whole.communication_exposed_s,
        hidden_s=odds.link * whole.communication_hidden_s,
        bubble_s=zero,
        host_s=_host_s(matmul_s + memory_s, launching_s),
        matmul_kernels=launches[KernelClass.MATMUL],
        attention_kernels=launches[KernelClass.ATTENTION],
        memory_kernels=launches[KernelClass.MEMORY],
        other_kernels=launches[KernelClass.OTHER],
        narrow_s=np.full(len(candidates), np.nan),
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
