"""From the rows of one step to its graph: which row waited for which, and rows joined to nodes where none did.

Order comes from four places. Work of one stream runs in order. Work starts after its launch. A stream waits for another
where the host ordered so: the wait holds for the work launched next, and is for the last work launched before it on
another stream; where such orders are not recorded, a row that starts late, right after a row of another stream ended,
waited for that one. And the host waits in synchronising calls, in copies that block it, and when its queue of launches
is full, until a row has ended. (Daydream, ATC'20; Lumos, 2504.09307, names the same four.)
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import DeviceWork, Window
from profiling.copies import Way, ways
from profiling.host_breaks import FAR_BACK, Breaks, host_breaks
from profiling.kernels import CLASS_OF
from profiling.step_graph import NONE, StepGraph
from profiling.timeline import UNKNOWN, Timeline
from profiling.workload import KernelClass

MOST_ROWS: Final = 20_000
MOST_NODES: Final = 2_000
MOST_STREAMS: Final = 64
_LINKED: Final = 0.9
"""Part of the rows whose launch must be known."""
_NEAR_S: Final = 10e-6
"""Longest pause between two kernels that is a pause of the device, not waiting."""
_TOUCH_S: Final = 2e-6
_USUAL_PAUSE_S: Final = 1.5e-6
_USUAL_LAG_S: Final = 6e-6
_SMALLEST_PIECE: Final = 16
_LARGEST_PIECE: Final = 4096
_CLASSES: Final = tuple(KernelClass)
_COPY: Final = _CLASSES.index(KernelClass.COPY)
_OTHER: Final = _CLASSES.index(KernelClass.OTHER)
_COMMUNICATION: Final = NONE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of a step in order of start, seconds from its start; columns ``(n,)``.

    ``kind``: column of the class, or ``_COMMUNICATION``; ``host_copy``: a copy to or from the host. ``launch_s``: NaN
    where unknown. ``before``: the row before it on its stream, or ``NONE``; ``pause_s``: time between the two, inf for
    the first.
    """

    start_s: Floats
    end_s: Floats
    stream: NDArray[np.int32]
    kind: Ints
    host_copy: Bools
    collective: NDArray[np.int32]
    launch_s: Floats
    before: Ints
    pause_s: Floats

    def __len__(self) -> int:
        return len(self.start_s)

    @property
    def busy_s(self) -> Floats:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Runs of rows in order of their end: first and last row ``(nodes,)``, and the node of each row ``(rows,)``."""

    first: Ints
    last: Ints
    of_row: Ints

    def __len__(self) -> int:
        return len(self.first)

    def sums(self, values: Floats) -> Floats:
        """What the rows of each node add up to."""
        return np.bincount(self.of_row, weights=values, minlength=len(self))


def step_graph(
    line: Timeline, device: int, window: Window, work: DeviceWork, collective: NDArray[np.int32]
) -> StepGraph | None:
    """The graph of one step; None where the capture does not tell enough or the step is too long.

    ``collective``: for each row of ``work`` its place among the step's collectives, ``NONE`` for the rest.
    """
    if not 1 < work.row.size <= MOST_ROWS or not (line.idle_known and line.clocks_agree):
        return None
    if (line.launched_ns[work.row] != UNKNOWN).mean() < _LINKED:
        return None
    if np.unique(line.stream[work.row]).size > MOST_STREAMS:
        return None
    rows = _rows(line, window, work, collective)
    following = _following(line, device, window)
    breaks = host_breaks(line, device, window, rows.start_s, rows.end_s, rows.launch_s, rows.kind == _COPY, following)
    if breaks is None:
        return None
    pause_s, lag_s = _usual(rows)
    queued = ~(rows.launch_s + lag_s > _pred_end(rows) + _TOUCH_S)
    source, target = _waits(line, window, rows, queued, pause_s, lag_s)
    nodes = _nodes(rows, queued, source, target, breaks)
    return None if nodes is None else _graph(rows, queued, breaks, (source, target), nodes, pause_s, lag_s)


def _rows(line: Timeline, window: Window, work: DeviceWork, collective: NDArray[np.int32]) -> Rows:
    order = np.argsort(work.start, kind="stable")
    row = work.row[order]
    start_s, end_s = ((column[order] - window.low_ns) / 1e9 for column in (work.start, work.end))
    launched = line.launched_ns[row]
    launch_s = np.where(launched == UNKNOWN, np.nan, (launched - window.low_ns) / 1e9)
    stream = line.stream[row]
    along = np.lexsort((start_s, stream))
    before = np.full(row.size, NONE, dtype=np.int64)
    same = stream[along][1:] == stream[along][:-1]
    before[along[1:][same]] = along[:-1][same]
    kind = np.full(row.size, _OTHER, dtype=np.int64)
    for family, kernel_class in CLASS_OF.items():
        kind[work.family[order] == family] = _CLASSES.index(kernel_class)
    kind[work.is_copy[order]] = _COPY
    kind[work.is_communication[order]] = _COMMUNICATION
    return Rows(
        start_s=start_s,
        end_s=end_s,
        stream=stream,
        kind=kind,
        host_copy=(kind == _COPY) & (ways(line.names)[line.name_id[row]] == Way.HOST),
        collective=collective[order],
        launch_s=np.minimum(launch_s, start_s),
        before=before,
        pause_s=np.where(before == NONE, np.inf, start_s - end_s[before]),
    )


def _following(line: Timeline, device: int, window: Window) -> float | None:
    """When the host launched the first work after the step, None where that is not in the capture."""
    later = np.searchsorted(line.start_ns, window.high_ns)
    own = np.flatnonzero(line.device[later : later + MOST_ROWS] == device)
    if not own.size or line.launched_ns[later + own[0]] == UNKNOWN:
        return None
    return float(line.launched_ns[later + own[0]] - window.low_ns) / 1e9


def _pred_end(rows: Rows) -> Floats:
    return np.where(rows.before == NONE, -np.inf, rows.end_s[rows.before])


def _usual(rows: Rows) -> tuple[float, float]:
    """Usual pause between kernels that wait in the queue, and usual time from a launch to a start that it holds up."""
    idle = rows.launch_s >= _pred_end(rows)
    waiting = (rows.launch_s < _pred_end(rows)) & (rows.pause_s >= 0) & (rows.pause_s < _NEAR_S)
    lag = (rows.start_s - rows.launch_s)[idle & (rows.start_s - rows.launch_s < 10 * _NEAR_S)]
    pause_s = float(np.median(rows.pause_s[waiting])) if waiting.sum() > 4 else _USUAL_PAUSE_S
    if not lag.size:
        return pause_s, _USUAL_LAG_S
    return pause_s, float(np.median(lag) if lag.size > 4 else lag.min())


def _waits(
    line: Timeline, window: Window, rows: Rows, queued: Bools, pause_s: float, lag_s: float
) -> tuple[Ints, Ints]:
    """Pairs (source, target) of rows of different streams."""
    if (rows.stream == rows.stream[0]).all():
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    found = _ordered(line, window, rows)
    expected = np.where(queued, _pred_end(rows) + pause_s, rows.launch_s + lag_s)
    late = np.flatnonzero(rows.start_s - np.nan_to_num(expected, neginf=0.0) > _NEAR_S)
    by_end = np.argsort(rows.end_s, kind="stable")
    ends = rows.end_s[by_end]
    for target in late.tolist():
        last = int(np.searchsorted(ends, rows.start_s[target] + _TOUCH_S)) - 1
        for source in by_end[max(last - FAR_BACK, -1) + 1 : last + 1][::-1].tolist():
            if rows.end_s[source] < rows.start_s[target] - _NEAR_S:
                break
            if rows.stream[source] != rows.stream[target] and rows.start_s[source] < rows.start_s[target]:
                found.add((source, target))
                break
    pairs = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _ordered(line: Timeline, window: Window, rows: Rows) -> set[tuple[int, int]]:
    """What the host ordered. A wait that the times contradict was for earlier work of that stream."""
    if line.host.orders_ns is None:
        return set()
    linked = np.flatnonzero(~np.isnan(rows.launch_s))
    by_launch = linked[np.argsort(rows.launch_s[linked], kind="stable")]
    launches = rows.launch_s[by_launch]
    streams = {int(one): by_launch[rows.stream[by_launch] == one] for one in np.unique(rows.stream)}
    times = {one: rows.launch_s[own] for one, own in streams.items()}
    orders = (line.host.orders_ns - window.low_ns) / 1e9
    orders = np.unique(orders[(orders > launches[0]) & (orders <= launches[-1])])
    if orders.size > MOST_ROWS:
        return set()
    found = set()
    for moment in orders.tolist():
        target = int(by_launch[np.searchsorted(launches, moment)])
        for stream, own in streams.items():
            if stream == rows.stream[target]:
                continue
            last = int(np.searchsorted(times[stream], moment)) - 1
            earlier = own[max(last - FAR_BACK, -1) + 1 : last + 1]
            ended = earlier[rows.end_s[earlier] <= rows.start_s[target] + _TOUCH_S]
            if ended.size:
                found.add((int(ended[-1]), target))
    return found


def _nodes(rows: Rows, queued: Bools, source: Ints, target: Ints, breaks: Breaks) -> Nodes | None:
    """Rows joined; None where too many nodes are left.

    Runs also end where the host took its time between two launches: there a faster device would run dry.
    """
    along = np.lexsort((rows.start_s, rows.stream))
    cut = rows.before == NONE
    held = np.zeros(len(rows), dtype=bool)
    held[source] = True
    held[breaks.row] = True
    cut[target] = True
    earlier = np.maximum(rows.before, 0)
    cut |= held[earlier] | (queued != queued[earlier]) | (breaks.of(rows.launch_s) != breaks.of(rows.launch_s)[earlier])
    cut |= queued & ((rows.pause_s > _NEAR_S) | (rows.pause_s < -_TOUCH_S))
    cut |= (rows.collective != NONE) & (rows.collective != rows.collective[earlier])
    cut |= (rows.kind == _COMMUNICATION) != (rows.kind[earlier] == _COMMUNICATION)
    copies = (rows.kind == _COPY) & (rows.busy_s > 2 * _NEAR_S)
    cut |= copies | copies[earlier]
    cut |= rows.kind == _COMMUNICATION
    thought = rows.launch_s - rows.launch_s[earlier] > 2 * _NEAR_S
    begins = _in_pieces((cut | thought)[along], _SMALLEST_PIECE)
    size = _SMALLEST_PIECE
    while begins.size > MOST_NODES and size <= _LARGEST_PIECE:
        begins = _in_pieces(cut[along], size)
        size *= 4
    return _in_order(rows, along, begins) if begins.size <= MOST_NODES else None


def _in_order(rows: Rows, along: Ints, begins: Ints) -> Nodes:
    """``along``: rows in order of stream and start; ``begins``: where each node begins in it."""
    first, last = along[begins], along[np.append(begins[1:], along.size) - 1]
    order = np.argsort(rows.end_s[last], kind="stable")
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    of_row = np.empty(along.size, dtype=np.int64)
    of_row[along] = np.repeat(place, np.diff(np.append(begins, along.size)))
    return Nodes(first=first[order], last=last[order], of_row=of_row)


def _in_pieces(cut: Bools, size: int) -> Ints:
    """Where nodes begin: at every cut, and after every ``size`` rows without one."""
    at = np.arange(cut.size)
    since = at - np.maximum.accumulate(np.where(cut, at, 0))
    return np.flatnonzero(cut | (since % size == 0))


def _graph(
    rows: Rows, queued: Bools, breaks: Breaks, waits: tuple[Ints, Ints], nodes: Nodes, pause_s: float, lag_s: float
) -> StepGraph:
    source, target = (nodes.of_row[one] for one in waits)
    forward = source < target
    pairs = np.unique(np.stack((target[forward], source[forward])), axis=1)
    waited_for = nodes.of_row[breaks.row].astype(np.int32)
    return StepGraph(
        **_columns(rows, nodes),
        **_pauses(rows, queued, nodes, pause_s),
        **_launches(rows, breaks, waited_for, nodes),
        source=pairs[1].astype(np.int32),
        target=pairs[0].astype(np.int32),
        reach_s=breaks.reach_s,
        waited_for=waited_for,
        resume_s=breaks.resume_s,
        lag_s=lag_s,
        end_break=breaks.end_break,
        end_s=breaks.end_s,
        end_lag_s=lag_s if breaks.continues else 0.0,
        ahead_s=float(np.nan_to_num(rows.launch_s[0])) if breaks.continues else float("nan"),
    )


def _columns(rows: Rows, nodes: Nodes) -> dict[str, NDArray[np.generic]]:
    """What runs in each node."""
    work_s = np.zeros((len(nodes), len(_CLASSES)))
    computes = rows.kind != _COMMUNICATION
    np.add.at(work_s, (nodes.of_row[computes], rows.kind[computes]), rows.busy_s[computes])
    communicates = rows.kind[nodes.first] == _COMMUNICATION
    return {
        "work_s": work_s,
        "host_copy_s": nodes.sums(np.where(rows.host_copy, rows.busy_s, 0.0)),
        "collective": np.where(communicates, rows.collective[nodes.first], NONE).astype(np.int32),
        "calls": nodes.sums(np.ones(len(rows))).astype(np.int32),
        "busy_s": nodes.sums(rows.busy_s),
        "tail_class": rows.kind[nodes.last].astype(np.int8),
        "tail_s": rows.busy_s[nodes.last],
    }


def _pauses(rows: Rows, queued: Bools, nodes: Nodes, pause_s: float) -> dict[str, NDArray[np.generic]]:
    """The order of the nodes of a stream, and the pauses in and between them."""
    before = rows.before[nodes.first]
    node_before = np.where(before == NONE, NONE, nodes.of_row[before])
    begins = np.zeros(len(rows), dtype=bool)
    begins[nodes.first] = True
    inner_s = np.where(queued, np.minimum(rows.pause_s, _NEAR_S), pause_s)
    short = queued[nodes.first] & (rows.pause_s[nodes.first] < _NEAR_S)
    return {
        "gap_s": nodes.sums(np.where(begins, 0.0, inner_s)),
        "before": np.where(node_before < np.arange(len(nodes)), node_before, NONE).astype(np.int32),
        "after_s": np.where(short, rows.pause_s[nodes.first], pause_s),
    }


def _launches(rows: Rows, breaks: Breaks, waited_for: Ints, nodes: Nodes) -> dict[str, NDArray[np.generic]]:
    """Launch of the first and last kernel of each node; not known where the break before it waits for a later node."""
    latest = np.maximum.accumulate(np.append(NONE, waited_for))
    found: dict[str, NDArray[np.generic]] = {}
    for name, chosen in (("first", nodes.first), ("last", nodes.last)):
        after = breaks.of(rows.launch_s[chosen])
        launch_s = breaks.since(rows.launch_s[chosen])
        known = ~np.isnan(launch_s) & (latest[after + 1] < np.arange(chosen.size))
        found[f"{name}_break"] = np.where(known, after, NONE).astype(np.int32)
        found[f"{name}_s"] = np.where(known, launch_s, -np.inf)
    return found
