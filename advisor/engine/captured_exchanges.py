"""What a captured step exchanged, timed again from its bytes on other links; what it would exchange on more GPUs."""

import numpy as np

from advisor.engine.candidates import Candidates, Speed
from advisor.engine.captured import Captured, Reading, kernel_time_s
from advisor.engine.collectives import Floats
from advisor.engine.demand import gradient_value_bytes
from advisor.engine.exchanges import Replicas, gradient_exchange, gradient_times
from advisor.engine.groups import collective_s
from advisor.engine.shapes import bytes_per_value, parameter_count
from advisor.engine.stacks import stack_of
from advisor.engine.waits import Waiting
from profiling.workload import CollectiveKind, CollectiveWork, MeasuredStep, Mode, Workload

_MOST_HIDDEN = 0.95


def communication(
    workload: Workload, captured: Captured, candidates: Candidates, speed: Speed, kernel_s: Floats
) -> tuple[Floats, Floats]:
    """(exposed, hidden). Where the capture exchanged nothing, training on more GPUs exchanges the gradients."""
    step = captured.step
    if not step.collectives:
        return new_gradients(workload, captured, candidates, speed, kernel_s + step.idle_s)
    reading, own_s = captured.reading, kernel_time_s(step)
    exposed_s, hidden_s = transfer_s(step, reading, candidates, speed, kernel_s)
    waiting = Waiting(
        waiting_s=reading.waiting_s,
        late_launch_s=reading.late_launch_s,
        absorbed=reading.absorbed,
        transfer_s=reading.transfer_s,
    )
    ratio = kernel_s / own_s if own_s > 0 else np.ones(len(candidates))
    waiting_s = waiting.there_s(exposed_s, ratio, speed.host)
    several = candidates.gpus > 1
    return np.where(several, exposed_s + waiting_s, 0.0), np.where(several, hidden_s, 0.0)


def transfer_s(
    step: MeasuredStep, reading: Reading, candidates: Candidates, speed: Speed, kernel_s: Floats
) -> tuple[Floats, Floats]:
    """(exposed, hidden) transfer alone, timed again from its bytes; the hidden share stays as captured."""
    total = sum(work.busy_s for work in step.collectives)
    exposed_s, hidden_s = np.zeros(len(candidates)), np.zeros(len(candidates))
    for work, size in zip(step.collectives, reading.message_bytes, strict=True):
        moved = reading.pace * work.calls * retimed_s(work, size, step, candidates, speed)
        cover = _MOST_HIDDEN * kernel_s * (work.busy_s / total if total > 0 else 0.0)
        under = np.minimum(moved * hidden_share(work), cover)
        exposed_s, hidden_s = exposed_s + moved - under, hidden_s + under
    return exposed_s, hidden_s


def hidden_share(work: CollectiveWork) -> float:
    """Share of the collective that computing covered in the capture."""
    return 1 - min(work.exposed_s / work.busy_s, 1.0) if work.busy_s > 0 else 0.0


def retimed_s(work: CollectiveWork, size: float, step: MeasuredStep, candidates: Candidates, speed: Speed) -> Floats:
    """One call on the target. Groups of the whole job take the new GPU count, smaller groups keep their size.

    A capture of some ranks may name a group larger than all that it saw: it is taken for what there is.
    """
    kind = CollectiveKind.ALL_REDUCE if work.kind is CollectiveKind.UNKNOWN else work.kind
    if work.group_size in (None, step.gpu_count):
        share = size / candidates.tp
        return collective_s(candidates, kind, share, size=candidates.dp, stride=candidates.tp, speed=speed)
    group = np.minimum(work.group_size, candidates.gpus)
    same = np.full(len(candidates), size)
    return collective_s(candidates, kind, same, size=group, stride=np.ones_like(group), speed=speed)


def new_gradients(
    workload: Workload, captured: Captured, candidates: Candidates, speed: Speed, window_s: Floats
) -> tuple[Floats, Floats]:
    """(exposed, hidden) of gradients that a capture of one GPU did not exchange; the reading says how many bytes."""
    parameters = parameter_count(workload)
    if workload.mode is Mode.INFERENCE or parameters is None:
        return np.zeros(len(candidates)), np.zeros(len(candidates))
    stack = stack_of(workload.stack)
    times = gradient_times(
        Replicas(parameters=parameters / candidates.tp, size=candidates.dp, stride=candidates.tp),
        candidates,
        speed,
        gradient_bytes=captured.reading.pace * gradient_value_bytes(workload, stack),
        weight_bytes=bytes_per_value(workload.precision),
    )
    found = gradient_exchange(
        times,
        zero_stage=candidates.zero_stage,
        pp=candidates.pp,
        overlap=stack.gradient_overlap,
        micro_s=window_s,
        passes=np.ones(len(candidates)),
    )
    return found.exposed_s, found.hidden_s
