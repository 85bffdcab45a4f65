"""Captures that were cut out of another capture of the same upload: counting both would count work twice.

The events of all captures of an upload are compared, so they wait on disk: memory does not grow with their number.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from profiling.formats.capture import Capture
from profiling.timeline import Timeline

_FAR_FEWER = 2
_MIX = np.uint64(0x9E3779B97F4A7C15)
_BATCH = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What is kept of a timeline to find its fragments.

    ``events``: a file of one 64-bit number per device event, sorted; it tells start, duration and name apart.
    ``size``: how many these are, at least 1.
    ``knows_job``: the capture tells its rank itself. ``has_host``: it recorded what the host did.
    """

    rank: int | None
    knows_job: bool
    has_host: bool
    events: Path
    size: int


def traces(capture: Capture, folder: Path) -> tuple[Trace, ...]:
    """One per timeline. Each writes a file into the folder, which has to stay until all are compared."""
    return tuple(_trace(line, folder / f"events-{place}") for place, line in enumerate(capture.timelines))


def _trace(line: Timeline, path: Path) -> Trace:
    _events(line).tofile(path)
    return Trace(
        rank=line.rank,
        knows_job=line.world_size is not None,
        has_host=bool(line.host.operators or line.host.launches),
        events=path,
        size=line.start_ns.size,
    )


def fragments(captures: Sequence[tuple[Trace, ...]], alive: Callable[[], None] = lambda: None) -> dict[int, int]:
    """Places of the fragments among the captures, each with the place of the capture that it belongs to.

    A fragment has far fewer events than a capture of the same rank (or is of no rank), and either that capture has
    all of them too, or the fragment lacks what a profiler writes beside the device's work: the host's, and the job.
    Each is compared to all others, which takes its time where there are thousands: ``alive()`` is called for each.
    """
    found = {}
    for place, small in enumerate(captures):
        alive()
        others = (other for other, large in enumerate(captures) if small and other != place and _belongs(small, large))
        whole = next(others, None)
        if whole is not None:
            found[place] = whole
    return found


def _belongs(small: tuple[Trace, ...], large: tuple[Trace, ...]) -> bool:
    return all(any(_is_cut_from(one, other) for other in large) for one in small)


def _is_cut_from(small: Trace, large: Trace) -> bool:
    if small.rank not in (None, large.rank) or _FAR_FEWER * small.size > large.size:
        return False
    is_bare = not (small.knows_job or small.has_host) and large.knows_job and large.has_host
    return is_bare or _all_in(_mapped(small), _mapped(large))


def _mapped(trace: Trace) -> NDArray[np.uint64]:
    return np.memmap(trace.events, dtype=np.uint64, mode="r")


def _all_in(events: NDArray[np.uint64], others: NDArray[np.uint64]) -> bool:
    """Whether each of these is among the others, both sorted. Stops at the first batch that is not."""
    return all(_batch_in(events[at : at + _BATCH], others) for at in range(0, events.size, _BATCH))


def _batch_in(events: NDArray[np.uint64], others: NDArray[np.uint64]) -> bool:
    at = np.searchsorted(others, events)
    return bool((at < others.size).all() and (others[at] == events).all())


def _events(line: Timeline) -> NDArray[np.uint64]:
    names = np.array([zlib.crc32(name.encode("utf-8", errors="replace")) for name in line.names], dtype=np.uint64)
    start = (line.start_ns + (line.epoch_ns or 0)).astype(np.uint64)
    mixed = ((start * _MIX) ^ line.duration_ns.astype(np.uint64)) * _MIX ^ names[line.name_id]
    return np.sort(mixed)
