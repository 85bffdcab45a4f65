"""The reader of xplane.pb of JAX and TensorFlow: streams of all GPU planes to one Timeline.

Memory is bounded by the device events of the file; nothing of TensorFlow or XLA is needed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from profiling.formats import xla_names as xla
from profiling.formats.assemble import Around, assemble
from profiling.formats.capture import Capture, Format
from profiling.formats.columns import DeviceColumns, Rows
from profiling.formats.protobuf_wire import Span, WireFile
from profiling.formats.source import Head, Source
from profiling.formats.xla_host import HostColumns, HostEvents
from profiling.formats.xla_steps import MarkedStep, step_spans
from profiling.formats.xspace import (
    ERRORS,
    PLANES,
    WARNINGS,
    Events,
    Line,
    Plane,
    event_batches,
    lines_of,
    name_of_plane,
    read_plane,
)
from profiling.notes import Note, NoteCode, Refusal, RefusalCode
from profiling.timeline import UNKNOWN, WorkKind

_FIRST_PLANE = re.compile(
    rb"\A\x0a[\x80-\xff]{0,9}[\x00-\x7f](?:\x08[\x80-\xff]{0,9}[\x00-\x7f])?\x12[\x01-\x7f]"
    rb"(?:/host:|/device:|Task Environment|#Chip)"
)
_REPLACED = "\N{REPLACEMENT CHARACTER}".encode()
_MESSAGES_TOLD = 20
_CORRELATION, _STEP = "correlation_id", "step_num"


def recognises(head: Head) -> bool:
    """True for an XSpace by the name of its first plane."""
    return _FIRST_PLANE.match(head.data) is not None


def read(source: Source) -> Capture:
    """One Timeline of all GPU planes. Raises Refusal."""
    head = source.head().data
    seen = Profile(DeviceColumns(source.limits), has_tpu=b"/device:TPU:" in head)
    converted = head.count(_REPLACED) > 1
    with source.on_disk() as path, path.open("rb") as file:
        try:
            _Reader(seen, WireFile(file, path.stat().st_size, source.limits), source).planes()
        except Refusal as refusal:
            if refusal.code is not RefusalCode.PROTOBUF_DAMAGED or not converted:
                raise
            raise Refusal(RefusalCode.BINARY_AS_TEXT) from None
    seen.cut = seen.cut or source.unpacked.truncated or source.unpacked.damaged
    _refuse_without_gpu_work(seen, converted=converted)
    return _capture(seen, source)


@dataclass(slots=True)
class Profile:
    """What is kept of a file. ``cut``: it ends inside a plane."""

    device: DeviceColumns
    host: HostColumns = field(default_factory=HostColumns)
    counts: Counter[NoteCode] = field(default_factory=Counter)
    steps: list[MarkedStep] = field(default_factory=list)
    device_names: dict[int, str] = field(default_factory=dict)
    vendor: str | None = None
    warnings: list[str] = field(default_factory=list)
    has_tpu: bool = False
    events: int = 0
    started_unix_ns: int | None = None
    cut: bool = False


@dataclass(slots=True)
class _Reader:
    seen: Profile
    wire: WireFile
    source: Source

    def planes(self) -> None:
        for number, value in self.wire.fields(0, self.wire.size):
            if not isinstance(value, Span):
                continue
            if value.end > self.wire.size:
                self.seen.cut = True
            if number == PLANES:
                self._plane(value)
            elif number in (ERRORS, WARNINGS) and not self.seen.cut and len(self.seen.warnings) < _MESSAGES_TOLD:
                self.seen.warnings.append(self.wire.payload(value).decode("utf-8", errors="replace"))

    def _plane(self, span: Span) -> None:
        name = name_of_plane(self.wire, span)
        self._told(span.start, 0)
        self.seen.has_tpu = self.seen.has_tpu or xla.TPU_PLANE.search(name) is not None
        if self.seen.cut:
            return
        if gpu := xla.GPU_PLANE.search(name):
            self._device(read_plane(self.wire, span, name), int(gpu[1]), gpu[2])
        elif xla.HOST_PLANE.search(name):
            self._host(read_plane(self.wire, span, name, _is_telling, _is_wanted))
        elif name == "Task Environment":
            started = read_plane(self.wire, span, name).facts.get("profile_start_time")
            self.seen.started_unix_ns = started if isinstance(started, int) else None

    def _told(self, position: int, events: int) -> None:
        limits = self.source.limits
        self.source.watch.at(position, self.wire.size)
        self.seen.events += events
        if self.seen.events > limits.events:
            raise Refusal(RefusalCode.TOO_MANY_EVENTS, {"limit": limits.events})

    def _device(self, plane: Plane, number: int, rest: str) -> None:
        seen = self.seen
        seen.device_names[number] = xla.device_name(rest)
        if len(seen.device_names) > self.source.limits.devices:
            raise Refusal(RefusalCode.TOO_MANY_DEVICES, {"limit": self.source.limits.devices})
        seen.vendor = seen.vendor or xla.vendor(plane.facts.get("device_vendor"))
        lines = lines_of(self.wire, plane)
        for events in self._batches(line for line in lines if xla.STREAM.match(line.name)):
            self._rows(plane, number, events)
        for events in self._batches(line for line in lines if line.name == xla.STEPS):
            chosen = np.flatnonzero(events.usable & (events.duration > 0)).tolist()
            names = [plane.events.get(int(events.name[place]), "") for place in chosen]
            self._steps(number, events, chosen, [xla.step_number(name, at) for at, name in enumerate(names)])

    def _batches(self, lines: Iterable[Line]) -> Iterator[Events]:
        return event_batches(self.wire, list(lines), self._told)

    def _rows(self, plane: Plane, device: int, events: Events) -> None:
        seen = self.seen
        negative = events.usable & (events.duration < 0)
        seen.counts[NoteCode.BAD_TIMES] += int((~events.usable).sum())
        seen.counts[NoteCode.NEGATIVE_DURATIONS] += int(negative.sum())
        good = np.flatnonzero(events.usable & ~negative)
        if not good.size:
            return
        names = [plane.events.get(name, "") for name in events.name[good].tolist()]
        kinds = {name: xla.work_kind(name) for name in set(names)}
        operations = events.texts(plane.stats_named("hlo_op"), plane.stats)
        sizes = np.full(events.line.size, UNKNOWN, dtype=np.int64)
        for event, details in events.texts(plane.stats_named("memcpy_details"), plane.stats).items():
            sizes[event] = xla.copied_bytes(details)
        seen.device.add(
            Rows(
                start=events.start[good],
                duration=events.duration[good],
                names=names,
                kinds=[kinds[name] for name in names],
                devices=np.full(good.size, device, dtype=np.int64),
                streams=[(device, line) for line in events.line[good].tolist()],
                processes=[device] * good.size,
                correlation=np.maximum(events.integers(plane.stats_named(_CORRELATION), 0)[good], 0),
                bytes=sizes[good],
                collectives=lambda places, named: xla.collectives(
                    [operations.get(int(good[at])) for at in places], named
                ),
            )
        )

    def _host(self, plane: Plane) -> None:
        host = self.seen.host
        host.has_backward = host.has_backward or any(map(xla.mentions_backward, plane.stats.values()))
        waits, inputs, graphs = (plane.events_named(pattern) for pattern in (xla.WAIT, xla.INPUT, xla.GRAPH_LAUNCH))
        correlations, numbers = plane.stats_named(_CORRELATION), plane.stats_named(_STEP)
        for events in self._batches(lines_of(self.wire, plane)):
            usable = events.usable
            names = events.name[usable]
            host.add(
                HostEvents(
                    start=events.start[usable],
                    duration=events.duration[usable],
                    correlation=events.integers(correlations, 0)[usable],
                    waits=np.isin(names, waits),
                    input=np.isin(names, inputs),
                    graphs=np.isin(names, graphs),
                )
            )
            number = events.integers(numbers, UNKNOWN)
            chosen = np.flatnonzero(usable & (events.duration > 0) & (number >= 0)).tolist()
            self._steps(None, events, chosen, number[chosen].tolist())

    def _steps(self, device: int | None, events: Events, chosen: list[int], numbers: list[int]) -> None:
        for place, number in zip(chosen, numbers, strict=True):
            start = int(events.start[place])
            self.seen.steps.append(MarkedStep(device, number, start, start + int(events.duration[place])))
        if len(self.seen.steps) > self.source.limits.rows:
            raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": self.source.limits.rows})


def _is_telling(event: str) -> bool:
    """True for the events of the host that mean something here; most are functions of Python."""
    return any(pattern.search(event) for pattern in (xla.WAIT, xla.INPUT, xla.GRAPH_LAUNCH))


def _is_wanted(stat: str) -> bool:
    return stat in (_CORRELATION, _STEP) or xla.mentions_backward(stat)


def _refuse_without_gpu_work(seen: Profile, *, converted: bool) -> None:
    if seen.device.rows:
        return
    if seen.has_tpu:
        raise Refusal(RefusalCode.TPU_PROFILE)
    if converted:
        raise Refusal(RefusalCode.BINARY_AS_TEXT)
    if seen.cut:
        raise Refusal(RefusalCode.FILE_TRUNCATED)
    raise Refusal(RefusalCode.NO_STREAM_ROWS)


def _capture(seen: Profile, source: Source) -> Capture:
    notes = [*source.notes, *(Note(code, {"count": count}) for code, count in seen.counts.items() if count)]
    if seen.cut:
        notes.append(Note(NoteCode.FILE_TRUNCATED, {"events": seen.device.rows}))
    notes += xla.warning_notes(seen.warnings)
    notes += xla.graph_notes(seen.host.graph_launches, int((seen.device.column("kind") == WorkKind.GRAPH).sum()))
    start = seen.device.column("start")
    launched = seen.host.launched(seen.device.column("correlation"))
    around = Around(
        source=source.name,
        host=seen.host.side(),
        steps=step_spans(seen.steps, start, launched),
        device_names=seen.device_names,
        vendor=seen.vendor,
        epoch_ns=_epoch(seen, int(start.min())),
        incomplete=seen.cut or xla.drops_events(seen.warnings),
    )
    line, told = assemble(seen.device, launched, around)
    return Capture(format=Format.XPLANE, timelines=(line,), notes=(*notes, *told))


def _epoch(seen: Profile, first_ns: int) -> int | None:
    """Times count from the start of the profile; where they do not, they are Unix times themselves."""
    if seen.started_unix_ns is None:
        return None
    return 0 if first_ns > seen.started_unix_ns // 2 else seen.started_unix_ns
