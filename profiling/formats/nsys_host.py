"""The host's side of an Nsight Systems export: calls that launch or wait, and the ranges that a program marks."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.columns import Column, LaunchColumns
from profiling.formats.nsys_device import DeviceWork, correlations
from profiling.formats.nsys_tables import NONE, Export, processes, times
from profiling.formats.numbers import integers
from profiling.intervals import NOTHING, Intervals, union
from profiling.timeline import HostSide

CALLS = "cupti_activity_kind_runtime"
RANGES = "nvtx_events"
_LAUNCH = re.compile(r"launch|memcpy|memset", re.IGNORECASE)
_GRAPH_LAUNCH = re.compile(r"graphlaunch", re.IGNORECASE)
_ORDER = re.compile(r"StreamWaitEvent", re.IGNORECASE)
_WAIT = re.compile(r"synchronize", re.IGNORECASE)
_INPUT = re.compile(
    r"data_?loader|(?<![a-z])(?:load|fetch|get|next|read)[ _-]?(?:data|batch|input)|data[ _-]?(?:load|fetch|wait)",
    re.IGNORECASE,
)
_BACKWARD = re.compile(r"backward|(?<![a-z])bwd(?![a-z])", re.IGNORECASE)
_UNRECORDED = 0.1
"""So many launches may lie at the end of a capture, before their work."""
_PUSHED, _STARTED = 59, 60
"""``NvtxPushPopRange`` and ``NvtxStartEndRange``: the only events with a length."""


@dataclass(slots=True)
class Calls:
    """Calls of the CUDA runtime and driver in processes that have device work; counted by number of process.

    ``graphs``: launches of CUDA graphs, of which ``graphs_at_work`` have device work in the export.
    """

    work: DeviceWork
    launched: LaunchColumns = field(default_factory=LaunchColumns)
    launches: Counter[int] = field(default_factory=Counter)
    graph_launches: Counter[int] = field(default_factory=Counter)
    graphs: int = 0
    graphs_at_work: int = 0
    waits: "Spans" = field(default_factory=lambda: Spans())
    orders: "Spans" = field(default_factory=lambda: Spans())

    @property
    def graphs_under_recorded(self) -> bool:
        """Whether graphs are launched whose work is not in the export."""
        return self.graphs - self.graphs_at_work > _UNRECORDED * self.graphs

    def read(self) -> None:
        linked = np.sort(self.work.columns.column("correlation"))
        for batch in self.work.export.batches(CALLS, ("start", "end", "globalTid", "correlationId", "nameId", "name")):
            start, end = times(batch[0]), times(batch[1])
            process = self.work.numbers_of(processes(batch[2]))
            call = self.work.calls_of(process, correlations(batch[3]))
            launching = _are_among(call, linked) & (start != NONE)
            self.launched.add(start[launching], call[launching])
            names = _call_names(self.work.export, batch[4], batch[5])
            self._count(process, names)
            graph = _chosen(names, _GRAPH_LAUNCH) & (call > 0)
            self.graphs += int(graph.sum())
            self.graphs_at_work += int((graph & launching).sum())
            chosen = _chosen(names, _WAIT) & (process >= 0) & (start != NONE) & (end > start)
            self.waits.add(process[chosen], start[chosen], end[chosen])
            chosen = _chosen(names, _ORDER) & (process >= 0) & (start != NONE)
            self.orders.add(process[chosen], start[chosen], start[chosen])

    def _count(self, process: NDArray[np.int64], names: list[str]) -> None:
        for (number, name), count in Counter(zip(process.tolist(), names, strict=True)).items():
            if number >= 0 and _LAUNCH.search(name):
                self.launches[number] += count
                if _GRAPH_LAUNCH.search(name):
                    self.graph_launches[number] += count


@dataclass(slots=True)
class Spans:
    """Intervals of host time with the number of their process, and of their name where they have one."""

    _process: Column = field(default_factory=lambda: Column(np.int32))
    _name: Column = field(default_factory=lambda: Column(np.int32))
    _start: Column = field(default_factory=lambda: Column(np.int64))
    _end: Column = field(default_factory=lambda: Column(np.int64))

    def add(
        self,
        process: NDArray[np.int64],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        names: NDArray[np.int64] | None = None,
    ) -> None:
        self._process.append(process)
        self._name.append(np.zeros(process.size, dtype=np.int32) if names is None else names)
        self._start.append(start)
        self._end.append(end)

    def of(self, members: Sequence[int], names: Sequence[int] | None = None) -> tuple[NDArray[Any], ...]:
        """Name, start and end of the spans of some processes (and of some names)."""
        chosen = np.isin(self._process.values, members)
        if names is not None:
            chosen &= np.isin(self._name.values, names)
        return self._name.values[chosen], self._start.values[chosen], self._end.values[chosen]

    def covered(self, members: Sequence[int], names: Sequence[int] | None = None) -> Intervals:
        """The time that the same spans cover."""
        _, start, end = self.of(members, names)
        return union(start, end) if start.size else NOTHING


@dataclass(slots=True)
class Marks:
    """NVTX ranges of processes that have device work."""

    work: DeviceWork
    names: dict[str, int] = field(default_factory=dict)
    spans: Spans = field(default_factory=Spans)
    _inputs: list[int] = field(default_factory=list)
    _backwards: list[int] = field(default_factory=list)

    def read(self) -> None:
        most = self.work.export.database.source.limits.rows
        columns = ("start", "end", "eventType", "text", "textId", "globalTid")
        for batch in self.work.export.batches(RANGES, columns):
            start, end = times(batch[0]), times(batch[1])
            kind = integers(batch[2], missing=_PUSHED)
            process = self.work.numbers_of(processes(batch[5]))
            ranged = np.isin(kind, (_PUSHED, _STARTED)) & (start != NONE) & (end > start) & (process >= 0)
            places = np.flatnonzero(ranged).tolist()
            texts = self.work.export.texts({batch[4][place] for place in places})
            named = [self._number(_text(batch[3][place], batch[4][place], texts), most) for place in places]
            kept = np.array([place for place, name in zip(places, named, strict=True) if name >= 0], dtype=np.int64)
            numbers = np.array([name for name in named if name >= 0], dtype=np.int64)
            self.spans.add(process[kept], start[kept], end[kept], numbers)

    def _number(self, text: str, most: int) -> int:
        """The number of a name; -1 for what has none, and for names beyond any use."""
        known = self.names.get(text)
        if known is None and text and len(self.names) < most:
            known = self.names[text] = len(self.names)
            if _INPUT.search(text):
                self._inputs.append(known)
            if _BACKWARD.search(text):
                self._backwards.append(known)
        return -1 if known is None else known

    def ranges(self, members: Sequence[int]) -> Iterator[tuple[str, int, int]]:
        """Name, start and end of each range of some processes."""
        texts = list(self.names)
        for name, start, end in zip(*(column.tolist() for column in self.spans.of(members)), strict=True):
            yield texts[name], start, end

    def input(self, members: Sequence[int]) -> Intervals:
        """When the processes loaded input data, by the names of their ranges."""
        return self.spans.covered(members, self._inputs)

    def has_backward(self, members: Sequence[int]) -> bool:
        return bool(self.spans.of(members, self._backwards)[0].size)


def host_side(calls: Calls, marks: Marks, members: Sequence[int]) -> HostSide:
    """What the host did in some processes. Operators of a framework are not recorded."""
    traced = calls.work.export.has(CALLS)
    return HostSide(
        operators=None,
        launches=sum(calls.launches[one] for one in members) if traced else None,
        graph_launches=sum(calls.graph_launches[one] for one in members),
        has_backward=marks.has_backward(members),
        waits=calls.waits.covered(members),
        input=marks.input(members),
        orders_ns=np.sort(calls.orders.of(members)[1]) if traced else None,
    )


def _chosen(names: list[str], pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    """Which of the names, few of them different, match."""
    matching = {name for name in set(names) if pattern.search(name)}
    return np.array([name in matching for name in names], dtype=bool)


def _are_among(values: NDArray[np.int64], ordered: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the values are in a sorted column that is not empty."""
    return ordered[np.minimum(np.searchsorted(ordered, values), ordered.size - 1)] == values


def _call_names(export: Export, ids: Sequence[Any], named: Sequence[Any]) -> list[str]:
    texts = export.texts(set(ids))
    return [_text(name, number, texts) for name, number in zip(named, ids, strict=True)]


def _text(text: Any, number: Any, texts: dict[int, str]) -> str:
    if isinstance(text, str) and text:
        return text[:256]
    return texts.get(number, "")[:256] if type(number) is int else ""
