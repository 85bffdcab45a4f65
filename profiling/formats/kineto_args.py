"""Arguments of Kineto events, and what they say of a collective."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from profiling.formats.numbers import MOST_BYTES, integer
from profiling.timeline import UNKNOWN
from profiling.workload import CollectiveKind


class CallArgs(msgspec.Struct, gc=False, frozen=True):
    """Arguments of a runtime or driver call. All arguments are optional, none is trusted."""

    correlation: Any = None


class CollectiveArgs(msgspec.Struct, gc=False, frozen=True):
    """What a communication kernel, or the operator that called it, says of the collective."""

    external_id: Any = msgspec.field(name="External id", default=None)
    collective: Any = msgspec.field(name="Collective name", default=None)
    in_elements: Any = msgspec.field(name="In msg nelems", default=None)
    out_elements: Any = msgspec.field(name="Out msg nelems", default=None)
    group_size: Any = msgspec.field(name="Group size", default=None)
    dtype: Any = None
    group_name: Any = msgspec.field(name="Process Group Name", default=None)
    group_id: Any = msgspec.field(name="Process Group ID", default=None)
    comms_id: Any = msgspec.field(name="Comms Id", default=None)
    sequence: Any = msgspec.field(name="Seq", default=None)
    rank: Any = msgspec.field(name="Rank", default=None)


class Args(CollectiveArgs, gc=False, frozen=True):
    """Arguments of device work."""

    device: Any = None
    stream: Any = None
    correlation: Any = None
    bytes: Any = None
    in_device: Any = msgspec.field(name="inDevice", default=None)
    from_device: Any = msgspec.field(name="fromDevice", default=None)
    to_device: Any = msgspec.field(name="toDevice", default=None)
    old_external_id: Any = msgspec.field(name="external id", default=None)
    occupancy: Any = msgspec.field(name="est. achieved occupancy %", default=msgspec.UNSET)


class ProcessArgs(msgspec.Struct, gc=False, frozen=True):
    """Arguments of metadata about processes."""

    labels: Any = None
    name: Any = None


class MemoryArgs(msgspec.Struct, gc=False, frozen=True):
    """Arguments of an allocation."""

    reserved: Any = msgspec.field(name="Total Reserved", default=None)
    device_type: Any = msgspec.field(name="Device Type", default=None)


NO_ARGS = Args()
NO_CALL = CallArgs()
_Kind = TypeVar("_Kind", bound=msgspec.Struct)


def decoded(raw: msgspec.Raw, kind: type[_Kind]) -> _Kind:
    """Arguments of one event; empty where they are no object."""
    try:
        return _decoder(kind).decode(bytes(raw).decode("utf-8", errors="replace"))  # type: ignore[no-any-return]
    except (msgspec.DecodeError, ValueError):
        return kind()


@cache
def _decoder(kind: type[_Kind]) -> msgspec.json.Decoder[_Kind]:
    return msgspec.json.Decoder(kind)


DTYPE_BYTES: Mapping[str, int] = MappingProxyType(
    {
        "float": 4, "int": 4, "long": 8, "double": 8, "half": 2, "bfloat16": 2, "short": 2, "byte": 1, "char": 1,
        "bool": 1, "float32": 4, "float16": 2, "float64": 8, "int32": 4, "int64": 8, "int16": 2, "int8": 1, "uint8": 1,
        "complexhalf": 4, "complexfloat": 8, "complexdouble": 16, "int64_t": 8, "uint16": 2, "uint32": 4, "uint64": 8,
        "float4_e2m1fn_x2": 1,
    }
)  # fmt: skip

_NAME_CHARACTERS = 80
_KINDS: tuple[tuple[str, CollectiveKind], ...] = (
    ("allreduce", CollectiveKind.ALL_REDUCE),
    ("allgather", CollectiveKind.ALL_GATHER),
    ("reducescatter", CollectiveKind.REDUCE_SCATTER),
    ("alltoall", CollectiveKind.ALL_TO_ALL),
    ("broadcast", CollectiveKind.BROADCAST),
    ("send", CollectiveKind.SEND_RECV),
    ("recv", CollectiveKind.SEND_RECV),
)


def kind_of(collective: Any) -> CollectiveKind | None:
    """Collective by the framework's name for it (``_allgather_base``, ``all_to_allv`` ...)."""
    if not isinstance(collective, str):
        return None
    plain = collective.lower().replace("_", "")
    return next((kind for word, kind in _KINDS if word in plain), None)


def element_bytes(dtype: Any) -> int | None:
    if not isinstance(dtype, str):
        return None
    name = dtype.lower()
    return 1 if name.startswith("float8") else DTYPE_BYTES.get(name)


def message_bytes(in_elements: Any, out_elements: Any, dtype: Any, kind: CollectiveKind) -> int:
    """Size of one call as nccl-tests counts it, ``UNKNOWN`` where elements or type are missing.

    The whole buffer: the input of an all-reduce, a reduce-scatter and an all-to-all, the output of an all-gather.
    """
    size = element_bytes(dtype)
    elements = [integer(in_elements), integer(out_elements)]
    if kind is CollectiveKind.ALL_GATHER:
        elements.reverse()
    elif kind in (CollectiveKind.BROADCAST, CollectiveKind.SEND_RECV, CollectiveKind.UNKNOWN):
        elements = [max((count for count in elements if count is not None), default=None)]
    if size is None or elements[0] is None or elements[0] * size > MOST_BYTES:
        return UNKNOWN
    return elements[0] * size


def communicator_of(args: CollectiveArgs) -> str | None:
    """The process group that a collective runs in: its name, before 2024 its number."""
    named = next((one for one in (args.group_name, args.group_id, args.comms_id) if one not in (None, "")), None)
    return str(named)[:_NAME_CHARACTERS] if isinstance(named, str | int) else None
