"""The reader of Chakra execution traces (mlcommons/chakra): records of protobuf, or a graph in JSON.

Field numbers: schema/protobuf/et_def.proto. Nodes have durations at most, and no place on a clock: no timeline.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from profiling.evidence import SizedCollective
from profiling.formats.capture import Capture, Format
from profiling.formats.detect import BLANK
from profiling.formats.execution_graph import LARGEST_GROUP, GraphSums
from profiling.formats.json_nodes import NodeStream
from profiling.formats.kineto_args import kind_of
from profiling.formats.limits import Limits
from profiling.formats.numbers import MOST_BYTES, integer
from profiling.formats.protobuf_wire import fields, varint
from profiling.formats.pytorch_et import graph_notes
from profiling.formats.source import Head, Source
from profiling.kernels import classify
from profiling.notes import Note, NoteCode, Refusal, RefusalCode
from profiling.workload import CollectiveKind

KIND = "Chakra execution trace"
_JSON = re.compile(rb'"workload_graph"\s*:\s*\[')
_JSON_NODE = re.compile(rb'\{\s*"Id"\s*:')
_NODE_START = re.compile(rb"(?:\x08[\x80-\xff]{0,9}[\x00-\x7f])?\x12[\x80-\xff]{0,2}[\x00-\x7f]")
_RANK_IN_NAME = re.compile(r"\.([0-9]{1,6})\.(?:et|json)\b")
_PART = re.compile(r"\(([0-9]+)\)$")
_NAME, _TYPE, _INPUTS, _ATTRIBUTES = 2, 3, 8, 10
_SHAPES = 2
_VERSION, _GLOBAL_ATTRIBUTES = 1, 2
_INTEGER_VALUES, _TEXT_VALUE = (7, 9, 11, 13, 27), 29
_SEND, _RECEIVE, _COLLECTIVE = 5, 6, 7
_LAST_TYPE = 8
_LONGEST_VARINT = 10
_KINDS: Mapping[int, CollectiveKind | None] = {
    0: CollectiveKind.ALL_REDUCE,
    1: CollectiveKind.UNKNOWN,
    2: CollectiveKind.ALL_GATHER,
    3: CollectiveKind.UNKNOWN,
    4: CollectiveKind.UNKNOWN,
    5: CollectiveKind.BROADCAST,
    6: CollectiveKind.ALL_TO_ALL,
    7: CollectiveKind.REDUCE_SCATTER,
    8: CollectiveKind.REDUCE_SCATTER,
    9: None,
}
"""By ``comm_type``; a barrier moves nothing."""


def recognises(head: Head) -> bool:
    """True for the JSON by its key, and for records of which the first is metadata and the second a node."""
    if head.data.lstrip(BLANK)[:1] == b"{":
        return _JSON.search(head.data) is not None
    try:
        length, at = varint(head.data, 0)
        if at + length >= len(head.data) or not _is_metadata(head.data[at : at + length]):
            return False
        _, at = varint(head.data, at + length)
    except Refusal:
        return False
    return _starts_a_node(head.data[at : at + 4096])


def _is_metadata(record: bytes) -> bool:
    return all(
        isinstance(value, bytes) and (number == _VERSION or (number == _GLOBAL_ATTRIBUTES and value[:1] == b"\x0a"))
        for number, value in fields(record)
    )


def _starts_a_node(record: bytes) -> bool:
    """An id, a name in plain text and a type that there is."""
    match = _NODE_START.match(record)
    if match is None:
        return False
    length, at = varint(record, record.index(b"\x12", 0, match.end()) + 1)
    name = record[at : at + length].decode("utf-8", errors="replace")
    tag = record[at + length : at + length + 2]
    return bool(name) and name.isprintable() and len(tag) == 2 and tag[0] == _TYPE << 3 and 0 < tag[1] < _LAST_TYPE


def read(source: Source) -> Capture:
    """Collectives and products of the graph. Raises Refusal."""
    graph = GraphSums(source.limits)
    if match := _RANK_IN_NAME.search(source.name):
        graph.rank = int(match[1])
    in_json = source.head().data.lstrip(BLANK)[:1] == b"{"
    notes = _read_json(graph, source) if in_json else _read_records(graph, source)
    if not graph.operators:
        raise Refusal(RefusalCode.NO_ROWS, {"kind": KIND})
    return Capture(format=Format.CHAKRA_ET, evidence=(graph.evidence(),), notes=(*source.notes, *notes))


class _JsonNode(msgspec.Struct, gc=False):
    name: Any = msgspec.field(name="Name", default=None)
    type: Any = msgspec.field(name="NodeType", default=None)
    is_cpu_op: Any = None
    comm_type: Any = None
    comm_size: Any = None


def _read_json(graph: GraphSums, source: Source) -> list[Note]:
    stream = NodeStream(source.chunks(), _JSON_NODE, _JsonNode, source.limits)
    for nodes in stream.nodes():
        for node in nodes:
            attributes = {"is_cpu_op": node.is_cpu_op, "comm_type": node.comm_type, "comm_size": node.comm_size}
            _add(graph, str(node.name), integer(node.type), [], attributes)
    cut = source.unpacked.truncated or source.unpacked.damaged or not stream.complete
    return graph_notes(stream, graph.operators, cut=cut)


def _read_records(graph: GraphSums, source: Source) -> list[Note]:
    notes = [Note(NoteCode.NO_TIMES)]
    records = _records(source.chunks(), source.limits)
    next(records, None)
    for record in records:
        if record is None:
            notes.append(Note(NoteCode.FILE_TRUNCATED, {"events": graph.operators}))
            break
        _add_record(graph, record)
    return notes


def _records(chunks: Iterator[bytes], limits: Limits) -> Iterator[bytes | None]:
    """Each record, and None at last where the file ends inside one."""
    buffer = b""
    for chunk in chunks:
        buffer, at = buffer + chunk, 0
        while len(buffer) - at >= _LONGEST_VARINT:
            length, start = varint(buffer, at)
            if length > limits.event_bytes:
                raise Refusal(RefusalCode.EVENT_TOO_LONG, {"limit": limits.event_bytes})
            if start + length > len(buffer):
                break
            yield buffer[start : start + length]
            at = start + length
        buffer = buffer[at:]
    at = 0
    while at < len(buffer):
        try:
            length, at = varint(buffer, at)
        except Refusal:
            length = len(buffer)
        yield buffer[at : at + length] if at + length <= len(buffer) else None
        at += length


def _add_record(graph: GraphSums, record: bytes) -> None:
    name, node_type, shapes = "", None, b""
    attributes: dict[str, int | str | None] = {}
    for number, value in fields(record):
        if number == _NAME and isinstance(value, bytes):
            name = value[:1000].decode("utf-8", errors="replace")
        elif number == _TYPE and isinstance(value, int):
            node_type = value
        elif number == _INPUTS and isinstance(value, bytes):
            shapes = next((text for part, text in fields(value) if part == _SHAPES and isinstance(text, bytes)), b"")
        elif number == _ATTRIBUTES and isinstance(value, bytes):
            key, found = _attribute(value)
            attributes[key] = found
    _add(graph, name, node_type, _parsed(shapes), attributes)


def _attribute(message: bytes) -> tuple[str, int | str | None]:
    key, found = "", None
    for number, value in fields(message):
        if number == 1 and isinstance(value, bytes):
            key = value[:100].decode("utf-8", errors="replace")
        elif number in _INTEGER_VALUES and isinstance(value, int):
            found = value
        elif number == _TEXT_VALUE and isinstance(value, bytes):
            found = value[:1000].decode("utf-8", errors="replace")
    return key, found


def _parsed(shapes: bytes) -> list[Any]:
    """Shapes, written as Python does: lists of integers are JSON as well."""
    try:
        parsed = msgspec.json.decode(shapes)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return []
    return parsed if isinstance(parsed, list) else []


def _add(graph: GraphSums, name: str, node_type: int | None, shapes: list[Any], attributes: Mapping[str, Any]) -> None:
    """An operator of the host that launches several kernels stands there in parts: only the first counts."""
    part = _PART.search(name)
    graph.add_operator(_PART.sub("", name) if part and part[1] == "0" else name, shapes)
    if node_type not in (_SEND, _RECEIVE, _COLLECTIVE) or attributes.get("is_cpu_op"):
        return
    kind = CollectiveKind.SEND_RECV if node_type != _COLLECTIVE else _kind(name, attributes.get("comm_type"))
    if kind is None:
        return
    group = integer(attributes.get("pg_size"), low=1, high=LARGEST_GROUP)
    size = integer(attributes.get("comm_size"), low=1, high=MOST_BYTES)
    if kind is CollectiveKind.ALL_GATHER:
        size = size * group if size is not None and group is not None else None
    graph.add_collective(SizedCollective(kind=kind, message_bytes=size, group_size=group))


def _kind(name: str, comm_type: Any) -> CollectiveKind | None:
    """By its type, else by its name; None for what moves nothing."""
    number = integer(comm_type)
    if number is not None:
        return _KINDS.get(number, CollectiveKind.UNKNOWN)
    return classify(name)[1] or kind_of(name) or CollectiveKind.UNKNOWN
