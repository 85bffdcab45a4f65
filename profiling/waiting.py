"""Collectives of several ranks side by side: what of their time is waiting for a late rank.

All ranks leave a collective at about the same moment, so the shortest duration over the ranks is about the transfer
and the rest of each rank's duration is waiting for the last one to arrive.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.timeline import Timeline

_LATE = 0.6
_MATERIAL = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """``per_collective_ns[r, i]``: waiting of rank ``r`` (order of the timelines) in its ``i``-th collective.

    ``share``: waiting of all ranks over their communication. ``late_ranks``: those that the others wait for, empty
    where waiting is immaterial; ``late_ns`` by how much they are late in the mean collective.
    """

    per_collective_ns: NDArray[np.int64]
    share: float
    late_ranks: tuple[int, ...]
    late_ns: float


def align(timelines: Sequence[Timeline]) -> Waiting | None:
    """Match the i-th collective of every rank; None unless all ranks ran the same kinds in the same order."""
    if len(timelines) < 2 or len({line.rank for line in timelines}) < len(timelines):
        return None
    kinds = [line.collectives.kind for line in timelines]
    if not kinds[0].size or any(not np.array_equal(kind, kinds[0]) for kind in kinds[1:]):
        return None
    durations = np.stack([line.duration_ns[line.collectives.row] for line in timelines])
    waiting = durations - durations.min(axis=0)
    return Waiting(
        per_collective_ns=waiting,
        share=float(waiting.sum() / max(1, durations.sum())),
        **_late(timelines, waiting, durations),
    )


def _late(timelines: Sequence[Timeline], waiting: NDArray[np.int64], durations: NDArray[np.int64]) -> dict[str, object]:
    """Late ranks wait much less than the rank that waits most."""
    total = waiting.sum(axis=1)
    if waiting.sum() < _MATERIAL * durations.sum():
        return {"late_ranks": (), "late_ns": 0.0}
    late = total < _LATE * total.max()
    names = [line.rank if line.rank is not None else place for place, line in enumerate(timelines)]
    behind = (total[~late].mean() - total[late].mean()) / waiting.shape[1] if late.any() else 0.0
    return {"late_ranks": tuple(int(names[place]) for place in np.flatnonzero(late)), "late_ns": float(behind)}
