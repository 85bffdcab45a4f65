"""CSV files of a zip archive that somebody else packed: bounded in number, size and ratio, never written to disk."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from catalog.importers.printed import ListUnreadable, UnreadableCode

if TYPE_CHECKING:
    from typing_extensions import Buffer

MEMBERS_LIMIT = 64
BYTES_LIMIT = 256 * 2**20
RATIO_LIMIT = 200
RATIO_COUNTS_FROM = 2**20
"""Small files compress well; a ratio says something only from a MiB on."""
COPIED_AT_ONCE = 2**16
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.csv")
_UNREADABLE = (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError, ValueError)


def is_zip(file: BinaryIO) -> bool:
    """True where the file begins as a zip archive does; the file is left at its beginning."""
    file.seek(0)
    magic = file.read(4)
    file.seek(0)
    return magic[:2] == b"PK" and magic[2:] in (b"\x03\x04", b"\x05\x06", b"\x07\x08")


def csv_files(file: BinaryIO) -> Iterator[tuple[str, BinaryIO]]:
    """The name without ``.csv`` and the bytes of each CSV file in the archive, in the archive's order.

    Raises ListUnreadable for archives that are broken, nested, too large, or name anything but plain CSV files.
    """
    try:
        archive = zipfile.ZipFile(file)
    except _UNREADABLE as error:
        raise ListUnreadable(UnreadableCode.ARCHIVE_BROKEN) from error
    with archive:
        members = archive.infolist()
        _check(members)
        packed = sum(member.compress_size for member in members)
        _Budget(packed).spend(sum(member.file_size for member in members))
        budget = _Budget(packed)
        for member in members:
            yield (
                member.filename.removesuffix(".csv"),
                io.BufferedReader(_Member(archive, member, budget), COPIED_AT_ONCE),
            )


def _check(members: list[zipfile.ZipInfo]) -> None:
    if not members:
        raise ListUnreadable(UnreadableCode.ARCHIVE_NO_LIST)
    if len(members) > MEMBERS_LIMIT:
        raise ListUnreadable(UnreadableCode.ARCHIVE_TOO_MANY_FILES, seen=len(members), limit=MEMBERS_LIMIT)
    names = [member.filename for member in members]
    for member in members:
        unsafe = not _SAFE_NAME.fullmatch(member.filename) or ".." in member.filename
        if unsafe or member.flag_bits & 1 or names.count(member.filename) > 1:
            raise ListUnreadable(UnreadableCode.ARCHIVE_UNSAFE_PATH, name=ascii(member.filename[:80]))


class _Budget:
    """What all members together may unpack to: by their headers, and counted while reading, as headers may lie."""

    def __init__(self, packed: int) -> None:
        self._packed = max(packed, 1)
        self._unpacked = 0

    def spend(self, size: int) -> None:
        self._unpacked += size
        if self._unpacked > BYTES_LIMIT:
            raise ListUnreadable(UnreadableCode.ARCHIVE_TOO_LARGE, limit=BYTES_LIMIT)
        if self._unpacked > RATIO_COUNTS_FROM and self._unpacked > RATIO_LIMIT * self._packed:
            raise ListUnreadable(UnreadableCode.DECOMPRESSION_RATIO, limit=RATIO_LIMIT)


class _Member(io.RawIOBase):
    """One unpacked file, read in steps."""

    def __init__(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: _Budget) -> None:
        self._budget = budget
        try:
            self._stream = archive.open(member)
        except _UNREADABLE as error:
            raise ListUnreadable(UnreadableCode.ARCHIVE_BROKEN) from error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Buffer", /) -> int:
        view = memoryview(buffer)
        try:
            piece = self._stream.read(len(view))
        except _UNREADABLE as error:
            raise ListUnreadable(UnreadableCode.ARCHIVE_BROKEN) from error
        self._budget.spend(len(piece))
        view[: len(piece)] = piece
        return len(piece)
