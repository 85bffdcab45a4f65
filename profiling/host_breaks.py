"""When the host of a step waited for its device, and how long its own work took in between."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import Window
from profiling.intervals import covered_parts, union
from profiling.step_graph import NONE
from profiling.timeline import UNKNOWN, Timeline

_TOUCH_S: Final = 2e-6
_QUEUED_S: Final = 50e-6
_DEEP: Final = 900
"""Launches in the queue from which the host is held up: CUDA takes 1,024, others about as many."""
_SILENT_S: Final = 1e-3
_SOON_S: Final = 1e-4
_SOON: Final = 0.01
"""A host that launched nothing for so long and goes on so soon after its last kernel ended, also as part of the
silence, had waited for it."""
_BUSY: Final = 0.9
_LAUNCH_S: Final = 8e-6
"""Most that the host is taken to need for a launch while the queue is full; seen where it is not: 5 to 10 us."""

FAR_BACK: Final = 64
"""Rows looked at for what something waited for: those that ended last."""
MOST_WAITS: Final = 4_000

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaks:
    """Moments when the host went on after waiting for a row, in order; seconds from the start of the step.

    ``row``: what it waited for. ``reach_s``: host time from the break before until it waited; ``resume_s``: from the
    end of the row until it went on, at ``until_s``. ``end_*``: the launch of the next step, or the end of this
    one where the host marked it later than its last work; -inf where it ends with that.
    ``held_s``: time in which launches were held up, at ``moment_s``, that is no host time.
    """

    row: Ints
    reach_s: Floats
    resume_s: Floats
    until_s: Floats
    moment_s: Floats
    held_s: Floats
    end_break: int
    end_s: float
    continues: bool

    def of(self, launch_s: Floats) -> Ints:
        """The break before each launch, ``NONE`` before the first and where the launch is unknown."""
        found = np.searchsorted(self.until_s, launch_s, side="right") - 1
        return np.where(np.isnan(launch_s), NONE, found)

    def since(self, launch_s: Floats) -> Floats:
        """Host time from that break, or from the start of the step."""
        origin = np.append(0.0, self.until_s)[self.of(launch_s) + 1]
        return _own(launch_s, self) - _own(origin, self)


@dataclass(frozen=True, slots=True)
class _Wait:
    since_s: float
    until_s: float
    row: int


def host_breaks(
    line: Timeline,
    device: int,
    window: Window,
    start_s: Floats,
    end_s: Floats,
    launch_s: Floats,
    is_copy: NDArray[np.bool_],
    following_s: float | None,
) -> Breaks | None:
    """Breaks of the host in a step, None where there are too many.

    ``following_s``: launch of the next step, None where it is not captured.
    """
    known = np.sort(launch_s[~np.isnan(launch_s)])
    close_s = (window.high_ns - window.low_ns) / 1e9 if following_s is None else following_s
    moment_s, held_s, phases = _held_up(line, device, window, known)
    waits = [
        *_synchronising(line, window, known[0], close_s),
        *_blocking(start_s, end_s, launch_s, is_copy, known),
        *_polling(start_s, end_s, launch_s, following_s),
    ]
    if len(waits) > MOST_WAITS:
        return None
    by_end = np.argsort(end_s, kind="stable")
    ended = _Ended(by_end, end_s[by_end], launch_s[by_end])
    found = [ended.wait(since, until, launched_by=since) for since, until in waits]
    kept = _distinct(found + [ended.wait(since, until, launched_by=np.inf) for since, until in phases])
    until = np.array([one.until_s for one in kept], dtype=np.float64)
    bare = Breaks(
        row=np.array([one.row for one in kept], dtype=np.int64),
        reach_s=np.zeros(0),
        resume_s=until - end_s[[one.row for one in kept]] if kept else np.zeros(0),
        until_s=until,
        moment_s=moment_s,
        held_s=held_s,
        end_break=NONE,
        end_s=0.0,
        continues=following_s is not None,
    )
    return _with_times(bare, kept, close_s, float(end_s.max()))


def _with_times(bare: Breaks, kept: list[_Wait], close_s: float, last_s: float) -> Breaks:
    since = np.array([one.since_s for one in kept], dtype=np.float64)
    origin = np.append(0.0, bare.until_s)
    end = np.array([close_s])
    marked = bare.continues or close_s > last_s + _TOUCH_S
    return Breaks(
        row=bare.row,
        reach_s=_own(since, bare) - _own(origin[:-1], bare),
        resume_s=bare.resume_s,
        until_s=bare.until_s,
        moment_s=bare.moment_s,
        held_s=bare.held_s,
        end_break=int(bare.of(end)[0]),
        end_s=float(bare.since(end)[0]) if marked else -np.inf,
        continues=bare.continues,
    )


def _own(moment_s: Floats, breaks: Breaks) -> Floats:
    """Host time up to a moment: the moment less the time in which launches were held up before it."""
    if not breaks.moment_s.size:
        return moment_s
    total = np.append(0.0, np.cumsum(breaks.held_s))
    return moment_s - total[np.searchsorted(breaks.moment_s, moment_s, side="right")]


@dataclass(frozen=True, slots=True)
class _Ended:
    """Rows in order of their end."""

    row: Ints
    end_s: Floats
    launch_s: Floats

    def wait(self, since_s: float, until_s: float, *, launched_by: float) -> _Wait | None:
        """What the host waited for: the last row to end before it went on, launched by then; None if nothing.

        Clocks of host and device may be a little apart.
        """
        exact = self._wait(since_s, until_s, until_s, launched_by)
        return exact or self._wait(since_s, until_s, until_s + _TOUCH_S, launched_by)

    def _wait(self, since_s: float, until_s: float, latest_s: float, launched_by: float) -> _Wait | None:
        last = int(np.searchsorted(self.end_s, latest_s, side="right")) - 1
        for at in range(last, max(last - FAR_BACK, -1), -1):
            if self.end_s[at] <= since_s:
                break
            if self.launch_s[at] <= launched_by:
                return _Wait(since_s, max(until_s, float(self.end_s[at])), int(self.row[at]))
        return None


def _distinct(found: list[_Wait | None]) -> list[_Wait]:
    """In order of their end, without those that began before another one had ended."""
    kept: list[_Wait] = []
    for one in sorted((one for one in found if one is not None), key=lambda one: one.until_s):
        if not kept or one.since_s >= kept[-1].until_s:
            kept.append(one)
    return kept


def _synchronising(line: Timeline, window: Window, low_s: float, high_s: float) -> list[tuple[float, float]]:
    waits = line.host.waits
    start, end = ((side - window.low_ns) / 1e9 for side in (waits.start, waits.end))
    inside = (start >= low_s) & (start < high_s)
    return list(zip(start[inside].tolist(), end[inside].tolist(), strict=True))


def _blocking(
    start_s: Floats, end_s: Floats, launch_s: Floats, is_copy: NDArray[np.bool_], known: Floats
) -> list[tuple[float, float]]:
    """Copies that stood in the queue and after whose launch nothing was launched until they had ended."""
    found = []
    for row in np.flatnonzero(is_copy & (start_s - launch_s > _QUEUED_S)).tolist():
        after = int(np.searchsorted(known, launch_s[row], side="right"))
        if after < known.size and known[after] >= end_s[row]:
            found.append((float(launch_s[row]), float(end_s[row])))
    return found


def _polling(start_s: Floats, end_s: Floats, launch_s: Floats, following_s: float | None) -> list[tuple[float, float]]:
    """Silences that ended with the last kernel launched before them: the host waited in no call that a profiler shows.

    DeepEP's dispatch reads in a loop how many tokens will come. By chance a silence of a millisecond ends so in a tenth
    of the cases, a long one in a hundredth. A device that was idle meanwhile was waiting itself, as where the launch
    took long because its kernel had to be loaded.
    """
    work = union(*((side * 1e9).astype(np.int64) for side in (start_s, end_s)))
    known = launch_s[~np.isnan(launch_s)]
    moments = np.unique(known if following_s is None else np.append(known, following_s))
    found = []
    for at in np.flatnonzero(np.diff(moments) > _SILENT_S).tolist():
        since, until = float(moments[at]), float(moments[at + 1])
        ended = float(end_s[launch_s == since].max())
        span = np.array([[round(since * 1e9)], [round(ended * 1e9)]])
        busy_s = float(covered_parts(work, *span)[0]) / 1e9
        soon_s = max(_SOON_S, _SOON * (until - since))
        if until - soon_s < ended <= until and busy_s > _BUSY * (ended - since):
            found.append((since, until))
    return found


def _held_up(
    line: Timeline, device: int, window: Window, known: Floats
) -> tuple[Floats, Floats, list[tuple[float, float]]]:
    """Launches of the step that a full queue held up (when, and for how long), and from when to when that went on."""
    low = np.searchsorted(line.start_ns, window.low_ns + int(known[0] * 1e9))
    high = np.searchsorted(line.start_ns, window.high_ns)
    rows = slice(int(low), int(high))
    mine = (line.device[rows] == device) & (line.launched_ns[rows] != UNKNOWN)
    launched = (line.launched_ns[rows][mine] - window.low_ns) / 1e9
    ended = (line.start_ns[rows][mine] + line.duration_ns[rows][mine] - window.low_ns) / 1e9
    moments, at = np.unique(launched, return_index=True)
    mine_alone = np.unique(known)
    depth = np.searchsorted(moments, mine_alone) - np.searchsorted(np.sort(ended[at]), mine_alone)
    full = depth >= _DEEP
    if not full.any():
        return np.zeros(0), np.zeros(0), []
    gaps = np.diff(mine_alone, prepend=mine_alone[0])
    borders = np.flatnonzero(np.diff(np.concatenate(([False], full, [False])).astype(np.int8)))
    phases = [(float(mine_alone[a]), float(mine_alone[b - 1])) for a, b in borders.reshape(-1, 2).tolist()]
    return mine_alone[full], np.maximum(gaps[full] - _LAUNCH_S, 0.0), phases
