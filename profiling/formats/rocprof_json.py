"""The reader of rocprofv3's results as JSON: agents and names first, then the records of what ran.

The command line, the configuration and the machine's name stand in ``metadata``, which is passed over unread.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from profiling.formats.capture import Capture, Format
from profiling.formats.json_arrays import ArrayStream, Decode
from profiling.formats.numbers import MOST_BYTES, integer, integers
from profiling.formats.rocm import Agent, Agents, RocmCollector, Work
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode
from profiling.timeline import UNKNOWN, WorkKind

_GPU = 2
_ROOT = b'"rocprofiler-sdk-tool"'


class _Handle(msgspec.Struct):
    handle: Any = None


class _Correlation(msgspec.Struct):
    internal: Any = None


class _Agent(msgspec.Struct):
    id: _Handle | None = None
    type: Any = None
    node_id: Any = None
    product_name: Any = None
    name: Any = None


class _Symbol(msgspec.Struct):
    kernel_id: Any = None
    formatted_kernel_name: Any = None
    kernel_name: Any = None


class _Operations(msgspec.Struct):
    """Names of the operations of one kind of record; the place in the list is the kind's number."""

    operations: Any = None


class _Message(msgspec.Struct):
    key: Any = None
    value: Any = None
    operation: Any = None
    correlation_id: _Correlation | None = None
    start_timestamp: Any = None
    end_timestamp: Any = None


class _Dispatched(msgspec.Struct):
    agent_id: _Handle | None = None
    queue_id: _Handle | None = None
    kernel_id: Any = None


class _Record(msgspec.Struct):
    """A dispatch, a copy or a call."""

    kind: Any = None
    operation: Any = None
    correlation_id: _Correlation | None = None
    start_timestamp: Any = None
    end_timestamp: Any = None
    dispatch_info: _Dispatched | None = None
    stream_id: _Handle | None = None
    src_agent_id: _Handle | None = None
    dst_agent_id: _Handle | None = None
    bytes: Any = None


def _decoder(kind: Any) -> Decode:
    return msgspec.json.Decoder(list[kind]).decode


_DECODERS: dict[str, Decode] = {
    "agents": _decoder(_Agent),
    "kernel_symbols": _decoder(_Symbol),
    "buffer_records": _decoder(_Operations),
    "kernel_dispatch": _decoder(_Record),
    "memory_copy": _decoder(_Record),
    "hip_api": _decoder(_Record),
    "marker_api": _decoder(_Message),
}


def recognises(head: Head) -> bool:
    return head.data.lstrip(b" \t\r\n").startswith(b"{") and _ROOT in head.data[:4096]


def read(source: Source) -> Capture:
    """One Timeline of the dispatches and copies, in memory bounded by them. Raises Refusal."""
    results = _Results(RocmCollector(source.limits))
    stream = ArrayStream(source.chunks(), _DECODERS, source.limits)
    for name, objects in stream.pieces():
        if objects:
            results.take(name, objects)
    cut = not stream.complete or source.unpacked.truncated or source.unpacked.damaged
    rows = results.seen.device.rows
    if not rows and cut:
        raise Refusal(RefusalCode.FILE_TRUNCATED)
    notes = list(source.notes)
    if cut:
        notes.append(Note(NoteCode.FILE_TRUNCATED, {"events": rows}))
    line, told = results.seen.timeline(source.name, notes)
    return Capture(format=Format.ROCPROF_V3_JSON, timelines=(line,), notes=told)


@dataclass(slots=True)
class _Results:
    """What was read so far: names by number, as they stand before the records that use them."""

    seen: RocmCollector
    agents: list[Agent] = field(default_factory=list)
    symbols: dict[Any, str] = field(default_factory=dict)
    operations: list[list[str]] = field(default_factory=list)
    messages: dict[Any, str] = field(default_factory=dict)

    def take(self, name: str, objects: Sequence[Any]) -> None:
        if name == "agents":
            self._agents(objects)
        elif name == "kernel_symbols":
            self._symbols(objects)
        elif name == "buffer_records":
            self._operations(objects)
        elif name == "kernel_dispatch":
            self._dispatches(objects)
        elif name == "memory_copy":
            self._copies(objects)
        elif name == "hip_api":
            self._calls(objects)
        else:
            self._markers(objects)

    @property
    def _most(self) -> int:
        return self.seen.limits.rows

    def _text(self, *values: Any) -> str:
        found = next((value for value in values if isinstance(value, str) and value), "")
        return found[: self.seen.limits.name_characters]

    def _agents(self, objects: Sequence[_Agent]) -> None:
        for one in objects:
            if len(self.agents) < self.seen.limits.devices and one.id is not None:
                place, kind = integer(one.node_id) or 0, integer(one.type)
                name = self._text(one.product_name, one.name)
                key = integer(one.id.handle)
                self.agents.append(Agent(keys=(key,), place=place, is_gpu=kind == _GPU, name=name))
        self.seen.agents = Agents.of(self.agents)

    def _symbols(self, objects: Sequence[_Symbol]) -> None:
        self.symbols.update(
            (integer(one.kernel_id), self._text(one.formatted_kernel_name, one.kernel_name)) for one in objects
        )
        _refuse_many(self.symbols, self._most)

    def _operations(self, objects: Sequence[_Operations]) -> None:
        for one in objects:
            listed = one.operations if isinstance(one.operations, list) else []
            self.operations.append([self._text(name) for name in listed])
        _refuse_many(self.operations, self._most)

    def _operation(self, record: _Record) -> str:
        """The name of what a record did, empty where the file does not tell."""
        kind, operation = integer(record.kind), integer(record.operation)
        if kind is None or operation is None or kind >= len(self.operations):
            return ""
        names = self.operations[kind]
        return names[operation] if operation < len(names) else ""

    def _dispatches(self, objects: Sequence[_Record]) -> None:
        start, end = _times(objects)
        infos = [one.dispatch_info or _Dispatched() for one in objects]
        kernels = [integer(info.kernel_id) for info in infos]
        self.seen.add(
            Work(
                start=start,
                end=end,
                names=[self.symbols.get(kernel) or f"kernel {kernel}" for kernel in kernels],
                kinds=[WorkKind.KERNEL] * len(objects),
                devices=[_handle(info.agent_id) for info in infos],
                streams=[
                    f"queue {_handle(info.queue_id)}" if one.stream_id is None else _handle(one.stream_id)
                    for one, info in zip(objects, infos, strict=True)
                ],
                correlation=_correlations(objects),
            )
        )

    def _copies(self, objects: Sequence[_Record]) -> None:
        start, end = _times(objects)
        names = [self._operation(one) for one in objects]
        ends = [[_handle(one.src_agent_id) for one in objects], [_handle(one.dst_agent_id) for one in objects]]
        kinds, devices = self.seen.agents.of_copies(names, *ends)
        self.seen.add(
            Work(
                start=start,
                end=end,
                names=[name or "MEMORY_COPY" for name in names],
                kinds=kinds,
                devices=devices,
                streams=["copies" if one.stream_id is None else _handle(one.stream_id) for one in objects],
                correlation=_correlations(objects),
                bytes=integers([one.bytes for one in objects], UNKNOWN, high=MOST_BYTES),
            )
        )

    def _calls(self, objects: Sequence[_Record]) -> None:
        start, end = _times(objects)
        self.seen.call([self._operation(one) for one in objects], start, end, _correlations(objects))

    def _markers(self, objects: Sequence[_Message]) -> None:
        """Texts of ranges by correlation, and later the ranges, both under the same key."""
        self.messages.update((integer(one.key), self._text(one.value)) for one in objects if one.key is not None)
        _refuse_many(self.messages, self._most)
        ranges = [one for one in objects if one.start_timestamp is not None]
        if ranges:
            start, end = _times(ranges)
            self.seen.mark([self.messages.get(number, "") for number in _correlations(ranges).tolist()], start, end)


def _refuse_many(found: Sequence[Any] | dict[Any, str], most: int) -> None:
    if len(found) > most:
        raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": most})


def _handle(value: _Handle | None) -> int | None:
    return None if value is None else integer(value.handle)


def _times(objects: Iterable[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pairs = [(one.start_timestamp, one.end_timestamp) for one in objects]
    return integers([start for start, _ in pairs], UNKNOWN), integers([end for _, end in pairs], UNKNOWN)


def _correlations(objects: Iterable[Any]) -> NDArray[np.int64]:
    found = [None if one.correlation_id is None else one.correlation_id.internal for one in objects]
    return integers(found, UNKNOWN)
