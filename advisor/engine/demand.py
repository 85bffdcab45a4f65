"""What a described job demands of one rank: its kernels, exchanges and launches by the laws of chip and links alone.

What software makes of it (``stacks.Stack``) is put on top in ``described.py``; kept apart, so that calibration can try
other stacks without timing anything again.
"""

from dataclasses import dataclass

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates, Speed
from advisor.engine.collectives import Floats, Ints
from advisor.engine.exchanges import (
    GradientTimes,
    Replicas,
    context_exchange_s,
    expert_exchange_s,
    gradient_times,
    handover_s,
    tensor_exchange_s,
)
from advisor.engine.kernels import Work, streamed
from advisor.engine.shapes import Counted, bytes_per_value, counted
from advisor.engine.stacks import Stack
from advisor.engine.totals import embedding_exchange_s, totals_launches, totals_pieces
from advisor.engine.transformer import Pieces, micro_batch_pieces, stage_share
from profiling.workload import Mode, ModelTotals, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One micro-batch on a rank of the slowest pipeline stage, and what happens once a step.

    ``layer_launches``, ``expert_launches``: passes through the launches of a layer, and of what experts add to it.
    ``update``: optimizer. ``passes``: micro-batches a step.
    """

    pieces: Pieces
    tensor_s: Floats
    context_s: Floats
    expert_s: Floats
    lookup_s: Floats
    handover_s: Floats
    layer_launches: Floats
    expert_launches: Floats
    gradients: tuple[GradientTimes, ...]
    update: Work
    passes: Floats
    pp: Ints
    vpp: Ints
    zero_stage: Ints


def demand_of(workload: Workload, candidates: Candidates, speed: Speed, stack: Stack) -> Demand:
    """The demand on each candidate; of ``stack`` only the width of a gradient matters."""
    if workload.model is not None:
        shape = counted(workload.model, workload.parameters)
        return _transformer(workload, shape, candidates, speed, stack)
    if workload.totals is not None:
        return _totals(workload, workload.totals, candidates, speed, stack)
    raise ValueError("a described job has a model shape or totals")


def passes_per_step(workload: Workload, candidates: Candidates) -> Floats:
    """Micro-batches that the busiest rank works through in a step; a fraction where the last one is not full.

    The others wait for it: nine samples on eight GPUs take as long as sixteen.
    """
    return np.maximum(np.ceil(workload.batch_per_step / candidates.dp) / candidates.micro_batch, 1.0)


def _transformer(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed, stack: Stack) -> Demand:
    nothing = np.zeros(len(candidates))
    several = {name: bool((getattr(candidates, name) > 1).any()) for name in ("tp", "cp", "ep", "pp")}
    share = _launching_passes(workload, candidates) * stage_share(shape, candidates)
    replicas = _replicas(workload, shape, candidates)
    about = workload, shape, candidates, speed
    return Demand(
        pieces=_pieces(*about),
        tensor_s=tensor_exchange_s(*about) if several["tp"] else nothing,
        context_s=context_exchange_s(*about) if several["cp"] else nothing,
        expert_s=expert_exchange_s(*about) if several["ep"] and shape.moe_layers else nothing,
        lookup_s=nothing,
        handover_s=handover_s(*about) if several["pp"] else nothing,
        layer_launches=share * shape.layers,
        expert_launches=share * shape.moe_layers,
        gradients=_gradients(workload, replicas, candidates, speed, stack),
        update=_update(workload, replicas, candidates, speed),
        passes=passes_per_step(workload, candidates),
        pp=candidates.pp,
        vpp=candidates.vpp,
        zero_stage=candidates.zero_stage,
    )


def _pieces(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Pieces:
    once, place = candidates.once_per_chip()
    return micro_batch_pieces(workload, shape, once, speed).take(place)


def _launching_passes(workload: Workload, candidates: Candidates) -> Floats:
    """The backward pass launches about twice as much as the forward pass; adapters add launches of their own."""
    passes = (3.0 if workload.mode is Mode.TRAINING else 1.0) + candidates.recompute
    return passes * (1.0 + constant("adapter_launches")) if workload.lora_rank is not None else passes


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
    holders = np.maximum(spread * tp // ep, 1)
    return dense, Replicas(parameters=shape.expert_parameters / (ep * pp), size=holders, stride=ep)


def lora_parameters(shape: Counted, rank: int) -> float:
    """Adapters of every product of the attention and dense MLP: rank x (n + k) each (2106.09685)."""
    attention = shape.layers * sum(one.n + one.k for one in shape.attention)
    mlp = shape.dense_layers * sum(one.n + one.k for one in shape.mlp)
    return float(rank * (attention + mlp))


def _totals(workload: Workload, totals: ModelTotals, candidates: Candidates, speed: Speed, stack: Stack) -> Demand:
    nothing = np.zeros(len(candidates))
    dense = np.full(len(candidates), totals.parameters - totals.embedding_parameters)
    replicas = (Replicas(parameters=dense, size=candidates.dp, stride=np.ones_like(candidates.dp)),)
    return Demand(
        pieces=totals_pieces(workload, totals, candidates, speed),
        tensor_s=nothing,
        context_s=nothing,
        expert_s=nothing,
        lookup_s=embedding_exchange_s(workload, totals, candidates, speed),
        handover_s=nothing,
        layer_launches=totals_launches(workload, totals, candidates),
        expert_launches=nothing,
        gradients=_gradients(workload, replicas, candidates, speed, stack),
        update=_update(workload, replicas, candidates, speed)
        + _bucketed(workload, replicas[0], candidates, speed, stack),
        passes=passes_per_step(workload, candidates),
        pp=candidates.pp,
        vpp=candidates.vpp,
        zero_stage=candidates.zero_stage,
    )


def _bucketed(workload: Workload, replicas: Replicas, candidates: Candidates, speed: Speed, stack: Stack) -> Work:
    """Gradients copied into buckets before they are exchanged, and back: read and written twice."""
    exchanged = np.where((replicas.size > 1) & (workload.mode is Mode.TRAINING), replicas.parameters, 0.0)
    traffic = constant("bucket_passes") * exchanged * gradient_value_bytes(workload, stack)
    return streamed(candidates, speed, traffic)


def _gradients(
    workload: Workload, replicas: tuple[Replicas, ...], candidates: Candidates, speed: Speed, stack: Stack
) -> tuple[GradientTimes, ...]:
    """Between replicas; those that serve exchange nothing."""
    if workload.mode is Mode.INFERENCE or not (candidates.gpus > 1).any():
        return ()
    widths = {
        "gradient_bytes": gradient_value_bytes(workload, stack),
        "weight_bytes": bytes_per_value(workload.precision),
    }
    return tuple(gradient_times(one, candidates, speed, **widths) for one in replicas)


def gradient_value_bytes(workload: Workload, stack: Stack) -> float:
    """As told, else as the stack sends it, never narrower than an activation of the precision."""
    if workload.gradient_bits is not None:
        return workload.gradient_bits / 8
    return max(stack.gradient_bytes, bytes_per_value(workload.precision))


def _update(workload: Workload, replicas: tuple[Replicas, ...], candidates: Candidates, speed: Speed) -> Work:
    """One pass over weights, gradients and moments of the parameters that this rank updates."""
    traffic = np.zeros(len(candidates))
    if workload.mode is Mode.TRAINING:
        for one in replicas:
            sharded = np.where(candidates.zero_stage > 0, one.size, 1)
            traffic = traffic + constant("optimizer_bytes_per_parameter") * one.parameters / sharded
    return streamed(candidates, speed, traffic)
