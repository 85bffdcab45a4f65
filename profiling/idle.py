"""Why a device had nothing to do: each gap of its work by what the host did meanwhile.

A gap is the host's fault where the work that ends it was launched only after the device ran dry. Of such a gap, the
time under input loading is input-bound. The rest is synchronisation where the host still sat in a synchronising call
when the device ran dry and launched after it returned: it could not run ahead. Otherwise it is synchronisation only
under such calls, and launch-bound beyond. Gaps whose next work was in the queue already are unknown: the device waited
for another stream, for a peer, or for the launch itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import DeviceWork, Window, device_work
from profiling.intervals import Intervals, covered_parts, join, union
from profiling.timeline import UNKNOWN, HostSide, Timeline

_LINKED_ENOUGH = 0.5
_PIECE = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleCauses:
    """Time without device work in a window, by cause; causes that are known and ``unknown_ns`` add up to ``idle_ns``.

    ``launch_bound_ns``: the host was busy with something else than launching in time. ``synchronisation_ns``: it
    waited, or had waited, for the device. ``input_ns``: it loaded data. All three are None where host and device cannot
    be compared: clocks that disagree, launches that are not linked, host events or device work that are not recorded;
    ``input_ns`` also where only calls of the runtime are recorded.
    """

    idle_ns: int
    launch_bound_ns: int | None
    synchronisation_ns: int | None
    input_ns: int | None
    unknown_ns: int

    @property
    def host_ns(self) -> int | None:
        """All that the host caused: gaps whose next work was launched after the device had run dry."""
        if self.launch_bound_ns is None or self.synchronisation_ns is None:
            return None
        return self.launch_bound_ns + self.synchronisation_ns + (self.input_ns or 0)


def idle_by_cause(timeline: Timeline, device: int, window: Window, work: DeviceWork | None = None) -> IdleCauses:
    """The causes of one device's idle time in a window; ``work``: what is in it, where it is known."""
    if work is None:
        work = device_work(timeline, device, window)
    linked = work.row.size > 0 and (timeline.launched_ns[work.row] != UNKNOWN).mean() >= _LINKED_ENOUGH
    covered = union(work.start, work.end)
    idle_ns = window.high_ns - window.low_ns - covered.length
    comparable = linked and timeline.clocks_agree and timeline.host.launches is not None
    if not (comparable and timeline.idle_known):
        return IdleCauses(
            idle_ns=idle_ns, launch_bound_ns=None, synchronisation_ns=None, input_ns=None, unknown_ns=idle_ns
        )
    row = np.flatnonzero(timeline.device == device)
    sums = [_causes(gaps, _next_launch(timeline, row, gaps), timeline.host) for gaps in _gaps(covered, window)]
    late, loading, synchronised = (sum(column) for column in zip(*sums, strict=True))
    host = timeline.host
    return IdleCauses(
        idle_ns=idle_ns,
        launch_bound_ns=late - loading - synchronised,
        synchronisation_ns=synchronised,
        input_ns=loading if host.operators is not None or host.input.start.size else None,
        unknown_ns=idle_ns - late,
    )


def _gaps(covered: Intervals, window: Window) -> Iterator[Intervals]:
    """The gaps in order, in pieces: there may be as many as there are kernels."""
    for low in range(0, covered.start.size + 1, _PIECE):
        start = covered.end[max(0, low - 1) : low + _PIECE - 1]
        end = covered.start[low : low + _PIECE]
        if low == 0:
            start = np.concatenate(([window.low_ns], start))
        if end.size < start.size:
            end = np.concatenate((end, [window.high_ns]))
        yield Intervals(start[end > start], end[end > start])


def _next_launch(timeline: Timeline, row: NDArray[np.int64], idle: Intervals) -> NDArray[np.int64]:
    """When the work that ends each gap was launched, ``UNKNOWN`` where that is not linked or not in the capture."""
    starts = timeline.start_ns if row.size == timeline.start_ns.size else timeline.start_ns[row]
    following = np.searchsorted(starts, idle.end)
    inside = following < row.size
    return np.where(inside, timeline.launched_ns[row[np.minimum(following, row.size - 1)]], UNKNOWN)


def _causes(idle: Intervals, launched: NDArray[np.int64], host: HostSide) -> tuple[int, int, int]:
    """Length of the gaps that the host caused, and the parts of it under input loading and synchronisation."""
    late = (launched != UNKNOWN) & (launched >= idle.start)
    start, end = idle.start[late], idle.end[late]
    loading = covered_parts(host.input, start, end)
    waiting = covered_parts(join(host.input, host.waits), start, end) - loading
    synchronised = np.where(_drained(host.waits, start, launched[late]), end - start - loading, waiting)
    return int((end - start).sum()), int(loading.sum()), int(synchronised.sum())


def _drained(waits: Intervals, dry: NDArray[np.int64], launched: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a synchronising call was going on when the device ran dry, and had returned when work was launched."""
    last = np.searchsorted(waits.start, dry, side="right")
    returned = np.concatenate(([np.iinfo(np.int64).min], waits.end))[last]
    return (returned >= dry) & (returned <= launched)
