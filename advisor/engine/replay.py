"""A captured step run again with other durations: its graph followed from start to end (Daydream, ATC'20).

A node starts when the one before it on its stream has ended, when all that it waits for has, and when the host has
launched it; the host goes on once what it waits for has ended. Nothing else is scaled: what a resource was idle for in
the capture comes out of the graph, not out of a share. All rows (candidates) are run at once; the loop is over nodes.
"""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from advisor.engine.collectives import Floats, Ints
from profiling.step_graph import NONE, StepGraph
from profiling.workload import KernelClass

CLASSES = tuple(KernelClass)
"""Columns of ``StepGraph.work_s``."""
_COPY = CLASSES.index(KernelClass.COPY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """``work_s`` ``[node, row]``: computing and copies; ``transfer_s`` ``[node, row]``: collectives, waiting included;
    ``tail_s`` ``[node, row]``: of the last kernel of each node. ``host``: factor on the speed of the host, one for
    all rows or ``[row]``.
    """

    work_s: Floats
    transfer_s: Floats
    tail_s: Floats
    host: float | Floats = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Seconds per row. ``covered_s``: computing, each moment once; ``exposed_s``, ``hidden_s``: communication beside
    it; ``copy_s``: copies under which nothing else runs; ``idle_s``: the rest of ``step_s``.
    """

    step_s: Floats
    covered_s: Floats
    exposed_s: Floats
    hidden_s: Floats
    copy_s: Floats
    idle_s: Floats

    def take(self, rows: Ints) -> Self:
        """The given rows, in the given order."""
        return type(self)(**{item.name: getattr(self, item.name)[rows] for item in fields(self)})


def as_captured(graph: StepGraph) -> Durations:
    """The durations of the capture itself, one row."""
    computes = graph.collective == NONE
    return Durations(
        work_s=np.where(computes, graph.busy_s, 0.0)[:, None],
        transfer_s=np.where(computes, 0.0, graph.busy_s)[:, None],
        tail_s=graph.tail_s[:, None],
    )


def scaled(graph: StepGraph, factors: Floats, transfer_s: Floats, host: float) -> Durations:
    """``factors`` ``[class, row]``: time there over time in the capture; ``transfer_s`` ``[node, row]``."""
    tail_s = np.where(graph.tail_class[:, None] == NONE, transfer_s, graph.tail_s[:, None] * factors[graph.tail_class])
    return Durations(work_s=graph.work_s @ factors, transfer_s=transfer_s, tail_s=tail_s, host=host)


def replay(graph: StepGraph, durations: Durations) -> Replayed:
    """The step with these durations, its time told apart."""
    end_s, step_s = _run(graph, durations)
    return _told_apart(graph, durations, end_s, step_s)


def _run(graph: StepGraph, durations: Durations) -> tuple[Floats, Floats]:
    """(end of each node ``[node, row]``, step per row).

    A node of several kernels ends no sooner than its last one can, launched when the host got there.
    """
    busy_s = durations.work_s + durations.transfer_s + graph.gap_s[:, None]
    first_s, last_s = (_at_speed(side, durations.host) + graph.lag_s for side in (graph.first_s, graph.last_s))
    waits = np.split(graph.source, np.searchsorted(graph.target, np.arange(1, len(graph))))
    before, after_s = graph.before.tolist(), graph.after_s.tolist()
    first, last = graph.first_break.tolist(), graph.last_break.tolist()
    end_s = np.empty(busy_s.shape)
    host = _Host(graph, durations.host, end_s)
    for node, sources in enumerate(waits):
        begin = np.maximum(host.at(first[node]) + first_s[node], 0.0)
        if before[node] != NONE:
            np.maximum(begin, end_s[before[node]] + after_s[node], out=begin)
        for source in sources.tolist():
            np.maximum(begin, end_s[source], out=begin)
        begin += busy_s[node]
        np.maximum(begin, host.at(last[node]) + (last_s[node] + durations.tail_s[node]), out=end_s[node])
    return end_s, _step_s(graph, durations, host, end_s)


def _at_speed(host_s: Floats, speed: float | Floats) -> Floats:
    """Seconds of the host ``[node]`` at this speed, ``[node]`` or ``[node, row]``."""
    return host_s[:, None] / speed if isinstance(speed, np.ndarray) else host_s / speed


class _Host:
    """When the host went on after each of its waits, worked out as far as asked."""

    def __init__(self, graph: StepGraph, speed: float | Floats, end_s: Floats) -> None:
        self._graph, self._speed, self._end_s = graph, speed, end_s
        self._resumed = [np.zeros(end_s.shape[1])]

    def at(self, number: int) -> Floats:
        """After break ``number``; ``NONE`` = the start of the step. What it waited for must have been run."""
        while len(self._resumed) <= number + 1:
            place = len(self._resumed) - 1
            reached = self._resumed[-1] + self._graph.reach_s[place] / self._speed
            let_go = self._end_s[self._graph.waited_for[place]] + self._graph.resume_s[place] / self._speed
            self._resumed.append(np.maximum(reached, let_go))
        return self._resumed[number + 1]


def _step_s(graph: StepGraph, durations: Durations, host: _Host, end_s: Floats) -> Floats:
    """Until all nodes ended and the host launched the next step; never less than the host needs from step to step.

    How far the host ran ahead in the capture does not help for long: over many steps it needs its own time between the
    first launch of one and that of the next. What it waited in between does not count: a host that ran ahead waits for
    work of the step before, which ends sooner too where the device is faster.
    """
    closing = host.at(graph.end_break) + graph.end_s / durations.host
    step_s = np.maximum(end_s.max(axis=0), closing + graph.end_lag_s)
    if np.isnan(graph.ahead_s):
        return step_s
    waits = slice(graph.end_break + 1)
    own_s = graph.reach_s[waits].sum() + graph.resume_s[waits].sum() + graph.end_s - graph.ahead_s
    return np.maximum(step_s, own_s / durations.host)


def _told_apart(graph: StepGraph, durations: Durations, end_s: Floats, step_s: Floats) -> Replayed:
    """Unions as in the breakdown of a capture: computing first, then communication, then copies.

    The work of a node is taken to lie at its end.
    """
    end_s = np.ascontiguousarray(end_s.T)
    start_s = end_s - (durations.work_s + durations.transfer_s).T
    order = np.argsort(start_s, axis=1, kind="stable")
    communicates = graph.collective != NONE
    copies = ~communicates & (graph.work_s[:, _COPY] >= graph.work_s.sum(axis=1))
    levels = np.where(communicates, 1, np.where(copies, 2, 0))[order]
    start_s, end_s = np.take_along_axis(start_s, order, axis=1), np.take_along_axis(end_s, order, axis=1)
    covered = _union_s(start_s, end_s, levels <= 0)
    both = _union_s(start_s, end_s, levels <= 1) if communicates.any() else covered
    all_of_it = _union_s(start_s, end_s, levels <= 2) if copies.any() else both
    return Replayed(
        step_s=step_s,
        covered_s=covered,
        exposed_s=both - covered,
        hidden_s=np.maximum(durations.transfer_s.sum(axis=0) - (both - covered), 0.0),
        copy_s=all_of_it - both,
        idle_s=np.maximum(step_s - all_of_it, 0.0),
    )


def _union_s(start_s: Floats, end_s: Floats, chosen: NDArray[np.bool_]) -> Floats:
    """Length of the union of the chosen intervals of each row, sorted by start; ``[row, node]``."""
    ends = np.where(chosen, end_s, -np.inf)
    earlier = np.maximum.accumulate(ends, axis=1)[:, :-1]
    begins = start_s.copy()
    np.maximum(begins[:, 1:], earlier, out=begins[:, 1:])
    return np.maximum(ends - begins, 0.0).sum(axis=1)
