"""Which part of a capture is one step: markers carried over to the device, else kernels that repeat."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import Window, whole_window
from profiling.repetition import repeated_steps
from profiling.timeline import UNKNOWN, StepSource, StepSpan, Timeline, WorkKind

_OUTLIER = 2.0
_LINKED_ENOUGH = 0.5
_NEVER = np.iinfo(np.int64).max
_PIECE = 1 << 17
"""Rows worked on at once, so that no column of a long capture is copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How even the steady steps are. Quantiles are lengths of steps that were seen (inverse of the distribution).

    ``variation``: standard deviation over mean; ``slowest_ratio``: the longest over the median.
    """

    median_ns: int
    p10_ns: int
    p90_ns: int
    variation: float
    slowest_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """``typical`` is the steady step of (lower) median length; ``region`` the time that speaks for the whole run.

    ``source``: what the steps were told from, None where nothing tells: then the whole capture is taken as one step.
    ``observed`` counts marked steps and ``repeated`` those found in capture without markers; each is None in the other
    case. ``steady``: marked steps without the slow ones at the start. ``set_aside`` counts these, and ``first_ratio``
    is how many times longer the first of them is than the steady ones: by the markers, which users see, unless only
    the device shows it. ``spread``: None with fewer than two steps.
    """

    typical: Window
    region: Window
    observed: int | None
    steady: int | None
    first_ratio: float | None = None
    set_aside: int = 0
    source: StepSource | None = None
    repeated: int | None = None
    spread: Spread | None = None

    @property
    def in_region(self) -> int:
        """Steps that ``region`` holds; 1 where nothing tells."""
        found = self.observed or self.repeated
        return 1 if found is None else found - self.set_aside


def find_steps(timeline: Timeline) -> Steps:
    """Steps of a rank. A step's window opens with the first work launched in it and closes where the next one opens."""
    whole = whole_window(timeline)
    spans = _distinct(timeline.steps)
    marked = _device_windows(timeline, spans, whole)
    windows = marked or [Window(low, high) for low, high in pairwise(repeated_steps(timeline).tolist())]
    if not windows:
        return Steps(typical=whole, region=whole, observed=None, steady=None)
    lengths = np.array([window.high_ns - window.low_ns for window in windows], dtype=np.int64)
    slow = _slow_at_start(lengths)
    if slow and _is_another_phase(timeline, whole, windows[slow].low_ns):
        slow = 0
    steady, lengths_of_steady = windows[slow:], lengths[slow:]
    order = np.argsort(lengths_of_steady, kind="stable")
    return Steps(
        typical=steady[order[(order.size - 1) // 2]],
        region=whole if marked and not slow else Window(steady[0].low_ns, whole.high_ns),
        observed=len(windows) if marked else None,
        steady=len(steady) if marked else None,
        first_ratio=_first_ratio(lengths, [span.duration_ns for span in spans], slow),
        set_aside=slow,
        source=timeline.steps_from if marked else StepSource.REPETITION,
        repeated=None if marked else len(windows),
        spread=_spread(lengths_of_steady),
    )


def _slow_at_start(lengths: NDArray[np.int64]) -> int:
    """How many of the first steps, half at most, are outliers: much longer than is usual in the second half."""
    half = lengths.size // 2
    usual = lengths[:half] <= _OUTLIER * np.median(lengths[half:])
    return int(usual.argmax()) if usual.any() else half


def _is_another_phase(timeline: Timeline, whole: Window, steady_ns: int) -> bool:
    """True where the time before the steady steps is no slow start but other work, as prompts are before answers.

    Then most of its kernel time is in kernels that later steps do not have, and the device works no less than later:
    a start that compiles, or tries kernels out, waits for the host as it does so.
    """
    early = _kernel_time_by_name(timeline, whole.low_ns, steady_ns)
    late = _kernel_time_by_name(timeline, steady_ns, whole.high_ns)
    is_other = early[late == 0].sum() > early.sum() / 2
    works = early.sum() * (whole.high_ns - steady_ns) >= late.sum() * (steady_ns - whole.low_ns)
    return bool(is_other and works)


def _kernel_time_by_name(timeline: Timeline, low: int, high: int) -> NDArray[np.float64]:
    """Of kernels that start in ``[low, high)``, shape ``(names,)``."""
    first, last = np.searchsorted(timeline.start_ns, (low, high)).tolist()
    found = np.zeros(len(timeline.names), dtype=np.float64)
    for at in range(first, last, _PIECE):
        part = slice(at, min(at + _PIECE, last))
        lasting = timeline.duration_ns[part] * (timeline.kind[part] == WorkKind.KERNEL)
        found += np.bincount(timeline.name_id[part], weights=lasting, minlength=found.size)
    return found


def _first_ratio(lengths: NDArray[np.int64], marked_lengths: list[int], slow: int) -> float | None:
    if not slow:
        return None
    seen = np.array(marked_lengths if len(marked_lengths) == lengths.size else lengths, dtype=np.int64)
    ratio, device_ratio = (float(one[0] / max(1.0, np.median(one[slow:]))) for one in (seen, lengths))
    return ratio if ratio > _OUTLIER else device_ratio


def _spread(lengths: NDArray[np.int64]) -> Spread | None:
    if lengths.size < 2:
        return None
    p10, median, p90 = (int(one) for one in np.quantile(lengths, (0.1, 0.5, 0.9), method="inverted_cdf"))
    return Spread(
        median_ns=median,
        p10_ns=p10,
        p90_ns=p90,
        variation=float(lengths.std() / lengths.mean()),
        slowest_ratio=float(lengths.max() / median),
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
    opens_at = _first_starts(timeline, linked, np.array([step.start_ns for step in steps], dtype=np.int64))
    kept = [(step, opened) for step, opened in zip(steps, opens_at.tolist(), strict=True) if opened != _NEVER]
    if not kept:
        return []
    first, last = kept[0][0], kept[-1][0]
    lost = timeline.start_ns[~linked & (timeline.start_ns >= first.start_ns)]
    borders = [opened for _, opened in kept]
    borders[0] = min(borders[0], int(lost.min(initial=borders[0])))
    return [Window(low, high) for low, high in pairwise([*borders, _close(timeline, linked, last, borders)])]


def _first_starts(timeline: Timeline, linked: NDArray[np.bool_], begins: NDArray[np.int64]) -> NDArray[np.int64]:
    """When the first work that is launched at or after each moment starts, ``_NEVER`` where there is none."""
    first = np.full(begins.size + 1, _NEVER, dtype=np.int64)
    for piece in _pieces(linked.size):
        mine = linked[piece]
        step = np.searchsorted(begins, timeline.launched_ns[piece][mine], side="right")
        np.minimum.at(first, step, timeline.start_ns[piece][mine])
    return np.minimum.accumulate(first[:0:-1])[::-1]


def _close(timeline: Timeline, linked: NDArray[np.bool_], last: StepSpan, borders: list[int]) -> int:
    """End of the last step: of its work; of several steps none is taken as shorter than the host saw it."""
    work_end = borders[-1]
    for piece in _pieces(linked.size):
        began = np.where(linked[piece], timeline.launched_ns[piece], timeline.start_ns[piece])
        ends = timeline.start_ns[piece] + timeline.duration_ns[piece]
        work_end = int(ends[began < last.end_ns].max(initial=work_end))
    return work_end if len(borders) == 1 else max(work_end, borders[-1] + last.duration_ns)


def _pieces(rows: int) -> Iterator[slice]:
    for low in range(0, rows, _PIECE):
        yield slice(low, low + _PIECE)
