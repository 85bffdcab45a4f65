"""The reader of trace.json of JAX and TensorFlow: streams of the GPU processes to one Timeline.

Events have no categories. What a row is shows in the names of its process (a plane) and of its thread (a line).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from profiling.formats import xla_names as xla
from profiling.formats.assemble import Around, assemble
from profiling.formats.capture import Capture, Format
from profiling.formats.chrome_json import EventStream
from profiling.formats.columns import DeviceColumns, Rows
from profiling.formats.detect import BLANK
from profiling.formats.limits import Limits
from profiling.formats.numbers import integers
from profiling.formats.source import Head, Source
from profiling.formats.times import INVALID, nanoseconds
from profiling.formats.trace_events import Batch, Event
from profiling.formats.xla_host import HostColumns, HostEvents
from profiling.formats.xla_steps import MarkedStep, step_spans
from profiling.notes import Note, NoteCode, Refusal, RefusalCode
from profiling.timeline import WorkKind

_PLANE_NAME = re.compile(rb'"name"\s*:\s*"[^"/\\]{0,64}/(?:host:CPU|host:metadata|device:[A-Z]{3,16}:[0-9])')
_XLA_ARGUMENT = re.compile(rb'"(?:hlo_op|hlo_module)"\s*:\s*"')
_NOT_XLA = re.compile(rb'"(?:schemaVersion|deviceProperties)"\s*:|"cat"\s*:\s*"(?:[Kk]ernel|cpu_op|cuda_runtime)"')
_CAPS = (1_000_000, 5_000_000)
_CAP_TOLERANCE = 0.001
_LONGEST_NS = 86_400 * 10**9
_LATEST_NS = 1 << 62
OTHER, STREAM, STEPS, HOST = range(4)


def recognises(head: Head) -> bool:
    """True where the head names a plane as a process, or an operation of XLA as an argument."""
    text = head.data.lstrip(BLANK)
    if text[:1] not in (b"{", b"[") or _NOT_XLA.search(text):
        return False
    named = _PLANE_NAME.search(text) is not None and b'"process_name"' in text
    return named or (_XLA_ARGUMENT.search(text) is not None and b'"ph"' in text)


def read(source: Source) -> Capture:
    """One Timeline of all GPU processes, in memory bounded by their events. Raises Refusal.

    Names of processes and threads mostly precede their events; where they do not, the file is read again.
    """
    names = Names(source.limits)
    seen, stream = _pass(source, names)
    if any(names.has(*key) for key in seen.unnamed):
        seen, stream = _pass(source, names)
    _refuse_without_gpu_work(seen, stream, source)
    return _capture(seen, stream, source)


class _Args(msgspec.Struct, gc=False):
    name: Any = None
    correlation: Any = msgspec.field(name="correlation_id", default=None)
    details: Any = msgspec.field(name="memcpy_details", default=None)
    operation: Any = msgspec.field(name="hlo_op", default=None)
    step: Any = msgspec.field(name="step_num", default=None)


_args_of = msgspec.json.Decoder(_Args).decode
_many_args = msgspec.json.Decoder(list[_Args]).decode
_NO_ARGS = _Args()


def _decoded(events: Sequence[Event]) -> list[_Args]:
    """Arguments of the events; those that are no object are empty."""
    try:
        return _many_args(b"[" + b",".join([bytes(event.args) or b"{}" for event in events]) + b"]")
    except (msgspec.DecodeError, ValueError):
        return [_one(bytes(event.args)) for event in events]


def _one(raw: bytes) -> _Args:
    try:
        return _args_of(raw.decode("utf-8", errors="replace"))
    except (msgspec.DecodeError, ValueError):
        return _NO_ARGS


@dataclass(slots=True)
class Names:
    """What processes are planes, of which ``devices`` are GPUs, and what lines their threads are."""

    limits: Limits
    processes: set[Any] = field(default_factory=set)
    devices: dict[Any, int] = field(default_factory=dict)
    device_names: dict[int, str] = field(default_factory=dict)
    hosts: set[Any] = field(default_factory=set)
    threads: dict[Any, str] = field(default_factory=dict)
    has_tpu: bool = False

    def add(self, event: Event) -> None:
        text = _one(bytes(event.args)).name
        if not isinstance(text, str) or not _plain(event.pid) or not _plain(event.tid):
            return
        if event.name == "thread_name":
            self.threads[event.pid, event.tid] = text
        elif event.name == "process_name":
            self._process(event.pid, text)

    def has(self, pid: Any, tid: Any) -> bool:
        """True where it is known what the events of a thread are."""
        return pid in self.hosts or (pid in self.processes and (pid, tid) in self.threads)

    def _process(self, pid: Any, text: str) -> None:
        self.processes.add(pid)
        self.has_tpu = self.has_tpu or xla.TPU_PLANE.search(text) is not None
        if match := xla.GPU_PLANE.search(text):
            taken = {number for process, number in self.devices.items() if process != pid}
            if len(taken) >= self.limits.devices:
                raise Refusal(RefusalCode.TOO_MANY_DEVICES, {"limit": self.limits.devices})
            number = int(match[1])
            self.devices[pid] = number if number not in taken else max(taken) + 1
            self.device_names[self.devices[pid]] = xla.device_name(match[2])
        elif xla.HOST_PLANE.search(text):
            self.hosts.add(pid)

    def role(self, pid: Any, tid: Any) -> int:
        if pid in self.hosts:
            return HOST
        name = self.threads.get((pid, tid))
        if name is None or pid not in self.devices:
            return OTHER
        return STREAM if xla.STREAM.match(name) else STEPS if name == xla.STEPS else OTHER


def _plain(key: Any) -> bool:
    return key is None or isinstance(key, int | str | float)


@dataclass(slots=True)
class _Seen:
    """What is kept of the events. ``unnamed``: threads whose events came before their name."""

    names: Names
    device: DeviceColumns
    host: HostColumns = field(default_factory=HostColumns)
    counts: Counter[NoteCode] = field(default_factory=Counter)
    steps: list[MarkedStep] = field(default_factory=list)
    unnamed: set[Any] = field(default_factory=set)
    timed: int = 0

    def add(self, batch: Batch) -> None:
        for event in batch.events:
            if event.ph == "M":
                self.names.add(event)
        self.host.has_backward = self.host.has_backward or xla.mentions_backward(batch.text)
        picked: tuple[list[int], ...] = ([], [], [], [])
        roles: dict[Any, int] = {}
        for place, event in enumerate(batch.events):
            if event.ph != "X" or not _plain(event.pid) or not _plain(event.tid):
                continue
            key = (event.pid, event.tid)
            role = roles.get(key)
            if role is None:
                role = roles[key] = self.names.role(*key)
                if not self.names.has(*key):
                    self.unnamed.add(key)
            picked[role].append(place)
        self.timed += sum(map(len, picked))
        self._streams(batch, picked[STREAM])
        self._device_steps(batch, picked[STEPS])
        self._host(batch, picked[HOST])
        limit = self.device.limits.rows
        if max(map(len, (self.unnamed, self.names.threads, self.names.processes, self.steps))) > limit:
            raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": limit})

    def _streams(self, batch: Batch, chosen: list[int]) -> None:
        start, duration = _times(batch, chosen)
        unusable = (np.abs(start) > _LATEST_NS) | (np.abs(duration) > _LONGEST_NS)
        negative = ~unusable & (duration < 0)
        self.counts[NoteCode.BAD_TIMES] += int(unusable.sum())
        self.counts[NoteCode.NEGATIVE_DURATIONS] += int(negative.sum())
        good = np.flatnonzero(~(unusable | negative))
        events = [batch.events[chosen[at]] for at in good]
        if not events:
            return
        args = _decoded(events)
        kinds = {name: xla.work_kind(str(name)) for name in {event.name for event in events}}
        self.device.add(
            Rows(
                start=start[good],
                duration=duration[good],
                names=[event.name for event in events],
                kinds=[kinds[event.name] for event in events],
                devices=np.array([self.names.devices[event.pid] for event in events], dtype=np.int64),
                streams=[f"{event.pid} {event.tid}" for event in events],
                processes=[self.names.devices[event.pid] for event in events],
                correlation=integers([one.correlation for one in args], 0, low=1),
                bytes=np.array([xla.copied_bytes(one.details) for one in args], dtype=np.int64),
                collectives=lambda places, named: xla.collectives([args[at].operation for at in places], named),
            )
        )

    def _device_steps(self, batch: Batch, chosen: list[int]) -> None:
        start, duration = _times(batch, chosen)
        for at, begin, length in zip(chosen, start.tolist(), duration.tolist(), strict=True):
            if begin != INVALID and 0 < length <= _LONGEST_NS:
                event = batch.events[at]
                number = xla.step_number(str(event.name), len(self.steps))
                self.steps.append(MarkedStep(self.names.devices[event.pid], number, begin, begin + length))

    def _host(self, batch: Batch, chosen: list[int]) -> None:
        if not chosen:
            return
        start, duration = _times(batch, chosen)
        usable = np.flatnonzero((np.abs(start) < _LATEST_NS) & (np.abs(duration) <= _LONGEST_NS))
        start, duration = start[usable], duration[usable]
        events = [batch.events[chosen[at]] for at in usable]
        names, args = [str(event.name) for event in events], _decoded(events)
        waits, inputs, graphs = (_matching(pattern, names) for pattern in (xla.WAIT, xla.INPUT, xla.GRAPH_LAUNCH))
        self.host.add(
            HostEvents(
                start=start,
                duration=duration,
                correlation=integers([one.correlation for one in args], 0, low=1),
                waits=waits,
                input=inputs,
                graphs=graphs,
            )
        )
        number = integers([one.step for one in args], -1)
        for at in np.flatnonzero((duration > 0) & (number >= 0)).tolist():
            begin = int(start[at])
            self.steps.append(MarkedStep(None, int(number[at]), begin, begin + int(duration[at])))


def _matching(pattern: re.Pattern[str], names: Sequence[str]) -> NDArray[np.bool_]:
    matching = {name for name in set(names) if pattern.search(name[:1000])}
    return np.array([name in matching for name in names], dtype=bool)


def _times(batch: Batch, chosen: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and durations in ns; ``INVALID`` where there is none. A duration that is not written is 0."""
    exact: list[Event] = []

    def precisely() -> list[Event]:
        if not exact:
            exact.extend(batch.with_decimals())
        return [exact[at] for at in chosen]

    start = nanoseconds([batch.events[at].ts for at in chosen], lambda: [event.ts for event in precisely()])
    written = [batch.events[at].dur for at in chosen]
    duration = nanoseconds(
        [0 if value is None else value for value in written],
        lambda: [0 if event.dur is None else event.dur for event in precisely()],
    )
    return start, duration


def _pass(source: Source, names: Names) -> tuple[_Seen, EventStream]:
    stream = EventStream(_from_first(source.chunks()), source.limits)
    seen = _Seen(names, DeviceColumns(source.limits))
    for batch in stream.batches():
        seen.add(batch)
    return seen, stream


def _from_first(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks from the first one that is not blank; the registry has bounded those before it."""
    for chunk in chunks:
        if chunk.strip(BLANK):
            yield chunk
            break
    yield from chunks


def _refuse_without_gpu_work(seen: _Seen, stream: EventStream, source: Source) -> None:
    if seen.device.rows:
        return
    if source.unpacked.truncated or source.unpacked.damaged or not stream.complete:
        raise Refusal(RefusalCode.FILE_TRUNCATED)
    if stream.fault is not None:
        raise stream.fault
    raise Refusal(RefusalCode.TPU_PROFILE if seen.names.has_tpu else RefusalCode.NO_STREAM_ROWS)


def _capture(seen: _Seen, stream: EventStream, source: Source) -> Capture:
    notes = [*source.notes, *_reading_notes(seen, stream, source)]
    notes += xla.graph_notes(seen.host.graph_launches, int((seen.device.column("kind") == WorkKind.GRAPH).sum()))
    launched = seen.host.launched(seen.device.column("correlation"))
    around = Around(
        source=source.name,
        host=seen.host.side(),
        steps=step_spans(seen.steps, seen.device.column("start"), launched),
        device_names=seen.names.device_names,
        incomplete=_cap(seen.timed) is not None,
    )
    line, told = assemble(seen.device, launched, around)
    return Capture(format=Format.XLA_TRACE, timelines=(line,), notes=(*notes, *told))


def _reading_notes(seen: _Seen, stream: EventStream, source: Source) -> list[Note]:
    counts: Mapping[NoteCode, int] = stream.repairs + seen.counts
    notes = [Note(code, {"count": count}) for code, count in counts.items() if count]
    if source.unpacked.damaged:
        notes.append(Note(NoteCode.GZIP_DAMAGED, {"events": stream.events}))
    elif source.unpacked.truncated or not stream.complete:
        notes.append(Note(NoteCode.FILE_TRUNCATED, {"events": stream.events}))
    if cap := _cap(seen.timed):
        notes.append(Note(NoteCode.EVENTS_CAPPED, {"limit": cap}))
    return notes


def _cap(events: int) -> int | None:
    """The limit of the exporter (openxla/xla#44702), where the file has about as many events."""
    return next((cap for cap in _CAPS if abs(events - cap) <= _CAP_TOLERANCE * cap), None)
