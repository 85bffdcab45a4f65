"""Steps of a capture without markers: a sequence of kernels that repeats.

An anchor is a kernel, or two kernels in a row, that comes once in every step: its places among the kernels are evenly
apart. Steps last from one anchor to the next; what comes before the first is left out, and what follows the last is a
step if it is complete. Of the periods that anchors offer the shortest wins whose steps are all made of the same
kernels: where the steps of a shorter period are the layers of a model, what comes once in many layers (embedding,
sampling, optimiser) is foreign to them, and where those of a longer one are several steps, next to nothing is foreign
to the shorter.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.timeline import Timeline, WorkKind

LEAST = 4
_EVEN = 0.25
"""A distance is even within this share of the middle one."""
_EVEN_ENOUGH = 0.9
"""Share of the distances that are even, and of the steps that a kernel which belongs to them is in."""
_FOREIGN = 0.005
"""Largest share, by number and by time, of kernels that do not belong to every step."""
_UNEVEN = 0.1
"""How far the numbers of kernels by name may be from their means over the steps, as a share of all."""
_FOREIGN_OUTSIDE = 0.01
"""The same before the first and after the last whole step, by number and as a share of one step."""
_COVERED = 0.5
_PERIODS = 32
"""Most periods looked at: each costs time linear in the kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kernels:
    """Kernels of one device in order of start; ``idle``: for how long nothing ran before each."""

    name: NDArray[np.int64]
    start: NDArray[np.int64]
    duration: NDArray[np.int64]
    idle: NDArray[np.int64]
    by_name: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Anchors:
    """Candidates by the number of their places: ``place`` lists those of all, each from ``first`` on."""

    place: NDArray[np.int64]
    first: NDArray[np.int64]
    count: NDArray[np.int64]


def repeated_steps(timeline: Timeline) -> NDArray[np.int64]:
    """Where steps begin, and where the last one ends: ns, ascending, shape ``(steps + 1,)``; steps are at least
    ``LEAST``. Empty where nothing repeats."""
    nothing = np.zeros(0, dtype=np.int64)
    kernels = _kernels(timeline)
    if kernels.name.size < 2 * LEAST:
        return nothing
    candidates = [_anchors(kernels.name), _anchors(_pairs(kernels.name))]
    for count in _periods(candidates):
        places = max((_best(one, count, kernels) for one in candidates), key=lambda found: _idle(found, kernels))
        if places.size >= LEAST - 1 and _same(kernels, places):
            borders = kernels.start[places]
            if _ends_complete(kernels, places):
                borders = np.append(borders, (kernels.start + kernels.duration).max())
            if borders.size > LEAST and np.diff(borders).min() > 0:
                return borders
    return nothing


def _kernels(timeline: Timeline) -> _Kernels:
    """Of the device that has most."""
    chosen = (timeline.kind == WorkKind.KERNEL) | (timeline.kind == WorkKind.GRAPH)
    devices, counts = np.unique(timeline.device[chosen], return_counts=True)
    if devices.size:
        chosen &= timeline.device == devices[counts.argmax()]
    name = timeline.name_id[chosen].astype(np.int64)
    start, duration = timeline.start_ns[chosen], timeline.duration_ns[chosen]
    idle = np.zeros(start.size, dtype=np.int64)
    idle[1:] = np.maximum(start[1:] - np.maximum.accumulate(start + duration)[:-1], 0)
    return _Kernels(name=name, start=start, duration=duration, idle=idle, by_name=np.argsort(name, kind="stable"))


def _pairs(name: NDArray[np.int64]) -> NDArray[np.int64]:
    return name[:-1] * (int(name.max()) + 1) + name[1:]


def _anchors(value: NDArray[np.int64]) -> _Anchors:
    """Values whose places are evenly apart."""
    place = np.argsort(value, kind="stable")
    ordered = value[place]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    count = np.diff(np.append(first, value.size))
    some = count >= LEAST - 1
    first, count = first[some], count[some]
    if not first.size:
        return _Anchors(place=place, first=first, count=count)
    mean = (place[first + count - 1] - place[first]) / (count - 1)
    distance = np.append(np.diff(place), 0)
    group = np.repeat(np.arange(first.size), count - 1)
    inner = np.arange(group.size) - np.repeat(np.cumsum(count - 1) - (count - 1), count - 1) + first[group]
    even = np.abs(distance[inner] - mean[group]) <= _EVEN * mean[group]
    chosen = (np.bincount(group, weights=even, minlength=first.size) >= _EVEN_ENOUGH * (count - 1)) & (mean > 1)
    return _Anchors(place=place, first=first[chosen], count=count[chosen])


def _periods(candidates: list[_Anchors]) -> list[int]:
    """Numbers of steps that anchors offer, most first."""
    return np.unique(np.concatenate([one.count for one in candidates]))[::-1][:_PERIODS].tolist()


def _best(anchors: _Anchors, count: int, kernels: _Kernels) -> NDArray[np.int64]:
    """Places of the anchor before which the device is mostly idle the longest: there steps begin; first of equals."""
    chosen = np.flatnonzero(anchors.count == count)
    if not chosen.size:
        return np.zeros(0, dtype=np.int64)
    places = anchors.place[anchors.first[chosen][:, None] + np.arange(count)]
    order = np.lexsort((places[:, 0], -np.median(kernels.idle[places], axis=1)))
    return places[order[0]]


def _idle(places: NDArray[np.int64], kernels: _Kernels) -> float:
    return float(np.median(kernels.idle[places])) if places.size else -1.0


def _same(kernels: _Kernels, places: NDArray[np.int64]) -> bool:
    """Whether the steps between the places are made of the same kernels, more than one, and fill most of the time.

    What is before and after them must be cut-off steps: other kernels there are those of one step around its layers.
    """
    low, high = int(places[0]), int(places[-1])
    if kernels.start[high] - kernels.start[low] < _COVERED * (kernels.start[-1] - kernels.start[0]):
        return False
    row = kernels.by_name
    name, step = kernels.name[row], np.searchsorted(places, row, side="right")
    inside = (row >= low) & (row < high)
    new_name = np.concatenate(([True], name[1:] != name[:-1]))
    first_in_step = new_name | np.concatenate(([True], step[1:] != step[:-1]))
    group = np.cumsum(new_name) - 1
    belongs = np.bincount(group, weights=first_in_step & inside) >= _EVEN_ENOUGH * (places.size - 1)
    foreign = ~belongs[group]
    duration = kernels.duration[row]
    return bool(
        belongs.sum() > 1
        and (foreign & inside).sum() <= _FOREIGN * inside.sum()
        and _deviation(group[inside], first_in_step[inside], places.size - 1) <= _UNEVEN * inside.sum()
        and duration[foreign & inside].sum() <= _FOREIGN * duration[inside].sum()
        and (foreign & ~inside).sum() <= _FOREIGN_OUTSIDE * np.diff(places).min()
    )


def _deviation(group: NDArray[np.int64], first_in_step: NDArray[np.bool_], steps: int) -> float:
    """Sum over names and steps of ``|n - mean|``, ``n`` being how often a name comes in a step; rows by name and step.

    A step without the name adds the mean.
    """
    mean = np.bincount(group) / steps
    begin = np.flatnonzero(first_in_step)
    times = np.diff(np.append(begin, group.size))
    name = group[begin]
    without = steps - np.bincount(name, minlength=mean.size)
    return float(np.abs(times - mean[name]).sum() + (without * mean).sum())


def _ends_complete(kernels: _Kernels, places: NDArray[np.int64]) -> bool:
    """Whether at least as many kernels follow the last place as the shortest of the steps has."""
    return bool(kernels.name.size - places[-1] >= np.diff(places).min())
