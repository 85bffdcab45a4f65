"""Files of one job to one answer: ranks joined, features for the classifier, the Workload, what else was told."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from statistics import median_low

from profiling.alike import uneven_share
from profiling.breakdown import Breakdown
from profiling.collectives import CollectiveRow, collective_rows
from profiling.enrich import sized_works, with_sizes
from profiling.evidence import Evidence, ExecutionGraph
from profiling.features import Features, Joined, features
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits
from profiling.job_notes import distinct, job_notes, workload_notes
from profiling.notes import Note, NoteCode, Outcome, outcome_of
from profiling.rank import RankReading, read_rank
from profiling.reading import NamedFile, read_captures
from profiling.timeline import UNKNOWN
from profiling.waiting import Waited, Waiting, align
from profiling.workload import MeasuredStep, Mode, Workload

_MARK_STEPS = {Format.KINETO, Format.CHROME_TRACE}
_ASK_FOR_A_TRACE = {
    NoteCode.NO_TIMES,
    NoteCode.NO_TIMELINE,
    NoteCode.SUMMED_PAGE,
    NoteCode.COARSE_SAMPLES,
    NoteCode.MACHINE_ONLY,
}
"""What files without a timeline say of themselves; of no use beside one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading:
    """What is kept of one file: small, whatever the size of the file."""

    format: str
    name: str
    ranks: tuple[RankReading, ...]
    evidence: tuple[Evidence, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """``waiting_ns``: for each rank how long its collectives waited for a later one; None where that is unknown.

    ``features`` is None where no file has a timeline, ``workload`` also where only copies were traced. ``evidence``:
    file name and what it tells.
    """

    format: str
    outcome: Outcome
    notes: tuple[Note, ...]
    ranks: tuple[RankReading, ...]
    waiting_ns: tuple[int | None, ...]
    collectives: tuple[CollectiveRow, ...]
    features: Features | None
    workload: Workload | None
    evidence: tuple[tuple[str, Evidence], ...]

    @property
    def breakdowns(self) -> tuple[Breakdown, ...]:
        """One per rank and device, over all of its device work."""
        return tuple(device.whole for rank in self.ranks for device in rank.devices)


def analyse(
    paths: Sequence[Path | NamedFile],
    limits: Limits | None = None,
    *,
    batch_per_step: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] | None = None,
) -> Analysis:
    """Analyse the files (and the files in folders and archives) of one job together.

    ``progress(done, total)`` counts stored bytes over all files; ``limits.seconds`` holds per file by ``clock``.
    Raises :class:`~profiling.notes.Refusal` where a named file cannot be answered.
    """
    files, notes = read_captures(paths, limits or Limits(), progress, clock, keep=read_file)
    return join_files(files, notes=notes, batch_per_step=batch_per_step)


def read_file(capture: Capture, alive: Callable[[], None] = lambda: None) -> FileReading:
    """What is kept of a capture; ``alive()`` is called now and then while that is worked out."""
    return FileReading(
        format=capture.format,
        name=capture.name,
        ranks=tuple(read_rank(line, alive) for line in capture.timelines),
        evidence=capture.evidence,
        notes=capture.notes,
    )


def join_files(
    files: Sequence[FileReading], *, notes: Iterable[Note] = (), batch_per_step: float | None = None
) -> Analysis:
    """The answer for a job from all of its files, in whatever order they were read."""
    ranks = tuple(
        sorted(
            (rank for file in files for rank in file.ranks),
            key=lambda rank: (rank.rank is None, rank.rank or 0, rank.source),
        )
    )
    graphs = [found for file in files for found in file.evidence if isinstance(found, ExecutionGraph)]
    ranks = tuple(_sized(rank, graphs) for rank in ranks)
    waiting = _waiting(ranks)
    workload = _workload(ranks, waiting, batch_per_step)
    told = distinct(
        [
            *notes,
            *(note for file in files for note in file.notes if not (ranks and note.code in _ASK_FOR_A_TRACE)),
            *job_notes(ranks, waiting, marks=any(file.format in _MARK_STEPS and file.ranks for file in files)),
            *([] if workload is None else workload_notes(ranks[median_rank(ranks)], batch_per_step)),
        ]
    )
    return Analysis(
        format=files[0].format,
        outcome=outcome_of(told),
        notes=tuple(told),
        ranks=ranks,
        waiting_ns=tuple(
            None if waiting is None else waiting.of_rank(rank.calls, place) for place, rank in enumerate(ranks)
        ),
        collectives=collective_rows([rank.calls for rank in ranks], waiting),
        features=_features(ranks, waiting) if ranks else None,
        workload=workload,
        evidence=tuple((file.name, found) for file in files for found in file.evidence),
    )


def _waiting(ranks: Sequence[RankReading]) -> Waiting | None:
    """Ranks without numbers are told apart only where they are processes of one capture."""
    if any(rank.rank is None for rank in ranks) and len({rank.source for rank in ranks}) > 1:
        return None
    world = max((rank.world_size or 0 for rank in ranks), default=0)
    return align([(rank.rank, rank.calls) for rank in ranks], world_size=world or None)


def _sized(rank: RankReading, graphs: Sequence[ExecutionGraph]) -> RankReading:
    """The rank with the sizes of its collectives from the execution graph of its run, where one is there."""
    for graph in graphs:
        if None not in (rank.rank, graph.rank) and rank.rank != graph.rank:
            continue
        calls = with_sizes(rank.calls, graph)
        if calls is not rank.calls:
            works = sized_works(rank.step.collectives, rank.calls, calls, rank.steps.typical)
            missing = int((calls.message_bytes == UNKNOWN).sum())
            return replace(
                rank,
                calls=calls,
                step=replace(rank.step, collectives=works),
                unsized_nccl=min(rank.unsized_nccl, missing),
                unsized_other=min(rank.unsized_other, missing),
            )
    return rank


def gpu_count(ranks: Iterable[RankReading]) -> int:
    """World size where a rank knows it, but never fewer than the devices that are seen at work."""
    seen = list(ranks)
    return max([sum(len(rank.devices) for rank in seen), *(rank.world_size or 0 for rank in seen)])


def _features(ranks: Sequence[RankReading], waiting: Waiting | None) -> Features:
    waited = None if waiting is None else [_waited(rank, place, waiting) for place, rank in enumerate(ranks)]
    joined = Joined(
        waited=None if waited is None else Waited(sum(w.exposed_ns for w in waited), sum(w.hidden_ns for w in waited)),
        late_ns=None if waited is None else _late_ns(ranks, [one.exposed_ns for one in waited]),
        uneven=uneven_share([(rank.calls, rank.steps.region) for rank in ranks]),
        trains=any(rank.training for rank in ranks),
        steps=median_low(rank.steps.in_region for rank in ranks),
    )
    shares = [device.region for rank in ranks for device in rank.devices]
    return features(shares, joined=joined, gpus=gpu_count(ranks))


def _waited(rank: RankReading, place: int, waiting: Waiting) -> Waited:
    """Of one rank, no more than its communication in the time that speaks for the run."""
    region = rank.steps.region
    found = waiting.within(rank.calls, place, region.low_ns, region.high_ns)
    return Waited(
        min(found.exposed_ns, sum(device.region.parts.exposed_comm_ns for device in rank.devices)),
        min(found.hidden_ns, sum(device.region.parts.hidden_comm_ns for device in rank.devices)),
    )


def _late_ns(ranks: Sequence[RankReading], waited_ns: Sequence[int]) -> int | None:
    """Over all ranks, how much of their waiting was for ranks whose GPUs had nothing to do; None where idle is not
    known.

    By what the others were idle longer than the rank that waits, as in ``_late_launch_s``, in equal parts of the
    windows: these need not be of one length.
    """
    if not all(rank.idle_known for rank in ranks):
        return None
    windows = [sum(device.region.parts.window_ns for device in rank.devices) for rank in ranks]
    idle = [sum(device.region.parts.idle_ns for device in rank.devices) for rank in ranks]
    shares = [part / max(window, 1) for part, window in zip(idle, windows, strict=True)]
    return sum(
        round(min(window * sum(max(other - own, 0.0) for other in shares), waited))
        for own, window, waited in zip(shares, windows, waited_ns, strict=True)
    )


def _workload(ranks: Sequence[RankReading], waiting: Waiting | None, batch_per_step: float | None) -> Workload | None:
    """The Workload of a job: its typical step on the rank whose step has the median length; None of copies alone.

    ``batch_per_step``: samples per step of the whole job; a capture does not tell. Without it one step counts as one
    sample, and a note says so.
    """
    if all(rank.copies_alone for rank in ranks):
        return None
    place = median_rank(ranks)
    rank = ranks[place]
    return Workload(
        name=PurePath(rank.source).name.partition(".")[0][:80] or "trace",
        mode=Mode.TRAINING if rank.training else Mode.INFERENCE,
        precision=rank.precision or "fp32",
        batch_per_step=batch_per_step if batch_per_step is not None else 1.0,
        measured=_job_step(ranks, place, waiting),
        peak_memory_bytes=rank.peak_memory_bytes,
    )


def median_rank(ranks: Sequence[RankReading]) -> int:
    """Place of the rank whose typical step has the (lower) median length."""
    order = sorted(range(len(ranks)), key=lambda at: (ranks[at].step_parts.window_ns, at))
    return order[(len(order) - 1) // 2]


def _job_step(ranks: Sequence[RankReading], place: int, waiting: Waiting | None) -> MeasuredStep:
    rank = ranks[place]
    if waiting is None:
        return replace(rank.step, gpu_count=gpu_count(ranks), waiting_s=None)
    waited = [_step_waiting_s(one, at, waiting) for at, one in enumerate(ranks)]
    return replace(
        rank.step,
        gpu_count=gpu_count(ranks),
        waiting_s=waited[place],
        late_launch_s=_late_launch_s(ranks, place, waited[place]),
    )


def _step_waiting_s(rank: RankReading, place: int, waiting: Waiting) -> float:
    window = rank.steps.typical
    return waiting.within(rank.calls, place, window.low_ns, window.high_ns).exposed_ns / 1e9


def _late_launch_s(ranks: Sequence[RankReading], place: int, waited_s: float) -> float | None:
    """How much of a rank's waiting was for ranks whose GPUs had nothing to do, so that their hosts were late.

    Different ranks may be the late one in different calls: what they were idle longer than this rank adds up.
    """
    if not all(rank.idle_known for rank in ranks):
        return None
    own_s = ranks[place].step.idle_s
    return min(sum(max(rank.step.idle_s - own_s, 0.0) for rank in ranks), waited_s)
