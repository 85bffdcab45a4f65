"""Which part of a capture is one step: markers of the profiler, carried over to the device."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import Window, whole_window
from profiling.timeline import UNKNOWN, StepSpan, Timeline, WorkKind

_OUTLIER = 2.0
_LINKED_ENOUGH = 0.5
_REPEATS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """``typical`` is the steady step of (lower) median length; ``region`` the time that speaks for the whole run.

    ``observed`` counts marked steps, None without markers: then the whole capture is taken as one step.
    ``first_ratio``: how many times longer the first step is, where it was set aside for that.
    """

    typical: Window
    region: Window
    observed: int | None
    steady: int | None
    first_ratio: float | None = None


def find_steps(timeline: Timeline) -> Steps:
    """Steps of a rank. A step's window opens with the first work launched in it and closes where the next one opens."""
    whole = whole_window(timeline)
    windows = _device_windows(timeline, _distinct(timeline.steps), whole)
    if not windows:
        return Steps(typical=whole, region=whole, observed=None, steady=None)
    lengths = [window.high_ns - window.low_ns for window in windows]
    ratio = lengths[0] / float(np.median(lengths[1:])) if len(lengths) > 1 else 1.0
    first_out = ratio > _OUTLIER
    steady = windows[1:] if first_out else windows
    ordered = sorted(steady, key=lambda window: (window.high_ns - window.low_ns, window.low_ns))
    return Steps(
        typical=ordered[(len(ordered) - 1) // 2],
        region=Window(steady[0].low_ns, whole.high_ns) if first_out else whole,
        observed=len(windows),
        steady=len(steady),
        first_ratio=ratio if first_out else None,
    )


def _distinct(steps: tuple[StepSpan, ...]) -> list[StepSpan]:
    """One span per step number: some captures print a marker per thread."""
    longest: dict[int, StepSpan] = {}
    for step in steps:
        if step.number not in longest or step.duration_ns > longest[step.number].duration_ns:
            longest[step.number] = step
    return sorted(longest.values(), key=lambda step: step.start_ns)


def _device_windows(timeline: Timeline, steps: list[StepSpan], whole: Window) -> list[Window]:
    if not steps:
        return []
    linked = timeline.launched_ns != UNKNOWN
    if linked.mean() < _LINKED_ENOUGH:
        windows = [Window(step.start_ns, step.end_ns) for step in steps]
    else:
        windows = _launched_windows(timeline, steps, linked)
    return [window for window in windows if window.low_ns < min(window.high_ns, whole.high_ns)]


def _launched_windows(timeline: Timeline, steps: list[StepSpan], linked: NDArray[np.bool_]) -> list[Window]:
    """Windows by launch: captures lose launch calls, mostly the first ones, so unlinked work counts by its own time."""
    launched, start = timeline.launched_ns[linked], timeline.start_ns[linked]
    order = np.argsort(launched, kind="stable")
    launched = launched[order]
    opens_at = np.minimum.accumulate(start[order][::-1])[::-1]
    place = np.searchsorted(launched, [step.start_ns for step in steps])
    kept = [(step, int(opens_at[at])) for step, at in zip(steps, place, strict=True) if at < launched.size]
    if not kept:
        return []
    first, last = kept[0][0], kept[-1][0]
    lost = timeline.start_ns[~linked & (timeline.start_ns >= first.start_ns)]
    borders = [opened for _, opened in kept]
    borders[0] = min(borders[0], int(lost.min(initial=borders[0])))
    return [Window(low, high) for low, high in pairwise([*borders, _close(timeline, linked, last, borders)])]


def _close(timeline: Timeline, linked: NDArray[np.bool_], last: StepSpan, borders: list[int]) -> int:
    """End of the last step: of its work; of several steps none is taken as shorter than the host saw it."""
    began = np.where(linked, timeline.launched_ns, timeline.start_ns)
    work_end = int(timeline.end_ns[began < last.end_ns].max(initial=borders[-1]))
    return work_end if len(borders) == 1 else max(work_end, borders[-1] + last.duration_ns)


def repetitions(timeline: Timeline) -> int | None:
    """How often the same sequence of different kernels fills the whole capture, None if it does not repeat."""
    names = timeline.name_id[timeline.kind == WorkKind.KERNEL]
    for period in range(2, names.size // _REPEATS + 1):
        if names.size % period == 0 and bool((names[period:] == names[:-period]).all()):
            return names.size // period if np.unique(names[:period]).size > 1 else None
    return None
