"""The reader of CSV files of rocprof (v1), rocprofv2 and rocprofv3: traces, and what belongs to them.

Columns are found by their titles, which have changed from year to year. rocprofv3 writes one file per kind of record;
those of one run are read together where they are uploaded together (``read_run``).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits
from profiling.formats.numbers import MOST_BYTES, integers
from profiling.formats.rocm import Agent, Agents, RocmCollector, Work, copy_kind
from profiling.formats.rocprof_sums import COUNTERS, CounterTable, SumTable
from profiling.formats.source import Head, Source
from profiling.formats.tables import Table, header_in, tables
from profiling.notes import Note, NoteCode, Refusal, RefusalCode
from profiling.timeline import UNKNOWN, WorkKind

_BATCH = 20_000
_KERNEL = ("Kernel_Name", "KernelName")
_START = ("Start_Timestamp", "BeginNs")
_END = ("End_Timestamp", "Stop_Timestamp", "EndNs")
_CORRELATION = ("Correlation_Id",)
_DEVICE = ("Agent_Id", "GPU_ID", "gpu-id")
_AGENT = re.compile(r"(?:(?:agent|gpu|cpu)[ -])?[0-9]{1,9}", re.IGNORECASE)
_CLONE = re.compile(r"( \[clone [^\]]*\]|\.kd)+$")


class Part(StrEnum):
    """What a file holds of a run."""

    KERNELS = "kernels"
    COPIES = "copies"
    CALLS = "calls"
    AGENTS = "agents"
    SUMS = "sums"
    COUNTERS = "counters"


_KINDS: Mapping[Part, str] = {
    Part.CALLS: "API calls traced by rocprof",
    Part.AGENTS: "list of devices by rocprof",
    Part.SUMS: "sums of API calls by rocprof",
    Part.COUNTERS: "counters by rocprof",
}


def part_of(titles: Sequence[str]) -> Part | None:
    """What a table with these titles holds, None where it is none of rocprof."""
    there = {title.casefold() for title in titles}
    timed = bool(there & {"start_timestamp", "beginns"}) and bool(there & {"end_timestamp", "stop_timestamp", "endns"})
    if {"counter_name", "counter_value"} <= there:
        return Part.COUNTERS
    if there & {"kernel_name", "kernelname"}:
        of_dispatches = there & {"agent_id", "gpu_id", "gpu-id", "domain"}
        return (Part.KERNELS if timed else Part.COUNTERS if "gpu-id" in there else None) if of_dispatches else None
    if timed and ("direction" in there or {"domain", "operation"} <= there):
        return Part.COPIES
    if timed and {"domain", "function"} <= there:
        return Part.CALLS
    if {"node_id", "agent_type"} <= there:
        return Part.AGENTS
    return Part.SUMS if {"name", "calls", "totaldurationns"} <= there else None


def _is_header(cells: Sequence[str]) -> bool:
    """Asked for every row: one that ends with a number is none."""
    return not cells[-1].isdigit() and part_of(cells) is not None


def recognises(head: Head) -> bool:
    return header_in(head.lines, _is_header)


def read(source: Source) -> Capture:
    """What one file holds. Raises Refusal for one that tells nothing by itself."""
    return read_run((source,))


def read_run(sources: Sequence[Source]) -> Capture:
    """The files of one run, in any order, as one capture: a Timeline, else sums or counters. Raises Refusal."""
    run = _Run(sources[0].name, sources[0].limits)
    for source in sources:
        run.add(source)
    return run.capture()


@dataclass(slots=True)
class _Run:
    """What the files of a run have told so far. ``rows``: of the parts that are there."""

    name: str
    limits: Limits
    seen: RocmCollector = field(init=False)
    sums: SumTable = field(default_factory=SumTable)
    counters: CounterTable = field(default_factory=CounterTable)
    rows: Counter[Part] = field(default_factory=Counter)
    notes: list[Note] = field(default_factory=list)
    moved: int = 0
    early: bool = False
    cut: bool = False

    def __post_init__(self) -> None:
        self.seen = RocmCollector(self.limits)

    def add(self, source: Source) -> None:
        """Read one file of the run."""
        most = source.limits.events
        for table in tables(source.lines(), _is_header, source.limits, most):
            part = part_of(table.titles)
            if part is None:
                continue
            self.early = self.early or _is_early(table)
            self.rows.setdefault(part, 0)
            for rows, moved in _batches(table):
                self.rows[part] += len(rows)
                self.moved += moved
                self._take(part, table, rows)
        self.notes += [note for note in source.notes if note not in self.notes]
        self.cut = self.cut or source.unpacked.truncated or source.unpacked.damaged

    def _take(self, part: Part, table: Table, rows: list[list[str]]) -> None:
        columns = _Columns(table, rows)
        if part is Part.KERNELS:
            self._kernels(columns)
        elif part is Part.COPIES:
            self._copies(columns)
        elif part is Part.CALLS:
            self._calls(columns)
        elif part is Part.AGENTS:
            self._agents(columns)
        elif part is Part.SUMS:
            self.sums.add(columns.text("Name"), columns.text("Calls"), columns.text("TotalDurationNs"))
        else:
            self._counters(columns)

    def _kernels(self, columns: "_Columns") -> None:
        names = columns.names()
        queues, streams = columns.text("Queue_Id", "queue-id"), columns.text("Stream_Id")
        self.seen.add(
            Work(
                start=columns.whole(*_START),
                end=columns.whole(*_END),
                names=names,
                kinds=[WorkKind.KERNEL] * len(names),
                devices=_keys(columns.text(*_DEVICE)),
                streams=[stream or f"queue {queue}" for stream, queue in zip(streams, queues, strict=True)],
                correlation=columns.whole(*_CORRELATION),
            )
        )

    def _copies(self, columns: "_Columns") -> None:
        names = columns.text("Direction", "Operation")
        ends = [_keys(columns.text(title)) for title in ("Source_Agent_Id", "Destination_Agent_Id")]
        kinds, devices = self.seen.agents.of_copies(names, *ends)
        self.seen.add(
            Work(
                start=columns.whole(*_START),
                end=columns.whole(*_END),
                names=names,
                kinds=[
                    WorkKind.FILL if copy_kind(name) is WorkKind.FILL else kind
                    for name, kind in zip(names, kinds, strict=True)
                ],
                devices=devices,
                streams=[stream or "copies" for stream in columns.text("Stream_Id")],
                correlation=columns.whole(*_CORRELATION),
                bytes=columns.whole("Size", "Bytes", high=MOST_BYTES),
            )
        )

    def _calls(self, columns: "_Columns") -> None:
        """Calls of the HIP runtime and ranges of the program; calls of other libraries launch nothing themselves."""
        domains, names = columns.text("Domain"), columns.text("Function")
        start, end, correlation = columns.whole(*_START), columns.whole(*_END), columns.whole(*_CORRELATION)
        hip = np.flatnonzero([domain.startswith("HIP") for domain in domains])
        marks = np.flatnonzero([domain.startswith(("MARKER", "ROCTX")) for domain in domains])
        if hip.size:
            self.seen.call([names[at] for at in hip], start[hip], end[hip], correlation[hip])
        self.seen.mark([names[at] for at in marks], start[marks], end[marks])

    def _agents(self, columns: "_Columns") -> None:
        """GPUs in order of their node; rows call an agent by its number, or by that among all or among the GPUs."""
        products, names = columns.text("Product_Name"), columns.text("Name")
        node, logical = columns.whole("Node_Id"), columns.whole("Logical_Node_Id")
        is_gpu = [kind.casefold() == "gpu" for kind in columns.text("Agent_Type")]
        place = np.cumsum(np.array(is_gpu)) - 1
        order = np.argsort(node, kind="stable").tolist()[: self.limits.devices]
        rank = {at: number for number, at in enumerate(at for at in order if is_gpu[at])}
        self.seen.agents = Agents.of(
            [
                Agent(
                    keys=(f"agent {logical[at]}", f"agent {node[at]}", str(node[at]), f"gpu {rank.get(at, place[at])}"),
                    place=number,
                    is_gpu=is_gpu[at],
                    name=products[at] or names[at],
                )
                for number, at in enumerate(order)
            ]
        )

    def _counters(self, columns: "_Columns") -> None:
        names = columns.names()
        dispatches = columns.text("Dispatch_Id", "Index")
        durations = (columns.whole(*_END) - columns.whole(*_START)).tolist()
        if columns.has("Counter_Name"):
            counters, values = columns.text("Counter_Name"), columns.text("Counter_Value")
            self.counters.add(names, dispatches, durations, counters, values, self.limits)
            return
        for title in COUNTERS:
            if columns.has(title):
                self.counters.add(names, dispatches, durations, [title] * len(names), columns.text(title), self.limits)

    # --- the answer ----------------------------------------------------------------------------------------------

    def capture(self) -> Capture:
        """What all files tell together. Raises Refusal; to be asked once."""
        kind = Format.ROCPROF if self.early else Format.ROCPROF_V3
        if self.seen.device.rows or Part.KERNELS in self.rows or Part.COPIES in self.rows:
            line, notes = self.seen.timeline(self.name, self._told(), incomplete=not self.rows[Part.KERNELS])
            return Capture(format=kind, timelines=(line,), notes=notes)
        evidence = self.sums.evidence(self._device_name()) or self.counters.evidence(self._device_name())
        if evidence is None:
            part = next(iter(self.rows), Part.COUNTERS)
            raise Refusal(RefusalCode.PART_OF_RUN, {"kind": _KINDS[part]})
        return Capture(format=kind, evidence=(evidence,), notes=(*self.notes, Note(NoteCode.NO_TIMELINE)))

    def _told(self) -> list[Note]:
        notes = list(self.notes)
        if self.cut:
            notes.append(Note(NoteCode.FILE_TRUNCATED, {"events": self.seen.device.rows}))
        if self.moved:
            notes.append(Note(NoteCode.TOO_FEW_VALUES, {"count": self.moved}))
        if not self.rows[Part.KERNELS]:
            notes.append(Note(NoteCode.COPIES_ONLY))
        return notes

    def _device_name(self) -> str | None:
        names = set(self.seen.agents.names.values())
        return names.pop() if len(names) == 1 else None


def _is_early(table: Table) -> bool:
    """Whether the table is of rocprof v1 or v2; sums of v3 have a smallest and a largest call."""
    if table.place("TotalDurationNs") is not None:
        return table.place("MinNs") is None
    return table.place("KernelName", "gpu-id", "GPU_ID", "Stop_Timestamp") is not None


def _batches(table: Table) -> Iterator[tuple[list[list[str]], int]]:
    """The rows in batches, and how many of each were put right.

    rocprofv2 leaves out the cells of two of its titles, so that what follows stands too far left.
    """
    gap, start, end = table.place("sig"), table.place(*_START), table.place(*_END)
    while rows := list(islice(table.rows, _BATCH)):
        wrong: list[int] = []
        if gap is not None and start is not None and end is not None:
            wrong = [
                at for at, row in enumerate(rows) if not row[-1] and not (row[start].isdigit() and row[end].isdigit())
            ]
            for at in wrong:
                rows[at] = _moved_back(rows[at], gap)
        yield rows, len(wrong)


def _moved_back(row: list[str], gap: int) -> list[str]:
    """A row that is filled up at its end, filled up at its gap instead."""
    last = max((at for at, cell in enumerate(row) if cell), default=0) + 1
    return [*row[:gap], *row[last:], *row[gap:last]] if gap < last < len(row) else row


def _keys(cells: Sequence[str]) -> list[str | None]:
    """What the cells call agents: a number, ``agent 4``, ``gpu 0``; None where they name none."""
    known = {cell: cell.casefold().replace("-", " ") if _AGENT.fullmatch(cell) else None for cell in set(cells)}
    return [known[cell] for cell in cells]


@dataclass(frozen=True, slots=True)
class _Columns:
    """Neighbouring rows of a table by title."""

    table: Table
    rows: list[list[str]]

    def has(self, *titles: str) -> bool:
        return self.table.place(*titles) is not None

    def text(self, *titles: str) -> list[str]:
        """Cells of the first of these columns that is there, empty where none is."""
        place = self.table.place(*titles)
        return [""] * len(self.rows) if place is None else [row[place] for row in self.rows]

    def whole(self, *titles: str, high: int = 2**63 - 1) -> NDArray[np.int64]:
        """The same as integers, ``UNKNOWN`` where a cell is none."""
        cells = self.text(*titles)
        try:
            column = np.fromiter(map(int, cells), dtype=np.int64, count=len(cells))
        except (ValueError, OverflowError):
            return integers(cells, UNKNOWN, high=high)
        return np.where((column >= 0) & (column <= high), column, UNKNOWN)

    def names(self) -> list[str]:
        """Kernel names without what the compiler puts behind them."""
        cells = self.text(*_KERNEL)
        bare = {cell: _CLONE.sub("", cell) for cell in set(cells)}
        return [bare[cell] for cell in cells]
