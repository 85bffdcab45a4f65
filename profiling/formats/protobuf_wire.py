"""The wire format of protocol buffers without a schema: numbered fields of messages that strangers wrote.

Nothing recurses and nothing is read before it is asked for, so that neither depth nor the length that a field claims
costs anything. Raises only Refusal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from profiling.formats.limits import Limits
from profiling.notes import Refusal, RefusalCode

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_LONGEST_VARINT = 10
_BLOCK = 1 << 20
_PADDING = bytes(16)
_FIELDS = 256
"""No small message of a profiler has more; the columns of a batch are as many as its longest message has fields."""
_STOPS = np.uint64(0x8080808080808080)


class Span(NamedTuple):
    """Where the payload of a field stands in the file, ``[start, end)``."""

    start: int
    end: int


def damaged() -> Refusal:
    return Refusal(RefusalCode.PROTOBUF_DAMAGED)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = shift = 0
    for place in range(at, at + _LONGEST_VARINT):
        if place >= len(data):
            break
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, place + 1
        shift += 7
    raise damaged()


def signed(value: int) -> int:
    """An int64 of what a varint holds."""
    return value - (1 << 64) if value >> 63 else value


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field: an integer, or the bytes of text, of a message, of a fixed number."""
    at, end = 0, len(message)
    while at < end:
        tag, at = varint(message, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = varint(message, at)
            yield tag >> 3, value
            continue
        length, at = varint(message, at) if kind == BYTES else (_FIXED.get(kind, end + 1), at)
        if length > end - at:
            raise damaged()
        yield tag >> 3, message[at : at + length]
        at += length


@dataclass(slots=True)
class WireFile:
    """An open file of which only the parts that are asked for are read."""

    file: BinaryIO
    size: int
    limits: Limits
    _base: int = 0
    _block: bytes = b""

    def fields(self, start: int, end: int) -> Iterator[tuple[int, int | Span]]:
        """Fields of the message in ``[start, end)``, none of them read; a payload may claim to reach beyond it."""
        at = start
        while at < end:
            tag, at = self._varint(at)
            kind = tag & 7
            if kind == VARINT:
                value, at = self._varint(at)
                yield tag >> 3, value
                continue
            length, at = self._varint(at) if kind == BYTES else (_FIXED.get(kind), at)
            if length is None:
                raise damaged()
            yield tag >> 3, Span(at, at + length)
            at += length

    def inside(self, start: int, end: int) -> Iterator[tuple[int, int | Span]]:
        """The same; raises Refusal where a payload reaches beyond its message."""
        for number, value in self.fields(start, end):
            if isinstance(value, Span) and value.end > end:
                raise damaged()
            yield number, value

    def payload(self, span: Span) -> bytes:
        """The bytes of a payload. Raises Refusal where it is longer than an event may be, or cut."""
        length = span.end - span.start
        if length > self.limits.event_bytes:
            raise Refusal(RefusalCode.EVENT_TOO_LONG, {"limit": self.limits.event_bytes})
        if not self._base <= span.start <= span.end <= self._base + len(self._block):
            self._load(span.start, max(length, min(_BLOCK >> 4, self.size - span.start)))
        data = self._block[span.start - self._base : span.end - self._base]
        if len(data) < length:
            raise damaged()
        return data

    def repeated(self, number: int, start: int, end: int) -> Iterator[list[bytes]]:
        """Payloads of all fields with this number in ``[start, end)``, in lists of about 1 MiB; others are skipped."""
        wanted = number << 3 | BYTES
        at = start
        while at < end:
            block = self._read(at, min(_BLOCK, end - at))
            found, used = _split(block, wanted, end - at)
            if not used:
                found, used = _split(self._read(at, min(self.limits.event_bytes, end - at)), wanted, end - at)
            if not used:
                raise Refusal(RefusalCode.EVENT_TOO_LONG, {"limit": self.limits.event_bytes})
            at += used
            yield found

    def _varint(self, at: int) -> tuple[int, int]:
        if not self._base <= at <= self._base + len(self._block) - _LONGEST_VARINT:
            self._load(at, _BLOCK >> 4)
        value, end = varint(self._block, at - self._base)
        return value, end + self._base

    def _load(self, at: int, length: int) -> None:
        self._base, self._block = at, self._read(at, length)

    def _read(self, at: int, length: int) -> bytes:
        self.file.seek(at)
        return self.file.read(length)


def _split(block: bytes, wanted: int, rest: int) -> tuple[list[bytes], int]:
    """The wanted payloads that stand whole in the block, and how many bytes the fields before the next one take up.

    ``rest``: bytes of the message from the start of the block.
    """
    found: list[bytes] = []
    at, whole = 0, len(block)
    last = whole if whole == rest else whole - 2 * _LONGEST_VARINT
    while at < last:
        if block[at] == wanted and at + 1 < whole and block[at + 1] < 0x80:
            tag, place = wanted, at + 2
            end = place + block[at + 1]
        else:
            tag, place, end = _field_at(block, at)
        if end > rest:
            raise damaged()
        if tag == wanted:
            if end > whole:
                break
            found.append(block[place:end])
        at = end
    return found, at


def _field_at(block: bytes, at: int) -> tuple[int, int, int]:
    """Tag of a field, and where its payload starts and ends."""
    tag, place = varint(block, at)
    kind = tag & 7
    if kind in (VARINT, BYTES):
        value, place = varint(block, place)
        return tag, place, place + value if kind == BYTES else place
    if kind not in _FIXED:
        raise damaged()
    return tag, place, place + _FIXED[kind]


@dataclass(frozen=True, slots=True)
class Messages:
    """Many small messages in one block: message ``i`` is ``data[start[i]:end[i]]``; ``data`` is padded."""

    data: NDArray[np.uint8]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    @staticmethod
    def of(payloads: Sequence[bytes]) -> "Messages":
        end = np.cumsum([len(payload) for payload in payloads], dtype=np.int64)
        data = np.frombuffer(b"".join((*payloads, _PADDING)), dtype=np.uint8)
        return Messages(data, np.concatenate(([0], end[:-1])), end)

    def bytes_at(self, start: int, end: int) -> bytes:
        return self.data[start:end].tobytes()


class FieldColumn(NamedTuple):
    """The next field of each message that has one; columns of one length.

    ``which``: place of the message. ``value``: the integer where ``kind`` is ``VARINT``, else where the payload starts;
    ``end``: where the field ends.
    """

    which: NDArray[np.int64]
    number: NDArray[np.uint64]
    kind: NDArray[np.uint64]
    value: NDArray[np.uint64]
    end: NDArray[np.int64]


def field_columns(messages: Messages) -> Iterator[FieldColumn]:
    """First fields of all messages, then second ones, and so on: a batch costs as much as its longest message."""
    data = messages.data
    which = np.flatnonzero(messages.start < messages.end)
    at, end = messages.start[which], messages.end[which]
    for _ in range(_FIELDS):
        if not which.size:
            return
        tag, at = varints(data, at)
        kind = tag & np.uint64(7)
        value, after = varints(data, np.minimum(at, end))
        is_bytes, is_number = kind == BYTES, kind == VARINT
        if not (is_bytes | is_number).all():
            after = np.where(is_bytes | is_number, after, at + np.where(kind == FIXED64, 8, 4))
            if not np.isin(kind, (VARINT, FIXED64, BYTES, FIXED32)).all():
                raise damaged()
            value = np.where(is_bytes | is_number, value, at.astype(np.uint64))
        if (is_bytes & (value > data.size)).any():
            raise damaged()
        start = np.where(is_bytes, after, value.view(np.int64))
        after = np.where(is_bytes, after + value.view(np.int64), after)
        if (after > end).any():
            raise damaged()
        yield FieldColumn(which, tag >> np.uint64(3), kind, start.view(np.uint64), after)
        more = after < end
        which, at, end = which[more], after[more], end[more]
    raise Refusal(RefusalCode.EVENT_TOO_LONG, {"limit": _FIELDS})


def varints(data: NDArray[np.uint8], at: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Numbers that start at the given places of padded data, and where they end."""
    first = data[at]
    if first.size == 0 or first.max() < 0x80:
        return first.astype(np.uint64), at + 1
    word = np.ndarray((data.size - 7,), dtype="<u8", buffer=data, strides=(1,))[at]
    stop = ~word & _STOPS
    lowest = stop & (~stop + np.uint64(1))
    used = lowest | (lowest - np.uint64(1))
    value = _seven_bits(word & used)
    length = np.bitwise_count(used).astype(np.int64) >> 3
    long = np.flatnonzero(stop == 0)
    for place in long.tolist():
        start = int(at[place])
        value[place], end = varint(data[start : start + _LONGEST_VARINT].tobytes(), 0)
        length[place] = end
    return value, at + length


def _seven_bits(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The low seven bits of eight bytes, side by side."""
    for mask, shift in ((0x7F007F007F007F00, 1), (0x3FFF00003FFF0000, 2), (0x0FFFFFFF00000000, 4)):
        high = np.uint64(mask)
        low = high >> np.uint64(8 * shift)
        word = (word & low) | ((word & high) >> np.uint64(shift))
    return word
