"""Time of a collective: measured curves where they exist, latency and bandwidth elsewhere.

A straight latency-bandwidth line misses measured curves by 7 to 15 % (median) at middle sizes, so curves are kept as
points and read in log-log. All curves share one grid of message sizes, so that a batch of servers is one array
``[server, group, collective, size]`` of ln(seconds).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.engine.calibrated import constant, curve_points
from advisor.engine.fabric import GROUPS, Route
from profiling.workload import CollectiveKind

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

KINDS = (
    CollectiveKind.ALL_REDUCE,
    CollectiveKind.ALL_GATHER,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.ALL_TO_ALL,
    CollectiveKind.BROADCAST,
    CollectiveKind.SEND_RECV,
)
_FIRST_EXPONENT, _STEP, _SIZES = 10, 2, 13
_GRID = 2.0 ** (_FIRST_EXPONENT + _STEP * np.arange(_SIZES))


def bus_factor(kind: CollectiveKind, group: int) -> float:
    """Bytes that cross the busiest link over message bytes (nccl-tests, doc/PERFORMANCE.md); unknown = all-reduce."""
    if kind in (CollectiveKind.ALL_REDUCE, CollectiveKind.UNKNOWN):
        return 2 * (group - 1) / group
    if kind in (CollectiveKind.BROADCAST, CollectiveKind.SEND_RECV):
        return 1.0
    return (group - 1) / group


@lru_cache(maxsize=4096)
def log_times(route: Route, group: int) -> Floats:
    """ln(seconds) of every kind in ``KINDS`` on the grid, shape ``[kinds, sizes]``. Many servers share a route."""
    return np.stack([_log_time(route, group, kind) for kind in KINDS])


def _log_time(route: Route, group: int, kind: CollectiveKind) -> Floats:
    measured = route.box and curve_points().get((route.box.name, kind.value, group))
    if measured:
        return _stretched(measured, route)
    all_reduce = route.box and curve_points().get((route.box.name, CollectiveKind.ALL_REDUCE.value, group))
    if all_reduce:
        share = bus_factor(kind, group) / bus_factor(CollectiveKind.ALL_REDUCE, group) / _relative(kind)
        return _stretched(all_reduce, route) + np.log(share)
    seconds = bus_factor(kind, group) * _GRID / (route.bus_bytes_per_s * _relative(kind)) + route.latency_s
    return np.log(seconds)


def _relative(kind: CollectiveKind) -> float:
    if kind is CollectiveKind.ALL_TO_ALL:
        return constant("all_to_all_relative")
    if kind in (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER):
        return constant("all_gather_relative")
    return 1.0


def _stretched(points: tuple[tuple[float, float], ...], route: Route) -> Floats:
    """A measured curve on this route's link: the part above the latency goes with the bandwidth."""
    size, seconds = np.array(points).T
    onto_grid = np.exp(np.interp(np.log(_GRID), np.log(size), np.log(seconds)))
    onto_grid *= np.maximum(_GRID / size[-1], 1.0)
    rising = np.maximum.accumulate(onto_grid)
    latency = rising[0]
    slower = (route.box.link_bytes_per_s if route.box else 1.0) / route.link_bytes_per_s
    return np.log(latency + (rising - latency) * slower)


def group_position(group: Ints | Floats) -> Floats:
    """Place of a group's size on the axis of ``GROUPS``; whole for powers of two, the ends for what lies beyond."""
    return np.clip(np.log2(np.maximum(group, 1.0)) - 1.0, 0.0, len(GROUPS) - 1.0)


def group_index(group: Ints | Floats) -> Ints:
    """Position in ``GROUPS`` of the next size that is not smaller; groups of one get 0, the largest get the last."""
    return np.ceil(group_position(group)).astype(np.int64)


def time_s(
    curves: Floats, server: Ints, group: Ints | Floats, kind: CollectiveKind, message_bytes: Ints | Floats
) -> Floats:
    """Seconds of one call, per row; ``curves`` ``[server, group, kind, size]``. Groups of one take none.

    Linear in ln(size) and, between two sizes of ``GROUPS``, in ln(group).
    """
    place = (np.log2(np.maximum(message_bytes, 1.0)) - _FIRST_EXPONENT) / _STEP
    inside = np.clip(place, 0.0, _SIZES - 1.0)
    left = np.minimum(inside.astype(np.int64), _SIZES - 2)
    position = group_position(group)
    small = position.astype(np.int64)
    what, between = KINDS.index(kind), position - small
    start = ((server * len(GROUPS) + small) * len(KINDS) + what) * _SIZES + left
    log_s = _read(curves, start, inside - left)
    if between.any():
        larger = np.where(between > 0, len(KINDS) * _SIZES, 0)
        log_s += between * (_read(curves, start + larger, inside - left) - log_s)
    beyond = np.maximum(place - (_SIZES - 1.0), 0.0) * _STEP * np.log(2.0)
    return np.where((group > 1) & (message_bytes > 0), np.exp(log_s + beyond), 0.0)


def _read(curves: Floats, start: Ints, between: Floats) -> Floats:
    low = curves.take(start)
    return low + between * (curves.take(start + 1) - low)


def message_bytes(curves: Floats, group: int, kind: CollectiveKind, seconds: float) -> float:
    """Bytes that one call moves in this time: ``time_s`` read backwards; ``curves`` ``[group, kind, size]``.

    0 for less time than the smallest message takes.
    """
    what = KINDS.index(CollectiveKind.ALL_REDUCE if kind is CollectiveKind.UNKNOWN else kind)
    curve = curves[group_index(np.array([group]))[0], what]
    if seconds <= 0 or np.log(seconds) < curve[0]:
        return 0.0
    beyond = max(float(np.log(seconds) - curve[-1]), 0.0)
    return float(np.exp(np.interp(np.log(seconds), curve, np.log(_GRID)) + beyond))
