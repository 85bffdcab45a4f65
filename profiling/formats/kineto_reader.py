"""The reader of Kineto and other Chrome traces: text to events to Timelines."""

import re
from collections.abc import Iterator

from profiling.formats import xla_trace
from profiling.formats.capture import Capture, Format
from profiling.formats.chrome_json import EventStream
from profiling.formats.containers import Unpacked
from profiling.formats.detect import BLANK
from profiling.formats.kineto import KinetoCollector
from profiling.formats.kineto_timelines import timelines, warnings
from profiling.formats.named_rows import add_named_rows
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode, shown


def recognises(head: Head) -> bool:
    """True for anything that starts like JSON: what kind it is shows only in its events."""
    text = head.data.lstrip(BLANK)
    return text[:1] == b"{" or re.match(rb"\[\s*([\[\]{]|\Z)", text) is not None


def read(source: Source) -> Capture:
    """One Timeline per rank in the file, in memory bounded by its device events. Raises Refusal.

    A trace of XLA whose processes are named late is handed on to its own reader.
    """
    limits = source.limits
    seen = KinetoCollector(limits)
    stream = EventStream(_plain(source), limits, seen.decode)
    for batch in stream.batches():
        seen.add(batch)
    if not seen.device.rows and seen.named.maker is not None:
        for batch in EventStream(_plain(source), limits).batches():
            seen.counts[NoteCode.BAD_TIMES] += add_named_rows(batch, seen.named, seen.device)
    unpacked = source.unpacked
    cut = unpacked.truncated or unpacked.damaged or not stream.complete
    if seen.other_tool and not seen.device.rows:
        return xla_trace.read(source)
    _refuse_without_gpu_work(seen, cut=cut, fault=stream.fault)
    built, told = timelines(seen, stream.metadata, source.name, cut=cut)
    notes = [*unpacked.notes, *_reading_notes(stream, unpacked), *_content_notes(seen, stream), *told]
    by_category = "deviceProperties" in stream.metadata or (not stream.bare_list and seen.named.maker is None)
    kind = Format.KINETO if by_category else Format.CHROME_TRACE
    return Capture(format=kind, timelines=built, notes=tuple(notes))


def _plain(source: Source) -> Iterator[bytes]:
    """The chunks without blank bytes in front, as far as the limit for these allows."""
    blank, limit = 0, source.limits.blank_bytes
    chunks = source.chunks()
    for chunk in chunks:
        if chunk.strip(BLANK):
            yield chunk
            break
        blank += len(chunk)
        if blank > limit:
            source.unpacked.refuse_ratio(after=0)
            raise Refusal(RefusalCode.TOO_MANY_BLANKS, {"limit": limit})
    yield from chunks


def _refuse_without_gpu_work(seen: KinetoCollector, *, cut: bool, fault: Refusal | None) -> None:
    if seen.device.rows:
        return
    if cut:
        raise Refusal(RefusalCode.FILE_TRUNCATED)
    if fault is not None:
        raise fault
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
    if seen.occupancies_lost:
        notes.append(Note(NoteCode.OCCUPANCY_UNKNOWN, {"count": seen.occupancies_lost}))
    logged = warnings(stream.metadata)
    if logged:
        notes.append(Note(NoteCode.PROFILER_WARNINGS, {"count": len(logged), "first": shown(logged[0])}))
    if seen.operators == 0 and seen.device.processes:
        notes.append(Note(NoteCode.NO_HOST_OPERATORS))
    return notes
