"""Step of a job that is known by its shape: work counted, collectives of the plan, host floor."""

from dataclasses import dataclass

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates, Parts, Speed
from advisor.engine.collectives import Floats, Ints, group_index, time_s
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
        host_s=host_s,
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
    one = call_s(candidates, candidates.tp, CollectiveKind.ALL_GATHER, size, speed)
    other = call_s(candidates, candidates.tp, CollectiveKind.REDUCE_SCATTER, size, speed)
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
    reduce_s = data_call_s(candidates, CollectiveKind.ALL_REDUCE, size, speed)
    share = np.where(candidates.zero_stage > 0, constant("overlap_window_sharded"), constant("overlap_window"))
    exposed_s = np.maximum(reduce_s - share * window_s, constant("overlap_least_exposed") * reduce_s)
    return Exchange(exposed_s=exposed_s, hidden_s=reduce_s - exposed_s)


def _sharded_exchange(candidates: Candidates, size: Floats, speed: Speed, window_s: Floats, passes: Floats) -> Exchange:
    """Weights gathered forward and backward, gradients scattered, every micro-batch; prefetched."""
    gather_s = data_call_s(candidates, CollectiveKind.ALL_GATHER, size, speed)
    scatter_s = data_call_s(candidates, CollectiveKind.REDUCE_SCATTER, size, speed)
    total_s = 2 * gather_s + scatter_s
    exposed_s = np.maximum(total_s - window_s, 0.0) + constant("contention") * np.minimum(total_s, window_s)
    return Exchange(
        exposed_s=passes * exposed_s,
        hidden_s=passes * (total_s - exposed_s),
    )


def call_s(candidates: Candidates, group: Ints, kind: CollectiveKind, size: Floats, speed: Speed) -> Floats:
    """Seconds of one collective of ``size`` bytes in groups of ``group`` neighbouring ranks."""
    link = candidates.hardware.link
    return time_s(link.curves, link.server, group, kind, size) / speed.communication


def data_call_s(candidates: Candidates, kind: CollectiveKind, size: Floats, speed: Speed) -> Floats:
    """Seconds of one collective between data-parallel ranks, which lie ``tp`` apart.

    Over PCIe such a group spans the whole plan, and ``tp`` of them cross the same root at the same time. Measured on
    an A100 PCIe box: 20.8 GB/s falls to 7.3 with two such groups, 20.9 to 3.9 with four (SimuMax a100_pcie.json).
    """
    dp, tp, span = candidates.dp, candidates.tp, candidates.gpus
    near_s = call_s(candidates, dp, kind, size, speed)
    crossing = candidates.hardware.link.shared[np.arange(len(candidates)), group_index(span)] > 0
    traffic = (1 - 1 / dp) / np.maximum(1 - 1 / span, 0.5)
    far_s = call_s(candidates, span, kind, size, speed) * traffic * tp
    return np.where(crossing & (tp > 1), far_s, near_s)
