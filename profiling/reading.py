"""Files, folders and archives of one job to the captures in them, and what was left out and why."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Generic, TypeVar

from profiling.formats.archives import Found, is_hidden, opened
from profiling.formats.capture import Capture
from profiling.formats.limits import Limits, Watch
from profiling.formats.registry import reader_of, refuse_unopenable
from profiling.formats.rocprof_run import run_of
from profiling.formats.source import Source
from profiling.fragments import Trace, fragments, traces
from profiling.notes import UPLOAD_LIMITS, Note, NoteCode, Refusal, RefusalCode, shown

_NAMES_SHOWN = 5
_BY_PRODUCTS = frozenset(
    {
        RefusalCode.EMPTY_FILE,
        RefusalCode.TEXT_FILE,
        RefusalCode.UNKNOWN_BINARY,
        RefusalCode.NO_TRACE_EVENTS,
        RefusalCode.NO_EVENTS,
        RefusalCode.ONLY_METADATA,
        RefusalCode.NOT_A_GPU_TRACE,
    }
)
"""What lies beside captures in every folder. Where nothing else is found, any other refusal says more."""

Kept = TypeVar("Kept")
Ignored = tuple[str, Refusal]


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A stored file and the name that its owner gave it."""

    path: Path
    name: str


@dataclass(slots=True)
class _Reading(Generic[Kept]):
    """What the files of an upload have given so far; the lists of captures have one place for each.

    ``is_alone``: there is only one file, so that nothing is cut out of it unless it is an archive. ``runs``: files that
    are read together once all are there, by the name of the run; ``folder`` holds those of archives, and what is
    compared to find fragments.
    """

    keep: Callable[[Capture], Kept]
    is_alone: bool
    folder: Path
    runs: dict[str, list[tuple[str, Source]]] = field(default_factory=dict)
    kept: list[Kept] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    events: list[tuple[Trace, ...]] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)

    def add(self, file: NamedFile, watch: Watch) -> list[Ignored]:
        """All captures of one file. Returns what in it is none; raises Refusal at a limit of the whole upload."""
        refuse_unopenable(file.path, file.name)
        source = Source(file.path, file.name, watch)
        ignored = []
        for found in opened(source, file.name):
            refusal = self._take(found, is_alone=self.is_alone and found.source is source)
            if refusal is not None and refusal.code in UPLOAD_LIMITS:
                raise refusal
            if refusal is not None:
                ignored.append((found.path, refusal))
        return ignored

    def _take(self, found: Found, *, is_alone: bool) -> Refusal | None:
        if isinstance(found.source, Refusal):
            return found.source
        try:
            reader = reader_of(found.source)
            if reader.read_together is None or is_alone:
                self._keep(found.path, found.source.name, reader.read(found.source), is_alone=is_alone)
            else:
                self._hold(found.path, found.source)
        except Refusal as refusal:
            return refusal
        return None

    def _keep(self, path: str, name: str, capture: Capture, *, is_alone: bool) -> None:
        self.events.append(() if is_alone else traces(capture, Path(tempfile.mkdtemp(dir=self.folder))))
        self.names.append(path)
        self.kept.append(self.keep(replace(capture, name=name)))

    def _hold(self, path: str, source: Source) -> None:
        if source.layers:
            stays = self.folder / str(sum(map(len, self.runs.values())))
            shutil.copyfile(source.path, stays)
            source = Source(stays, source.name, source.watch, source.layers)
        self.runs.setdefault(run_of(source.name) or source.name, []).append((path, source))

    @property
    def taken(self) -> int:
        """How many files were not refused so far."""
        return len(self.kept) + sum(map(len, self.runs.values()))

    def read_runs(self) -> None:
        """Read the files that were held back. Raises Refusal at a limit of the whole upload."""
        for run in self.runs.values():
            path, first = run[0]
            try:
                capture = reader_of(first).read_together([source for _, source in run])
                self._keep(path, first.name, capture, is_alone=False)
            except Refusal as refusal:
                if refusal.code in UPLOAD_LIMITS:
                    raise
                self.ignored += [(path, refusal) for path, _ in run]


def read_captures(
    paths: Sequence[Path | NamedFile],
    limits: Limits,
    progress: Callable[[int, int], None] | None,
    clock: Callable[[], float] | None,
    *,
    keep: Callable[[Capture], Kept] = lambda capture: capture,
    scratch: Path | None = None,
) -> tuple[list[Kept], list[Note]]:
    """What ``keep`` keeps of each capture in the files, read one after the other, and what is to be told of the rest.

    A file that is named itself must be a capture; in folders and archives what cannot be read is left out, unless
    nothing is left. ``progress(done, total)`` counts stored bytes; ``limits.seconds`` holds per named file by
    ``clock``. ``scratch``: folder for temporary files. Raises Refusal.
    """
    files = [one for path in paths for one in _files(path)]
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        reading = _Reading(keep, len(files) == 1, Path(folder))
        _read_files(files, reading, limits, progress, clock, scratch)
        reading.read_runs()
        total = _stored_bytes(files)
        cut_out = fragments(reading.events, lambda: progress(total, total) if progress else None)
    if not reading.kept:
        raise _nothing_left(reading.ignored)
    kept = [one for place, one in enumerate(reading.kept) if place not in cut_out]
    return kept, [*_ignored_notes(reading.ignored), *_fragment_notes(reading.names, cut_out)]


def _read_files(
    files: Sequence[tuple[NamedFile, bool]],
    reading: _Reading,
    limits: Limits,
    progress: Callable[[int, int], None] | None,
    clock: Callable[[], float] | None,
    scratch: Path | None,
) -> None:
    total, done = _stored_bytes(files), 0
    for file, is_named in files:
        report = None if progress is None else _shifted(progress, done, total)
        watch = Watch(limits=limits, progress=report, clock=clock, scratch=scratch)
        before = reading.taken
        try:
            ignored = reading.add(file, watch)
            if is_named and reading.taken == before:
                raise _nothing_left(ignored)
        except Refusal as refusal:
            raise _naming(refusal, file.name, len(files)) from None
        reading.ignored += ignored
        done += file.path.stat().st_size


def _stored_bytes(files: Sequence[tuple[NamedFile, bool]]) -> int:
    return sum(file.path.stat().st_size for file, _ in files if file.path.is_file())


def _files(path: Path | NamedFile) -> Iterator[tuple[NamedFile, bool]]:
    """Files to read, and whether each was named or found in a folder."""
    file = path if isinstance(path, NamedFile) else NamedFile(path, path.name)
    if not file.path.is_dir():
        yield file, True
        return
    for one in sorted(file.path.rglob("*")):
        if one.is_file() and not is_hidden(one.relative_to(file.path)):
            yield NamedFile(one, one.name), False


def _nothing_left(ignored: Sequence[Ignored]) -> Refusal:
    """The refusal that says most of an upload without any capture."""
    if not ignored:
        return Refusal(RefusalCode.NOTHING_INSIDE)
    if len(ignored) == 1:
        return ignored[0][1]
    for path, refusal in ignored:
        if refusal.code not in _BY_PRODUCTS:
            return _naming(refusal, path, len(ignored))
    return Refusal(RefusalCode.NO_TRACE_IN_FOLDER, {"count": len(ignored)})


def _ignored_notes(ignored: Sequence[Ignored]) -> list[Note]:
    """One note per reason, in order of appearance."""
    reasons: dict[tuple[RefusalCode, object], list[Ignored]] = {}
    for path, refusal in ignored:
        reasons.setdefault((refusal.code, refusal.params.get("kind")), []).append((path, refusal))
    return [
        Note(NoteCode.ARCHIVE_DAMAGED, {"names": _names(path for path, _ in group)})
        if code == RefusalCode.ARCHIVE_DAMAGED
        else Note(
            NoteCode.FILES_IGNORED,
            {**group[0][1].params, "names": _names(path for path, _ in group), "count": len(group), "why": code},
        )
        for (code, _), group in reasons.items()
    ]


def _fragment_notes(names: Sequence[str], cut_out: dict[int, int]) -> list[Note]:
    groups: dict[int, list[str]] = {}
    for place, whole in cut_out.items():
        groups.setdefault(whole, []).append(names[place])
    return [
        Note(
            NoteCode.FRAGMENTS_IGNORED,
            {"names": _names(parts), "count": len(parts), "whole": shown(_last(names[whole]))},
        )
        for whole, parts in groups.items()
    ]


def _names(paths: Iterator[str] | Sequence[str]) -> str:
    """The first few file names, fit to be shown."""
    names = [shown(_last(path)) for path in paths]
    more = ["…"] if len(names) > _NAMES_SHOWN else []
    return ", ".join([*names[:_NAMES_SHOWN], *more])


def _last(path: str) -> str:
    return PurePosixPath(path).name


def _naming(refusal: Refusal, name: str, files: int) -> Refusal:
    """The refusal, saying which file it means where there are several."""
    if files == 1 or "file" in refusal.params:
        return refusal
    return Refusal(refusal.code, {**refusal.params, "file": shown(_last(name))})


def _shifted(progress: Callable[[int, int], None], done: int, total: int) -> Callable[[int, int], None]:
    return lambda now, _: progress(done + now, total)
