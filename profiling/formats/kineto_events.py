"""Events of Kineto traces, decoded straight to what each role needs.

Categories of all generations since PyTorch 1.8 are folded to lower case and mapped; device or host is decided by
category, never by process id. The decoder knows the usual spellings and learns those that a file adds; a batch that
does not fit is decoded in general terms and converted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import msgspec

from profiling.formats.kineto_args import NO_ARGS, NO_CALL, Args, CallArgs, decoded
from profiling.formats.trace_events import Event, decode_events
from profiling.timeline import WorkKind

_LEARNT = 64
_CATEGORY_CHARACTERS = 64
Name = str | int | float | None


class Role(IntEnum):
    """What an event is good for."""

    IGNORED = 0
    DEVICE = 1
    CALL = 2
    OPERATOR = 3
    ANNOTATION = 4
    INSTANT = 5
    BACKWARD = 6
    METADATA = 7


class Ignored(msgspec.Struct, gc=False, frozen=True):
    pass


class Backward(msgspec.Struct, gc=False, frozen=True):
    pass


class Work(msgspec.Struct, gc=False, frozen=True):
    ph: Any = None
    name: Name = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    args: Args = NO_ARGS


class Call(msgspec.Struct, gc=False, frozen=True):
    ph: Any = None
    name: Name = None
    pid: Any = None
    ts: Any = None
    dur: Any = None
    args: CallArgs = NO_CALL


class Host(msgspec.Struct, gc=False, frozen=True):
    """Operators, annotations and instants; few of them are looked into."""

    ph: Any = None
    name: Name = None
    ts: Any = None
    dur: Any = None
    args: msgspec.Raw = msgspec.Raw()


_STRUCTS: dict[Role, type[msgspec.Struct]] = {
    Role.IGNORED: Ignored,
    Role.DEVICE: Work,
    Role.CALL: Call,
    Role.OPERATOR: Host,
    Role.ANNOTATION: Host,
    Role.INSTANT: Host,
    Role.BACKWARD: Backward,
}
_KINDS: dict[str, WorkKind] = {
    "kernel": WorkKind.KERNEL,
    "gpu_memcpy": WorkKind.COPY,
    "memcpy": WorkKind.COPY,
    "gpu_memset": WorkKind.FILL,
    "memset": WorkKind.FILL,
}
_ROLES: dict[str, Role] = {
    **dict.fromkeys(_KINDS, Role.DEVICE),
    **dict.fromkeys(("cuda_runtime", "cuda_driver", "runtime", "xpu_runtime", "xpu_driver"), Role.CALL),
    "cpu_op": Role.OPERATOR,
    "operator": Role.OPERATOR,
    "user_annotation": Role.ANNOTATION,
    "user": Role.ANNOTATION,
    "cpu_instant_event": Role.INSTANT,
    "fwdbwd": Role.BACKWARD,
    "fwd_bwd_correlation": Role.BACKWARD,
}
_USUAL = (
    *_ROLES, "Kernel", "Memcpy", "Memset", "Runtime", "Operator", "ac2g", "async", "async_cpu_to_gpu", "async_gpu",
    "python_function", "overhead", "Trace", "gpu_user_annotation", "cuda_sync", "cuda_profiler_range",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Category:
    """What events of one category are: their type when decoded, and the kind of work where they are device work."""

    role: Role
    struct: type[msgspec.Struct]
    kind: WorkKind | None


def _category(name: str) -> Category:
    role = _ROLES.get(name.lower(), Role.IGNORED)
    struct = msgspec.defstruct(
        role.name.title(), [], bases=(_STRUCTS[role],), tag_field="cat", tag=name, gc=False, frozen=True
    )
    return Category(role, struct, _KINDS.get(name.lower()))


@dataclass(slots=True)
class KinetoDecoder:
    """Decodes lists of events; ``roles`` and ``kinds`` tell of a type what it is. Raises as ``decode_events`` does."""

    roles: dict[type, Role] = field(default_factory=lambda: {Event: Role.METADATA, Ignored: Role.IGNORED})
    kinds: dict[type, int] = field(default_factory=dict)
    _known: dict[str, Category] = field(default_factory=dict)
    _decode: Callable[[bytes], list[Any]] = field(init=False)

    def __post_init__(self) -> None:
        self._learn(_USUAL)

    def __call__(self, text: bytes) -> list[Any]:
        try:
            return self._decode(text)
        except msgspec.ValidationError:
            events = decode_events(text)
        cats = {event.cat for event in events if event.cat is not None} - self._known.keys()
        self._learn(sorted(cat for cat in cats if len(cat) <= _CATEGORY_CHARACTERS))
        return self._converted(events)

    def _learn(self, cats: Sequence[str]) -> None:
        new = cats[: max(0, len(_USUAL) + _LEARNT - len(self._known))]
        if not new:
            return
        for cat in new:
            category = self._known[cat] = _category(cat)
            self.roles[category.struct] = category.role
            if category.kind is not None:
                self.kinds[category.struct] = int(category.kind)
        union = next(iter(self._known.values())).struct
        for category in self._known.values():
            union |= category.struct  # type: ignore[assignment]
        self._decode = msgspec.json.Decoder(list[union]).decode  # type: ignore[valid-type]

    def _converted(self, events: list[Event]) -> list[Any]:
        return [event if event.cat is None else self._typed(event, event.cat) for event in events]

    def _typed(self, event: Event, cat: str) -> Any:
        category = self._known.get(cat) or self._known.get(cat.lower())
        if category is None or category.role in (Role.IGNORED, Role.BACKWARD):
            return Ignored() if category is None else category.struct()
        if category.role is Role.DEVICE:
            values = (event.ph, event.name, event.pid, event.tid, event.ts, event.dur, decoded(event.args, Args))
        elif category.role is Role.CALL:
            values = (event.ph, event.name, event.pid, event.ts, event.dur, decoded(event.args, CallArgs))
        else:
            values = (event.ph, event.name, event.ts, event.dur, event.args)
        return category.struct(*values)
