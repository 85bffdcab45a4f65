"""Archives as the files in them: each in a temporary file of its own, one at a time, all bounded together."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath, PurePosixPath

from profiling.formats import tar_archive, zip_archive
from profiling.formats.compression import Damaged
from profiling.formats.limits import Watch
from profiling.formats.source import Source
from profiling.formats.tar_archive import TarStream
from profiling.formats.zip_archive import Entry
from profiling.notes import UPLOAD_LIMITS, Refusal, RefusalCode

_LONGEST_NAME = 1000
_LONGEST_PATH = 160


@dataclass(frozen=True, slots=True)
class Found:
    """A file of an upload, or why it cannot be had. ``path``: where it lies in its folder or archive."""

    path: str
    source: Source | Refusal


def opened(source: Source, path: str) -> Iterator[Found]:
    """The file itself, or, for an archive, the files in it, however deep. A file is gone once the next is asked for.

    Hidden files and the by-products of archivers are passed over. A damaged archive ends with its refusal, behind
    the files before the damage. Raises Refusal where a limit of the whole upload is reached.
    """
    try:
        members = _members(source)
    except Refusal as refusal:
        if refusal.code in UPLOAD_LIMITS:
            raise
        yield Found(path, refusal)
        return
    if members is None:
        yield Found(path, source)
        return
    try:
        for found in members:
            if isinstance(found.source, Refusal):
                yield found
            else:
                yield from opened(found.source, found.path)
    except Damaged:
        yield Found(path, Refusal(RefusalCode.ARCHIVE_DAMAGED))


def is_archive(head: bytes) -> bool:
    """By the first plain bytes."""
    return head.startswith(zip_archive.STARTS) or tar_archive.is_header(head[: tar_archive.BLOCK])


def is_hidden(path: PurePath) -> bool:
    """True for what systems and archivers leave beside the files that are meant."""
    return any((part.startswith(".") and part.strip(".")) or part == "__MACOSX" for part in path.parts)


def _members(source: Source) -> Iterator[Found] | None:
    """The files of an archive; None where it is none."""
    head = source.head().data
    if not is_archive(head):
        return None
    if source.layers >= source.limits.layers:
        raise Refusal(RefusalCode.NESTED_COMPRESSION, {"limit": source.limits.layers})
    return _zip_members(source) if head.startswith(zip_archive.STARTS) else _tar_members(source)


def _tar_members(source: Source) -> Iterator[Found]:
    archive = replace(source, watch=source.watch.quiet())
    stream, total, start = TarStream(archive.chunks()), source.path.stat().st_size, 0
    for name in stream.names():
        _count_member(source.watch)
        path = _path(name)
        if not is_hidden(path):
            yield from _member(source, path, stream.contents(), start, lambda: archive.unpacked.done, total)
        start = archive.unpacked.done
    if archive.unpacked.truncated or archive.unpacked.damaged:
        raise Damaged


def _zip_members(source: Source) -> Iterator[Found]:
    archive = replace(source, watch=source.watch.quiet())
    with archive.on_disk() as file:
        total, start, whole = file.stat().st_size, 0, True
        for entry in _zip_entries(file):
            _count_member(source.watch)
            if entry.is_folder or is_hidden(_path(entry.name)):
                continue
            end = min(total, start + (entry.packed or 0))
            try:
                yield from _zip_member(source, file, entry, start, end, total)
            except Damaged:
                whole = False
            start = end
    if not whole:
        raise Damaged


def _zip_entries(file: Path) -> Iterator[Entry]:
    """Entries of the directory; of what can still be found where there is none."""
    entries = zip_archive.entries(file)
    try:
        first = next(entries, None)
    except Damaged:
        yield from zip_archive.entries_without_directory(file)
        raise
    if first is not None:
        yield first
        yield from entries


def _zip_member(source: Source, file: Path, entry: Entry, start: int, end: int, total: int) -> Iterator[Found]:
    if entry.encrypted:
        yield Found(_clean(_path(entry.name)), Refusal(RefusalCode.ARCHIVE_ENCRYPTED))
    elif not entry.is_readable:
        yield Found(_clean(_path(entry.name)), Refusal(RefusalCode.ARCHIVE_METHOD))
    else:
        chunks = zip_archive.contents(file, entry, source.limits)
        yield from _member(source, _path(entry.name), chunks, start, lambda: end, total)


def _member(
    source: Source, inside: PurePosixPath, chunks: Iterator[bytes], start: int, place: Callable[[], int], total: int
) -> Iterator[Found]:
    """One file copied out of the archive. ``place()``: how far the archive is read, in bytes of ``total``.

    Raises Damaged, behind what could be copied, where the archive breaks off in it.
    """
    watch, before, size, damaged = source.watch, source.watch.tally.out, 0, False
    path = _clean(inside)
    with tempfile.NamedTemporaryFile(dir=watch.scratch) as copy:
        try:
            for chunk in chunks:
                size += len(chunk)
                watch.at(start, total)
                watch.refuse_unpacked(
                    before + size, stored=watch.stored(place(), total), after=watch.limits.ratio_after
                )
                copy.write(chunk)
        except Damaged:
            damaged = True
        copy.flush()
        inner = Source(Path(copy.name), f"{source.name}/{path}", watch.within(start, place(), total), source.layers + 1)
        yield Found(path, inner)
        watch.tally.out = max(watch.tally.out, before + max(size, inner.most_out))
    if damaged:
        raise Damaged


def _count_member(watch: Watch) -> None:
    watch.tally.members += 1
    if watch.tally.members > watch.limits.members:
        raise Refusal(RefusalCode.TOO_MANY_MEMBERS, {"limit": watch.limits.members})


def _path(name: str) -> PurePosixPath:
    """The name of a file in an archive as a path; some tools write it as Windows does."""
    return PurePosixPath(name[-_LONGEST_NAME:].replace("\\", "/"))


def _clean(path: PurePosixPath) -> str:
    """The path in its archive, fit to be shown."""
    parts = [part for part in path.parts if part not in ("/", "..")]
    return "".join(one if one.isprintable() else "\ufffd" for one in "/".join(parts))[-_LONGEST_PATH:] or "?"
