"""Chrome trace JSON as a stream: batches of typed events in constant memory, whatever the size of the file.

The text is cut at what looks like the border between two events and the piece decoded as an array of its own. A
piece starts at an event, so one that decodes was cut rightly; one that does not is cut earlier, and at last mended.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from profiling.formats.damaged_json import (
    Mended,
    close_of_array,
    invalid_json,
    mend,
    refuse_depth,
    refuse_second_document,
)
from profiling.formats.detect import without_events
from profiling.formats.limits import Limits
from profiling.formats.top_level import Keys, end_of_document, read_keys
from profiling.formats.trace_events import Batch, Decoding, DecodingFailure, decode_events, likely_ends
from profiling.notes import NoteCode, Refusal, RefusalCode

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_KEY_LENGTH = 64
_NEAR_THEN_FAR = (0, 1, 2, 3, 6, 12, 24, 48, 96, 192)
_LOOK_AHEAD = 1 << 16
_WAIT = 4 << 20
"""Text in which no border holds may still be one long event; beyond this it is taken for damaged."""
_SPACE = b" \t\r\n"
_PHASE = b'"ph"'
"""A key of every event and of nothing else in these files."""


@dataclass(slots=True)
class EventStream:
    """Reads one document. What is public is final once ``batches`` is used up.

    ``decode`` turns a list of events into objects; ``batch_bytes`` of text are gathered for it. ``metadata``: the
    top-level keys before and after the events. ``complete`` is false where the document ends early; ``events`` counts
    what was read. ``fault``: the first damage by which events are lost.
    """

    chunks: Iterator[bytes]
    limits: Limits
    decode: Decoding = decode_events
    batch_bytes: int = 1 << 18
    metadata: dict[str, Any] = field(default_factory=dict)
    repairs: Counter[NoteCode] = field(default_factory=Counter)
    complete: bool = True
    bare_list: bool = False
    events: int = 0
    fault: Refusal | None = None
    _buffer: bytes = b""
    _received: int = 0

    def batches(self) -> Iterator[Batch]:
        """All events in order of the file. Raises Refusal."""
        self.chunks = self._gathered(self.chunks)
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
            yield self._counted(self._last())
        self._close()

    def _gathered(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for first in chunks:
            parts, size = [first], len(first)
            while size < self.batch_bytes and (more := next(chunks, None)) is not None:
                parts.append(more)
                size += len(more)
            self._received += size
            yield b"".join(parts) if len(parts) > 1 else first

    @property
    def _offset(self) -> int:
        """Where in the document the buffer starts."""
        return self._received - len(self._buffer)

    def _counted(self, batch: Batch) -> Batch:
        self.events += len(batch.events)
        if self.events > self.limits.events:
            raise Refusal(RefusalCode.TOO_MANY_EVENTS, {"limit": self.limits.events})
        return batch

    # --- before the events ---------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Read up to the first event."""
        while not self._buffer:
            more = next(self.chunks, None)
            if more is None:
                raise Refusal(RefusalCode.EMPTY_AFTER_DECOMPRESSION)
            self._buffer = more.lstrip()
        self.bare_list = self._buffer.startswith(b"[")
        if self.bare_list:
            self._open_list()
        else:
            self._open_object()

    def _open_list(self) -> None:
        self._buffer = self._buffer[1:].lstrip()
        while len(self._buffer) < _LOOK_AHEAD and (more := next(self.chunks, None)) is not None:
            self._buffer = (self._buffer + more).lstrip()
            if self._offset > self.limits.blank_bytes:
                raise Refusal(RefusalCode.TOO_MANY_BLANKS, {"limit": self.limits.blank_bytes})
        if self._buffer[:1] == b"[":
            refuse_depth(self._buffer, self.limits, self._offset)
        if self._buffer[:1] not in (b"{", b"]", b""):
            raise Refusal(RefusalCode.NO_TRACE_EVENTS, {"keys": ""})

    def _open_object(self) -> None:
        searched = 0
        while (match := _EVENTS_KEY.search(self._buffer, searched)) is None:
            if searched == 0:
                refuse_depth(self._buffer, self.limits, self._offset)
            searched = max(0, len(self._buffer) - _KEY_LENGTH)
            more = next(self.chunks, None)
            if more is None or len(self._buffer) > self.limits.metadata_bytes:
                refuse_depth(self._buffer, self.limits, self._offset)
                raise without_events(self._buffer, whole=more is None)
            self._buffer += more
        head = self._buffer[: match.start()]
        self._buffer = self._buffer[match.end() :]
        refuse_second_document(head, allowed=1)
        self._add(read_keys(head.rstrip().removesuffix(b",") + b"}", ends_file=False))

    # --- the events ----------------------------------------------------------------------------------------------

    def _cut(self) -> tuple[Batch | None, bool]:
        """The events that stand complete in the buffer, and whether the array ended; the rest stays."""
        ends = likely_ends(self._buffer)
        for end in [ends[at] for at in _NEAR_THEN_FAR if at < len(ends)]:
            text = b"".join((b"[", memoryview(self._buffer)[:end], b"]"))
            try:
                events = self.decode(text)
            except DecodingFailure as error:
                if (batch := self._ended(text, error)) is not None:
                    return batch, True
                if "truncated" in str(error):
                    continue
                return self._mended(ends[0]), False
            self._buffer = self._buffer[end:].lstrip(b"," + _SPACE)
            return Batch(events, text), False
        if ends and len(self._buffer) > _WAIT:
            return self._mended(ends[0]), False
        self._refuse_long_event()
        return None, False

    def _refuse_long_event(self) -> None:
        if len(self._buffer) > _LOOK_AHEAD:
            refuse_depth(self._buffer, self.limits, self._offset)
        if len(self._buffer) > self.limits.event_bytes:
            raise Refusal(RefusalCode.EVENT_TOO_LONG, {"limit": self.limits.event_bytes})

    def _ended(self, text: bytes, error: Exception) -> Batch | None:
        """The last batch, if ``error`` says that only what follows the array in ``text`` is wrong."""
        end = end_of_document(str(error))
        if end is None:
            return None
        array = text[:end].rstrip()
        events = self.decode(array)
        self._buffer = self._buffer[end - 1 :]
        return Batch(events, array)

    def _last(self) -> Batch:
        """What is left when the file ends and no end of the array was seen yet."""
        text = b"[" + self._buffer
        try:
            batch = Batch(self.decode(text), text)
        except DecodingFailure as error:
            ended = self._ended(text, error)
            return self._unended() if ended is None else ended
        self._buffer = b""
        self.complete = self.bare_list
        return batch

    def _unended(self) -> Batch:
        """An array without its bracket: legal in the list form, a cut file in the object form; or damaged text."""
        body = self._buffer.rstrip().removesuffix(b",")
        end = close_of_array(body, self.limits)
        mended = mend(body[:end], self.limits, self._offset, self.decode) if body else None
        self._buffer = b"" if end is None else body[end + 1 :]
        if end is None:
            self.complete = self.bare_list and not (mended and mended.cut)
        if mended is None:
            return Batch([], b"[]")
        return self._taken(mended)

    def _mended(self, end: int) -> Batch:
        mended = mend(self._buffer[:end], self.limits, self._offset, self.decode)
        self._buffer = self._buffer[end:].lstrip(b"," + _SPACE)
        self.repairs[NoteCode.EVENTS_UNREADABLE] += mended.cut
        return self._taken(mended)

    def _taken(self, mended: Mended) -> Batch:
        self.repairs += mended.repairs
        self.fault = self.fault or mended.fault
        return mended.batch

    # --- after the events ----------------------------------------------------------------------------------------

    def _close(self) -> None:
        place = self._offset
        text, further = self._tail()
        if text.lstrip(b"}" + _SPACE).startswith((b"{", b"[")):
            raise Refusal(RefusalCode.TWO_DOCUMENTS)
        if not self.bare_list:
            refuse_second_document(text, allowed=0, key=b"traceEvents")
            refuse_second_document(text, allowed=0 if "schemaVersion" in self.metadata else 1)
        if further:
            self.repairs[NoteCode.EVENTS_UNREADABLE] += further
            self.fault = self.fault or invalid_json("events after the end of their list", place)
        elif self.bare_list:
            self.repairs[NoteCode.TEXT_AFTER_END] += bool(text)
        else:
            self._close_object(text)

    def _tail(self) -> tuple[bytes, int]:
        """What follows the list of events, as far as it may be metadata, and how many events are in all of it."""
        tail, before, further = bytearray(), b"", 0
        for chunk in chain([self._buffer], self.chunks):
            further += (before + chunk).count(_PHASE)
            before = (before + chunk)[1 - len(_PHASE) :]
            if len(tail) < self.limits.metadata_bytes:
                tail += chunk
        self._buffer = b""
        return bytes(tail).strip(_SPACE + b"\x00"), further

    def _close_object(self, text: bytes) -> None:
        keys = read_keys(b"{" + text.removeprefix(b","), ends_file=True)
        if keys.error is not None and "truncated" in keys.error:
            self.complete = False
        else:
            self._add(keys)

    def _add(self, keys: Keys) -> None:
        self.metadata.update(keys.found)
        self.repairs += keys.repairs
        self.repairs[NoteCode.METADATA_UNREADABLE] += keys.error is not None
