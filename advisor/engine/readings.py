"""What the captured exchanges may have been: transfer, or waiting for other ranks.

A rank's collective kernel also runs while it waits for the slowest rank, and a capture of one rank cannot tell the two
apart: of eight ranks that looked 40 to 79 % communication-bound, 88 % of it was waiting. So the captured step is first
predicted on the hardware that it ran on. Exposed time that transfer over the likely links does not explain, once these
were given the worse end of their range, is waiting. What remains open becomes readings that the range has to hold:
how much was transfer, and whether what waited gives way to longer transfers or stays.
"""

from dataclasses import replace
from math import exp, log

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import AS_IS
from advisor.engine.captured import Captured, Reading, kernel_time_s, source_row
from advisor.engine.captured_exchanges import transfer_s
from advisor.engine.collectives import group_index, message_bytes
from advisor.engine.fabric import USUAL_SERVER_GPUS
from advisor.engine.hardware import Hardware
from advisor.engine.replay import Replayed, as_captured, replay
from profiling.step_graph import StepGraph
from profiling.workload import CollectiveWork, MeasuredStep

_ALL, _NONE = 1.0, 0.0


def captured_step(step: MeasuredStep, source: Hardware) -> Captured:
    """The step with its readings; ``source``: one row, what it was measured on."""
    graph, unseen_s = _replayable(step)
    if not step.collectives:
        nothing = Reading(message_bytes=(), waiting_s=0.0)
        others = tuple(replace(nothing, pace=factor) for factor in (0.5, 2.0))
        return Captured(step=step, source=source, reading=nothing, others=others, graph=graph, unseen_s=unseen_s)
    open_share = is_unverified(step)
    likely = _reading(step, source, constant("one_rank_transfer_share") if open_share else _ALL)
    others = [_paced(step, source, likely)]
    if open_share:
        others += [_paced(step, source, _reading(step, source, share)) for share in (_NONE, _ALL)]
    elif step.waiting_s is None:
        others.append(_reading(step, source, _ALL, slower=1.0))
    others += [replace(reading, absorbed=False) for reading in (likely, *others)]
    return Captured(
        step=step,
        source=source,
        reading=likely,
        others=tuple(dict.fromkeys(reading for reading in others if reading != likely)),
        unexplained=_unexplained(step, source, likely),
        graph=graph,
        unseen_s=unseen_s,
    )


def _replayable(step: MeasuredStep) -> tuple[StepGraph | None, float]:
    """The graph of the step where a replay with its own durations returns it, and the seconds that this misses."""
    if step.graph is None:
        return None, 0.0
    own = replay(step.graph, as_captured(step.graph))
    return (step.graph, step.step_s - float(own.step_s[0])) if returns_step(step, own) else (None, 0.0)


def returns_step(step: MeasuredStep, own: Replayed) -> bool:
    """Whether a replay with the step's own durations (its first row) gives what was captured."""
    found_s, exposed_s, idle_s = (float(one[0]) for one in (own.step_s, own.exposed_s, own.idle_s))
    misses = (found_s - step.step_s, exposed_s - exposed_communication_s(step), idle_s - step.idle_s)
    return max(abs(miss) for miss in misses) <= constant("replay_gate") * step.step_s


def is_unverified(step: MeasuredStep) -> bool:
    """Whether transfer is only known to be somewhere between nothing and all of the time: one rank, no sizes."""
    return step.waiting_s is None and any(work.message_bytes is None for work in step.collectives)


def _reading(step: MeasuredStep, source: Hardware, share: float, slower: float | None = None) -> Reading:
    """Sizes if this share of an unsized collective is transfer; what its links leave unexplained waits.

    ``slower``: how much longer than thought the source's links may have taken, None = up to the end of their range.
    """
    sizes = tuple(_size(work, step, source, share) for work in step.collectives)
    bare = Reading(message_bytes=sizes, waiting_s=0.0)
    bare = replace(bare, transfer_s=_explained_s(step, source, bare))
    if step.waiting_s is not None:
        return _waiting(bare, min(step.waiting_s, exposed_communication_s(step)), step.late_launch_s)
    sized = all(work.message_bytes is not None for work in step.collectives)
    most = slower or (exp(_link_halfwidth(step, source)) if sized else 1.0)
    return _waiting(bare, max(exposed_communication_s(step) - most * bare.transfer_s, 0.0), None)


def _waiting(bare: Reading, waiting_s: float, late_launch_s: float | None) -> Reading:
    """With waiting of known or open cause; what is open is taken to give way, as ranks mostly do the same work."""
    if late_launch_s is None:
        return replace(bare, waiting_s=waiting_s, absorbed=waiting_s > 0)
    return replace(bare, waiting_s=waiting_s, late_launch_s=min(late_launch_s, waiting_s))


def _paced(step: MeasuredStep, source: Hardware, reading: Reading) -> Reading:
    """The same with transfers as fast or slow as captured, where the links explain too much or too little."""
    explained, found = reading.transfer_s, exposed_communication_s(step) - reading.waiting_s
    if explained <= 0 or (step.waiting_s is None and found >= explained):
        return reading
    return replace(reading, pace=found / explained, transfer_s=found)


def _unexplained(step: MeasuredStep, source: Hardware, reading: Reading) -> float:
    known = min(step.waiting_s or 0.0, exposed_communication_s(step))
    gap = abs(exposed_communication_s(step) - known - _explained_s(step, source, reading))
    return gap / step.step_s if step.step_s > 0 else 0.0


def exposed_communication_s(step: MeasuredStep) -> float:
    return sum(work.exposed_s for work in step.collectives)


def _explained_s(step: MeasuredStep, source: Hardware, reading: Reading) -> float:
    """Exposed seconds of the reading's transfers on the hardware of the capture."""
    kernel_s = np.array([kernel_time_s(step)])
    exposed_s, _ = transfer_s(step, reading, source_row(step, source), AS_IS, kernel_s)
    return float(exposed_s[0])


def _link_halfwidth(step: MeasuredStep, source: Hardware) -> float:
    """ln: how much worse than thought the links may have been; beyond one server the network is in between."""
    if step.gpu_count > USUAL_SERVER_GPUS:
        return log(constant("network_slowdown"))
    return float(source.link.log_slower[0, group_index(np.array([step.gpu_count]))[0]])


def _size(work: CollectiveWork, step: MeasuredStep, source: Hardware, share: float) -> float:
    """As captured, else what the likely links move in this share of the time (known waiting taken off)."""
    if work.message_bytes is not None:
        return work.message_bytes
    total = sum(other.busy_s for other in step.collectives)
    waiting = (step.waiting_s or 0.0) * work.busy_s / total if total > 0 else 0.0
    moving_s = share * max(work.busy_s - waiting, 0.0) / max(work.calls, 1.0)
    return message_bytes(source.link.curves[0], work.group_size or step.gpu_count, work.kind, moving_s)
