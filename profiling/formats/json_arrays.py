"""Arrays of a JSON document by their keys, wherever they stand, in pieces: constant memory, whatever the size.

The text of an array is cut at what looks like the border between two of its objects and decoded there; a piece starts
at an object, so one that decodes was cut rightly.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from profiling.formats.damaged_json import invalid_json, refuse_depth
from profiling.formats.limits import Limits
from profiling.formats.top_level import end_of_document
from profiling.notes import Refusal, RefusalCode

_BORDER = re.compile(rb"\}\s*,\s*(?=\{)")
_CUT = re.compile("truncated|invalid number")
"""What the decoder says of text that ends too early."""
_NEAR_THEN_FAR = (0, 1, 2, 3, 6, 12, 24, 48, 96, 192)
_LOOK_BACK = 1 << 16
_LONGEST_KEY = 256
_SPACE = b" \t\r\n"

Decode = Callable[[bytes], list[Any]]


@dataclass(slots=True)
class ArrayStream:
    """``decoders``: how the text of each wanted array is decoded, by its key.

    ``complete`` is false where the document ends within an array; final once ``pieces`` is used up.
    """

    chunks: Iterator[bytes]
    decoders: Mapping[str, Decode]
    limits: Limits
    complete: bool = True
    _buffer: bytes = b""
    _received: int = 0

    def pieces(self) -> Iterator[tuple[str, list[Any]]]:
        """Neighbouring objects of the wanted arrays, with the key of their array. Raises Refusal for broken JSON."""
        names = b"|".join(re.escape(name.encode()) for name in self.decoders)
        key = re.compile(rb'"(' + names + rb')"\s*:\s*\[')
        while True:
            match = key.search(self._buffer)
            if match is not None:
                self._buffer = self._buffer[match.end() :].lstrip(_SPACE)
                name = match[1].decode()
                for objects in self._objects(self.decoders[name]):
                    yield name, objects
                continue
            self._buffer = self._buffer[-_LONGEST_KEY:]
            if not self._more():
                return

    def _more(self) -> bool:
        chunk = next(self.chunks, b"")
        self._buffer += chunk
        self._received += len(chunk)
        return bool(chunk)

    def _objects(self, decode: Decode) -> Iterator[list[Any]]:
        """Objects of the array in which the buffer starts; leaves the buffer behind it."""
        more = True
        while True:
            objects, ended = self._cut(decode)
            yield objects
            if ended:
                return
            if not more and not objects:
                self._end_early(decode)
                return
            more = more and self._more()

    def _cut(self, decode: Decode) -> tuple[list[Any], bool]:
        """Objects that stand complete in the buffer, and whether the array ended behind them."""
        for end in [*self._borders(), None]:
            text = b"[" + self._buffer if end is None else b"[" + self._buffer[:end] + b"]"
            try:
                objects = decode(text)
            except _FAILURE as error:
                behind = end_of_document(str(error))
                if behind is not None:
                    self._buffer = self._buffer[behind - 1 :]
                    return decode(text[:behind]), True
                if "truncated" in str(error) or (end is None and not isinstance(error, RecursionError)):
                    continue
                raise self._fault(error) from None
            self._buffer = b"" if end is None else self._buffer[end:].lstrip(b"," + _SPACE)
            return objects, end is None
        if len(self._buffer) > self.limits.event_bytes:
            raise Refusal(RefusalCode.EVENT_TOO_LONG, {"limit": self.limits.event_bytes})
        return [], False

    def _end_early(self, decode: Decode) -> None:
        """The document ends within an array. What is left of it must be right as far as it goes."""
        try:
            decode(b"[" + self._buffer)
        except _FAILURE as error:
            if not _CUT.search(str(error)):
                raise self._fault(error) from None
        self.complete = False
        self._buffer = b""

    def _borders(self) -> list[int]:
        """Where an object probably ends and another begins: the last places, and some far before them."""
        near = max(0, len(self._buffer) - _LOOK_BACK)
        ends = [match.start() + 1 for match in _BORDER.finditer(self._buffer, near)][::-1]
        if not ends and near:
            ends = [match.start() + 1 for match in _BORDER.finditer(self._buffer)][::-1]
        return [ends[at] for at in _NEAR_THEN_FAR if at < len(ends)]

    def _fault(self, error: Exception) -> Refusal:
        place = self._received - len(self._buffer)
        if isinstance(error, RecursionError):
            refuse_depth(self._buffer, self.limits, place)
        return invalid_json(str(error), place)


_FAILURE = (msgspec.DecodeError, RecursionError, ValueError)
