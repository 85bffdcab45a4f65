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
from profiling.notes import Note, NoteCode, Outcome, outcome_of
from profiling.reading import NamedFile, read_captures
from profiling.steps import Steps, find_steps, repetitions
from profiling.timeline import UNKNOWN, Timeline
from profiling.waiting import Waiting, align
from profiling.workload import Workload
from profiling.workload_from_trace import workload_from_trace

_NCCL = re.compile(r"(void )?[nr]ccl", re.IGNORECASE)


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
    Raises :class:`~profiling.notes.Refusal` where a named file cannot be answered.
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
