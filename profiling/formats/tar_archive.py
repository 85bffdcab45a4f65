"""tar archives as a stream of blocks in constant memory; nothing is written under a name from the archive.

Layout: POSIX.1-2024 pax interchange format; GNU tar manual, "Basic Tar Format" (long names, base-256 numbers).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from profiling.formats.compression import Damaged

BLOCK = 512
_FILES = (b"0", b"\x00", b"7")
_LONG_NAME, _PAX = b"L", b"x"
_LONGEST_EXTRA = 1 << 16


@dataclass(slots=True)
class TarStream:
    """Walks the archive once; it ends at a block of zeros, as tar writes it, or where the bytes end between files.

    The bytes of a file must be taken before the next one is asked for."""

    chunks: Iterator[bytes]
    _buffer: bytearray = field(default_factory=bytearray)
    _left: int = 0
    _padding: int = 0

    def names(self) -> Iterator[str]:
        """Names of the regular files. Raises Damaged where the archive breaks off before its end."""
        name: str | None = None
        size: int | None = None
        while True:
            self._skip()
            header = self._take(BLOCK)
            if not header.strip(b"\x00"):
                return
            if not is_header(header):
                raise Damaged
            kind, length = header[156:157], _number(header[124:136])
            self._left, self._padding = length, -length % BLOCK
            if kind == _LONG_NAME:
                name = _text(self._extra())
            elif kind == _PAX:
                name, size = _pax(self._extra())
            else:
                if size is not None:
                    self._left, self._padding = size, -size % BLOCK
                if kind in _FILES:
                    yield name or _name(header)
                name = size = None

    def contents(self) -> Iterator[bytes]:
        """The bytes of the file named last. Raises Damaged where they break off."""
        while self._left:
            piece = self._some(self._left)
            if not piece:
                raise Damaged
            self._left -= len(piece)
            yield piece

    def _skip(self) -> None:
        self._left += self._padding
        self._padding = 0
        for _ in self.contents():
            pass

    def _extra(self) -> bytes:
        """What stands in a header's own data: more than any name needs is passed over."""
        data = self._take(min(self._left, _LONGEST_EXTRA))
        self._left -= len(data)
        return data

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size and (more := next(self.chunks, b"")):
            self._buffer += more
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _some(self, most: int) -> bytes:
        if not self._buffer:
            self._buffer += next(self.chunks, b"")
        taken = bytes(self._buffer[:most])
        del self._buffer[:most]
        return taken


def is_header(block: bytes) -> bool:
    """True for the header of a member: its checksum, with blanks in the checksum's place, is right."""
    if len(block) < BLOCK or not block[0]:
        return False
    try:
        told = _number(block[148:156])
    except Damaged:
        return False
    return told == sum(block[:148]) + 8 * 0x20 + sum(block[156:BLOCK])


def _number(data: bytes) -> int:
    """Octal text, or base 256 where the first bit is set."""
    if data[0] == 0x80:
        return int.from_bytes(data[1:], "big")
    text = data.strip(b" \x00")
    if not text.isdigit() or not set(text) <= set(b"01234567"):
        if text:
            raise Damaged
        return 0
    return int(text, 8)


def _name(header: bytes) -> str:
    name, prefix = _text(header[:100]), _text(header[345:500]) if header[257:263] == b"ustar\x00" else ""
    return f"{prefix}/{name}" if prefix else name


def _pax(data: bytes) -> tuple[str | None, int | None]:
    """Name and size, as far as the records give them: each is "length key=value" and a line feed."""
    found: dict[bytes, bytes] = {}
    while data:
        length, _, rest = data.partition(b" ")
        if not length.isdigit() or len(length) > 8 or not len(length) + 1 < int(length) <= len(data):
            break
        key, _, value = rest[: int(length) - len(length) - 2].partition(b"=")
        found[key] = value
        data = rest[int(length) - len(length) - 1 :]
    size = found.get(b"size", b"")
    name = found.get(b"path")
    return (
        None if name is None else name.decode("utf-8", errors="replace"),
        int(size) if size.isdigit() and len(size) < 20 else None,
    )


def _text(data: bytes) -> str:
    return data.split(b"\x00", 1)[0].decode("utf-8", errors="replace")
