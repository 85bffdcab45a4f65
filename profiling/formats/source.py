"""A file as readers see it: plain bytes or lines, bounded, with whatever was around them peeled off."""

import codecs
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from profiling.formats.containers import Unpacked
from profiling.formats.limits import Limits, Watch
from profiling.formats.line_prefix import LinePrefix
from profiling.notes import Note, Refusal, RefusalCode

HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Head:
    """The first ``HEAD_BYTES`` of the plain bytes, and the name that the user gave the file (a hint, last of all)."""

    data: bytes
    name: str

    @cached_property
    def text(self) -> str:
        return self.data.decode("utf-8", errors="replace")

    @cached_property
    def prefix(self) -> LinePrefix:
        return LinePrefix.of(self.text.splitlines())

    @cached_property
    def lines(self) -> list[str]:
        """Lines without their ends and without what a launcher put before them; the last one may be cut."""
        return [self.prefix.cut(line) for line in self.text.splitlines()]


@dataclass(slots=True)
class Source:
    """One file, to be read more than once. The flags of ``unpacked``, the latest pass, are final once it is over.

    ``layers``: how many archives the file lay in.
    """

    path: Path
    name: str
    watch: Watch
    layers: int = 0
    unpacked: Unpacked = field(init=False)
    _most: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.unpacked = Unpacked(self.path, self.watch, self.layers)

    @property
    def limits(self) -> Limits:
        return self.watch.limits

    @property
    def notes(self) -> list[Note]:
        """What is to be told of the last pass: bytes ignored, encoding converted."""
        return self.unpacked.notes

    @property
    def most_out(self) -> int:
        """Plain bytes that the longest pass gave."""
        return max(self._most, self.unpacked.out)

    def _start_over(self) -> None:
        self._most = self.most_out
        self.unpacked = Unpacked(self.path, self.watch, self.layers)

    def head(self) -> Head:
        """Reads the first bytes, apart from all passes."""
        first = b""
        for chunk in Unpacked(self.path, self.watch.quiet(), self.layers).chunks():
            first += chunk
            if len(first) >= HEAD_BYTES:
                break
        return Head(first[:HEAD_BYTES], self.name)

    def chunks(self) -> Iterator[bytes]:
        """Plain bytes in pieces of 1 MiB at most, text in UTF-8 without a byte order mark. Each call is a new pass."""
        self._start_over()
        return self.unpacked.chunks()

    def lines(self) -> Iterator[str]:
        """Lines of text without their ends and without what a launcher put before them, undecodable bytes replaced.

        Raises Refusal for a line over the limit.
        """
        prefix = self.head().prefix
        return map(prefix.cut, self._lines()) if prefix else self._lines()

    def _lines(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        rest = ""
        for chunk in self.chunks():
            lines = (rest + decoder.decode(chunk)).split("\n")
            rest = lines.pop()
            if len(rest) > self.limits.line_characters:
                raise Refusal(RefusalCode.LINE_TOO_LONG, {"limit": self.limits.line_characters})
            for line in lines:
                if len(line) > self.limits.line_characters:
                    raise Refusal(RefusalCode.LINE_TOO_LONG, {"limit": self.limits.line_characters})
                yield line.removesuffix("\r")
        if rest:
            yield rest.removesuffix("\r")

    def whole(self, most: int) -> bytes:
        """All plain bytes, for formats that need them at once. Raises Refusal above ``most`` bytes."""
        data = bytearray()
        for chunk in self.chunks():
            data += chunk
            if len(data) > most:
                raise Refusal(RefusalCode.TOO_MANY_BYTES, {"limit": most})
        return bytes(data)

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        """The plain bytes as a file: the stored one itself where it is plain, else a temporary copy."""
        with self.path.open("rb") as file:
            start = file.read(HEAD_BYTES)
        first = next(iter(self.chunks()), b"")
        if first[: len(start)] == start[: len(first)]:
            yield self.path
            return
        with tempfile.NamedTemporaryFile(dir=self.watch.scratch) as copy:
            for chunk in self.chunks():
                copy.write(chunk)
            copy.flush()
            yield Path(copy.name)
