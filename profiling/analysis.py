"""Files of one job to one answer: breakdowns, features for the classifier, the Workload."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profiling.breakdown import Breakdown, breakdowns
from profiling.features import Features, features
from profiling.formats.capture import Capture
from profiling.formats.limits import Limits
from profiling.formats.registry import read
from profiling.notes import Note, NoteCode, Outcome, Refusal, RefusalCode, outcome_of, shown
from profiling.steps import Steps, find_steps, repetitions
from profiling.timeline import UNKNOWN, Timeline
from profiling.waiting import Waiting, align
from profiling.workload import Workload
from profiling.workload_from_trace import workload_from_trace

_NCCL = re.compile(r"(void )?[nr]ccl", re.IGNORECASE)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """``ranks``: one breakdown per rank and device, over all of its device work.

    ``waiting_ns``: for each of these how long its collectives waited for a later rank; None where that is unknown.
    """

    format: str
    outcome: Outcome
    notes: tuple[Note, ...]
    ranks: tuple[Breakdown, ...]
    waiting_ns: tuple[int | None, ...]
    features: Features
    workload: Workload


def analyse(
    paths: Sequence[Path | NamedFile],
    limits: Limits | None = None,
    *,
    batch_per_step: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] | None = None,
) -> Analysis:
    """Analyse the files (and the files in the folders) of one job together.

    ``progress(done, total)`` counts stored bytes over all files; ``limits.seconds`` holds per file by ``clock``.
    Raises :class:`Refusal` where a named file cannot be answered.
    """
    captures, notes = read_captures(paths, limits or Limits(), progress, clock)
    return analyse_captures(captures, notes=notes, batch_per_step=batch_per_step)


def analyse_captures(
    captures: Sequence[Capture], *, notes: Iterable[Note] = (), batch_per_step: float | None = None
) -> Analysis:
    """The same from captures that were read already, for instance one per worker."""
    timelines = sorted(
        (line for capture in captures for line in capture.timelines),
        key=lambda line: (line.rank is None, line.rank or 0, line.source),
    )
    steps = [find_steps(line) for line in timelines]
    waiting = align(timelines)
    described = workload_from_trace(timelines, steps, waiting, batch_per_step=batch_per_step)
    told = [
        *notes,
        *(note for capture in captures for note in capture.notes),
        *_job_notes(timelines, steps, waiting),
        *described.notes,
    ]
    told = _distinct(told)
    return Analysis(
        format=captures[0].format,
        outcome=outcome_of(told),
        notes=tuple(told),
        ranks=tuple(part for line in timelines for part in breakdowns(line)),
        waiting_ns=_waiting_ns(timelines, waiting),
        features=features(timelines, [one.region for one in steps], waiting),
        workload=described.workload,
    )


def _waiting_ns(timelines: Sequence[Timeline], waiting: Waiting | None) -> tuple[int | None, ...]:
    """One figure per rank and device; a rank's waiting cannot be given to one of several devices."""
    return tuple(
        None if waiting is None or len(line.devices) > 1 else int(waiting.per_collective_ns[place].sum())
        for place, line in enumerate(timelines)
        for _ in line.devices
    )


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


def _job_notes(timelines: Sequence[Timeline], steps: Sequence[Steps], waiting: Waiting | None) -> list[Note]:
    notes = [*_step_notes(timelines, steps), *_rank_notes(timelines)]
    communicates = any(line.collectives.row.size for line in timelines)
    if not communicates:
        return notes
    if len(timelines) == 1:
        notes.append(Note(NoteCode.COMMUNICATION_UNVERIFIED))
    elif waiting is None:
        notes.append(Note(NoteCode.COLLECTIVES_NOT_ALIGNED))
    elif waiting.late_ranks:
        ranks = ", ".join(str(rank) for rank in waiting.late_ranks)
        notes.append(
            Note(
                NoteCode.WAITING_FOR_STRAGGLERS,
                {
                    "ranks": ranks,
                    "percent": round(100 * waiting.share, 1),
                    "late_ms": round(waiting.late_ns / 1e6, 3),
                },
            )
        )
    return notes


def _step_notes(timelines: Sequence[Timeline], steps: Sequence[Steps]) -> list[Note]:
    notes = []
    if any(one.observed is None for one in steps):
        notes.append(Note(NoteCode.NO_STEP_MARKERS))
        repeated = repetitions(timelines[0]) if len(timelines) == 1 else None
        if repeated is not None:
            notes.append(Note(NoteCode.UNMARKED_REPETITION, {"count": repeated}))
    ratio = max((one.first_ratio for one in steps if one.first_ratio is not None), default=None)
    if ratio is not None:
        notes.append(Note(NoteCode.FIRST_STEP_EXCLUDED, {"ratio": round(ratio, 1)}))
    return notes


def _rank_notes(timelines: Sequence[Timeline]) -> list[Note]:
    notes = []
    counts = Counter(line.rank for line in timelines if line.rank is not None)
    for rank, count in sorted(counts.items()):
        if count > 1:
            notes.append(Note(NoteCode.DUPLICATE_RANK, {"rank": rank, "count": count}))
    world = max((line.world_size or 0 for line in timelines), default=0)
    if len(timelines) > 1 and 0 < len(counts) < world:
        notes.append(Note(NoteCode.RANKS_MISSING, {"seen": len(counts), "world": world}))
    notes += _size_notes(timelines)
    if any(not any(line.device_names.values()) for line in timelines):
        notes.append(Note(NoteCode.DEVICE_UNKNOWN))
    return notes


def _size_notes(timelines: Sequence[Timeline]) -> list[Note]:
    """Sizes that the profiler should have recorded, and sizes that such captures or kernels never carry."""
    counts: Counter[NoteCode] = Counter()
    for line in timelines:
        missing = line.collectives.row[line.collectives.message_bytes == UNKNOWN]
        nccl = np.array([bool(_NCCL.match(name)) for name in line.names])[line.name_id[missing]]
        expected = int(nccl.sum()) if line.world_size is not None else 0
        counts[NoteCode.MESSAGE_SIZES_UNKNOWN] += expected
        counts[NoteCode.SOME_SIZES_UNKNOWN] += missing.size - expected
    return [Note(code, {"count": count}) for code, count in counts.items() if count]


def _distinct(notes: Iterable[Note]) -> list[Note]:
    """Each finding once; the same finding of several files with its counts added."""
    merged: dict[tuple[NoteCode, tuple[tuple[str, object], ...]], Note] = {}
    for note in notes:
        key = (note.code, tuple(sorted((name, value) for name, value in note.params.items() if name != "count")))
        count = note.params.get("count")
        if key in merged and isinstance(count, int):
            count += int(merged[key].params["count"])
            note = Note(note.code, {**note.params, "count": count})
        merged[key] = note
    return list(merged.values())
