"""How uneven collectives are that should take the same time: what one rank alone shows of waiting.

A collective takes longer than others of its kind and size because this rank waited in it, or because the links were
busy. The quick tenth stands for the transfer.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import Window
from profiling.waiting import Calls

_ENOUGH_ALIKE = 3
_QUICK = 0.1
_ENOUGH_TIME = 0.5


def uneven_share(ranks: Sequence[tuple[Calls, Window]]) -> float | None:
    """Part of the time of like calls beyond the quick tenth of their kind, over the calls of every rank that start in
    its window; None without communication, and where like calls make up less than half of its time.

    Alike are at least three calls of one rank that are known to be of one process group (or of groups of one size,
    where none are named), of one kind and of one message size.
    """
    total = told = beyond = 0
    for calls, window in ranks:
        inside = (calls.start_ns >= window.low_ns) & (calls.start_ns < window.high_ns)
        total += int(calls.duration_ns[inside].sum())
        duration, quick = _with_quick(calls, inside)
        told += int(duration.sum())
        beyond += int(np.maximum(duration - quick, 0).sum())
    return beyond / told if told and told >= _ENOUGH_TIME * total else None


def _with_quick(calls: Calls, inside: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Durations of the calls that have enough others like them, and beside each that of the quick tenth of its like.

    The quick tenth is a duration that was seen (inverse of the distribution).
    """
    group = calls.group_size if calls.communicator is None else calls.communicator
    at = np.flatnonzero(inside & (group >= 0) & (calls.message_bytes >= 0))
    keys = np.stack((group[at], calls.kind[at], calls.message_bytes[at])).astype(np.int64)
    at, keys = _sorted(at, keys, calls.duration_ns[at])
    opens = np.flatnonzero(np.concatenate(([True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)))[: at.size])
    sizes = np.diff(np.append(opens, at.size))
    duration = calls.duration_ns[at]
    quick = duration[opens + np.ceil(_QUICK * sizes).astype(np.int64) - 1]
    enough = np.repeat(sizes >= _ENOUGH_ALIKE, sizes)
    return duration[enough], np.repeat(quick, sizes)[enough]


def _sorted(
    at: NDArray[np.int64], keys: NDArray[np.int64], duration: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.lexsort((duration, *keys))
    return at[order], keys[:, order]
