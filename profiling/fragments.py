"""Captures that were cut out of another capture of the same upload: counting both would count work twice."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.formats.capture import Capture
from profiling.timeline import Timeline

_FAR_FEWER = 2
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Traces:
    """What is kept of a capture to find its fragments: per timeline its rank and one number per device event, sorted.

    The numbers have shape ``(n,)`` and tell start, duration and name apart.
    """

    ranks: tuple[int | None, ...] = ()
    events: tuple[NDArray[np.uint64], ...] = ()


def traces(capture: Capture) -> Traces:
    return Traces(tuple(line.rank for line in capture.timelines), tuple(map(_events, capture.timelines)))


def fragments(captures: Sequence[Traces]) -> dict[int, int]:
    """Places of the fragments among the captures, each with the place of a capture that it was cut from.

    A fragment has far fewer events than the other, all of which the other has too, of the same rank or of none.
    """
    found = {}
    for place, small in enumerate(captures):
        if not small.events:
            continue
        whole = next((other for other, large in enumerate(captures) if other != place and _within(small, large)), None)
        if whole is not None:
            found[place] = whole
    return found


def _within(small: Traces, large: Traces) -> bool:
    return all(
        any(
            rank in (None, other_rank) and _FAR_FEWER * events.size <= others.size and _all_in(events, others)
            for other_rank, others in zip(large.ranks, large.events, strict=True)
        )
        for rank, events in zip(small.ranks, small.events, strict=True)
    )


def _all_in(events: NDArray[np.uint64], others: NDArray[np.uint64]) -> bool:
    at = np.searchsorted(others, events)
    return bool((at < others.size).all() and (others[at] == events).all())


def _events(line: Timeline) -> NDArray[np.uint64]:
    names = np.array([zlib.crc32(name.encode("utf-8", errors="replace")) for name in line.names], dtype=np.uint64)
    start = (line.start_ns + (line.epoch_ns or 0)).astype(np.uint64)
    mixed = (start * _MIX ^ line.duration_ns.astype(np.uint64)) * _MIX ^ names[line.name_id]
    return np.sort(mixed)
