"""From a stored file to bounded chunks of plain bytes: gzip peeled, UTF-16 converted, bombs refused."""

import codecs
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from profiling.formats.detect import GZIP
from profiling.formats.limits import Watch
from profiling.notes import Note, NoteCode, Refusal, RefusalCode

READ = 1 << 18
CHUNK = 1 << 20
_EMPTY_MEMBERS = 1000
"""Each costs time and yields nothing; tools that write members at all write one empty one at the end."""
_WIDE = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(slots=True)
class Unpacked:
    """One pass over the plain bytes of a file. What is public is final once ``chunks`` is used up.

    ``truncated``: the gzip stream ends early; ``damaged``: it cannot be read to its end.
    """

    path: Path
    watch: Watch
    notes: list[Note] = field(default_factory=list)
    truncated: bool = False
    damaged: bool = False
    _done: int = 0
    _total: int = 0
    _waiting: int = 0
    _out: int = 0

    def chunks(self) -> Iterator[bytes]:
        """Plain bytes in pieces of about 1 MiB, byte order mark removed; a non-empty file yields at least one."""
        self._total = self.path.stat().st_size
        if self._total == 0:
            raise Refusal(RefusalCode.EMPTY_FILE)
        raw = self._raw()
        first = next(raw)
        plain = self._inflate(first, raw) if first.startswith(GZIP) else _chain(first, raw)
        yield from self._decoded(self._limited(plain))

    def _raw(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            while data := file.read(READ):
                self._done += len(data)
                self.watch.at(self._done, self._total)
                yield data

    def _inflate(self, data: bytes, raw: Iterator[bytes]) -> Iterator[bytes]:
        """All members of a gzip file; bytes after the last one are noted, a damaged end marks the file incomplete."""
        inflater = zlib.decompressobj(wbits=31)
        empty = 0
        while True:
            written = False
            try:
                for piece in self._pieces(inflater, data):
                    written = True
                    yield piece
            except zlib.error:
                self.damaged = True
                return
            empty += inflater.eof and not written
            if empty > _EMPTY_MEMBERS:
                self.damaged = True
                return
            data = inflater.unused_data
            if len(data) < len(GZIP):
                data += next(raw, b"")
            if inflater.eof:
                if not data:
                    return
                if not data.startswith(GZIP):
                    self.notes.append(Note(NoteCode.BYTES_AFTER_GZIP))
                    return
                inflater = zlib.decompressobj(wbits=31)
            elif not data:
                self.truncated = True
                return

    def _pieces(self, inflater: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
        """Output of one input block, bounded piece by piece."""
        while data and not inflater.eof:
            piece = inflater.decompress(data, CHUNK)
            data = inflater.unconsumed_tail
            self._waiting = len(data)
            if piece:
                yield piece

    def _limited(self, plain: Iterator[bytes]) -> Iterator[bytes]:
        limits = self.watch.limits
        for chunk in plain:
            if self._out == 0:
                refuse_container(chunk)
            self._out += len(chunk)
            self.watch.at(self._done, self._total)
            if self._out > limits.bytes_out:
                raise Refusal(RefusalCode.TOO_MANY_BYTES, {"limit": limits.bytes_out})
            self.refuse_ratio(after=limits.ratio_after)
            yield chunk
        if self._out == 0:
            cut = self.truncated or self.damaged
            raise Refusal(RefusalCode.FILE_TRUNCATED if cut else RefusalCode.EMPTY_AFTER_DECOMPRESSION)

    def refuse_ratio(self, *, after: int) -> None:
        """Refuse what is unpacked to many times its size, once more than ``after`` bytes are out."""
        out, limit = self._out, self.watch.limits.ratio
        taken = max(1, self._done - self._waiting)
        if out > after and out > limit * taken:
            raise Refusal(RefusalCode.DECOMPRESSION_RATIO, {"limit": limit, "seen": out // taken, "bytes": out})

    def _decoded(self, plain: Iterator[bytes]) -> Iterator[bytes]:
        first = next(plain)
        wide = _WIDE.get(first[:2])
        if wide is None:
            yield first.removeprefix(codecs.BOM_UTF8)
            yield from plain
            return
        self.notes.append(Note(NoteCode.ENCODING_CONVERTED, {"encoding": "UTF-16"}))
        decoder = codecs.getincrementaldecoder(wide)(errors="replace")
        for chunk in _chain(first, plain):
            yield decoder.decode(chunk).encode("utf-8", errors="replace")


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def refuse_container(head: bytes) -> None:
    """A second layer of compression is refused, not peeled."""
    if head.startswith(GZIP):
        raise Refusal(RefusalCode.NESTED_COMPRESSION, {"limit": 1})
