"""What is to be told of a job as a whole: steps, ranks, sizes, waiting, and what had to be assumed."""

from collections import Counter
from collections.abc import Iterable, Sequence

from profiling.notes import Note, NoteCode
from profiling.rank import RankReading
from profiling.timeline import UNKNOWN
from profiling.waiting import Waiting


def workload_notes(rank: RankReading, batch_per_step: float | None) -> list[Note]:
    """What the Workload lacks that is taken from the step of this rank."""
    notes = [] if batch_per_step is not None else [Note(NoteCode.BATCH_UNKNOWN)]
    if rank.precision is None:
        notes.append(Note(NoteCode.PRECISION_ASSUMED, {"precision": "fp32"}))
    return notes


def job_notes(ranks: Sequence[RankReading], waiting: Waiting | None, *, marks: bool) -> list[Note]:
    """What only all ranks together tell.

    ``marks``: the profiler marks steps by itself where its schedule is used, so that their lack is a warning.
    """
    notes = [*_step_notes(ranks, marks), *_rank_notes(ranks)]
    if not any(rank.calls.kind.size for rank in ranks):
        return notes
    if len(ranks) == 1:
        notes.append(Note(NoteCode.COMMUNICATION_UNVERIFIED))
    elif waiting is None:
        notes.append(Note(NoteCode.COLLECTIVES_NOT_ALIGNED))
    elif waiting.late_ranks:
        late = {
            "ranks": ", ".join(str(rank) for rank in waiting.late_ranks),
            "percent": round(100 * waiting.share, 1),
            "late_ms": round(waiting.late_ns / 1e6, 3),
        }
        notes.append(Note(NoteCode.WAITING_FOR_STRAGGLERS, late))
    return notes


def _step_notes(ranks: Sequence[RankReading], marks: bool) -> list[Note]:
    notes: list[Note] = []
    steps = [rank.steps for rank in ranks]
    if any(one.source is None for one in steps):
        notes.append(Note(NoteCode.NO_STEP_MARKERS))
    repeated = [one.repeated for one in steps if one.repeated is not None]
    if repeated:
        code = NoteCode.UNMARKED_REPETITION if marks else NoteCode.STEPS_FROM_REPETITION
        notes.append(Note(code, {"count": min(repeated)}))
    worst = max(steps, key=lambda one: one.first_ratio or 0.0, default=None)
    if worst is not None and worst.first_ratio is not None:
        code = NoteCode.FIRST_STEP_EXCLUDED if worst.set_aside == 1 else NoteCode.FIRST_STEPS_EXCLUDED
        notes.append(Note(code, {"ratio": round(worst.first_ratio, 1), "count": worst.set_aside}))
    return notes


def _rank_notes(ranks: Sequence[RankReading]) -> list[Note]:
    notes = []
    counts = Counter(rank.rank for rank in ranks if rank.rank is not None)
    for rank, count in sorted(counts.items()):
        if count > 1:
            notes.append(Note(NoteCode.DUPLICATE_RANK, {"rank": rank, "count": count}))
    world = max((rank.world_size or 0 for rank in ranks), default=0)
    if len(ranks) > 1 and 0 < len(counts) < world:
        notes.append(Note(NoteCode.RANKS_MISSING, {"seen": len(counts), "world": world}))
    notes += _size_notes(ranks)
    if any(not rank.device_named for rank in ranks):
        notes.append(Note(NoteCode.DEVICE_UNKNOWN))
    return notes


def _size_notes(ranks: Sequence[RankReading]) -> list[Note]:
    """No size at all where the profiler should have recorded them costs the bandwidths; single ones are a remark."""
    missing, other = sum(rank.unsized_nccl for rank in ranks), sum(rank.unsized_other for rank in ranks)
    sized = any((rank.calls.message_bytes != UNKNOWN).any() for rank in ranks)
    if missing and not sized:
        return [Note(NoteCode.MESSAGE_SIZES_UNKNOWN, {"count": missing + other})]
    return [Note(NoteCode.SOME_SIZES_UNKNOWN, {"count": missing + other})] if missing + other else []


def distinct(notes: Iterable[Note]) -> list[Note]:
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
