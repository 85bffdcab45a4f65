"""Why a device had nothing to do: each gap of its work by what the host did meanwhile.

A gap is the host's fault where the work that ends it was launched only after the device ran dry. Of such a gap, the
time under input loading is input-bound. The rest is synchronisation where the host still sat in a synchronising call
when the device ran dry and launched after it returned: it could not run ahead. Otherwise it is synchronisation only
under such calls, and launch-bound beyond. Gaps whose next work was in the queue already are unknown: the device waited
for another stream, for a peer, or for the launch itself.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import Window, device_work
from profiling.intervals import Intervals, join, union
from profiling.timeline import UNKNOWN, HostSide, Timeline

_LINKED_ENOUGH = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleCauses:
    """Time without device work in a window, by cause; causes that are known and ``unknown_ns`` add up to ``idle_ns``.

    ``launch_bound_ns``: the host was busy with something else than launching in time. ``synchronisation_ns``: it
    waited, or had waited, for the device. ``input_ns``: it loaded data. All three are None where host and device cannot
    be compared: clocks that disagree, launches that are not linked, host events that are not recorded; ``input_ns``
    also where only calls of the runtime are recorded.
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


def idle_by_cause(timeline: Timeline, device: int, window: Window) -> IdleCauses:
    """The causes of one device's idle time in a window."""
    work = device_work(timeline, device, window)
    idle = _gaps(union(work.start, work.end), window)
    launched = timeline.launched_ns[work.row]
    linked = launched.size > 0 and (launched != UNKNOWN).mean() >= _LINKED_ENOUGH
    if not (linked and timeline.clocks_agree and timeline.host.launches is not None):
        return IdleCauses(
            idle_ns=idle.length,
            launch_bound_ns=None,
            synchronisation_ns=None,
            input_ns=None,
            unknown_ns=idle.length,
        )
    return _causes(idle, _next_launch(timeline, device, idle), timeline.host)


def _gaps(covered: Intervals, window: Window) -> Intervals:
    start = np.concatenate(([window.low_ns], covered.end))
    end = np.concatenate((covered.start, [window.high_ns]))
    return Intervals(start[end > start], end[end > start])


def _next_launch(timeline: Timeline, device: int, idle: Intervals) -> NDArray[np.int64]:
    """When the work that ends each gap was launched, ``UNKNOWN`` where that is not linked or not in the capture."""
    row = np.flatnonzero(timeline.device == device)
    following = np.searchsorted(timeline.start_ns[row], idle.end)
    return np.append(timeline.launched_ns[row], UNKNOWN)[following]


def _causes(idle: Intervals, launched: NDArray[np.int64], host: HostSide) -> IdleCauses:
    late = (launched != UNKNOWN) & (launched >= idle.start)
    start, end = idle.start[late], idle.end[late]
    loading = _within(host.input, start, end)
    waiting = _within(join(host.input, host.waits), start, end) - loading
    synchronised = np.where(_drained(host.waits, start, launched[late]), end - start - loading, waiting)
    length = int((end - start).sum())
    return IdleCauses(
        idle_ns=idle.length,
        launch_bound_ns=length - int(loading.sum()) - int(synchronised.sum()),
        synchronisation_ns=int(synchronised.sum()),
        input_ns=int(loading.sum()) if host.operators is not None or host.input.start.size else None,
        unknown_ns=idle.length - length,
    )


def _drained(waits: Intervals, dry: NDArray[np.int64], launched: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a synchronising call was going on when the device ran dry, and had returned when work was launched."""
    last = np.searchsorted(waits.start, dry, side="right")
    returned = np.concatenate(([np.iinfo(np.int64).min], waits.end))[last]
    return (returned >= dry) & (returned <= launched)


def _within(covered: Intervals, start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Length of the covered part of each interval."""
    return _length_before(covered, end) - _length_before(covered, start)


def _length_before(covered: Intervals, time: NDArray[np.int64]) -> NDArray[np.int64]:
    total = np.concatenate(([0], np.cumsum(covered.end - covered.start)))
    last = np.searchsorted(covered.start, time, side="right")
    beyond = np.maximum(np.concatenate(([0], covered.end))[last] - time, 0)
    return total[last] - np.where(last > 0, beyond, 0)
