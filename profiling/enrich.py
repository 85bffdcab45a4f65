"""What a graph without times adds to the timeline of the same rank: sizes and groups of its collectives."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.evidence import ExecutionGraph, SizedCollective
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN, Timeline
from profiling.workload import CollectiveKind

_EXCHANGES = (CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND_RECV)
"""Frameworks build an all-to-all out of sends and receives, and its kernels are named after these."""


def with_sizes(timeline: Timeline, graph: ExecutionGraph) -> Timeline:
    """The timeline with message and group sizes from the graph where it knows none itself; else the same object.

    Nothing is claimed unless the graph tells of the very same calls: as many collectives in the same order of kinds
    (in order of launch, where every launch is known, else of start), and no size or group that both know and that
    differs. Calls within a group of one launch no kernel and are left out of the comparison. ``rank``, where both know
    it, must be the same.
    """
    known = timeline.collectives
    calls = [call for call in graph.collectives if call.group_size != 1]
    if timeline.rank is not None and graph.rank is not None and timeline.rank != graph.rank:
        return timeline
    if not calls or len(calls) != known.row.size:
        return timeline
    order = _order(timeline)
    if not all(_same_kind(COLLECTIVE_KINDS[kind], call) for kind, call in zip(known.kind[order], calls, strict=True)):
        return timeline
    sizes, groups = (np.full(order.size, UNKNOWN, dtype=np.int64) for _ in range(2))
    sizes[order] = [UNKNOWN if call.message_bytes is None else int(call.message_bytes) for call in calls]
    groups[order] = [UNKNOWN if call.group_size is None else call.group_size for call in calls]
    if _contradict(known.message_bytes, sizes) or _contradict(known.group_size, groups):
        return timeline
    message_bytes, group_size = _filled(known.message_bytes, sizes), _filled(known.group_size, groups)
    if (message_bytes == known.message_bytes).all() and (group_size == known.group_size).all():
        return timeline
    return replace(timeline, collectives=replace(known, message_bytes=message_bytes, group_size=group_size))


def _order(timeline: Timeline) -> NDArray[np.int64]:
    """Places of the collectives in the order in which the host called them, as far as the timeline tells."""
    launched = timeline.launched_ns[timeline.collectives.row]
    keys = timeline.start_ns[timeline.collectives.row] if (launched == UNKNOWN).any() else launched
    return np.argsort(keys, kind="stable")


def _same_kind(kind: CollectiveKind, call: SizedCollective) -> bool:
    return kind is call.kind or (kind in _EXCHANGES and call.kind in _EXCHANGES)


def _contradict(mine: NDArray[Any], other: NDArray[np.int64]) -> bool:
    return bool(((mine != UNKNOWN) & (other != UNKNOWN) & (mine != other)).any())


def _filled(mine: NDArray[Any], other: NDArray[np.int64]) -> NDArray[Any]:
    return np.where(mine == UNKNOWN, other, mine).astype(mine.dtype)
