"""Step of a job that is known by its shape: work counted, collectives of the plan, host floor."""

from dataclasses import dataclass

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates, Parts, Speed
from advisor.engine.collectives import Floats
from advisor.engine.groups import collective_s
from advisor.engine.kernels import micro_batch_work, optimizer_s
from advisor.engine.shapes import Counted, bytes_per_value, counted
from profiling.workload import CollectiveKind, Mode, Workload

_FLOOR_POWER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """Seconds of communication: the part that the step waits for, and the part under computing."""

    exposed_s: Floats
    hidden_s: Floats


def described_parts(workload: Workload, candidates: Candidates, speed: Speed) -> Parts:
    """One step of a described job, by parts; one row per candidate."""
    if workload.model is None:
        raise ValueError("a described job has a model shape")
    shape = counted(workload.model, workload.parameters)
    micro = micro_batch_work(workload, shape, candidates, speed)
    tensor_s = tensor_exchange_s(workload, shape, candidates, speed)
    passes = passes_per_step(workload, candidates)
    busy_s = passes * (micro.total_s + tensor_s)
    host_s = _host_s(workload, shape, candidates, speed, busy_s)
    window_s = (busy_s + host_s) / np.ceil(passes)
    data = _data_exchange(workload, shape.parameters, candidates, speed, window_s)
    update = optimizer_s(shape.parameters, candidates, speed) if workload.mode is Mode.TRAINING else 0.0
    return Parts(
        compute_s=passes * micro.compute_s,
        memory_s=passes * micro.memory_s + update,
        copy_s=np.zeros(len(candidates)),
        communication_exposed_s=passes * tensor_s + data.exposed_s,
        communication_hidden_s=data.hidden_s,
        bubble_s=np.zeros(len(candidates)),
        host_s=host_s,
        input_s=np.zeros(len(candidates)),
    )


def passes_per_step(workload: Workload, candidates: Candidates) -> Floats:
    """Micro-batches that the busiest rank works through in a step; a fraction where the last one is not full.

    The others wait for it: nine samples on eight GPUs take as long as sixteen.
    """
    return np.maximum(np.ceil(workload.batch_per_step / candidates.dp) / candidates.micro_batch, 1.0)


def _host_s(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed, busy_s: Floats) -> Floats:
    """What launching adds: the fourth-power mean of GPU and host time, less the GPU time."""
    groups = (3.0 if workload.mode is Mode.TRAINING else 1.0) + candidates.recompute
    launching = (
        groups * shape.layers * np.ceil(passes_per_step(workload, candidates)) * constant("host_launch_s") / speed.host
    )
    return (busy_s**_FLOOR_POWER + launching**_FLOOR_POWER) ** (1 / _FLOOR_POWER) - busy_s


def tensor_exchange_s(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Floats:
    """Activations of one micro-batch between tensor-parallel ranks: two exchanges a layer and direction.

    With sequence parallelism each is an all-gather and a reduce-scatter of the same bytes.
    """
    values = candidates.micro_batch * shape.sequence * shape.hidden
    size = values * bytes_per_value(workload.precision)
    training = workload.mode is Mode.TRAINING
    calls = shape.layers * ((4.0 if training else 2.0) + 2.0 * candidates.recompute)
    neighbours = {"size": candidates.tp, "stride": np.ones_like(candidates.tp), "speed": speed}
    one = collective_s(candidates, CollectiveKind.ALL_GATHER, size, **neighbours)
    other = collective_s(candidates, CollectiveKind.REDUCE_SCATTER, size, **neighbours)
    return calls * (one + other)


def _data_exchange(
    workload: Workload, parameters: float, candidates: Candidates, speed: Speed, window_s: Floats
) -> Exchange:
    """Gradients (and sharded weights) between data-parallel ranks; inference replicas exchange nothing."""
    if workload.mode is Mode.INFERENCE:
        return Exchange(exposed_s=np.zeros(len(candidates)), hidden_s=np.zeros(len(candidates)))
    size = parameters / candidates.tp * bytes_per_value(workload.precision)
    replicated = gradient_exchange(candidates, size, speed, window_s)
    if not (candidates.zero_stage == 3).any():
        return replicated
    sharded = _sharded_exchange(candidates, size, speed, window_s, np.ceil(passes_per_step(workload, candidates)))
    fully = candidates.zero_stage == 3
    return Exchange(
        exposed_s=np.where(fully, sharded.exposed_s, replicated.exposed_s),
        hidden_s=np.where(fully, sharded.hidden_s, replicated.hidden_s),
    )


def gradient_exchange(candidates: Candidates, size: Floats, speed: Speed, window_s: Floats) -> Exchange:
    """One all-reduce a step, under the backward pass of the last micro-batch; a tenth always shows."""
    reduce_s = collective_s(
        candidates, CollectiveKind.ALL_REDUCE, size, size=candidates.dp, stride=candidates.tp, speed=speed
    )
    share = np.where(candidates.zero_stage > 0, constant("overlap_window_sharded"), constant("overlap_window"))
    exposed_s = np.maximum(reduce_s - share * window_s, constant("overlap_least_exposed") * reduce_s)
    return Exchange(exposed_s=exposed_s, hidden_s=reduce_s - exposed_s)


def _sharded_exchange(candidates: Candidates, size: Floats, speed: Speed, window_s: Floats, passes: Floats) -> Exchange:
    """Weights gathered forward and backward, gradients scattered, every micro-batch; prefetched."""
    gather_s = collective_s(
        candidates, CollectiveKind.ALL_GATHER, size, size=candidates.dp, stride=candidates.tp, speed=speed
    )
    scatter_s = collective_s(
        candidates, CollectiveKind.REDUCE_SCATTER, size, size=candidates.dp, stride=candidates.tp, speed=speed
    )
    total_s = 2 * gather_s + scatter_s
    exposed_s = np.maximum(total_s - window_s, 0.0) + constant("contention") * np.minimum(total_s, window_s)
    return Exchange(
        exposed_s=passes * exposed_s,
        hidden_s=passes * (total_s - exposed_s),
    )
