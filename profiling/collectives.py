"""The collectives of a job as a table: how often, how large, how long, and how fast where all ranks tell."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN
from profiling.waiting import Calls, Waiting
from profiling.workload import CollectiveKind


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRow:
    """Calls of one kind, group size and message size, over all ranks.

    ``busy_s``: mean duration of a call, waiting included; ``transfer_s``: without it, None where ranks cannot tell.
    ``bus_bytes_per_s``: as nccl-tests defines it, from the transfer; None where size, group or transfer is unknown.
    """

    kind: CollectiveKind
    group_size: int | None
    message_bytes: int | None
    calls: int
    busy_s: float
    transfer_s: float | None
    bus_bytes_per_s: float | None


MOST_ROWS = 50
_RING = {CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_TO_ALL}


def collective_rows(calls: Sequence[Calls], waiting: Waiting | None) -> tuple[CollectiveRow, ...]:
    """One row per kind, group and size, the longest in sum first; at most ``MOST_ROWS``."""
    calls = list(calls)
    if not any(one.kind.size for one in calls):
        return ()
    kind = np.concatenate([one.kind for one in calls]).astype(np.int64)
    group = np.concatenate([one.group_size for one in calls]).astype(np.int64)
    size = np.concatenate([one.message_bytes for one in calls])
    duration = np.concatenate([one.duration_ns for one in calls])
    waited = np.full(duration.shape, UNKNOWN) if waiting is None else np.concatenate(waiting.per_call_ns)
    keys, place = np.unique(np.stack((kind, group, size)), axis=1, return_inverse=True)
    place = place.reshape(-1)
    total = np.bincount(place, weights=duration)
    rows = []
    for at in np.argsort(-total, kind="stable")[:MOST_ROWS].tolist():
        chosen = place == at
        known = chosen & (waited != UNKNOWN)
        transfer = float((duration - waited)[known].mean()) / 1e9 if known.any() else None
        rows.append(_row(keys[:, at].tolist(), int(chosen.sum()), float(duration[chosen].mean()) / 1e9, transfer))
    return tuple(rows)


def _row(key: list[int], calls: int, busy_s: float, transfer_s: float | None) -> CollectiveRow:
    kind, group, size = COLLECTIVE_KINDS[key[0]], *(None if value == UNKNOWN else value for value in key[1:])
    return CollectiveRow(
        kind=kind,
        group_size=group,
        message_bytes=size,
        calls=calls,
        busy_s=busy_s,
        transfer_s=transfer_s,
        bus_bytes_per_s=bus_bytes_per_s(kind, group, size, transfer_s),
    )


def bus_bytes_per_s(
    kind: CollectiveKind, group_size: int | None, message_bytes: float | None, seconds: float | None
) -> float | None:
    """Bus bandwidth (nccl-tests doc/PERFORMANCE.md): size over time, times what the collective moves over each link.

    2(n-1)/n for an all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 for the others.
    """
    if not seconds or message_bytes is None or group_size is None or kind is CollectiveKind.UNKNOWN:
        return None
    around = (group_size - 1) / group_size
    factor = 2 * around if kind is CollectiveKind.ALL_REDUCE else around if kind in _RING else 1.0
    return message_bytes / seconds * factor
