"""Time of compute and memory work on an accelerator.

Matrix products follow a shape law fitted to 35,000 measured products per chip (``calibration/gemm.csv``); they never
run above the best utilisation measured there, and never faster than their operands can be read. Everything is per
rank; arrays are one row per candidate.
"""

from dataclasses import dataclass

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates, Speed
from advisor.engine.collectives import Floats
from advisor.engine.hardware import Compute
from advisor.engine.shapes import Counted, bytes_per_value
from profiling.workload import Mode, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Seconds bound by arithmetic and by memory traffic."""

    compute_s: Floats
    memory_s: Floats

    @property
    def total_s(self) -> Floats:
        return self.compute_s + self.memory_s


def slowdown(compute: Compute, m: Floats, n: Floats, k: Floats) -> Floats:
    """Time of an M x N x K product over its time at peak, at least the best ever measured on that chip."""
    law = compute.c0 + compute.m0 / m + compute.n0 / n + compute.k0 / k
    return np.maximum(law, 1.0 / compute.max_utilisation)


def matmul(
    candidates: Candidates, speed: Speed, m: Floats, n: Floats, k: Floats, width: int, passes: Floats | float = 1.0
) -> Work:
    """``passes`` products of this shape; the whole is memory time where reading the operands takes longer."""
    hardware = candidates.hardware
    rate = hardware.compute.peak_flops_per_s * hardware.compute.gain * speed.compute
    arithmetic = 2 * m * n * k / rate * slowdown(hardware.compute, m, n, k)
    traffic = width * (m * n + n * k + m * k) / (hardware.memory.bytes_per_s * speed.memory)
    bound = arithmetic >= traffic
    return Work(compute_s=np.where(bound, arithmetic, 0.0) * passes, memory_s=np.where(bound, 0.0, traffic) * passes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Work of one micro-batch by kind of kernel."""

    products: Work
    attention: Work
    elementwise: Work

    @property
    def total(self) -> Work:
        return Work(
            compute_s=self.products.compute_s + self.attention.compute_s + self.elementwise.compute_s,
            memory_s=self.products.memory_s + self.attention.memory_s + self.elementwise.memory_s,
        )


def micro_batch_pieces(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Pieces:
    """One micro-batch through all layers: forward, and in training backward (and forward again if recomputed)."""
    return Pieces(
        products=_products(workload, shape, candidates, speed),
        attention=_attention(workload, shape, candidates, speed),
        elementwise=_elementwise(workload, shape, candidates, speed),
    )


def micro_batch_work(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Work:
    """The pieces together."""
    return micro_batch_pieces(workload, shape, candidates, speed).total


def _products(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Work:
    tokens, tp = candidates.micro_batch * shape.sequence, candidates.tp
    hidden = np.full(len(candidates), float(shape.hidden))
    rows = candidates.micro_batch if workload.mode is Mode.INFERENCE else tokens
    layer = (
        (tokens, (shape.hidden + 2 * shape.kv_width) / tp, hidden),
        (tokens, hidden, shape.hidden / tp),
        (tokens, shape.up_width / tp, hidden),
        (tokens, hidden, shape.ffn / tp),
    )
    passes, once = shape.layers * (1.0 + candidates.recompute), np.ones(len(candidates))
    found = [_trained(workload, candidates, speed, (m, n, k), shape.layers, passes) for m, n, k in layer]
    found.append(_trained(workload, candidates, speed, (rows, shape.vocabulary / tp, hidden), 1, once))
    return Work(compute_s=sum(work.compute_s for work in found), memory_s=sum(work.memory_s for work in found))


def _trained(
    workload: Workload,
    candidates: Candidates,
    speed: Speed,
    sides: tuple[Floats, Floats, Floats],
    count: int,
    forward_passes: Floats,
) -> Work:
    """``count`` products of these sides (M, N, K) and, in training, the two gradients of each."""
    width = bytes_per_value(workload.precision)
    m, n, k = sides
    found = [matmul(candidates, speed, m, n, k, width, forward_passes)]
    if workload.mode is Mode.TRAINING:
        found.append(matmul(candidates, speed, m, k, n, width, count))
        found.append(matmul(candidates, speed, n, k, m, width, count))
    return Work(compute_s=sum(work.compute_s for work in found), memory_s=sum(work.memory_s for work in found))


def _attention(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Work:
    tokens, tp = candidates.micro_batch * shape.sequence, candidates.tp
    backward = constant("backward_attention_ratio") if workload.mode is Mode.TRAINING else 0.0
    passes = 1.0 + candidates.recompute + backward
    causal = 0.5 if workload.flash_attention else 1.0
    flops = 4 * tokens * shape.sequence * shape.hidden / tp * causal * passes * shape.layers
    compute = candidates.hardware.compute
    rate = compute.peak_flops_per_s * compute.attention_utilisation * speed.compute
    scores = 0.0 if workload.flash_attention else shape.heads * shape.sequence * tokens / tp
    sweeps = 5.0 * (1.0 + candidates.recompute) + (8.0 if workload.mode is Mode.TRAINING else 0.0)
    traffic = scores * bytes_per_value(workload.precision) * sweeps * shape.layers
    return Work(compute_s=flops / rate, memory_s=traffic / _memory_rate(candidates, speed))


def _elementwise(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Work:
    """Norms, residuals, activations and the loss. A forward pass is a third of forward and backward."""
    tokens, tp = candidates.micro_batch * shape.sequence, candidates.tp
    training = workload.mode is Mode.TRAINING
    layer = bytes_per_value(workload.precision) * tokens * (18 * shape.hidden + 10 * shape.up_width) / tp
    share = (1.0 if training else 1 / 3) + candidates.recompute / 3
    loss = 16.0 * tokens * shape.vocabulary / tp if training else 0.0
    traffic = constant("elementwise_scale") * (layer * share * shape.layers + loss)
    return Work(compute_s=np.zeros(len(candidates)), memory_s=traffic / _memory_rate(candidates, speed))


def optimizer_s(parameters: float, candidates: Candidates, speed: Speed) -> Floats:
    """One pass over weights, gradients and moments of the parameters that this rank updates."""
    sharded = np.where(candidates.zero_stage > 0, candidates.dp, 1)
    traffic = constant("optimizer_bytes_per_parameter") * parameters / candidates.tp / sharded
    return traffic / _memory_rate(candidates, speed)


def _memory_rate(candidates: Candidates, speed: Speed) -> Floats:
    return candidates.hardware.memory.bytes_per_s * speed.memory
