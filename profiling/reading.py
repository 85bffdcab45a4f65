"""Files, folders and archives of one job to the captures in them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiling.formats.capture import Capture
from profiling.formats.limits import Limits
from profiling.formats.registry import read
from profiling.notes import Note, NoteCode, Refusal, RefusalCode, shown

_BY_PRODUCTS = frozenset(
    {
        RefusalCode.EMPTY_FILE,
        RefusalCode.TEXT_FILE,
        RefusalCode.UNKNOWN_BINARY,
        RefusalCode.NOT_READ_YET,
        RefusalCode.EXPORT_NEEDED,
        RefusalCode.NO_TRACE_EVENTS,
        RefusalCode.INVALID_JSON,
        RefusalCode.NO_EVENTS,
        RefusalCode.ONLY_METADATA,
        RefusalCode.NOT_A_GPU_TRACE,
    }
)
"""What a capture folder holds besides captures; ignored there, refused where named."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A stored file and the name that its owner gave it."""

    path: Path
    name: str


def read_captures(
    paths: Sequence[Path | NamedFile],
    limits: Limits,
    progress: Callable[[int, int], None] | None,
    clock: Callable[[], float] | None,
) -> tuple[list[Capture], list[Note]]:
    entries = [(file, named) for path in paths for file, named in _expanded(path)]
    total = sum(file.path.stat().st_size for file, _ in entries if file.path.is_file())
    captures: list[Capture] = []
    ignored: list[str] = []
    done = 0
    for file, named in entries:
        report = None if progress is None else _shifted(progress, done, total)
        try:
            captures.append(read(file.path, limits, name=file.name, progress=report, clock=clock))
        except Refusal as refusal:
            if named or refusal.code not in _BY_PRODUCTS:
                raise _naming(refusal, file.name, len(entries)) from None
            ignored.append(file.name)
        done += file.path.stat().st_size
    if not captures:
        raise Refusal(RefusalCode.NO_TRACE_IN_FOLDER, {"count": len(ignored)})
    notes = (
        [Note(NoteCode.FILES_IGNORED, {"names": shown(", ".join(ignored[:5])), "count": len(ignored)})]
        if ignored
        else []
    )
    return captures, notes


def _naming(refusal: Refusal, name: str, files: int) -> Refusal:
    """The refusal, saying which file it means where there are several."""
    return Refusal(refusal.code, {**refusal.params, "file": shown(name)}) if files > 1 else refusal


def _shifted(progress: Callable[[int, int], None], done: int, total: int) -> Callable[[int, int], None]:
    return lambda now, _: progress(done + now, total)


def _expanded(path: Path | NamedFile) -> list[tuple[NamedFile, bool]]:
    """Files to read, and whether each was named or found in a folder."""
    file = path if isinstance(path, NamedFile) else NamedFile(path, path.name)
    if not file.path.is_dir():
        return [(file, True)]
    found = sorted(one for one in file.path.rglob("*") if one.is_file() and not one.name.startswith((".", "._")))
    return [(NamedFile(one, one.name), False) for one in found if "__MACOSX" not in one.parts]
