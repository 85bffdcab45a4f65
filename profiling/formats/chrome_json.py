"""Chrome trace JSON as a stream: batches of typed events in constant memory, whatever the size of the file.

The text is cut at what looks like the border between two events and the piece decoded as an array of its own. A
piece starts at an event, so one that decodes was cut rightly; one that does not is cut earlier, and at last mended.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec

from profiling.formats.json_repair import repaired
from profiling.formats.limits import Limits
from profiling.notes import NoteCode, Refusal, RefusalCode

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BORDER = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|args|dur|id|bp|s)"\s*:)')
_ANY_BORDER = re.compile(rb"\}\s*,\s*(?=\{)")
_POSITION = re.compile(r"\(byte (\d+)\)")
_WINDOW = 1 << 16
_NEAR_THEN_FAR = (0, 1, 2, 3, 6, 12, 24, 48, 96, 192)
_BROKEN_SHARE = 0.1


class Event(msgspec.Struct, gc=False):
    """The fields that any reader of these traces needs; arguments stay raw until asked for."""

    ph: Any = None
    cat: str | None = None
    name: str | int | float | None = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    args: msgspec.Raw = msgspec.Raw()


_events = msgspec.json.Decoder(list[Event])
_exact = msgspec.json.Decoder(list[Event], float_hook=Decimal)
_one = msgspec.json.Decoder(Event)


@dataclass(frozen=True, slots=True)
class Batch:
    """Neighbouring events of a file, and their text."""

    events: list[Event]
    text: bytes

    def with_decimals(self) -> list[Event]:
        """The same events with numbers as written, for times that a float cannot hold."""
        return _exact.decode(self.text)


@dataclass(slots=True)
class EventStream:
    """Reads one document. ``metadata`` and ``repairs`` are final once ``batches`` is used up.

    ``complete`` is false where the array of an object form never ends.
    """

    chunks: Iterator[bytes]
    limits: Limits
    metadata: dict[str, Any] = field(default_factory=dict)
    repairs: Counter[NoteCode] = field(default_factory=Counter)
    complete: bool = True
    bare_list: bool = False
    _buffer: bytes = b""
    _events: int = 0

    def batches(self) -> Iterator[Batch]:
        self._open()
        ended = False
        for chunk in self.chunks:
            self._buffer += chunk
            batch, ended = self._cut()
            if batch is not None:
                yield self._counted(batch)
            if ended:
                break
        if not ended:
            yield from self._last()
        self._close()

    def _counted(self, batch: Batch) -> Batch:
        self._events += len(batch.events)
        self.repairs[NoteCode.DUPLICATE_KEYS] += duplicate_keys(batch)
        if self._events > self.limits.events:
            raise Refusal(RefusalCode.TOO_MANY_EVENTS, {"limit": self.limits.events})
        return batch

    # --- before the events ---------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Read up to the first event."""
        self._buffer = next(self.chunks, b"").lstrip()
        while not self._buffer:
            more = next(self.chunks, None)
            if more is None:
                raise Refusal(RefusalCode.EMPTY_AFTER_DECOMPRESSION)
            self._buffer = more.lstrip()
        if self._buffer.startswith(b"["):
            self._open_list()
        else:
            self._open_object()

    def _open_list(self) -> None:
        self.bare_list = True
        self._buffer = self._buffer[1:].lstrip()
        if len(self._buffer) < _WINDOW:
            self._buffer = (self._buffer + next(self.chunks, b"")).lstrip()
        if self._buffer[:1] == b"[":
            refuse_depth(self._buffer, self.limits)
        if self._buffer[:1] not in (b"{", b"]", b""):
            raise Refusal(RefusalCode.NO_TRACE_EVENTS, {"keys": ""})

    def _open_object(self) -> None:
        searched = 0
        while (match := _EVENTS_KEY.search(self._buffer, searched)) is None:
            if not searched:
                refuse_depth(self._buffer, self.limits)
            searched = max(0, len(self._buffer) - 64)
            more = next(self.chunks, None)
            if more is None or len(self._buffer) > self.limits.metadata_bytes:
                raise self._no_events_key(more is None)
            self._buffer += more
        head = self._buffer[: match.start()]
        self._buffer = self._buffer[match.end() :]
        _refuse_second_document(head, allowed=1)
        self._add_metadata(head.rstrip().removesuffix(b",") + b"}")

    def _no_events_key(self, at_end: bool) -> Refusal:
        try:
            document = msgspec.json.decode(self._buffer)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            if at_end:
                return Refusal(RefusalCode.INVALID_JSON, {"detail": str(error)[:120]})
            return Refusal(RefusalCode.NO_TRACE_EVENTS, {"keys": ""})
        if "schema" in document and "nodes" in document:
            return Refusal(RefusalCode.NOT_READ_YET, {"kind": "PyTorch execution trace"})
        if "results" in document and "nccl_version" in document:
            return Refusal(RefusalCode.NOT_READ_YET, {"kind": "nccl-tests output"})
        if isinstance(document.get("traceEvents", []), list):
            return Refusal(RefusalCode.NO_TRACE_EVENTS, {"keys": ", ".join(list(document)[:8])[:80]})
        return Refusal(RefusalCode.NO_TRACE_EVENTS, {"keys": "traceEvents (not a list)"})

    # --- the events ----------------------------------------------------------------------------------------------

    def _cut(self) -> tuple[Batch | None, bool]:
        """The events that stand complete in the buffer, and whether the array ended; the rest stays."""
        borders = self._borders()
        for border in [borders[at] for at in _NEAR_THEN_FAR if at < len(borders)]:
            text = b"[" + self._buffer[:border] + b"]"
            try:
                events = _events.decode(text)
            except (msgspec.DecodeError, RecursionError) as error:
                end = _array_end(error)
                if end is not None and (batch := self._ended(text, end)) is not None:
                    return batch, True
                if "truncated" in str(error):
                    continue
                return self._mended(borders[0]), False
            self._buffer = self._buffer[border:].lstrip(b", \t\r\n")
            return Batch(events, text), False
        if borders:
            return self._mended(borders[0]), False
        refuse_depth(self._buffer, self.limits)
        if len(self._buffer) > self.limits.event_bytes:
            raise Refusal(RefusalCode.EVENT_TOO_LONG, {"limit": self.limits.event_bytes})
        return None, False

    def _borders(self) -> list[int]:
        """Likely ends of events, the last one first."""
        for low in (max(0, len(self._buffer) - _WINDOW), 0):
            found = [match.start() + 1 for match in _BORDER.finditer(self._buffer, low)]
            if found:
                return found[::-1]
        found = [match.start() + 1 for match in _ANY_BORDER.finditer(self._buffer)]
        return found[::-1]

    def _ended(self, text: bytes, end: int) -> Batch | None:
        """The last batch, when the array closes before byte ``end`` of ``text``."""
        events_text = text[:end].rstrip()
        try:
            events = _events.decode(events_text)
        except (msgspec.DecodeError, RecursionError):
            return None
        self._buffer = self._buffer[end - 1 :]
        return Batch(events, events_text)

    def _last(self) -> Iterator[Batch]:
        """What is left when the file ends and no end of the array was seen yet."""
        text = b"[" + self._buffer
        try:
            events = _events.decode(text)
            self._buffer = b""
            self.complete = self.bare_list
            yield self._counted(Batch(events, text))
            return
        except (msgspec.DecodeError, RecursionError) as error:
            end = _array_end(error)
        if end is not None and (batch := self._ended(text, end)) is not None:
            yield self._counted(batch)
            return
        yield from self._unended()

    def _unended(self) -> Iterator[Batch]:
        """An array without its bracket: legal in the list form, a cut file in the object form; or damaged text."""
        body = self._buffer.rstrip().removesuffix(b",")
        end = _close_of_array(body)
        if end is not None:
            batch = self._pieces(body[:end])
            self._buffer = body[end + 1 :]
        else:
            batch = self._pieces(body, open_end=True)
            self.complete = self.complete and self.bare_list
            self._buffer = b""
        if batch.events:
            yield self._counted(batch)

    # --- damaged text --------------------------------------------------------------------------------------------

    def _mended(self, border: int) -> Batch:
        piece, self._buffer = self._buffer[:border], self._buffer[border:].lstrip(b", \t\r\n")
        return self._pieces(piece)

    def _pieces(self, piece: bytes, *, open_end: bool = False) -> Batch:
        """Events of damaged text: as a whole after repair, else one by one, counting what is lost."""
        _refuse_second_document(piece, allowed=0)
        if not piece.strip():
            return Batch([], b"[]")
        trial: Counter[NoteCode] = Counter()
        text = repaired(b"[" + piece + b"]", trial)
        try:
            events = _events.decode(text)
        except RecursionError:
            refuse_depth(piece, self.limits)
            raise Refusal(RefusalCode.INVALID_JSON, {"detail": "nesting"}) from None
        except msgspec.DecodeError as error:
            return self._one_by_one(text[1:-1], trial, open_end, str(error))
        self.repairs += trial
        return Batch(events, text)

    def _one_by_one(self, text: bytes, trial: Counter[NoteCode], open_end: bool, detail: str) -> Batch:
        parts = _split(text)
        good: list[bytes] = []
        for part in parts:
            try:
                _one.decode(part)
            except (msgspec.DecodeError, RecursionError):
                continue
            good.append(part)
        if open_end and parts and (not good or good[-1] is not parts[-1]):
            self.complete = False
            parts.pop()
        lost = len(parts) - len(good)
        if lost > max(1, _BROKEN_SHARE * len(parts)):
            raise Refusal(RefusalCode.INVALID_JSON, {"detail": detail[:120]})
        self.repairs += trial
        self.repairs[NoteCode.EVENTS_UNREADABLE] += lost
        text = b"[" + b",".join(good) + b"]"
        return Batch(_events.decode(text), text)

    # --- after the events ----------------------------------------------------------------------------------------

    def _close(self) -> None:
        tail = bytearray(self._buffer)
        for chunk in self.chunks:
            if len(tail) < self.limits.metadata_bytes:
                tail += chunk
        self._buffer = b""
        text = bytes(tail).strip(b" \t\r\n\x00")
        if self.bare_list:
            if text.startswith((b"{", b"[")):
                raise Refusal(RefusalCode.TWO_DOCUMENTS)
            return
        self._refuse_second_in_tail(text)
        if text.startswith(b"}") and text[1:].lstrip().startswith((b"{", b"[")):
            raise Refusal(RefusalCode.TWO_DOCUMENTS)
        if not text or text.startswith(b"}"):
            self.complete = self.complete and bool(text)
            return
        self._add_metadata(b"{" + text.removeprefix(b","))

    def _refuse_second_in_tail(self, text: bytes) -> None:
        _refuse_second_document(text, allowed=0, keys=(b"traceEvents",))
        _refuse_second_document(text, allowed=0 if "schemaVersion" in self.metadata else 1)

    def _add_metadata(self, text: bytes) -> None:
        """Top-level keys; unreadable ones are noted, they never cost the events."""
        for mend in (False, True):
            trial: Counter[NoteCode] = Counter()
            try:
                found = msgspec.json.decode(repaired(text, trial) if mend else text)
            except (msgspec.DecodeError, RecursionError, ValueError):
                continue
            self.repairs += trial
            if isinstance(found, dict):
                self.metadata.update(found)
            return
        self.repairs[NoteCode.METADATA_UNREADABLE] += 1


def duplicate_keys(batch: Batch) -> int:
    """Events in which the duration stands twice with different values; the decoder keeps the last."""
    if batch.text.count(b'"dur"') <= len(batch.events) - [event.dur for event in batch.events].count(None):
        return 0
    found = 0

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found += len({str(value) for name, value in pairs if name == "dur"}) > 1

    try:
        json.loads(batch.text.decode("utf-8", errors="replace"), object_pairs_hook=look)
    except (ValueError, RecursionError):
        return 0
    return found


def _array_end(error: Exception) -> int | None:
    """Where the text after the array starts, if the error says that only what follows the array is wrong."""
    match = _POSITION.search(str(error)) if "trailing characters" in str(error) else None
    return int(match[1]) - 1 if match else None


def _close_of_array(body: bytes) -> int | None:
    """Position of the bracket that likely closes the events in damaged text that runs to the end of the file."""
    for match in reversed(list(re.finditer(rb'\}[\s,]*\](?=\s*(?:\}\s*$|,\s*"))', body[-_WINDOW:]))):
        return max(0, len(body) - _WINDOW) + match.end() - 1
    return None


def _split(text: bytes) -> list[bytes]:
    borders = [match.end() for match in _BORDER.finditer(text)]
    starts = [0, *borders]
    ends = [*borders, len(text)]
    return [text[start:end].rstrip().removesuffix(b",") for start, end in zip(starts, ends, strict=True)]


def _refuse_second_document(text: bytes, *, allowed: int, keys: tuple[bytes, ...] = (b"schemaVersion",)) -> None:
    for key in keys:
        if len(re.findall(rb'"' + key + rb'"\s*:', text)) > allowed:
            raise Refusal(RefusalCode.TWO_DOCUMENTS)


def refuse_depth(text: bytes, limits: Limits) -> None:
    """Refuse text that nests deeper than the limit anywhere; strings do not count."""
    depth = 0
    for match in re.finditer(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', text, re.DOTALL):
        mark = match[0]
        if mark in (b"[", b"{"):
            depth += 1
            if depth > limits.depth:
                raise Refusal(RefusalCode.TOO_DEEP, {"limit": limits.depth, "byte": match.start()})
        elif mark in (b"]", b"}"):
            depth -= 1
