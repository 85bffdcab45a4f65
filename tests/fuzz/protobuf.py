"""Messages of protocol buffers damaged field by field, so that what lies around the damage can still be read.

A message is its fields, ``(number, wire type, value)``. A value of bytes may itself be a message: whether it is shows
only in that it can be parsed.
"""

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from tests.profiling.formats.wire import varint

Field = tuple[int, int, int | bytes]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTH = {_FIXED64: 8, _FIXED32: 4}
_NUMBERS = (0, 1, 2, 7, 127, 1 << 20, 1 << 31, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_TEXTS = (
    b"",
    b"\x00",
    b"\xff",
    b"7",
    b"-1",
    b"9" * 400,
    b"/device:GPU:0",
    b"XLA Ops",
    b"nan",
    b"\x08\x01",
    b"\n",
)
_COPIES = (2, 3, 40)
_DEEPEST = 8


def is_message(content: bytes) -> bool:
    """True for binary data that are fields from the first byte to the last."""
    return content[:1] in (b"\n", b"\x12", b"\x22") and bool(parsed(content))


def is_records(content: bytes) -> bool:
    """True for messages one after the other, each behind its length."""
    return bool(records(content))


def damaged_message(draw: Callable[..., int], content: bytes) -> bytes:
    """The message with one of its fields, at any depth, changed, taken away, doubled or moved."""
    fields = parsed(content)
    return _written(_with_damage(draw, fields, 0)) if fields else content


def damaged_records(draw: Callable[..., int], content: bytes) -> bytes:
    """The same for messages behind their lengths."""
    fields: list[Field] = [(0, _BYTES, record) for record in records(content) or ()]
    return b"".join(_length_and(value) for _, _, value in _with_damage(draw, fields, 0) if isinstance(value, bytes))


def parsed(message: bytes) -> list[Field] | None:
    """Fields of a message, None for what is none."""
    found: list[Field] = []
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        kind, number = tag & 7, tag >> 3
        value: int | bytes
        if kind == _VARINT:
            value, at = _read_varint(message, at)
        elif kind == _BYTES or kind in _WIDTH:
            length, at = _read_varint(message, at) if kind == _BYTES else (_WIDTH[kind], at)
            value, at = message[at : at + length], at + length
        else:
            return None
        if at > len(message) or not number:
            return None
        found.append((number, kind, value))
    return found


def records(content: bytes) -> list[bytes] | None:
    """Messages behind their lengths, None where they are not."""
    found = []
    at = 0
    while at < len(content):
        length, at = _read_varint(content, at)
        record = content[at : at + length]
        at += length
        if at > len(content) or parsed(record) is None:
            return None
        found.append(record)
    return found


def _with_damage(draw: Callable[..., int], fields: list[Field], depth: int) -> list[Field]:
    place = draw(st.integers(0, len(fields) - 1))
    number, kind, value = fields[place]
    inner = parsed(value) if isinstance(value, bytes) and depth < _DEEPEST else None
    if inner and draw(st.integers(0, 5)):
        changed: Sequence[Field] = [(number, kind, _written(_with_damage(draw, inner, depth + 1)))]
    else:
        changed = _changed(draw, fields, place)
    return [*fields[:place], *changed, *fields[place + 1 :]]


def _changed(draw: Callable[..., int], fields: list[Field], place: int) -> Sequence[Field]:
    """What stands in the place of one field."""
    number, kind, value = fields[place]
    fault = draw(st.integers(0, 9))
    if fault == 0:
        return []
    if fault == 1:
        return [fields[place]] * _COPIES[draw(st.integers(0, len(_COPIES) - 1))]
    if fault == 2:
        return [(draw(st.integers(1, 40)), kind, value)]
    if fault == 3:
        return [fields[place], fields[draw(st.integers(0, len(fields) - 1))]]
    if fault == 4:
        return [(number, _VARINT, 5) if kind == _BYTES else (number, _BYTES, b"\x08\x05")]
    if isinstance(value, int):
        return [(number, kind, _NUMBERS[draw(st.integers(0, len(_NUMBERS) - 1))])]
    if kind in _WIDTH:
        return [(number, kind, bytes([draw(st.integers(0, 255))]) * _WIDTH[kind])]
    return [(number, kind, _TEXTS[draw(st.integers(0, len(_TEXTS) - 1))])]


def _written(fields: Sequence[Field]) -> bytes:
    return b"".join(
        varint(number << 3 | kind)
        + (varint(value) if isinstance(value, int) else _length_and(value) if kind == _BYTES else value)
        for number, kind, value in fields
    )


def _length_and(value: bytes) -> bytes:
    return varint(len(value)) + value


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends: behind the data where they end before it does."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            return 0, at + 1
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
    return 0, len(data) + 1
