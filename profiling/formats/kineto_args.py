"""Arguments of Kineto events, and what they say of a collective."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from profiling.formats.numbers import MOST_BYTES, integer
from profiling.timeline import UNKNOWN
from profiling.workload import CollectiveKind


class Args(msgspec.Struct, gc=False):
    """Every argument that is read, in today's spelling; all optional, none trusted."""

    device: Any = None
    stream: Any = None
    correlation: Any = None
    bytes: Any = None
    in_device: Any = msgspec.field(name="inDevice", default=None)
    from_device: Any = msgspec.field(name="fromDevice", default=None)
    to_device: Any = msgspec.field(name="toDevice", default=None)
    collective: Any = msgspec.field(name="Collective name", default=None)
    in_elements: Any = msgspec.field(name="In msg nelems", default=None)
    out_elements: Any = msgspec.field(name="Out msg nelems", default=None)
    group_size: Any = msgspec.field(name="Group size", default=None)
    dtype: Any = None
    rank: Any = msgspec.field(name="Rank", default=None)
    labels: Any = None
    name: Any = None
    reserved: Any = msgspec.field(name="Total Reserved", default=None)
    device_type: Any = msgspec.field(name="Device Type", default=None)


_many = msgspec.json.Decoder(list[Args])
_one = msgspec.json.Decoder(Args)
NOTHING = Args()


def decoded(raw: Sequence[msgspec.Raw]) -> list[Args]:
    """Arguments of several events at once; those that are no object are empty."""
    try:
        return _many.decode(b"[" + b",".join([bytes(one) or b"{}" for one in raw]) + b"]")
    except (msgspec.DecodeError, ValueError):
        return [_single(bytes(one)) for one in raw]


def _single(raw: bytes) -> Args:
    try:
        return _one.decode(raw.decode("utf-8", errors="replace"))
    except (msgspec.DecodeError, ValueError):
        return NOTHING


DTYPE_BYTES: Mapping[str, int] = MappingProxyType(
    {
        "float": 4, "int": 4, "long": 8, "double": 8, "half": 2, "bfloat16": 2, "short": 2, "byte": 1, "char": 1,
        "bool": 1, "float32": 4, "float16": 2, "float64": 8, "int32": 4, "int64": 8, "int16": 2, "int8": 1, "uint8": 1,
        "complexfloat": 8, "complexdouble": 16, "int64_t": 8,
    }
)  # fmt: skip

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


def message_bytes(args: Args, kind: CollectiveKind) -> int:
    """Size of one call as nccl-tests counts it, ``UNKNOWN`` where elements or type are missing.

    The whole buffer: the input of an all-reduce, a reduce-scatter and an all-to-all, the output of an all-gather.
    """
    size = element_bytes(args.dtype)
    elements = [integer(args.in_elements), integer(args.out_elements)]
    if kind is CollectiveKind.ALL_GATHER:
        elements.reverse()
    elif kind in (CollectiveKind.BROADCAST, CollectiveKind.SEND_RECV, CollectiveKind.UNKNOWN):
        elements = [max((count for count in elements if count is not None), default=None)]
    if size is None or elements[0] is None or elements[0] * size > MOST_BYTES:
        return UNKNOWN
    return elements[0] * size
