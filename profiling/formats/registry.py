"""Any file to a Capture. The format is decided by content; a name counts only where bytes say nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from profiling.formats import kineto_reader
from profiling.formats.capture import Capture, Format, Reader
from profiling.formats.detect import BLANK, refuse_report_name, refuse_unknown, starts_with_magic
from profiling.formats.limits import Limits, Watch
from profiling.formats.source import Head, Source
from profiling.notes import Refusal, RefusalCode, shown

READERS: tuple[Reader, ...] = (Reader(Format.KINETO, kineto_reader.recognises, kineto_reader.read),)
"""In order of certainty: the first that recognises a file reads it."""


def read(
    path: Path,
    limits: Limits | None = None,
    *,
    name: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] | None = None,
) -> Capture:
    """Read one file of any known format in bounded memory.

    ``name`` is the name that the user gave the file, where it is stored under another. ``progress(done, total)``
    counts stored bytes; ``limits.seconds`` holds by ``clock``. Raises :class:`Refusal`.
    """
    name = name or path.name
    _refuse_unopenable(path, name)
    source = Source(path, name, Watch(limits=limits or Limits(), progress=progress, clock=clock))
    return replace(_reader(source).read(source), name=name)


def refuse_unreadable(path: Path, *, name: str) -> None:
    """Refuse what no reader reads, by the first bytes alone: cheap enough for the moment of an upload."""
    _reader(Source(path, name, Watch(limits=Limits())))


def _reader(source: Source) -> Reader:
    head = _past_blanks(source)
    for reader in READERS:
        if reader.recognises(head):
            return reader
    refuse_report_name(source.name)
    starts_with_magic(head.data)
    raise refuse_unknown(head.data)


def _past_blanks(source: Source) -> Head:
    """The head of the file behind blank bytes; a file of blanks alone is refused."""
    head = source.head()
    if head.data.strip(BLANK):
        return head
    blank, limit = 0, source.limits.blank_bytes
    for chunk in source.chunks():
        if chunk.strip(BLANK):
            return Head(chunk.lstrip(BLANK), source.name)
        blank += len(chunk)
        if blank > limit:
            source.unpacked.refuse_ratio(after=0)
            raise Refusal(RefusalCode.TOO_MANY_BLANKS, {"limit": limit})
    raise Refusal(RefusalCode.EMPTY_AFTER_DECOMPRESSION)


def _refuse_unopenable(path: Path, name: str) -> None:
    try:
        if not path.is_file():
            raise Refusal(RefusalCode.FILE_MISSING, {"name": shown(name)})
        path.open("rb").close()
    except OSError as error:
        raise unopenable(error, name) from error


def unopenable(error: OSError, name: str) -> Refusal:
    """What the operating system says of a file."""
    return Refusal(RefusalCode.FILE_UNREADABLE, {"name": shown(name), "reason": error.strerror or "?"})
