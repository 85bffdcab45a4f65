"""Time of a collective: measured curves where they exist, latency and bandwidth elsewhere.

A straight latency-bandwidth line misses measured curves by 7 to 15 % (median) at middle sizes, so curves are kept as
points and read in log-log. All curves share one grid of message sizes, so that a batch of servers is one array
``[server, group, collective, size]`` of ln(seconds).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.engine.calibrated import constant, curve_points, measured_groups
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


@lru_cache(maxsize=1024)
def server_log_times(routes: tuple[Route, ...]) -> Floats:
    """ln(seconds) of every group of ``GROUPS`` over its route, shape ``[group, kind, size]``. Many servers share one.

    A send-receive has the link of a pair, however large the group, unless the group's path is another.
    """
    found = np.stack([log_times(way, group) for way, group in zip(routes, GROUPS, strict=True)])
    what = KINDS.index(CollectiveKind.SEND_RECV)
    like_a_pair = [way.path == routes[0].path and not way.shared for way in routes]
    found[like_a_pair, what] = found[0, what]
    return found


@lru_cache(maxsize=4096)
def log_times(route: Route, group: int) -> Floats:
    """ln(seconds) of every kind in ``KINDS`` on the grid, shape ``[kind, size]``."""
    return np.stack([_log_time(route, group, kind) for kind in KINDS])


def _log_time(route: Route, group: int, kind: CollectiveKind) -> Floats:
    measured = _measured(route, group, kind)
    if measured is not None:
        return measured
    all_reduce = _measured(route, group, CollectiveKind.ALL_REDUCE)
    share = bus_factor(kind, group) / _relative(kind, route.shared)
    if all_reduce is not None:
        scaled = all_reduce + np.log(share / bus_factor(CollectiveKind.ALL_REDUCE, group))
        return np.maximum(scaled, np.log(route.latency_s))
    return np.log(share * _GRID / route.bus_bytes_per_s + route.latency_s)


def _measured(route: Route, group: int, kind: CollectiveKind) -> Floats | None:
    """The curve of the route's box, between those of two group sizes where this one was not measured."""
    if route.box is None:
        return None
    sizes = measured_groups(route.box.name, kind.value)
    below = max((size for size in sizes if size <= group), default=None)
    above = min((size for size in sizes if size >= group), default=None)
    if below is None or above is None:
        return None
    low, high = (_stretched(curve_points()[route.box.name, kind.value, size], route) for size in (below, above))
    return low if below == above else low + (high - low) * (np.log(group / below) / np.log(above / below))


def _relative(kind: CollectiveKind, shared: bool) -> float:
    """Bus bandwidth over that of an all-reduce."""
    if kind is CollectiveKind.ALL_TO_ALL:
        return constant("all_to_all_relative")
    if kind in (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER):
        return constant("all_gather_relative")
    if kind is CollectiveKind.SEND_RECV and not shared:
        return constant("send_recv_relative")
    return 1.0


def _stretched(points: tuple[tuple[float, float], ...], route: Route) -> Floats:
    """A measured curve on this route's link: the part above the latency goes with the bandwidth.

    Under the smallest measured size the time goes with the bytes, down to the latency of the path.
    """
    size, seconds = np.array(points).T
    onto_grid = np.exp(np.interp(np.log(_GRID), np.log(size), np.log(seconds)))
    onto_grid *= np.maximum(_GRID / size[-1], 1.0)
    smaller = size[0] > _GRID
    left = np.maximum(seconds[0] * _GRID[smaller] / size[0], route.latency_s)
    onto_grid[smaller] = np.minimum(onto_grid[smaller], left)
    rising = np.maximum.accumulate(onto_grid)
    latency = rising[0]
    slower = (route.box.link_bytes_per_s if route.box else 1.0) / route.link_bytes_per_s
    return np.log(latency + (rising - latency) * slower)


_LARGEST = GROUPS[-1]
_POSITION = np.interp(np.log(np.maximum(np.arange(_LARGEST + 1), GROUPS[0])), np.log(GROUPS), np.arange(len(GROUPS)))


def group_position(group: Ints | Floats) -> Floats:
    """Place of a group's size (rounded) on the axis of ``GROUPS``; the ends for what lies beyond."""
    whole = group if group.dtype.kind == "i" else np.rint(group).astype(np.int64)
    return _POSITION.take(np.clip(whole, 0, _LARGEST))


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
