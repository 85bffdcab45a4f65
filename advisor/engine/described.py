"""Step of a job that is known by its description: work counted, exchanges of the plan, bubble, host and input."""

from dataclasses import dataclass, replace

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates, Parts, Speed
from advisor.engine.collectives import Floats
from advisor.engine.exchanges import (
    Exchange,
    Replicas,
    gradient_exchange,
    handover_s,
    layer_exchanges,
    no_exchange,
)
from advisor.engine.kernels import Work, streamed
from advisor.engine.shapes import Counted, bytes_per_value, counted
from advisor.engine.stacks import Stack, stack_of
from advisor.engine.totals import embedding_exchange, totals_launch_s, totals_work
from advisor.engine.transformer import micro_batch_pieces, stage_share
from profiling.workload import Mode, ModelTotals, Workload

_FLOOR_POWER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one rank of the slowest pipeline stage does in one micro-batch, and the weights that it holds.

    ``work``: kernels; ``exchange``: inside the layers; ``handover_s``: to the next stage and back; ``launching_s``:
    host time. ``replicas``: groups of ranks with the same weights.
    """

    work: Work
    exchange: Exchange
    handover_s: Floats
    launching_s: Floats
    replicas: tuple[Replicas, ...]


def described_parts(
    workload: Workload, candidates: Candidates, speed: Speed, pace: float = 1.0, stack: Stack | None = None
) -> Parts:
    """One step of a described job, by parts; one row per candidate.

    ``pace``: time of everything but the exchanges, as measured on an anchor, over what the formulas say. ``stack``:
    instead of the workload's own (calibration tries others).
    """
    stack, passes = stack or stack_of(workload.stack), passes_per_step(workload, candidates)
    one = _demand(workload, candidates, speed, stack)
    work, launching_s = one.work.times(pace), one.launching_s * pace / speed.host
    shown_s = one.exchange.exposed_s + one.handover_s
    busy_s = passes * (work.total_s + shown_s)
    host_s = _floored(busy_s, np.ceil(passes) * launching_s) - busy_s
    micro_s = (busy_s + host_s) / np.ceil(passes)
    bubble_s = (candidates.pp - 1) / candidates.vpp * micro_s
    gradients = _gradients(workload, one, candidates, speed, stack, micro_s, np.ceil(passes))
    update = _update(workload, one, candidates, speed).times(pace)
    busy = Parts(
        compute_s=passes * work.compute_s,
        memory_s=passes * work.memory_s + update.memory_s,
        copy_s=np.zeros(len(candidates)),
        communication_exposed_s=passes * shown_s + gradients.exposed_s,
        communication_hidden_s=passes * one.exchange.hidden_s + gradients.hidden_s,
        bubble_s=bubble_s,
        host_s=host_s,
        input_s=np.zeros(len(candidates)),
    )
    return with_input(workload, busy, candidates, speed)


def passes_per_step(workload: Workload, candidates: Candidates) -> Floats:
    """Micro-batches that the busiest rank works through in a step; a fraction where the last one is not full.

    The others wait for it: nine samples on eight GPUs take as long as sixteen.
    """
    return np.maximum(np.ceil(workload.batch_per_step / candidates.dp) / candidates.micro_batch, 1.0)


def _demand(workload: Workload, candidates: Candidates, speed: Speed, stack: Stack) -> Demand:
    if workload.model is not None:
        return _transformer_demand(workload, counted(workload.model, workload.parameters), candidates, speed, stack)
    if workload.totals is not None:
        return _totals_demand(workload, workload.totals, candidates, speed, stack)
    raise ValueError("a described job has a model shape or totals")


def _transformer_demand(
    workload: Workload, shape: Counted, candidates: Candidates, speed: Speed, stack: Stack
) -> Demand:
    work = micro_batch_pieces(workload, shape, candidates, speed, stack).total
    several_stages = (candidates.pp > 1).any()
    layers_s = shape.layers * stack.host_launch_s + shape.moe_layers * stack.expert_launch_s
    return Demand(
        work=work,
        exchange=layer_exchanges(workload, shape, candidates, speed, stack, work.total_s),
        handover_s=handover_s(workload, shape, candidates, speed) if several_stages else np.zeros(len(candidates)),
        launching_s=_launches(workload, candidates) * stage_share(shape, candidates) * layers_s,
        replicas=_replicas(workload, shape, candidates),
    )


def _launches(workload: Workload, candidates: Candidates) -> Floats:
    """Passes through a layer's launches: the backward pass launches about twice as much."""
    return (3.0 if workload.mode is Mode.TRAINING else 1.0) + candidates.recompute


def _replicas(workload: Workload, shape: Counted, candidates: Candidates) -> tuple[Replicas, ...]:
    """Dense weights are the same on dp x cp ranks, experts on those that hold the same experts."""
    tp, ep, pp = candidates.tp, candidates.ep, candidates.pp
    spread = candidates.dp * candidates.cp
    if workload.lora_rank is not None:
        adapters = lora_parameters(shape, workload.lora_rank)
        return (Replicas(parameters=adapters / (tp * pp), size=spread, stride=tp),)
    dense = Replicas(parameters=shape.dense_parameters / (tp * pp), size=spread, stride=tp)
    if not shape.moe_layers:
        return (dense,)
    experts = Replicas(parameters=shape.expert_parameters / (ep * pp), size=np.maximum(spread * tp // ep, 1), stride=ep)
    return dense, experts


def lora_parameters(shape: Counted, rank: int) -> float:
    """Adapters of every product of the attention and dense MLP: rank x (n + k) each (2106.09685)."""
    attention = shape.layers * sum(one.n + one.k for one in shape.attention)
    mlp = shape.dense_layers * sum(one.n + one.k for one in shape.mlp)
    return float(rank * (attention + mlp))


def _totals_demand(
    workload: Workload, totals: ModelTotals, candidates: Candidates, speed: Speed, stack: Stack
) -> Demand:
    dense = np.full(len(candidates), totals.parameters - totals.embedding_parameters)
    return Demand(
        work=totals_work(workload, totals, candidates, speed, stack),
        exchange=embedding_exchange(workload, totals, candidates, speed),
        handover_s=np.zeros(len(candidates)),
        launching_s=totals_launch_s(workload, totals, candidates, stack),
        replicas=(Replicas(parameters=dense, size=candidates.dp, stride=np.ones_like(candidates.dp)),),
    )


def _floored(busy_s: Floats, launching_s: Floats) -> Floats:
    """The fourth-power mean of GPU and host time: whichever is longer, and a little of both where they are close."""
    return (busy_s**_FLOOR_POWER + launching_s**_FLOOR_POWER) ** (1 / _FLOOR_POWER)


def _gradients(
    workload: Workload,
    one: Demand,
    candidates: Candidates,
    speed: Speed,
    stack: Stack,
    micro_s: Floats,
    passes: Floats,
) -> Exchange:
    """Gradients and sharded weights between replicas; replicas that serve exchange nothing."""
    found = no_exchange(len(candidates))
    if workload.mode is Mode.INFERENCE or not (candidates.gpus > 1).any():
        return found
    weight_bytes = bytes_per_value(workload.precision)
    gradient_bytes = gradient_value_bytes(workload, stack)
    for replicas in one.replicas:
        found += gradient_exchange(
            replicas,
            candidates,
            speed,
            stack=stack,
            gradient_bytes=gradient_bytes,
            weight_bytes=weight_bytes,
            micro_s=micro_s,
            passes=passes,
        )
    return found


def gradient_value_bytes(workload: Workload, stack: Stack) -> float:
    """As told, else as the stack sends it, never narrower than an activation of the precision."""
    if workload.gradient_bits is not None:
        return workload.gradient_bits / 8
    return max(stack.gradient_bytes, bytes_per_value(workload.precision))


def _update(workload: Workload, one: Demand, candidates: Candidates, speed: Speed) -> Work:
    """One pass over weights, gradients and moments of the parameters that this rank updates."""
    traffic = np.zeros(len(candidates))
    if workload.mode is Mode.TRAINING:
        for replicas in one.replicas:
            sharded = np.where(candidates.zero_stage > 0, replicas.size, 1)
            traffic = traffic + constant("optimizer_bytes_per_parameter") * replicas.parameters / sharded
    return streamed(candidates, speed, traffic)


def with_input(workload: Workload, parts: Parts, candidates: Candidates, speed: Speed) -> Parts:
    """Where the host takes longer to prepare a batch than the GPUs to work through it, they wait for the rest.

    The servers prepare the batch together, on all their cores; what a server is not known to have does not slow it.
    """
    pipeline = workload.input_pipeline
    if pipeline is None or pipeline.cpu_s_per_sample is None:
        return parts
    host = candidates.hardware.host
    servers = np.ceil(candidates.gpus / np.maximum(host.node_gpus, 1))
    loading_s = workload.batch_per_step * pipeline.cpu_s_per_sample / (host.cpu_cores * servers) / speed.input
    waiting_s = np.maximum(np.nan_to_num(loading_s) - parts.step_s, 0.0)
    return replace(parts, input_s=waiting_s)
