"""What the profiler of XLA and TensorFlow calls things: planes, rows, copies, graphs, steps, waits."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from profiling.formats.columns import CollectiveColumns, kind_column
from profiling.formats.kineto_args import kind_of
from profiling.formats.numbers import MOST_BYTES, integer
from profiling.notes import Note, NoteCode, shown
from profiling.timeline import AMD, NVIDIA, UNKNOWN, WorkKind
from profiling.workload import CollectiveKind

GPU_PLANE = re.compile(r"/device:GPU:([0-9]{1,6})\b\s*(.{0,120})", re.DOTALL)
TPU_PLANE = re.compile(r"/device:TPU:")
HOST_PLANE = re.compile(r"/host:CPU\b")
STREAM = re.compile(r"Stream #")
"""Only rows of streams are device work; rows of modules, operations, scopes and steps repeat the same time."""
STEPS = "Steps"
WAIT = re.compile(r"synchronize|block_?(?:host_?)?until_?(?:ready|done)", re.IGNORECASE)
INPUT = re.compile(r"IteratorGetNext\w*::DoCompute|infeed|(?:dataloader|data_loader|input_pipeline)\.py:\d+ __next__")
GRAPH_LAUNCH = re.compile(r"graph_?launch", re.IGNORECASE)
_BACKWARD = ("transpose(jvp", "gradient_tape/")
"""Automatic differentiation leaves these in the names of operations of JAX and of TensorFlow."""
_VENDORS: Mapping[str, str] = {"nvidia": NVIDIA, "amd": AMD}
_SIZE = re.compile(r"\bsize:([0-9]{1,19})\b")
_NUMBER = re.compile(r"([0-9]{1,18})\s*$")
_PROCESS = re.compile(r"\(?pid\b")


def work_kind(name: str) -> WorkKind:
    """Kind of a row of a stream; copies that run as kernels are told apart by the table of kernel families."""
    if name.startswith("Memcpy"):
        return WorkKind.PEER_COPY if "P2P" in name else WorkKind.COPY
    if name.startswith("Memset"):
        return WorkKind.FILL
    return WorkKind.GRAPH if name.startswith("CudaGraph") else WorkKind.KERNEL


def copied_bytes(details: object) -> int:
    """Size by the details of a copy, ``UNKNOWN`` where there is none; a size of 0 is one that was not recorded."""
    match = _SIZE.search(details[:256]) if isinstance(details, str) else None
    return (integer(match[1], low=1, high=MOST_BYTES) if match else None) or UNKNOWN


def collective_of(operation: object) -> CollectiveKind | None:
    """Collective by the XLA operation that a kernel carries out (``all-reduce-start.3``)."""
    if not isinstance(operation, str):
        return None
    plain = operation[:256].replace("-", "_")
    return CollectiveKind.SEND_RECV if "collective_permute" in plain else kind_of(plain)


def collectives(operations: Sequence[object], named: Sequence[CollectiveKind | None]) -> CollectiveColumns:
    """Kind of each communication kernel by its operation, else by its name; sizes are not recorded."""
    unknown = np.full(len(named), UNKNOWN, dtype=np.int64)
    kinds = [collective_of(operation) or by_name for operation, by_name in zip(operations, named, strict=True)]
    return CollectiveColumns(kind=kind_column(kinds), message=unknown, group=unknown)


def mentions_backward(text: str | bytes) -> bool:
    """True where an operation of a backward pass is named."""
    return any(word in text if isinstance(text, str) else word.encode() in text for word in _BACKWARD)


def vendor(fact: object) -> str | None:
    """The vendor of a GPU as written elsewhere (``NVIDIA``, ``AMD``)."""
    return _VENDORS.get(fact.lower(), fact[:40]) if isinstance(fact, str) and fact else None


def warning_notes(texts: Sequence[str]) -> list[Note]:
    """What the profiler itself reports."""
    notes = [Note(NoteCode.PROFILER_WARNINGS, {"count": len(texts), "first": shown(texts[0])})] if texts else []
    if drops_events(texts):
        notes.append(Note(NoteCode.EVENTS_DROPPED))
    return notes


def graph_notes(launches: int, whole: int) -> list[Note]:
    """What command buffers (CUDA graphs) hide; ``whole``: rows of the device that stand for one each."""
    if whole:
        return [Note(NoteCode.COMMAND_BUFFERS_WHOLE, {"count": whole})]
    return [Note(NoteCode.COMMAND_BUFFERS, {"count": launches})] if launches else []


def drops_events(texts: Sequence[str]) -> bool:
    return any("drop" in text.lower() for text in texts)


def device_name(rest: str) -> str:
    """The model of a GPU, where the name of its plane goes on with it; else empty."""
    name = rest.strip(" ()[],")
    return "" if _PROCESS.match(name) else name


def step_number(name: str, place: int) -> int:
    """The number that a step's name ends with, else its place."""
    match = _NUMBER.search(name)
    return int(match[1]) if match else place
