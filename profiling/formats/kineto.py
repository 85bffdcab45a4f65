"""Kineto (PyTorch profiler) traces: batches of events to columns of device work, calls, marks and shapes."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.columns import CollectiveColumns, Column, DeviceColumns, Expected, LaunchColumns, Rows
from profiling.formats.kineto_args import Args, MemoryArgs, ProcessArgs, decoded, element_bytes
from profiling.formats.kineto_collectives import CalledCollectives, described
from profiling.formats.kineto_events import Call, Host, KinetoDecoder, Role, Work
from profiling.formats.kineto_shapes import ShapedWork, is_shaped
from profiling.formats.limits import Limits
from profiling.formats.named_rows import NamedProcesses
from profiling.formats.numbers import MOST_BYTES, integer, integers
from profiling.formats.times import INVALID, nanoseconds
from profiling.formats.trace_events import Batch, Event, Times, duplicate_keys
from profiling.intervals import NOTHING, Intervals, join, union
from profiling.notes import NoteCode
from profiling.timeline import UNKNOWN, StepSpan, WorkKind
from profiling.workload import CollectiveKind

_LONGEST_NS = 86_400 * 10**9
"""No work of a device takes a day, and none starts so long before the origin of its clock."""
_DTYPES_TOLD = 5
_LAUNCH = re.compile(r"launch|memcpy|memset", re.IGNORECASE)
_KERNEL_LAUNCH = re.compile(r"launch_?(cooperative_?)?kernel|kernel_?launch", re.IGNORECASE)
_GRAPH_LAUNCH = re.compile(r"graph_?launch", re.IGNORECASE)
_CAPTURE = re.compile(r"(begin|end)capture", re.IGNORECASE)
_WAIT = re.compile(r"synchronize|queuefinish|eventswait", re.IGNORECASE)
_ORDER = re.compile(r"streamwaitevent", re.IGNORECASE)
_STEP = re.compile(r"ProfilerStep#([0-9]{1,18})$")
_INPUT = re.compile(r"dataloader|data_?load|iteratorgetnext|tf\.?data|(?:next|get|load|fetch)[ _]batch")
_RANK_LABEL = re.compile(
    r"(?<![a-z])(?<!local[_ ])rank[ _:=#-]{0,2}([0-9]{1,6})(?![0-9])|^\[?TP[ _-]?([0-9]{1,6})\]?$", re.IGNORECASE
)
_OTHER_TOOL = re.compile(r"/device:(GPU|TPU)|/host:CPU")
_RECORDED_CALL = "record_param_comms"
_DULL_NAMES = 1 << 14
_LOOSE_SPANS = 1 << 15
_DOUBLED_KEYS_SOUGHT = 1 << 19
"""Text with device work that is searched: who writes a key twice does so all the time."""


@dataclass(slots=True)
class Spans:
    """A growing set of intervals of the host, kept joined; memory grows with the gaps between them alone."""

    _joined: Intervals = NOTHING
    _loose: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = field(default_factory=list)
    _count: int = 0

    def add(self, start: NDArray[np.int64], duration: NDArray[np.int64]) -> None:
        good = (start != INVALID) & (duration > 0) & (duration < _LONGEST_NS)
        self._loose.append((start[good], (start + duration)[good]))
        self._count += int(good.sum())
        if self._count > _LOOSE_SPANS + self._joined.start.size:
            self._join()

    def _join(self) -> None:
        if self._loose:
            starts, ends = zip(*self._loose, strict=True)
            self._joined = join(self._joined, union(np.concatenate(starts), np.concatenate(ends)))
        self._loose, self._count = [], 0

    @property
    def intervals(self) -> Intervals:
        self._join()
        return self._joined


@dataclass(slots=True)
class KinetoCollector:
    """Takes in batches of events; holds columns, never events.

    ``decode`` is what the batches must have been decoded with. ``captures``: times at which recording of a graph
    begins (True) or ends: kernels that are launched meanwhile do not run.
    """

    limits: Limits
    decode: KinetoDecoder = field(default_factory=KinetoDecoder)
    device: DeviceColumns = field(init=False)
    calls: LaunchColumns = field(default_factory=LaunchColumns)
    called: CalledCollectives = field(default_factory=CalledCollectives)
    shaped: ShapedWork = field(default_factory=ShapedWork)
    waits: Spans = field(default_factory=Spans)
    orders: Column = field(default_factory=lambda: Column(np.int64))
    captures: list[tuple[int, bool]] = field(default_factory=list)
    input: Spans = field(default_factory=Spans)
    steps: list[StepSpan] = field(default_factory=list)
    counts: Counter[NoteCode] = field(default_factory=Counter)
    call_names: Counter[str] = field(default_factory=Counter)
    unknown_dtypes: set[str] = field(default_factory=set)
    rank_labels: dict[Any, int] = field(default_factory=dict)
    named: NamedProcesses = field(default_factory=NamedProcesses)
    call_processes: dict[Any, int] = field(default_factory=dict)
    arg_rank: int | None = None
    events: int = 0
    metadata_events: int = 0
    operators: int = 0
    launches: int = 0
    graph_launches: int = 0
    has_backward: bool = False
    peak_memory: int | None = None
    other_tool: bool = False
    occupancies: int = 0
    occupancies_lost: int = 0
    _dull: set[Any] = field(default_factory=set)
    _searched: int = 0

    def __post_init__(self) -> None:
        self.device = DeviceColumns(self.limits)

    def add(self, batch: Batch) -> None:
        """Sort the events of a batch by role and keep what is needed of each."""
        events = batch.events
        self.events += len(events)
        roles = np.frombuffer(bytes(map(self.decode.roles.__getitem__, map(type, events))), dtype=np.uint8)
        counts = np.bincount(roles, minlength=len(Role)).tolist()

        def chosen(role: Role) -> list[int]:
            return np.flatnonzero(roles == role).tolist() if counts[role] else []

        self.operators += counts[Role.OPERATOR]
        self.has_backward = self.has_backward or bool(counts[Role.BACKWARD])
        self._metadata([events[index] for index in chosen(Role.METADATA)])
        self._device(batch, chosen(Role.DEVICE))
        self._calls(batch, chosen(Role.CALL))
        self._host(batch, chosen(Role.OPERATOR) + chosen(Role.ANNOTATION))
        self._memory([events[index] for index in chosen(Role.INSTANT)])

    # --- processes -----------------------------------------------------------------------------------------------

    def _metadata(self, events: list[Event]) -> None:
        """Process names: which rank a rewritten process id stands for, and whether another tool wrote the file."""
        for event in events:
            if event.ph != "M":
                continue
            self.metadata_events += 1
            if event.name in ("process_labels", "process_name", "thread_name"):
                args = decoded(event.args, ProcessArgs)
                self.named.add(event, args.name)
                if event.name != "thread_name":
                    self._label(event.pid, args.labels)
                    self._label(event.pid, args.name)

    def _label(self, pid: Any, text: Any) -> None:
        if not isinstance(text, str):
            return
        self.other_tool = self.other_tool or bool(_OTHER_TOOL.search(text))
        match = _RANK_LABEL.search(text)
        if match and isinstance(pid, int | str):
            self.rank_labels[pid] = int(match[1] or match[2])

    # --- the device ----------------------------------------------------------------------------------------------

    def _device(self, batch: Batch, chosen: list[int]) -> None:
        if not chosen:
            return
        if self._searched < _DOUBLED_KEYS_SOUGHT:
            self._searched += len(batch.text)
            self.counts[NoteCode.DUPLICATE_KEYS] += duplicate_keys(batch)
        chosen = [index for index in chosen if batch.events[index].ph == "X"]
        start, duration = _times(batch, chosen)
        unusable = (start == INVALID) | (duration == INVALID) | (start < -_LONGEST_NS) | (duration > _LONGEST_NS)
        negative = ~unusable & (duration < 0)
        bad = unusable | negative
        if bad.any():
            self.counts[NoteCode.BAD_TIMES] += int(unusable.sum())
            self.counts[NoteCode.NEGATIVE_DURATIONS] += int(negative.sum())
            chosen = [chosen[at] for at in np.flatnonzero(~bad)]
            start, duration = start[~bad], duration[~bad]
        if chosen:
            self._rows([batch.events[index] for index in chosen], start, duration)

    def _rows(self, events: list[Work], start: NDArray[np.int64], duration: NDArray[np.int64]) -> None:
        args = [event.args for event in events]
        kinds = self._kinds(events, args)
        self._occupancy(args)
        self.shaped.add_rows(args)
        pids = [event.pid for event in events]
        streams = [one.stream for one in args]
        if None in streams:
            streams = [
                one.stream if one.stream is not None else event.tid for one, event in zip(args, events, strict=True)
            ]
        self.device.add(
            Rows(
                start=start,
                duration=duration,
                names=[event.name for event in events],
                kinds=kinds,
                devices=_devices(args, pids),
                streams=streams,
                processes=pids,
                correlation=integers([one.correlation for one in args], 0, low=1),
                bytes=integers([one.bytes for one in args], UNKNOWN, high=MOST_BYTES),
                collectives=lambda places, named: self._collectives([args[at] for at in places], named),
            )
        )

    def _kinds(self, events: list[Work], args: list[Args]) -> list[int]:
        kinds = list(map(self.decode.kinds.__getitem__, map(type, events)))
        if WorkKind.COPY in kinds:
            for at, kind in enumerate(kinds):
                if kind == WorkKind.COPY and _between_devices(events[at], args[at]):
                    kinds[at] = WorkKind.PEER_COPY
        return kinds

    def _occupancy(self, args: list[Args]) -> None:
        types = Counter(map(type, [one.occupancy for one in args]))
        self.occupancies += types[int] + types[float]
        self.occupancies_lost += types[type(None)] + types[str]

    def _collectives(self, args: Sequence[Args], named: Sequence[CollectiveKind | None]) -> CollectiveColumns:
        if len(self.unknown_dtypes) < _DTYPES_TOLD:
            dtypes = {one.dtype for one in args if isinstance(one.dtype, str)}
            self.unknown_dtypes.update(dtype[:40] for dtype in dtypes if element_bytes(dtype) is None)
        self.called.add_rows(args)
        return described(args, named, self.called.communicators)

    # --- the host ------------------------------------------------------------------------------------------------

    def _calls(self, batch: Batch, chosen: list[int]) -> None:
        chosen = [index for index in chosen if batch.events[index].ph == "X"]
        if not chosen:
            return
        events: list[Call] = [batch.events[index] for index in chosen]
        names = [event.name for event in events]
        counts = Counter(names)
        start = _start(batch, chosen)
        expected = dict.fromkeys(counts, int(Expected.NOTHING))
        for name, count in counts.items():
            text = str(name)
            if len(self.call_names) < self.limits.names:
                self.call_names[text[:80]] += count
            self.launches += count if _LAUNCH.search(text) else 0
            if _GRAPH_LAUNCH.search(text):
                self.graph_launches += count
                expected[name] = int(Expected.GRAPH)
            elif _KERNEL_LAUNCH.search(text):
                expected[name] = int(Expected.KERNEL)
            if capture := _CAPTURE.search(text):
                begins = capture[1].lower() == "begin"
                self.captures += [(start[at], begins) for at, one in enumerate(names) if one == name]
            if _WAIT.search(text):
                waiting = [at for at, one in enumerate(names) if one == name]
                self.waits.add(start[waiting], _times(batch, [chosen[at] for at in waiting])[1])
            if _ORDER.search(text):
                self.orders.append(start[[at for at, one in enumerate(names) if one == name]])
        self.calls.add(
            start,
            integers([event.args.correlation for event in events], 0, low=1),
            np.frombuffer(bytes(map(expected.__getitem__, names)), dtype=np.int8),
            self._process_numbers([event.pid for event in events]),
        )

    def _process_numbers(self, pids: list[Any]) -> NDArray[np.int64]:
        """Processes of calls; those beyond the limit share a number, for no rank is known of them."""
        try:
            distinct = set(pids)
        except TypeError:
            return np.full(len(pids), UNKNOWN, dtype=np.int64)
        for pid in distinct - self.call_processes.keys():
            if len(self.call_processes) < self.limits.devices:
                self.call_processes[pid] = len(self.call_processes)
        if len(distinct) == 1:
            return np.full(len(pids), self.call_processes.get(pids[0], UNKNOWN), dtype=np.int64)
        return np.array([self.call_processes.get(pid, UNKNOWN) for pid in pids], dtype=np.int64)

    def _host(self, batch: Batch, chosen: list[int]) -> None:
        """Operators and annotations: nearly all have names of no interest, and those are seen again and again."""
        if not chosen:
            return
        events = batch.events
        names = [events[index].name for index in chosen]
        distinct = set(names)
        new = distinct - self._dull
        telling = {name for name in new if _tells(name, shapes=self.shaped.wanted)}
        if len(telling) < len(new):
            self._dull = new if len(self._dull) > _DULL_NAMES else self._dull | new
            self._dull -= telling
        if not telling:
            return
        told = [index for index, name in zip(chosen, names, strict=True) if name in telling]
        self._marks(batch, [index for index in told if _STEP.match(str(events[index].name))])
        self._input(batch, [index for index in told if _INPUT.search(str(events[index].name).lower())])
        for index in told:
            event: Host = events[index]
            if event.name == _RECORDED_CALL:
                self._recorded(event)
            elif is_shaped(event.name):
                self.shaped.add_operator(event)
        if not self.shaped.wanted:
            self._dull.update(name for name in telling if is_shaped(name))

    def _recorded(self, event: Host) -> None:
        rank = self.called.add_operator(event)
        if self.arg_rank is None:
            self.arg_rank = integer(rank, high=10**6)

    def _marks(self, batch: Batch, chosen: list[int]) -> None:
        chosen = [index for index in chosen if batch.events[index].ph == "X"]
        if not chosen:
            return
        start, duration = _times(batch, chosen)
        for index, begin, length in zip(chosen, start.tolist(), duration.tolist(), strict=True):
            match = _STEP.match(batch.events[index].name)
            if match and begin != INVALID and length > 0:
                self.steps.append(StepSpan(number=int(match[1]), start_ns=begin, end_ns=begin + length))

    def _input(self, batch: Batch, chosen: list[int]) -> None:
        if chosen:
            self.input.add(*_times(batch, chosen))

    def _memory(self, instants: list[Host]) -> None:
        for event in instants:
            if event.name != "[memory]":
                continue
            args = decoded(event.args, MemoryArgs)
            reserved = integer(args.reserved, low=1, high=MOST_BYTES)
            if reserved is not None and args.device_type != 0:
                self.peak_memory = max(self.peak_memory or 0, reserved)


def _tells(name: Any, *, shapes: bool) -> bool:
    text = str(name)
    return (
        text == _RECORDED_CALL
        or _STEP.match(text) is not None
        or _INPUT.search(text.lower()) is not None
        or (shapes and is_shaped(name))
    )


def _exactly(batch: Batch, chosen: list[int]) -> Callable[[], list[Times]]:
    """The chosen events with exact times, decoded when first asked for."""
    exact: list[Times] = []

    def events() -> list[Times]:
        if not exact:
            whole = batch.with_decimals()
            exact.extend(whole[index] for index in chosen)
        return exact

    return events


def _start(batch: Batch, chosen: list[int]) -> NDArray[np.int64]:
    exact = _exactly(batch, chosen)
    return nanoseconds([batch.events[index].ts for index in chosen], lambda: [event.ts for event in exact()])


def _times(batch: Batch, chosen: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and durations in ns of the chosen events."""
    exact = _exactly(batch, chosen)
    events = [batch.events[index] for index in chosen]
    start = nanoseconds([event.ts for event in events], lambda: [event.ts for event in exact()])
    return start, nanoseconds([event.dur for event in events], lambda: [event.dur for event in exact()])


def _between_devices(event: Work, args: Args) -> bool:
    """A peer copy whose ends are two devices, or a copy called so where the ends are not given."""
    if args.from_device is not None and args.to_device is not None:
        return bool(args.from_device != args.to_device)
    return "PtoP" in str(event.name)


def _devices(args: Sequence[Args], pids: Sequence[Any]) -> NDArray[np.int64]:
    """Device numbers: by argument, for a peer copy the device it runs in, else by the row's process id."""
    devices = [one.device for one in args]
    if None in devices:
        devices = [
            next((value for value in (one.device, one.in_device, one.from_device) if value is not None), pid)
            for one, pid in zip(args, pids, strict=True)
        ]
    return integers(devices, 0, high=2**31 - 1)
