"""Kineto (PyTorch profiler) traces: from batches of events to one Timeline per rank.

Categories of all generations since PyTorch 1.8 are folded to lower case and mapped; device or host is decided by
category, never by process id.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from profiling.formats.chrome_json import Batch, Event
from profiling.formats.columns import DeviceColumns, LaunchColumns
from profiling.formats.kineto_args import Args, decoded, element_bytes, integer
from profiling.formats.limits import Limits
from profiling.formats.times import INVALID, nanoseconds
from profiling.notes import NoteCode
from profiling.timeline import StepSpan, WorkKind

IGNORED, DEVICE, CALL, OPERATOR, ANNOTATION, INSTANT, BACKWARD = range(7)

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
    "operator": OPERATOR,
    "user_annotation": ANNOTATION,
    "user": ANNOTATION,
    "cpu_instant_event": INSTANT,
    "fwdbwd": BACKWARD,
    "fwd_bwd_correlation": BACKWARD,
}
_KINDS = {"gpu_memcpy": WorkKind.COPY, "memcpy": WorkKind.COPY, "gpu_memset": WorkKind.FILL, "memset": WorkKind.FILL}
_LAUNCH = re.compile(r"launch|memcpy|memset", re.IGNORECASE)
_WAIT = re.compile(r"synchronize", re.IGNORECASE)
_STEP = re.compile(r"ProfilerStep#(\d+)$")
_RANK_LABEL = re.compile(r"\brank[ _:-]?(\d+)", re.IGNORECASE)
_OTHER_TOOL = re.compile(r"/device:(GPU|TPU)|/host:CPU")


@dataclass(slots=True)
class KinetoCollector:
    """Takes in batches of events; holds columns, never events."""

    limits: Limits
    device: DeviceColumns = field(default_factory=DeviceColumns)
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
    _roles: dict[str | None, int] = field(default_factory=lambda: {None: IGNORED})

    def add(self, batch: Batch) -> None:
        """Sort the events of a batch by role and keep what is needed of each."""
        picked: tuple[list[int], ...] = ([], [], [], [], [], [], [])
        roles = self._roles
        for index, event in enumerate(batch.events):
            cat = event.cat
            role = roles.get(cat)
            if role is None:
                role = roles[cat] = _ROLES.get(str(cat).lower(), IGNORED)
            if role:
                picked[role].append(index)
            elif event.ph == "M":
                self._metadata(event)
        self.events += len(batch.events)
        self.operators += len(picked[OPERATOR])
        self.has_backward = self.has_backward or bool(picked[BACKWARD])
        self._device(batch, _complete(batch, picked[DEVICE]))
        self._calls(batch, _complete(batch, picked[CALL]))
        self._marks(batch, picked[ANNOTATION] + picked[OPERATOR])
        self._memory([batch.events[index] for index in picked[INSTANT]])

    def _metadata(self, event: Event) -> None:
        self.metadata_events += 1
        if event.name not in ("process_labels", "process_name"):
            return
        args = decoded([event.args])[0]
        for text in (args.labels, args.name):
            if isinstance(text, str) and (match := _RANK_LABEL.search(text)) and isinstance(event.pid, int):
                self.rank_labels[event.pid] = int(match[1])
            if isinstance(text, str) and _OTHER_TOOL.search(text):
                self.other_tool = True

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
        unusable = (start == INVALID) | (duration == INVALID)
        negative = ~unusable & (duration < 0)
        self.counts[NoteCode.BAD_TIMES] += int(unusable.sum())
        self.counts[NoteCode.NEGATIVE_DURATIONS] += int(negative.sum())
        good = ~(unusable | negative)
        args = decoded([batch.events[index].args for index in chosen])
        for index, one, keep in zip(chosen, args, good.tolist(), strict=True):
            if keep:
                self._row(batch.events[index], one)
        self.device.add_times(start[good], duration[good])

    def _row(self, event: Event, args: Args) -> None:
        kind = _KINDS.get(str(event.cat).lower(), WorkKind.KERNEL)
        if kind is WorkKind.COPY and _between_devices(event, args):
            kind = WorkKind.PEER_COPY
        name = str(event.name)[: self.limits.name_characters].replace("\x00", "")
        if args.dtype is not None and element_bytes(args.dtype) is None:
            self.unknown_dtypes.add(str(args.dtype)[:40])
        self.device.add_row(event, args, kind, name)

    def _calls(self, batch: Batch, chosen: list[int]) -> None:
        if not chosen:
            return
        start, duration = self._times(batch, chosen)
        for index, one_duration in zip(chosen, duration.tolist(), strict=True):
            name = str(batch.events[index].name)
            self.launches += bool(_LAUNCH.search(name))
            if one_duration > 0 and _WAIT.search(name):
                self.synchronise_ns += one_duration
        args = decoded([batch.events[index].args for index in chosen])
        self.calls.add(start, [integer(one.correlation, low=1) or 0 for one in args])

    def _marks(self, batch: Batch, candidates: list[int]) -> None:
        """Steps, and the rank where a collective's operator tells it."""
        events = batch.events
        chosen = []
        for index in candidates:
            name = events[index].name
            if name.__class__ is not str:
                continue
            if name.startswith("ProfilerStep#") and events[index].ph == "X" and _STEP.match(name):
                chosen.append(index)
            elif self.arg_rank is None and name == "record_param_comms":
                self.arg_rank = integer(decoded([events[index].args])[0].rank, high=10**6)
        if not chosen:
            return
        start, duration = self._times(batch, chosen)
        for index, begin, length in zip(chosen, start.tolist(), duration.tolist(), strict=True):
            if begin != INVALID and length > 0:
                number = int(str(events[index].name).partition("#")[2])
                self.steps.append(StepSpan(number=number, start_ns=begin, end_ns=begin + length))

    def _memory(self, instants: list[Event]) -> None:
        memory = [event.args for event in instants if event.name == "[memory]"]
        for args in decoded(memory) if memory else ():
            reserved = integer(args.reserved, low=1)
            if reserved is not None and args.device_type != 0:
                self.peak_memory = max(self.peak_memory or 0, reserved)


def _complete(batch: Batch, indices: list[int]) -> list[int]:
    return [index for index in indices if batch.events[index].ph == "X"]


def _between_devices(event: Event, args: Args) -> bool:
    """A peer copy whose ends are two devices, or a copy called so where the ends are not given."""
    if args.from_device is not None and args.to_device is not None:
        return bool(args.from_device != args.to_device)
    return "PtoP" in str(event.name)
