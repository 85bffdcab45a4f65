"""Time of a collective: measured curves where they exist, latency and bandwidth elsewhere.

A straight latency-bandwidth line misses measured curves by 7 to 15 % (median) at middle sizes, so curves are kept as
points and read in log-log. All curves share one grid of message sizes, so that a batch of servers is one array
``[server, group, collective, size]`` of ln(seconds).
"""

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


def log_times(route: Route, group: int) -> Floats:
    """ln(seconds) of every kind in ``KINDS`` on the grid, shape ``[kinds, sizes]``."""
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


def group_index(group: Ints) -> Ints:
    """Position of a group's size in ``GROUPS``; groups of one get 0 and must be masked by the caller.

    Groups beyond one server get the largest.
    """
    return np.searchsorted(np.array(GROUPS), np.clip(group, GROUPS[0], GROUPS[-1]))


def time_s(curves: Floats, server: Ints, group: Ints, kind: CollectiveKind, message_bytes: Floats) -> Floats:
    """Seconds of one call, per row; ``curves`` ``[server, group, kind, size]``. Groups of one take none."""
    position = (np.log2(np.maximum(message_bytes, 1.0)) - _FIRST_EXPONENT) / _STEP
    inside = np.clip(position, 0.0, _SIZES - 1.0)
    left = np.minimum(inside.astype(np.int64), _SIZES - 2)
    where, what = group_index(group), KINDS.index(kind)
    low, high = curves[server, where, what, left], curves[server, where, what, left + 1]
    beyond = np.maximum(position - (_SIZES - 1.0), 0.0) * _STEP * np.log(2.0)
    seconds = np.exp(low + (high - low) * (inside - left) + beyond)
    return np.where((group > 1) & (message_bytes > 0), seconds, 0.0)


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
