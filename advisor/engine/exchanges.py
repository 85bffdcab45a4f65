"""What the ranks of a plan tell each other in one micro-batch, and gradients once a step.

Activations between tensor-parallel ranks, keys and values between context-parallel ones, routed tokens between the
ranks that hold the experts, hand-overs between pipeline stages, gradients and sharded weights between replicas.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates, Speed
from advisor.engine.collectives import Floats, Ints
from advisor.engine.groups import collective_s
from advisor.engine.shapes import Counted, bytes_per_value
from advisor.engine.transformer import stage_share, tokens_per_pass
from profiling.workload import CollectiveKind, Mode, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Seconds of communication: the part that the step waits for, and the part under computing."""

    exposed_s: Floats
    hidden_s: Floats

    def __add__(self, other: Self) -> Self:
        return type(self)(exposed_s=self.exposed_s + other.exposed_s, hidden_s=self.hidden_s + other.hidden_s)

    def times(self, factor: Floats | float) -> Self:
        return type(self)(exposed_s=self.exposed_s * factor, hidden_s=self.hidden_s * factor)


def no_exchange(rows: int) -> Exchange:
    return Exchange(exposed_s=np.zeros(rows), hidden_s=np.zeros(rows))


def overlapped(total_s: Floats, share: Floats | float, compute_s: Floats) -> Exchange:
    """An exchange of which computing hides this share, as far as there is computing."""
    hidden_s = np.minimum(share * total_s, compute_s)
    return Exchange(exposed_s=total_s - hidden_s, hidden_s=hidden_s)


def _calls(workload: Workload, candidates: Candidates) -> Floats:
    """Times that the exchange of one pass happens: forward, backward, and again where layers are recomputed."""
    return (2.0 if workload.mode is Mode.TRAINING else 1.0) + candidates.recompute


def tensor_exchange_s(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Floats:
    """Activations of one micro-batch between tensor-parallel ranks: two exchanges a layer and pass.

    With sequence parallelism each is an all-gather and a reduce-scatter of the same bytes.
    """
    size = tokens_per_pass(shape, candidates) * shape.hidden * bytes_per_value(workload.precision)
    blocks = shape.layers + shape.dense_layers + (shape.moe_layers if shape.shared else 0)
    neighbours = {"size": candidates.tp, "stride": np.ones_like(candidates.tp), "speed": speed}
    one = collective_s(candidates, CollectiveKind.ALL_GATHER, size, **neighbours)
    other = collective_s(candidates, CollectiveKind.REDUCE_SCATTER, size, **neighbours)
    return blocks * stage_share(shape, candidates) * _calls(workload, candidates) * (one + other)


def context_exchange_s(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Floats:
    """Keys and values gathered in every layer, their gradients scattered (ring attention, 2310.01889)."""
    values = candidates.micro_batch * shape.sequence * shape.kv_values / candidates.tp
    size = values * bytes_per_value(workload.precision)
    group = {"size": candidates.cp, "stride": candidates.tp, "speed": speed}
    gather = collective_s(candidates, CollectiveKind.ALL_GATHER, size, **group)
    scatter = collective_s(candidates, CollectiveKind.REDUCE_SCATTER, size, **group)
    training = workload.mode is Mode.TRAINING
    calls = gather * _calls(workload, candidates) + (scatter if training else 0.0)
    return shape.layers * stage_share(shape, candidates) * calls


def expert_exchange_s(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Floats:
    """Routed tokens sent to their experts and back: two all-to-all a layer and pass."""
    routed = tokens_per_pass(shape, candidates) / candidates.tp * shape.experts_per_token
    size = routed * shape.hidden * bytes_per_value(workload.precision)
    one = collective_s(
        candidates,
        CollectiveKind.ALL_TO_ALL,
        size,
        size=candidates.ep,
        stride=np.ones_like(candidates.ep),
        speed=speed,
    )
    return 2.0 * shape.moe_layers * stage_share(shape, candidates) * _calls(workload, candidates) * one


def handover_s(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Floats:
    """One micro-batch's activations to the next stage and, in training, their gradients back, for every chunk."""
    values = tokens_per_pass(shape, candidates) * shape.hidden / candidates.tp
    size = values * bytes_per_value(workload.precision)
    stages = np.minimum(candidates.pp, 2)
    one = collective_s(
        candidates,
        CollectiveKind.SEND_RECV,
        size,
        size=stages,
        stride=candidates.gpus // candidates.pp,
        speed=speed,
    )
    return one * (2.0 if workload.mode is Mode.TRAINING else 1.0) * candidates.vpp


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """Ranks that hold the same weights: ``size`` of them, ``stride`` apart, ``parameters`` on each."""

    parameters: Floats
    size: Ints
    stride: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientTimes:
    """Seconds of one all-reduce and one scatter of the gradients, and of one gather of the weights."""

    reduce_s: Floats
    scatter_s: Floats
    gather_s: Floats


def gradient_times(
    replicas: Replicas, candidates: Candidates, speed: Speed, *, gradient_bytes: float, weight_bytes: float
) -> GradientTimes:
    """What the plan's ZeRO stages use of it is timed, the rest is 0."""
    group = {"size": replicas.size, "stride": replicas.stride, "speed": speed}
    gradients, weights = replicas.parameters * gradient_bytes, replicas.parameters * weight_bytes
    nothing, stage = np.zeros(len(candidates)), candidates.zero_stage
    sharded, replicated = (stage > 0).any(), (stage == 0).any()
    kinds = CollectiveKind
    return GradientTimes(
        reduce_s=collective_s(candidates, kinds.ALL_REDUCE, gradients, **group) if replicated else nothing,
        scatter_s=collective_s(candidates, kinds.REDUCE_SCATTER, gradients, **group) if sharded else nothing,
        gather_s=collective_s(candidates, kinds.ALL_GATHER, weights, **group) if sharded else nothing,
    )


def gradient_exchange(
    times: GradientTimes,
    *,
    zero_stage: Ints,
    pp: Ints,
    overlap: Floats | float,
    micro_s: Floats,
    passes: Floats,
    late: Floats | float = 0.0,
) -> Exchange:
    """Gradients, and weights where they are sharded, of one step.

    Replicated: one all-reduce. ZeRO-1: gradients scattered, weights gathered, once. ZeRO-2 scatters after every
    micro-batch, ZeRO-3 gathers before every forward and backward pass as well (1910.02054); with pipeline stages
    once a step. ``micro_s``: one micro-batch, under ``overlap`` of which the exchange may hide; a tenth of what
    happens once a step always shows, or the share that is ``late``.
    """
    total_s = np.where(zero_stage == 0, times.reduce_s, times.scatter_s + times.gather_s)
    shown = np.maximum(late, constant("overlap_least_exposed"))
    once_s = np.maximum(total_s - overlap * micro_s, shown * total_s)
    if not (zero_stage > 1).any():
        return Exchange(exposed_s=once_s, hidden_s=total_s - once_s)
    rounds = np.where(pp > 1, 1.0, passes)
    each_s = times.scatter_s + np.where(zero_stage == 3, 2 * times.gather_s, times.gather_s / rounds)
    window_s = constant("shard_overlap") * micro_s
    shown_s = np.maximum(each_s - window_s, 0.0) + constant("contention") * np.minimum(each_s, window_s)
    return Exchange(
        exposed_s=np.where(zero_stage > 1, rounds * shown_s, once_s),
        hidden_s=np.where(zero_stage > 1, rounds * (each_s - shown_s), total_s - once_s),
    )
