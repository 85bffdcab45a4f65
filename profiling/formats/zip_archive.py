"""ZIP archives, entry by entry in constant memory; nothing is written under a name from the archive.

Layout: PKWARE APPNOTE.TXT 6.3.10, sections 4.3.7 (local header), 4.3.12 (central directory), 4.3.14-16 (its end).
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from profiling.formats.compression import (
    BZIP2,
    DEFLATE,
    PIECE,
    SLICE,
    XZ,
    ZSTD,
    Compression,
    Damaged,
    decode,
)
from profiling.formats.limits import Limits

STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END_SIZE, _END64_SIZE, _LOCATOR_SIZE = 22, 56, 20
_LONGEST_COMMENT = 1 << 16
_ENCRYPTED = 1
_SIZES_FOLLOW = 8
_UTF8 = 1 << 11
_ALL_ONES = 0xFFFFFFFF
_METHODS: dict[int, Compression | None] = {0: None, 8: DEFLATE, 12: BZIP2, 93: ZSTD, 95: XZ}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """``packed`` bytes behind the local header at ``offset``; None: up to where the stream ends."""

    name: str
    flags: int
    method: int
    crc: int | None
    packed: int | None
    offset: int

    @property
    def encrypted(self) -> bool:
        return bool(self.flags & _ENCRYPTED)

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")

    @property
    def is_readable(self) -> bool:
        return self.method in _METHODS


def entries(path: Path) -> Iterator[Entry]:
    """Entries of the central directory in its order. Raises Damaged where there is none or where it breaks off."""
    with path.open("rb") as file:
        start, size, shift = _directory(file)
        file.seek(start)
        while size > 0:
            entry, taken = _central_entry(file, start, shift)
            size -= taken
            yield entry


def entries_without_directory(path: Path) -> Iterator[Entry]:
    """What can still be found in a cut archive: entries in a row from its start, as long as their sizes are known."""
    with path.open("rb") as file:
        at, length = 0, path.stat().st_size
        while at < length:
            file.seek(at)
            header = file.read(_LOCAL.size)
            if len(header) < _LOCAL.size or not header.startswith(STARTS[0]):
                return
            _, _, flags, method, _, _, crc, packed, size, name_length, extra_length = _LOCAL.unpack(header)
            name, extra = file.read(name_length), file.read(extra_length)
            unknown = bool(flags & _SIZES_FOLLOW)
            _, packed, _ = _large(extra, size, packed, 0)
            yield Entry(
                name=_text(name, flags),
                flags=flags,
                method=method,
                crc=None if unknown else crc,
                packed=None if unknown else packed,
                offset=at,
            )
            if unknown:
                return
            at += _LOCAL.size + name_length + extra_length + packed


def contents(path: Path, entry: Entry, limits: Limits) -> Iterator[bytes]:
    """The plain bytes of an entry. Raises Damaged."""
    with path.open("rb") as file:
        file.seek(entry.offset)
        header = file.read(_LOCAL.size)
        if len(header) < _LOCAL.size or not header.startswith(STARTS[0]):
            raise Damaged
        name_length, extra_length = _LOCAL.unpack(header)[-2:]
        file.seek(entry.offset + _LOCAL.size + name_length + extra_length)
        checked = 0
        kind = _METHODS[entry.method]
        for piece in _decoded(_slices(file, entry.packed, SLICE if kind else PIECE), kind, limits):
            checked = zlib.crc32(piece, checked)
            yield piece
        if entry.crc is not None and checked != entry.crc:
            raise Damaged


def _decoded(raw: Iterator[bytes], kind: Compression | None, limits: Limits) -> Iterator[bytes]:
    if kind is None:
        yield from raw
        return
    decoder = kind.decoder(limits)
    for part in raw:
        yield from decode(decoder, part, limits)
        if decoder.eof:
            return
    raise Damaged


def _slices(file: BinaryIO, size: int | None, most: int) -> Iterator[bytes]:
    while size is None or size > 0:
        part = file.read(most if size is None else min(most, size))
        if not part:
            if size is not None:
                raise Damaged
            return
        size = None if size is None else size - len(part)
        yield part


def _directory(file: BinaryIO) -> tuple[int, int, int]:
    """Where the central directory starts, its size, and by how much all offsets in it are to be moved."""
    length = file.seek(0, 2)
    tail_start = max(0, length - _END_SIZE - _LONGEST_COMMENT)
    file.seek(tail_start)
    tail = file.read()
    at = tail.rfind(STARTS[1])
    if at < 0 or len(tail) - at < _END_SIZE:
        raise Damaged
    size, offset = struct.unpack_from("<II", tail, at + 12)
    end = tail_start + at
    locator = tail[at - _LOCATOR_SIZE : at] if at >= _LOCATOR_SIZE else b""
    if locator.startswith(b"PK\x06\x07"):
        end -= _LOCATOR_SIZE + _END64_SIZE
        file.seek(max(end, 0))
        record = file.read(_END64_SIZE)
        if len(record) < _END64_SIZE or not record.startswith(b"PK\x06\x06"):
            raise Damaged
        size, offset = struct.unpack_from("<QQ", record, 40)
    if size > end:
        raise Damaged
    return end - size, size, end - size - offset


def _central_entry(file: BinaryIO, start: int, shift: int) -> tuple[Entry, int]:
    """The entry here and its length. What it describes lies before the directory, which begins at ``start``."""
    header = file.read(_CENTRAL.size)
    if len(header) < _CENTRAL.size or not header.startswith(b"PK\x01\x02"):
        raise Damaged
    fields = _CENTRAL.unpack(header)
    flags, method, crc, packed, size = fields[3], fields[4], fields[7], fields[8], fields[9]
    name_length, extra_length, comment_length, offset = fields[10], fields[11], fields[12], fields[16]
    name, extra = file.read(name_length), file.read(extra_length)
    file.seek(comment_length, 1)
    size, packed, offset = _large(extra, size, packed, offset)
    if not 0 <= offset + shift < start:
        raise Damaged
    entry = Entry(
        name=_text(name, flags),
        flags=flags,
        method=method,
        crc=crc,
        packed=packed,
        offset=offset + shift,
    )
    return entry, _CENTRAL.size + name_length + extra_length + comment_length


def _large(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """Sizes and offset, from the zip64 field where they do not fit into 32 bits."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            wide = iter(struct.unpack_from(f"<{min(length, len(extra) - at - 4) // 8}Q", extra, at + 4))
            return tuple(next(wide, one) if one == _ALL_ONES else one for one in (size, packed, offset))  # type: ignore[return-value]
        at += 4 + length
    return size, packed, offset


def _text(name: bytes, flags: int) -> str:
    return name.decode("utf-8" if flags & _UTF8 else "cp437", errors="replace")
