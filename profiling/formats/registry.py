"""Any file to a Capture. The format is decided by content; a name counts only where bytes say nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from profiling.formats.chrome_json import EventStream
from profiling.formats.containers import Unpacked
from profiling.formats.detect import BLANK, refuse_not_json, refuse_report_name
from profiling.formats.kineto import KinetoCollector
from profiling.formats.kineto_timelines import timelines
from profiling.formats.limits import Limits, Watch
from profiling.notes import Note, NoteCode, Refusal, RefusalCode, shown
from profiling.timeline import Timeline


class Format(StrEnum):
    KINETO = "kineto"
    CHROME_TRACE = "chrome-trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What one file holds: a Timeline per rank, and what the user must know about the reading."""

    format: Format
    timelines: tuple[Timeline, ...]
    notes: tuple[Note, ...]


def read(
    path: Path,
    limits: Limits | None = None,
    *,
    name: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] | None = None,
) -> Capture:
    """Read one file of any known format in memory bounded by its device events.

    ``name`` is the name that the user gave the file, where it is stored under another. ``progress(done, total)``
    counts stored bytes; ``limits.seconds`` holds by ``clock``. Raises :class:`Refusal`.
    """
    limits = limits or Limits()
    name = name or path.name
    _refuse_unopenable(path, name)
    unpacked = Unpacked(path, Watch(limits=limits, progress=progress, clock=clock))
    if path.stat().st_size:
        refuse_report_name(name)
    return _kineto(unpacked, limits, name)


def refuse_unreadable(path: Path, *, name: str) -> None:
    """Refuse what no reader reads, by the first bytes alone: cheap enough for the moment of an upload."""
    unpacked = Unpacked(path, Watch(limits=Limits()))
    if path.stat().st_size:
        refuse_report_name(name)
    next(_checked(unpacked))


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


def _kineto(unpacked: Unpacked, limits: Limits, name: str) -> Capture:
    stream = EventStream(_checked(unpacked), limits)
    seen = KinetoCollector(limits)
    for batch in stream.batches():
        seen.add(batch)
    cut = unpacked.truncated or unpacked.damaged or not stream.complete
    _refuse_without_gpu_work(seen, cut=cut, fault=stream.fault)
    built, told = timelines(seen, stream.metadata, name)
    notes = [*unpacked.notes, *_reading_notes(stream, unpacked), *_content_notes(seen, stream), *told]
    kind = Format.KINETO if "deviceProperties" in stream.metadata or not stream.bare_list else Format.CHROME_TRACE
    return Capture(format=kind, timelines=built, notes=tuple(notes))


def _checked(unpacked: Unpacked) -> Iterator[bytes]:
    """The chunks, when they begin like JSON; blank bytes in front are read over."""
    chunks, limit = unpacked.chunks(), unpacked.watch.limits.blank_bytes
    head, blank = b"", 0
    for head in chunks:
        if head.strip(BLANK):
            break
        blank += len(head)
        if blank > limit:
            unpacked.refuse_ratio(after=0)
            raise Refusal(RefusalCode.TOO_MANY_BLANKS, {"limit": limit})
    refuse_not_json(head)
    yield head
    yield from chunks


def _refuse_without_gpu_work(seen: KinetoCollector, *, cut: bool, fault: Refusal | None) -> None:
    if seen.device.rows:
        return
    if cut:
        raise Refusal(RefusalCode.FILE_TRUNCATED)
    if fault is not None:
        raise fault
    if seen.other_tool:
        raise Refusal(RefusalCode.NOT_READ_YET, {"kind": "JAX or TensorFlow trace"})
    if seen.events == 0:
        raise Refusal(RefusalCode.NO_EVENTS)
    if seen.events == seen.metadata_events:
        raise Refusal(RefusalCode.ONLY_METADATA)
    if seen.operators or seen.calls.ids.size:
        raise Refusal(RefusalCode.NO_GPU_WORK, {"launches": seen.launches, "kernels": 0})
    raise Refusal(RefusalCode.NOT_A_GPU_TRACE, {"events": seen.events})


def _reading_notes(stream: EventStream, unpacked: Unpacked) -> list[Note]:
    notes = [Note(code, {"count": count}) for code, count in stream.repairs.items() if count]
    if unpacked.damaged:
        notes.append(Note(NoteCode.GZIP_DAMAGED, {"events": stream.events}))
    elif unpacked.truncated or not stream.complete:
        notes.append(Note(NoteCode.FILE_TRUNCATED, {"events": stream.events}))
    return notes


def _content_notes(seen: KinetoCollector, stream: EventStream) -> list[Note]:
    notes = [Note(code, {"count": count}) for code, count in seen.counts.items() if count]
    if seen.unknown_dtypes:
        notes.append(Note(NoteCode.UNKNOWN_DTYPE, {"names": shown(", ".join(sorted(seen.unknown_dtypes)[:5]))}))
    warnings = stream.metadata.get("WARNING")
    dropped = [text for text in warnings if isinstance(text, str)] if isinstance(warnings, list) else []
    if dropped:
        notes.append(Note(NoteCode.PROFILER_WARNINGS, {"count": len(dropped), "first": shown(dropped[0])}))
    if seen.operators == 0 and seen.device.processes:
        notes.append(Note(NoteCode.NO_HOST_OPERATORS))
    return notes
