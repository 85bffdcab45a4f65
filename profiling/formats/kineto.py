"""Kineto (PyTorch profiler) traces: from batches of events to one Timeline per rank.

Categories of all generations since PyTorch 1.8 are folded to lower case and mapped; device or host is decided by
category, never by process id.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.columns import CollectiveColumns, DeviceColumns, LaunchColumns, Rows, kind_column
from profiling.formats.kineto_args import Args, decoded, element_bytes, kind_of, message_bytes
from profiling.formats.limits import Limits
from profiling.formats.numbers import MOST_BYTES, integer, integers
from profiling.formats.times import INVALID, nanoseconds
from profiling.formats.trace_events import Batch, Event
from profiling.notes import NoteCode
from profiling.timeline import UNKNOWN, StepSpan, WorkKind
from profiling.workload import CollectiveKind

IGNORED, DEVICE, CALL, OPERATOR, ANNOTATION, INSTANT, BACKWARD, METADATA, MARKED_OPERATOR = range(9)

_ROLES: dict[str, int] = {
    "kernel": DEVICE,
    "gpu_memcpy": DEVICE,
    "memcpy": DEVICE,
    "gpu_memset": DEVICE,
    "memset": DEVICE,
    "cuda_runtime": CALL,
    "cuda_driver": CALL,
    "runtime": CALL,
    "xpu_runtime": CALL,
    "xpu_driver": CALL,
    "cpu_op": OPERATOR,
    "operator": MARKED_OPERATOR,
    "user_annotation": ANNOTATION,
    "user": ANNOTATION,
    "cpu_instant_event": INSTANT,
    "fwdbwd": BACKWARD,
    "fwd_bwd_correlation": BACKWARD,
}
_KINDS: dict[str | None, WorkKind] = {
    "kernel": WorkKind.KERNEL,
    "gpu_memcpy": WorkKind.COPY,
    "memcpy": WorkKind.COPY,
    "gpu_memset": WorkKind.FILL,
    "memset": WorkKind.FILL,
}
_LARGEST_GROUP = 10**6
_LONGEST_NS = 86_400 * 10**9
"""No work of a device takes a day, and none starts so long before the origin of its clock."""
_DTYPES_TOLD = 5
_LAUNCH = re.compile(r"launch|memcpy|memset", re.IGNORECASE)
_WAIT = re.compile(r"synchronize", re.IGNORECASE)
_STEP = re.compile(r"ProfilerStep#([0-9]{1,18})$")
_RANK_LABEL = re.compile(r"\brank[ _:-]?([0-9]{1,6})(?![0-9])", re.IGNORECASE)
_OTHER_TOOL = re.compile(r"/device:(GPU|TPU)|/host:CPU")


@dataclass(slots=True)
class KinetoCollector:
    """Takes in batches of events; holds columns, never events."""

    limits: Limits
    device: DeviceColumns = field(init=False)
    calls: LaunchColumns = field(default_factory=LaunchColumns)
    steps: list[StepSpan] = field(default_factory=list)
    counts: Counter[NoteCode] = field(default_factory=Counter)
    unknown_dtypes: set[str] = field(default_factory=set)
    rank_labels: dict[Any, int] = field(default_factory=dict)
    arg_rank: int | None = None
    events: int = 0
    metadata_events: int = 0
    operators: int = 0
    launches: int = 0
    synchronise_ns: int = 0
    has_backward: bool = False
    peak_memory: int | None = None
    other_tool: bool = False
    _roles: dict[str | None, int] = field(default_factory=lambda: {None: METADATA})

    def __post_init__(self) -> None:
        self.device = DeviceColumns(self.limits)

    def add(self, batch: Batch) -> None:
        """Sort the events of a batch by role and keep what is needed of each."""
        events, roles = batch.events, self._roles
        cats = [event.cat for event in events]
        for cat in set(cats) - roles.keys():
            if (role := _ROLES.get(str(cat).lower(), IGNORED)) != IGNORED:
                roles[cat] = role
        codes = np.frombuffer(bytes([roles.get(cat, IGNORED) for cat in cats]), dtype=np.uint8)
        picked = [np.flatnonzero(codes == role).tolist() for role in range(9)]
        self.events += len(events)
        self.operators += len(picked[OPERATOR]) + len(picked[MARKED_OPERATOR])
        self.has_backward = self.has_backward or bool(picked[BACKWARD])
        self._metadata([events[index] for index in picked[METADATA]])
        self._device(batch, _complete(batch, picked[DEVICE]))
        self._calls(batch, _complete(batch, picked[CALL]))
        self._marks(batch, picked[ANNOTATION] + picked[MARKED_OPERATOR])
        if self.arg_rank is None and b'"record_param_comms"' in batch.text:
            self._rank_of_operator([events[index] for index in picked[OPERATOR]])
        self._memory([events[index] for index in picked[INSTANT]])

    def _metadata(self, events: list[Event]) -> None:
        """Process names: which rank a rewritten process id stands for, and whether another tool wrote the file."""
        for event in events:
            if event.ph != "M":
                continue
            self.metadata_events += 1
            if event.name in ("process_labels", "process_name"):
                args = decoded([event.args])[0]
                self._label(event.pid, args.labels)
                self._label(event.pid, args.name)

    def _label(self, pid: Any, text: Any) -> None:
        if not isinstance(text, str):
            return
        self.other_tool = self.other_tool or bool(_OTHER_TOOL.search(text))
        match = _RANK_LABEL.search(text)
        if match and isinstance(pid, int):
            self.rank_labels[pid] = int(match[1])

    def _times(self, batch: Batch, chosen: list[int]) -> tuple[Any, Any]:
        """Starts and durations in ns of the chosen events."""
        events = batch.events
        exact: list[Event] = []

        def precisely() -> list[Event]:
            if not exact:
                exact.extend(batch.with_decimals())
            return [exact[index] for index in chosen]

        start = nanoseconds([events[i].ts for i in chosen], lambda: [event.ts for event in precisely()])
        duration = nanoseconds([events[i].dur for i in chosen], lambda: [event.dur for event in precisely()])
        return start, duration

    def _device(self, batch: Batch, chosen: list[int]) -> None:
        if not chosen:
            return
        start, duration = self._times(batch, chosen)
        unusable = (start == INVALID) | (duration == INVALID) | (start < -_LONGEST_NS) | (duration > _LONGEST_NS)
        negative = ~unusable & (duration < 0)
        self.counts[NoteCode.BAD_TIMES] += int(unusable.sum())
        self.counts[NoteCode.NEGATIVE_DURATIONS] += int(negative.sum())
        good = np.flatnonzero(~(unusable | negative))
        rows = [batch.events[chosen[at]] for at in good]
        if not rows:
            return
        args = decoded([event.args for event in rows])
        if len(self.unknown_dtypes) < _DTYPES_TOLD:
            self.unknown_dtypes.update(
                dtype[:40]
                for dtype in {one.dtype for one in args if isinstance(one.dtype, str)}
                if element_bytes(dtype) is None
            )
        kinds = [_kind(event, one) for event, one in zip(rows, args, strict=True)]
        self.device.add(_rows(rows, args, kinds, start[good], duration[good]))

    def _calls(self, batch: Batch, chosen: list[int]) -> None:
        if not chosen:
            return
        start, duration = self._times(batch, chosen)
        names = [batch.events[index].name for index in chosen]
        counts = Counter(names)
        self.launches += sum(count for name, count in counts.items() if _LAUNCH.search(str(name)))
        waits = {name for name in counts if _WAIT.search(str(name))}
        if waits:
            waited = duration[[name in waits for name in names]]
            self.synchronise_ns += int(waited[waited > 0].sum())
        args = decoded([batch.events[index].args for index in chosen])
        self.calls.add(start, integers([one.correlation for one in args], 0, low=1))

    def _rank_of_operator(self, operators: list[Event]) -> None:
        """The rank, where a collective's operator tells it."""
        for event in operators:
            if event.name == "record_param_comms" and self.arg_rank is None:
                self.arg_rank = integer(decoded([event.args])[0].rank, high=10**6)

    def _marks(self, batch: Batch, candidates: list[int]) -> None:
        events = batch.events
        matches = {
            index: match
            for index in candidates
            if events[index].ph == "X" and (match := _STEP.match(str(events[index].name)))
        }
        if not matches:
            return
        start, duration = self._times(batch, list(matches))
        for match, begin, length in zip(matches.values(), start.tolist(), duration.tolist(), strict=True):
            if begin != INVALID and length > 0:
                number = int(match[1])
                self.steps.append(StepSpan(number=number, start_ns=begin, end_ns=begin + length))

    def _memory(self, instants: list[Event]) -> None:
        memory = [event.args for event in instants if event.name == "[memory]"]
        for args in decoded(memory) if memory else ():
            reserved = integer(args.reserved, low=1, high=MOST_BYTES)
            if reserved is not None and args.device_type != 0:
                self.peak_memory = max(self.peak_memory or 0, reserved)


def _complete(batch: Batch, indices: list[int]) -> list[int]:
    return [index for index in indices if batch.events[index].ph == "X"]


def _kind(event: Event, args: Args) -> int:
    kind = _KINDS.get(event.cat)
    if kind is None:
        kind = _KINDS.get(str(event.cat).lower(), WorkKind.KERNEL)
    return WorkKind.PEER_COPY if kind is WorkKind.COPY and _between_devices(event, args) else kind


def _between_devices(event: Event, args: Args) -> bool:
    """A peer copy whose ends are two devices, or a copy called so where the ends are not given."""
    if args.from_device is not None and args.to_device is not None:
        return bool(args.from_device != args.to_device)
    return "PtoP" in str(event.name)


def _rows(
    events: Sequence[Event],
    args: Sequence[Args],
    kinds: Sequence[int],
    start: NDArray[np.int64],
    duration: NDArray[np.int64],
) -> Rows:
    pids = [event.pid for event in events]
    streams = [one.stream for one in args]
    if None in streams:
        streams = [one.stream if one.stream is not None else event.tid for one, event in zip(args, events, strict=True)]
    return Rows(
        start=start,
        duration=duration,
        names=[event.name for event in events],
        kinds=kinds,
        devices=_devices(args, pids),
        streams=streams,
        processes=pids,
        correlation=integers([one.correlation for one in args], 0, low=1),
        bytes=integers([one.bytes for one in args], UNKNOWN, high=MOST_BYTES),
        collectives=lambda places, named: _collectives([args[at] for at in places], named),
    )


def _collectives(args: Sequence[Args], named: Sequence[CollectiveKind | None]) -> CollectiveColumns:
    kinds = [kind_of(one.collective) or by_name for one, by_name in zip(args, named, strict=True)]
    sizes = [message_bytes(one, kind or CollectiveKind.UNKNOWN) for one, kind in zip(args, kinds, strict=True)]
    return CollectiveColumns(
        kind=kind_column(kinds),
        message=np.array(sizes, dtype=np.int64),
        group=integers([one.group_size for one in args], UNKNOWN, low=1, high=_LARGEST_GROUP),
    )


def _devices(args: Sequence[Args], pids: Sequence[Any]) -> NDArray[np.int64]:
    """Device numbers: by argument, for a peer copy the device it runs in, else by the row's process id."""
    devices = [one.device for one in args]
    if set(map(type, devices)) != {int}:
        devices = [
            next((value for value in (one.device, one.in_device, one.from_device) if value is not None), pid)
            for one, pid in zip(args, pids, strict=True)
        ]
    return integers(devices, 0, high=2**31 - 1)
