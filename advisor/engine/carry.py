"""A measured step carried over to other hardware.

Each kernel class moves by what bounds it; collectives are never scaled but timed again from their bytes on the
target's links. Where the capture tells what waited for what, the step is then replayed (``carried_graph.py``); else
what the host did not get done in time, and the share of each exchange that computing hides, stay as they were. The
captured run is weak-scaled: every rank does what it did in the capture.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import AS_IS, Candidates, Parts, Speed
from advisor.engine.captured import Captured
from advisor.engine.captured_exchanges import communication
from advisor.engine.carried_graph import replayed_parts
from advisor.engine.collectives import Floats
from advisor.engine.exchanges import tensor_exchange_s
from advisor.engine.hardware import Hardware
from advisor.engine.kernels import Work
from advisor.engine.shapes import counted
from advisor.engine.transformer import micro_batch_pieces
from profiling.workload import KernelClass, KernelWork, Workload

_LARGE_SIDE = 4096
_PRODUCTS = (KernelClass.MATMUL, KernelClass.ATTENTION)


def carried_parts(workload: Workload, captured: Captured, candidates: Candidates, speed: Speed) -> Parts:
    """One step of a traced job on each candidate, by parts: its graph replayed, or else class by class."""
    factors = _class_factors(captured.source, candidates, speed)
    divided, tensor_s = _divided(workload, captured, candidates, speed)
    times = {name: np.zeros(len(candidates)) for name in KernelClass}
    for work in captured.step.kernels:
        share = _share(divided, work.kernel_class)
        times[work.kernel_class] = times[work.kernel_class] + share * _kernel_s(work, factors, candidates, speed)
    if captured.graph is None:
        found = _summed(workload, captured, candidates, speed, times)
    else:
        found = replayed_parts(workload, captured, captured.graph, candidates, speed, times)
    return replace(found, communication_exposed_s=found.communication_exposed_s + tensor_s)


def _share(divided: Work, kernel_class: KernelClass) -> Floats | float:
    """What tensor parallelism leaves of the time of a class."""
    if kernel_class is KernelClass.COPY:
        return 1.0
    return divided.compute_s if kernel_class in _PRODUCTS else divided.memory_s


def _summed(
    workload: Workload, captured: Captured, candidates: Candidates, speed: Speed, times: Mapping[KernelClass, Floats]
) -> Parts:
    """Times of the classes, the exchanges that show and the idle time added up."""
    compute_s = times[KernelClass.MATMUL] + times[KernelClass.ATTENTION]
    memory_s = times[KernelClass.MEMORY] + times[KernelClass.OTHER]
    exposed_s, hidden_s = communication(workload, captured, candidates, speed, compute_s + memory_s)
    zero = np.zeros(len(candidates))
    return Parts(
        compute_s=compute_s,
        memory_s=memory_s,
        copy_s=times[KernelClass.COPY],
        communication_exposed_s=exposed_s,
        communication_hidden_s=hidden_s,
        bubble_s=zero,
        host_s=zero + captured.step.idle_s / speed.host,
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
    parts = micro_batch_pieces(workload, shape, there, AS_IS).total
    whole = micro_batch_pieces(workload, shape, there.undivided(), AS_IS).total
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
    return compute.peak_flops_per_s / np.maximum(law, 1 / compute.max_utilisation)


def _attention_rate(hardware: Hardware) -> Floats:
    return hardware.compute.peak_flops_per_s * hardware.compute.attention_utilisation


def _kernel_s(work: KernelWork, factors: dict[KernelClass, Floats], candidates: Candidates, speed: Speed) -> Floats:
    """Scaled time, never under what launching so many kernels takes nor under the roofs of the target."""
    hardware = candidates.hardware
    floor = min(work.busy_s, work.launches * constant("kernel_launch_floor_s"))
    scaled = np.maximum(work.busy_s * factors[work.kernel_class], floor)
    if work.flops is not None and work.kernel_class in _PRODUCTS:
        roof = hardware.compute.peak_flops_per_s * speed.compute
        scaled = np.maximum(scaled, work.flops / roof)
    return scaled
