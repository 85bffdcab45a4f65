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
    """The graph followed with the times of the target; exchanges that the capture lacks come on top.

    Rows on which nothing takes another time are replayed once.
    """
    factors = np.array([times[name] / _busy_s(captured.step, name) for name in KernelClass])
    calls_s = _one_call_s(captured.step, captured.reading, candidates, speed) * (candidates.gpus > 1)
    _, first, back = np.unique(np.concatenate((factors, calls_s)), axis=1, return_index=True, return_inverse=True)
    moved_s = _node_transfers_s(captured, graph, calls_s[:, first], factors[:, first], speed)
    found = replay(graph, scaled(graph, factors[:, first], moved_s, speed.host)).take(back.ravel())
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


def _node_transfers_s(captured: Captured, graph: StepGraph, calls_s: Floats, factors: Floats, speed: Speed) -> Floats:
    """Seconds of each node's exchange on the target, waiting included, ``[node, row]``; 0 where the node computes.

    ``calls_s``: one call of each collective, ``[collective, row]``, as by ``_one_call_s``; 0 on one GPU.

    What a node took longer than its transfer on the source explains was waiting, as far as the reading says so; what
    is left of the waiting as a whole is spread in the same proportions, as a host that is late catches up over calls.
    """
    step, reading = captured.step, captured.reading
    computes = (graph.collective == NONE)[:, None]
    calls = np.where(computes, 0.0, reading.pace * graph.calls[:, None])
    moved_s = calls * calls_s[graph.collective]
    taken_s = calls * _one_call_s(step, reading, source_row(step, captured.source), AS_IS)[graph.collective]
    excess_s = np.where(computes, 0.0, np.maximum(graph.busy_s[:, None] - taken_s, 0.0))
    shown = _shown(step, graph)
    total_s = float(shown @ excess_s[:, 0])
    if total_s <= 0 or reading.waiting_s <= 0:
        return moved_s
    waiting = Waiting(
        waiting_s=min(reading.waiting_s, total_s),
        late_launch_s=min(reading.late_launch_s, total_s),
        absorbed=reading.absorbed,
        transfer_s=float(shown @ taken_s[:, 0]),
    )
    waiting_s = waiting.there_s(shown @ moved_s, _kernel_ratio(graph, factors), speed.host)
    exchanging = (calls_s > 0).any(axis=0)
    return np.where(exchanging, moved_s + excess_s * (waiting_s / total_s), 0.0)


def _one_call_s(step: MeasuredStep, reading: Reading, candidates: Candidates, speed: Speed) -> Floats:
    """One call of each collective, ``[collective, row]``; a last row of zeros, for nodes that have none."""
    sized = zip(step.collectives, reading.message_bytes, strict=True)
    calls = [retimed_s(work, size, step, candidates, speed) for work, size in sized]
    return np.stack([*calls, np.zeros(len(candidates))])


def _shown(step: MeasuredStep, graph: StepGraph) -> Floats:
    """Part of each node's exchange that showed in the capture; 0 where the node computes."""
    return np.array([*(1 - hidden_share(work) for work in step.collectives), 0.0])[graph.collective]


def _kernel_ratio(graph: StepGraph, factors: Floats) -> Floats:
    """Computing time of the target over that of the capture, per row; copies left out."""
    work_s = graph.work_s.sum(axis=0)[:, None] * (np.array(list(KernelClass)) != KernelClass.COPY)[:, None]
    own_s = work_s.sum()
    return (work_s * factors).sum(axis=0) / own_s if own_s > 0 else np.ones(factors.shape[1])
