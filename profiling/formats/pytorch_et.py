"""The reader of PyTorch execution traces (ExecutionTraceObserver): what a rank executes, without times.

Schemas 1.0.1 (inputs as a list) to 1.1.1 (values, shapes and types; attributes of collectives).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from profiling.evidence import SizedCollective
from profiling.formats.capture import Capture, Format
from profiling.formats.detect import BLANK
from profiling.formats.execution_graph import LARGEST_GROUP, GraphSums
from profiling.formats.json_nodes import NodeStream
from profiling.formats.kineto_args import kind_of, message_bytes
from profiling.formats.numbers import MOST_BYTES, integer
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode
from profiling.timeline import UNKNOWN
from profiling.workload import CollectiveKind

KIND = "PyTorch execution trace"
_NODES = re.compile(rb'"nodes"\s*:\s*\[')
_OWN_WORDS = re.compile(rb'"schema"\s*:\s*"[0-9]|"op_schema"|execution_trace\|')
_NODE_START = re.compile(rb'\{\s*"(?:id"\s*:\s*-?[0-9]|name"\s*:\s*"(?:[^"\\]|\\.)*+"\s*,\s*"id"\s*:)')
_ROOT = re.compile(r"\[pytorch\|profiler\|execution_trace\|")
_RANK_IN_NAME = re.compile(r"rank[-_.]?([0-9]{1,6})(?![0-9])", re.IGNORECASE)
_COLLECTIVE = "record_param_comms"
_WHOLE_JOB = "default_pg"
_OTHER_COLLECTIVES = ("reduce", "gather", "scatter")


def recognises(head: Head) -> bool:
    """True for an object with a list of nodes and the words of this tool."""
    text = head.data.lstrip(BLANK)
    return text[:1] == b"{" and _NODES.search(text) is not None and _OWN_WORDS.search(text) is not None


def read(source: Source) -> Capture:
    """Collectives and products of the graph. Raises Refusal."""
    stream = NodeStream(source.chunks(), _NODE_START, _Node, source.limits)
    graph, nodes = GraphSums(source.limits), 0
    for batch in stream.nodes():
        nodes += len(batch)
        for node in batch:
            _add(graph, node)
    cut = source.unpacked.truncated or source.unpacked.damaged or not stream.complete
    if not nodes:
        raise Refusal(RefusalCode.FILE_TRUNCATED) if cut else Refusal(RefusalCode.NO_ROWS, {"kind": KIND})
    if graph.rank is None and (match := _RANK_IN_NAME.search(source.name)):
        graph.rank = int(match[1])
    return Capture(
        format=Format.PYTORCH_ET,
        evidence=(graph.evidence(),),
        notes=(*source.notes, *graph_notes(stream, nodes, cut=cut)),
    )


def graph_notes(stream: NodeStream, nodes: int, *, cut: bool) -> list[Note]:
    """What is to be told of any graph read from JSON."""
    notes = [Note(NoteCode.NO_TIMES)]
    notes += [Note(code, {"count": count}) for code, count in stream.repairs.items() if count]
    if cut:
        notes.append(Note(NoteCode.FILE_TRUNCATED, {"events": nodes}))
    return notes


class _Node(msgspec.Struct, gc=False):
    name: Any = None
    inputs: Any = None
    input_shapes: Any = None
    outputs: Any = None
    attrs: Any = None


def _add(graph: GraphSums, node: _Node) -> None:
    name = node.name if isinstance(node.name, str) else ""
    if _ROOT.match(name):
        return
    graph.add_operator(name, _shapes(node))
    if name == _COLLECTIVE:
        _add_collective(graph, node)


def _add_collective(graph: GraphSums, node: _Node) -> None:
    """Inputs of old schemas: tensors, sequence number, group, rank, name, splits of both sides, size of the group."""
    attributes, values = _attributes(node), _values(node.inputs)
    place = next((at for at, value in enumerate(values) if _is_collective(value)), None)
    name = attributes.get("collective_name", None if place is None else values[place])
    if not _is_collective(name):
        return
    if place and graph.rank is None:
        graph.rank = integer(values[place - 1], high=LARGEST_GROUP)
    group = integer(attributes.get("pg_size", values[-1] if values else None), low=1, high=LARGEST_GROUP)
    if attributes.get("pg_desc") == _WHOLE_JOB:
        graph.world_size = group
    kind = kind_of(name) or CollectiveKind.UNKNOWN
    size = _size(node, attributes, values, kind)
    graph.add_collective(SizedCollective(kind=kind, message_bytes=size, group_size=group))


def _is_collective(name: Any) -> bool:
    """True for a call that moves data, false for waiting, grouping and setting up."""
    return isinstance(name, str) and (
        kind_of(name) is not None or name.lower().strip("_").startswith(_OTHER_COLLECTIVES)
    )


def _size(node: _Node, attributes: Mapping[str, Any], values: Sequence[Any], kind: CollectiveKind) -> int | None:
    """Bytes of one call as nccl-tests counts them: by the attributes, else by the tensors that go in and out."""
    size = message_bytes(
        attributes.get("in_msg_nelems"), attributes.get("out_msg_nelems"), attributes.get("dtype"), kind
    )
    if size == UNKNOWN:
        size = message_bytes(_bytes(values), _bytes(_values(node.outputs)), "byte", kind)
    return None if size == UNKNOWN else size


def _bytes(values: Sequence[Any]) -> int | None:
    """Bytes of all tensors among the values, None where there is none; a list of tensors may be one value."""
    flat = [one for value in values if isinstance(value, list) for one in ([value] if _is_tensor(value) else value)]
    sizes = [tensor[3] * tensor[4] for tensor in flat if _is_tensor(tensor)]
    return sum(sizes) if sizes and 0 <= sum(sizes) <= MOST_BYTES else None


def _is_tensor(value: Any) -> bool:
    """``[tensor id, storage id, offset, elements, bytes of one, device]``."""
    return (
        isinstance(value, list)
        and len(value) == 6
        and isinstance(value[5], str)
        and integer(value[3]) is not None
        and integer(value[4], high=64) is not None
        and all(type(one) is int for one in value[:5])
    )


def _values(side: Any) -> list[Any]:
    values = side.get("values") if isinstance(side, dict) else side
    return values if isinstance(values, list) else []


def _shapes(node: _Node) -> list[Any]:
    shapes = node.inputs.get("shapes") if isinstance(node.inputs, dict) else node.input_shapes
    return shapes if isinstance(shapes, list) else []


def _attributes(node: _Node) -> dict[str, Any]:
    listed = node.attrs if isinstance(node.attrs, list) else ()
    return {
        one["name"]: one.get("value") for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str)
    }
