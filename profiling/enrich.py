"""What a graph without times adds to the timeline of the same rank: sizes and groups of its collectives."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import Window
from profiling.evidence import ExecutionGraph, SizedCollective
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN
from profiling.waiting import Calls
from profiling.workload import CollectiveKind, CollectiveWork

_EXCHANGES = (CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND_RECV)
"""Frameworks build an all-to-all out of sends and receives, and its kernels are named after these."""


def with_sizes(calls: Calls, graph: ExecutionGraph) -> Calls:
    """The calls with message and group sizes from the graph where they know none themselves; else the same object.

    Nothing is claimed unless the graph tells of the very same calls: as many collectives in the same order of kinds
    (in order of launch, where every launch is known, else of start), and no size or group that both know and that
    differs. Calls within a group of one launch no kernel and are left out of the comparison.
    """
    told = [call for call in graph.collectives if call.group_size != 1]
    if not told or len(told) != calls.kind.size:
        return calls
    order = calls.order
    if not all(_same_kind(COLLECTIVE_KINDS[kind], call) for kind, call in zip(calls.kind[order], told, strict=True)):
        return calls
    sizes, groups = (np.full(order.size, UNKNOWN, dtype=np.int64) for _ in range(2))
    sizes[order] = [UNKNOWN if call.message_bytes is None else int(call.message_bytes) for call in told]
    groups[order] = [UNKNOWN if call.group_size is None else call.group_size for call in told]
    if _contradict(calls.message_bytes, sizes) or _contradict(calls.group_size, groups):
        return calls
    message_bytes, group_size = _filled(calls.message_bytes, sizes), _filled(calls.group_size, groups)
    if (message_bytes == calls.message_bytes).all() and (group_size == calls.group_size).all():
        return calls
    return replace(calls, message_bytes=message_bytes, group_size=group_size)


def sized_works(
    works: Sequence[CollectiveWork], before: Calls, after: Calls, window: Window
) -> tuple[CollectiveWork, ...]:
    """The collectives of a step with the mean size and the group of those calls that got them; the rest as they are."""
    inside = (before.start_ns >= window.low_ns) & (before.start_ns < window.high_ns)
    got = inside & (before.message_bytes == UNKNOWN) & (after.message_bytes != UNKNOWN)
    return tuple(_sized(work, got & (after.kind == COLLECTIVE_KINDS.index(work.kind)), after) for work in works)


def _sized(work: CollectiveWork, chosen: NDArray[np.bool_], after: Calls) -> CollectiveWork:
    if work.message_bytes is not None or int(chosen.sum()) != int(work.calls):
        return work
    groups = np.unique(after.group_size[chosen])
    group = int(groups[0]) if groups.size == 1 and groups[0] != UNKNOWN else work.group_size
    return replace(work, message_bytes=float(after.message_bytes[chosen].mean()), group_size=group)


def _same_kind(kind: CollectiveKind, call: SizedCollective) -> bool:
    return kind is call.kind or (kind in _EXCHANGES and call.kind in _EXCHANGES)


def _contradict(mine: NDArray[Any], other: NDArray[np.int64]) -> bool:
    return bool(((mine != UNKNOWN) & (other != UNKNOWN) & (mine != other)).any())


def _filled(mine: NDArray[Any], other: NDArray[np.int64]) -> NDArray[Any]:
    return np.where(mine == UNKNOWN, other, mine).astype(mine.dtype)
