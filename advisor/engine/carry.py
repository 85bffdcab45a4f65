"""A measured step carried over to other hardware.

Each kernel class moves by what bounds it; collectives are never scaled but timed again from their bytes on the
target's links; what the host did not get done in time stays as it was. The captured run is weak-scaled: every rank does
what it did in the capture.
"""

from dataclasses import dataclass, replace

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import AS_IS, Candidates, Parts, Speed
from advisor.engine.collectives import Floats
from advisor.engine.described import gradient_value_bytes
from advisor.engine.exchanges import Replicas, gradient_exchange, tensor_exchange_s
from advisor.engine.groups import collective_s
from advisor.engine.hardware import Hardware
from advisor.engine.kernels import Work
from advisor.engine.shapes import bytes_per_value, counted, parameter_count
from advisor.engine.stacks import stack_of
from advisor.engine.transformer import micro_batch_work
from profiling.workload import CollectiveKind, CollectiveWork, KernelClass, KernelWork, MeasuredStep, Mode, Workload

_LARGE_SIDE = 4096
_MOST_HIDDEN = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One way to read the captured exchanges.

    ``message_bytes``: per collective, in order. ``waiting_s``: exposed time that was no transfer; links do not shorten
    it. ``pace``: time of a transfer over what the links are thought to take.
    """

    message_bytes: tuple[float, ...]
    waiting_s: float
    pace: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A measured step and the hardware it was measured on (one row).

    ``reading`` is the likely one; ``others`` are as possible, and the range has to hold them. ``unexplained``: share
    of the step that neither known waiting nor transfer over the likely links accounts for.
    """

    step: MeasuredStep
    source: Hardware
    reading: Reading
    others: tuple[Reading, ...] = ()
    unexplained: float = 0.0


def carried_parts(workload: Workload, captured: Captured, candidates: Candidates, speed: Speed) -> Parts:
    """One step of a traced job on each candidate, by parts."""
    step = captured.step
    factors = _class_factors(captured.source, candidates, speed)
    zero = np.zeros(len(candidates))
    times = dict.fromkeys(KernelClass, zero)
    for work in step.kernels:
        times[work.kernel_class] = times[work.kernel_class] + _kernel_s(work, factors, candidates, speed)
    divided, tensor_s = _divided(workload, captured, candidates, speed)
    compute_s = divided.compute_s * (times[KernelClass.MATMUL] + times[KernelClass.ATTENTION])
    memory_s = divided.memory_s * (times[KernelClass.MEMORY] + times[KernelClass.OTHER])
    exposed_s, hidden_s = _communication(workload, captured, candidates, speed, compute_s + memory_s)
    return Parts(
        compute_s=compute_s,
        memory_s=memory_s,
        copy_s=times[KernelClass.COPY],
        communication_exposed_s=exposed_s + tensor_s,
        communication_hidden_s=hidden_s,
        bubble_s=zero,
        host_s=zero + step.idle_s / speed.host,
        input_s=zero,
    )


def _divided(workload: Workload, captured: Captured, candidates: Candidates, speed: Speed) -> tuple[Work, Floats]:
    """What tensor parallelism leaves of compute and memory time (factors), and the exchange that it adds.

    Both come from the description, as the capture was not divided so. The factors are those of the traced accelerator:
    that way a faster target never looks slower because its products became memory-bound.
    """
    ones = np.ones(len(candidates))
    if workload.model is None or not (candidates.tp > 1).any():
        return Work(compute_s=ones, memory_s=ones), 0 * ones
    shape = counted(workload.model, workload.parameters)
    rows = candidates.passing(workload.batch_per_step / captured.step.gpu_count)
    there = replace(rows, hardware=captured.source.take(np.zeros(len(candidates), dtype=np.int64)))
    parts = micro_batch_work(workload, shape, there, AS_IS)
    whole = micro_batch_work(workload, shape, there.undivided(), AS_IS)
    share = parts.total_s / whole.total_s
    return Work(compute_s=share, memory_s=share), tensor_exchange_s(workload, shape, rows, speed)


def _class_factors(source: Hardware, candidates: Candidates, speed: Speed) -> dict[KernelClass, Floats]:
    """Time on the target over time on the source, per kernel class. OTHER takes the worse of compute and memory."""
    target = candidates.hardware
    matmul = _matmul_rate(source) / (_matmul_rate(target) * speed.compute)
    attention = _attention_rate(source) / (_attention_rate(target) * speed.compute)
    memory = source.memory.bytes_per_s / (target.memory.bytes_per_s * speed.memory)
    return {
        KernelClass.MATMUL: matmul,
        KernelClass.ATTENTION: attention,
        KernelClass.MEMORY: memory,
        KernelClass.COPY: source.link.host_bytes_per_s / target.link.host_bytes_per_s,
        KernelClass.OTHER: np.maximum(matmul, memory),
    }


def _matmul_rate(hardware: Hardware) -> Floats:
    """Achievable FLOP/s of a large product (all sides 4,096)."""
    compute = hardware.compute
    law = compute.c0 + (compute.m0 + compute.n0 + compute.k0) / _LARGE_SIDE
    return compute.peak_flops_per_s * compute.gain / np.maximum(law, 1 / compute.max_utilisation)


def _attention_rate(hardware: Hardware) -> Floats:
    return hardware.compute.peak_flops_per_s * hardware.compute.attention_utilisation


def _kernel_s(work: KernelWork, factors: dict[KernelClass, Floats], candidates: Candidates, speed: Speed) -> Floats:
    """Scaled time, never under what launching so many kernels takes nor under the roofs of the target."""
    hardware = candidates.hardware
    floor = min(work.busy_s, work.launches * constant("kernel_launch_floor_s"))
    scaled = np.maximum(work.busy_s * factors[work.kernel_class], floor)
    if work.flops is not None and work.kernel_class in (KernelClass.MATMUL, KernelClass.ATTENTION):
        roof = hardware.compute.peak_flops_per_s * hardware.compute.gain * speed.compute
        scaled = np.maximum(scaled, work.flops / roof)
    return scaled


def _communication(
    workload: Workload, captured: Captured, candidates: Candidates, speed: Speed, kernel_s: Floats
) -> tuple[Floats, Floats]:
    """(exposed, hidden). Where the capture exchanged nothing, training on more GPUs exchanges the gradients."""
    step = captured.step
    if not step.collectives:
        return _new_gradients(workload, candidates, speed, kernel_s + step.idle_s)
    exposed_s, hidden_s = transfer_s(step, captured.reading, candidates, speed, kernel_s)
    own_s = kernel_time_s(step)
    waiting_s = captured.reading.waiting_s * (kernel_s / own_s if own_s > 0 else 1.0)
    several = candidates.gpus > 1
    return np.where(several, exposed_s + waiting_s, 0.0), np.where(several, hidden_s, 0.0)


def kernel_time_s(step: MeasuredStep) -> float:
    """Computing time of the capture, copies left out: what waiting for slower ranks goes with."""
    return sum(work.busy_s for work in step.kernels if work.kernel_class is not KernelClass.COPY)


def transfer_s(
    step: MeasuredStep, reading: Reading, candidates: Candidates, speed: Speed, kernel_s: Floats
) -> tuple[Floats, Floats]:
    """(exposed, hidden) transfer alone, timed again from its bytes; the hidden share stays as captured."""
    total = sum(work.busy_s for work in step.collectives)
    exposed_s, hidden_s = np.zeros(len(candidates)), np.zeros(len(candidates))
    for work, size in zip(step.collectives, reading.message_bytes, strict=True):
        moved = reading.pace * work.calls * _retimed_s(work, size, step, candidates, speed)
        cover = _MOST_HIDDEN * kernel_s * (work.busy_s / total if total > 0 else 0.0)
        under = np.minimum(moved * _hidden_share(work), cover)
        exposed_s, hidden_s = exposed_s + moved - under, hidden_s + under
    return exposed_s, hidden_s


def _hidden_share(work: CollectiveWork) -> float:
    """Share of the collective that computing covered in the capture."""
    return 1 - min(work.exposed_s / work.busy_s, 1.0) if work.busy_s > 0 else 0.0


def _retimed_s(work: CollectiveWork, size: float, step: MeasuredStep, candidates: Candidates, speed: Speed) -> Floats:
    """One call on the target. Groups of the whole job take the new GPU count, smaller groups keep their size."""
    kind = CollectiveKind.ALL_REDUCE if work.kind is CollectiveKind.UNKNOWN else work.kind
    if work.group_size in (None, step.gpu_count):
        share = size / candidates.tp
        return collective_s(candidates, kind, share, size=candidates.dp, stride=candidates.tp, speed=speed)
    group = np.full(len(candidates), work.group_size, dtype=np.int64)
    same = np.full(len(candidates), size)
    return collective_s(candidates, kind, same, size=group, stride=np.ones_like(group), speed=speed)


def _new_gradients(workload: Workload, candidates: Candidates, speed: Speed, window_s: Floats) -> tuple[Floats, Floats]:
    parameters = parameter_count(workload)
    if workload.mode is Mode.INFERENCE or parameters is None:
        return np.zeros(len(candidates)), np.zeros(len(candidates))
    stack = stack_of(workload.stack)
    found = gradient_exchange(
        Replicas(parameters=parameters / candidates.tp, size=candidates.dp, stride=candidates.tp),
        candidates,
        speed,
        stack=stack,
        gradient_bytes=gradient_value_bytes(workload, stack),
        weight_bytes=bytes_per_value(workload.precision),
        micro_s=window_s,
        passes=np.ones(len(candidates)),
    )
    return found.exposed_s, found.hidden_s
