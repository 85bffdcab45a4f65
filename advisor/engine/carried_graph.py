"""A captured step carried over by its graph: durations of the target, then a replay."""

from collections.abc import Mapping

import numpy as np

from advisor.engine.candidates import AS_IS, Candidates, Parts, Speed
from advisor.engine.captured import Captured, Reading, source_row
from advisor.engine.captured_exchanges import hidden_share, new_gradients, retimed_s
from advisor.engine.collectives import Floats
from advisor.engine.replay import replay, scaled
from advisor.engine.waits import Waiting
from profiling.step_graph import NONE, StepGraph
from profiling.workload import KernelClass, MeasuredStep, Workload


def replayed_parts(
    workload: Workload,
    captured: Captured,
    graph: StepGraph,
    candidates: Candidates,
    speed: Speed,
    times: Mapping[KernelClass, Floats],
) -> Parts:
    """The graph followed with the times of the target; exchanges that the capture lacks come on top."""
    factors = np.array([times[name] / _busy_s(captured.step, name) for name in KernelClass])
    moved_s = _node_transfers_s(captured, graph, candidates, speed, factors)
    found = replay(graph, scaled(graph, factors, moved_s, speed.host))
    by_class = graph.work_s.sum(axis=0)[:, None] * factors
    of_class = dict(zip(KernelClass, by_class / np.maximum(by_class.sum(axis=0), 1e-12), strict=True))
    new_exposed_s, new_hidden_s = np.zeros(len(candidates)), np.zeros(len(candidates))
    if not captured.step.collectives:
        window_s = found.covered_s + found.idle_s
        new_exposed_s, new_hidden_s = new_gradients(workload, captured, candidates, speed, window_s)
    return Parts(
        compute_s=found.covered_s * (of_class[KernelClass.MATMUL] + of_class[KernelClass.ATTENTION]),
        memory_s=found.covered_s * (of_class[KernelClass.MEMORY] + of_class[KernelClass.OTHER]),
        copy_s=found.copy_s + found.covered_s * of_class[KernelClass.COPY],
        communication_exposed_s=found.exposed_s + new_exposed_s,
        communication_hidden_s=found.hidden_s + new_hidden_s,
        bubble_s=np.zeros(len(candidates)),
        host_s=np.maximum(found.idle_s + captured.unseen_s / speed.host, 0.0),
        input_s=np.zeros(len(candidates)),
    )


def _busy_s(step: MeasuredStep, kernel_class: KernelClass) -> float:
    """Captured time of a class; 1 where it has none, so that its factor is 0."""
    return next((work.busy_s for work in step.kernels if work.kernel_class is kernel_class), 0.0) or 1.0


def _node_transfers_s(
    captured: Captured, graph: StepGraph, candidates: Candidates, speed: Speed, factors: Floats
) -> Floats:
    """Seconds of each node's exchange on the target, waiting included, ``[node, row]``; 0 where the node computes.

    What a node took longer than its transfer on the source explains was waiting, as far as the reading says so.
    """
    step, reading = captured.step, captured.reading
    computes = (graph.collective == NONE)[:, None]
    calls = np.where(computes, 0.0, reading.pace * graph.calls[:, None])
    moved_s = calls * _one_call_s(step, reading, candidates, speed)[graph.collective]
    taken_s = calls * _one_call_s(step, reading, source_row(step, captured.source), AS_IS)[graph.collective]
    excess_s = np.where(computes, 0.0, np.maximum(graph.busy_s[:, None] - taken_s, 0.0))
    excess_s = excess_s * _part_that_waited(step, reading, graph, excess_s)
    late = reading.late_launch_s / reading.waiting_s if reading.waiting_s > 0 else 0.0
    waiting = Waiting(waiting_s=excess_s, late_launch_s=late * excess_s, absorbed=reading.absorbed, transfer_s=taken_s)
    waiting_s = waiting.there_s(moved_s, _kernel_ratio(graph, factors), speed.host)
    return np.where(computes | (candidates.gpus == 1), 0.0, moved_s + waiting_s)


def _one_call_s(step: MeasuredStep, reading: Reading, candidates: Candidates, speed: Speed) -> Floats:
    """One call of each collective, ``[collective, row]``; a last row of zeros, for nodes that have none."""
    sized = zip(step.collectives, reading.message_bytes, strict=True)
    calls = [retimed_s(work, size, step, candidates, speed) for work, size in sized]
    return np.stack([*calls, np.zeros(len(candidates))])


def _part_that_waited(step: MeasuredStep, reading: Reading, graph: StepGraph, excess_s: Floats) -> float:
    """What part of the time beyond transfer was waiting, if the exposed part of it adds up to the reading's."""
    shown = np.array([*(1 - hidden_share(work) for work in step.collectives), 0.0])[graph.collective]
    total_s = float(excess_s[:, 0] @ shown)
    return min(reading.waiting_s / total_s, 1.0) if total_s > 0 else 0.0


def _kernel_ratio(graph: StepGraph, factors: Floats) -> Floats:
    """Computing time of the target over that of the capture, per row; copies left out."""
    work_s = graph.work_s.sum(axis=0)[:, None] * (np.array(list(KernelClass)) != KernelClass.COPY)[:, None]
    own_s = work_s.sum()
    return (work_s * factors).sum(axis=0) / own_s if own_s > 0 else np.ones(factors.shape[1])
