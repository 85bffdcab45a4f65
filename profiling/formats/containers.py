"""From a stored file to bounded chunks of plain bytes: compression peeled, UTF-16 converted, bombs refused."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from profiling.formats.compression import LONGEST_START, SLICE, Compression, Damaged, compression, decode
from profiling.formats.limits import Watch
from profiling.notes import Note, NoteCode, Refusal, RefusalCode

READ = 1 << 18
_START = 512
_EMPTY_STREAMS = 1000
"""Each costs time and yields nothing; tools that write several streams write one empty one at the end."""
_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


@dataclass(slots=True)
class Unpacked:
    """One pass over the plain bytes of a file. What is public is final once ``chunks`` is used up.

    ``truncated``: a compressed stream ends early; ``damaged``: it cannot be read to its end. ``done``: stored bytes
    read, ``out``: plain bytes given. ``layers`` were peeled off before, of archives that the file lay in.
    """

    path: Path
    watch: Watch
    layers: int = 0
    notes: list[Note] = field(default_factory=list)
    truncated: bool = False
    damaged: bool = False
    done: int = 0
    out: int = 0
    _total: int = 0
    _waiting: int = 0
    _before: int = 0

    def chunks(self) -> Iterator[bytes]:
        """Plain bytes in pieces of 1 MiB at most, byte order mark removed; a non-empty file yields at least one."""
        self._total = self.path.stat().st_size
        if self._total == 0:
            raise Refusal(RefusalCode.EMPTY_FILE)
        self._before = self.watch.tally.out
        yield from self._decoded(self._peeled(self._limited(self._raw())))

    def _raw(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            while data := file.read(READ):
                self.done += len(data)
                self.watch.at(self.done, self._total)
                yield data

    def _peeled(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The bytes inside all compression around them."""
        first, layers = _start(chunks), self.layers
        while (kind := compression(first)) is not None:
            layers += 1
            if layers > self.watch.limits.layers:
                raise Refusal(RefusalCode.NESTED_COMPRESSION, {"limit": self.watch.limits.layers})
            outermost = layers == self.layers + 1
            chunks = self._limited(self._streams(kind, first, chunks, outermost=outermost))
            first = _start(chunks)
        if not first:
            cut = self.truncated or self.damaged
            raise Refusal(RefusalCode.FILE_TRUNCATED if cut else RefusalCode.EMPTY_AFTER_DECOMPRESSION)
        yield from _gathered(first, chunks)

    def _streams(self, kind: Compression, data: bytes, rest: Iterator[bytes], *, outermost: bool) -> Iterator[bytes]:
        """All streams of a file; bytes after the last one are noted, a damaged end marks the file incomplete."""
        decoder, empty = kind.decoder(self.watch.limits), 0
        while True:
            part, data = data[:SLICE], data[SLICE:]
            self._waiting = len(data) if outermost else self._waiting
            written = False
            try:
                for piece in decode(decoder, part, self.watch.limits):
                    written = True
                    yield piece
            except Damaged:
                self.damaged = True
                return
            if decoder.eof:
                data = decoder.unused_data + data
                while len(data) < LONGEST_START and (more := next(rest, b"")):
                    data += more
                empty += not written
                if not data.strip(b"\x00"):
                    return
                if not kind.starts.match(data):
                    self.notes.append(Note(NoteCode.BYTES_AFTER_GZIP, {"kind": kind.name}))
                    return
                if empty > _EMPTY_STREAMS:
                    self.damaged = True
                    return
                decoder = kind.decoder(self.watch.limits)
            elif not data:
                data = next(rest, b"")
                if not data:
                    self.truncated = True
                    return

    def _limited(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks, counted: of several layers the innermost, which the caller sees, counts last."""
        limits, out = self.watch.limits, 0
        for chunk in chunks:
            out += len(chunk)
            self.out = max(self.out, out)
            self.watch.at(self.done, self._total)
            self.refuse_ratio(after=limits.ratio_after)
            yield chunk

    def refuse_ratio(self, *, after: int) -> None:
        """Refuse what is unpacked to too many bytes, or, once more than ``after`` are out, to many times its size."""
        taken = max(1, self.done - self._waiting)
        self.watch.refuse_unpacked(self._before + self.out, stored=self.watch.stored(taken, self._total), after=after)

    def _decoded(self, plain: Iterator[bytes]) -> Iterator[bytes]:
        first = next(plain)
        wide = _WIDE.get(first[:2]) or _unmarked_wide(first)
        if wide is None:
            yield first.removeprefix(codecs.BOM_UTF8)
            yield from plain
            return
        self.notes.append(Note(NoteCode.ENCODING_CONVERTED, {"encoding": "UTF-16"}))
        decoder = codecs.getincrementaldecoder(wide)(errors="replace")
        yield decoder.decode(first).removeprefix("\ufeff").encode("utf-8", errors="replace")
        for chunk in plain:
            yield decoder.decode(chunk).encode("utf-8", errors="replace")


def _unmarked_wide(first: bytes) -> str | None:
    """UTF-16 without a byte order mark: every second byte of the first line is zero, the others are ASCII text."""
    sample = first[: min(len(first), 64) // 2 * 2]
    for encoding, text, zeros in (("utf-16-le", sample[::2], sample[1::2]), ("utf-16-be", sample[1::2], sample[::2])):
        if len(text) > 1 and not zeros.strip(b"\x00") and all(byte in _TEXT for byte in text):
            return encoding
    return None


_TEXT = frozenset(b"\t\r\n\x1b") | frozenset(range(32, 127))


def _start(chunks: Iterator[bytes]) -> bytes:
    """The first bytes, enough to tell what they are."""
    first = b""
    while len(first) < _START and (more := next(chunks, b"")):
        first += more
    return first


def _gathered(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """Small pieces joined: readers work best on some 100 KiB at a time."""
    held, size = [first], len(first)
    for chunk in rest:
        if size >= READ:
            yield b"".join(held)
            held, size = [], 0
        held.append(chunk)
        size += len(chunk)
    if held:
        yield b"".join(held)
