"""The reader of Nsight Systems exports in SQLite. The schema changes with every version: only names count.

A file may hold many processes. Processes that share a GPU are one Timeline, since a GPU is busy whoever uses it; other
processes are ranks of their own. The environment, command lines and host names of the export are never read.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from profiling.evidence import Evidence
from profiling.formats.assemble import Around, assemble_groups
from profiling.formats.capture import Capture, Format
from profiling.formats.columns import DeviceColumns
from profiling.formats.nsys_device import COPIES, FILLS, GRAPHS, KERNELS, DeviceWork
from profiling.formats.nsys_host import CALLS, RANGES, Calls, Marks, host_side
from profiling.formats.nsys_metrics import device_loads
from profiling.formats.nsys_tables import Export
from profiling.formats.numbers import integer
from profiling.formats.sqlite_file import Database
from profiling.marks import steps_from_ranges
from profiling.notes import Note, NoteCode, Refusal, RefusalCode, shown
from profiling.timeline import NVIDIA, StepSource, Timeline

_OF_NSYS = ("target_info_session_start_time", "meta_data_export", "export_meta_data", "analysis_details", RANGES, CALLS)
_ENVIRONMENT = re.compile(r"env(?:ironment)?(?:_?var|:|$)", re.IGNORECASE)
_LOST = re.compile(
    r"\b(?:dropped|drop|lost|losing|discarded|missing|overflow(?:ed)?|incomplete)\b"
    r"|not all\b.{1,80}\bcollected|buffers?.{1,40}\bfull\b",
    re.IGNORECASE | re.DOTALL,
)
_NONE_LOST = re.compile(
    r"\b(?:no|0)\b.{1,60}\b(?:dropped|lost|missing)|\b(?:dropped|lost)\b[^.\d]{0,40}\b0\b", re.IGNORECASE
)
_OF_DEVICE = re.compile(r"cuda|cupti|gpu|kernel event|device", re.IGNORECASE)
_OF_HOST = re.compile(
    r"nvtx|os runtime|osrt|sample|sampling|backtrace|opengl|vulkan|thread|ftrace|perf\b|mpi|ucx", re.IGNORECASE
)


def read_database(database: Database) -> Capture:
    """A Timeline per group of processes that share devices, in memory bounded by device work. Raises Refusal."""
    source = database.source
    export = Export(database)
    work = DeviceWork(export, DeviceColumns(source.limits), _gpus(export))
    work.read()
    if not work.columns.rows:
        raise _without_work(export)
    calls, marks = Calls(work), Marks(work)
    calls.read()
    marks.read()
    around = Around(
        source=source.name,
        device_names=_device_names(export, work),
        vendor=NVIDIA,
        epoch_ns=_epoch_ns(export),
        incomplete=_lost(export),
        idle_known=not calls.graphs_under_recorded,
    )
    told = [*source.notes, *_content_notes(work, calls, incomplete=around.incomplete), *_environment_notes(export)]
    loads: tuple[Evidence, ...] = tuple(device_loads(export))
    lines, notes = _timelines(work, calls, marks, around)
    return Capture(format=Format.NSYS_SQLITE, timelines=lines, evidence=loads, notes=(*told, *notes))


def _without_work(export: Export) -> Refusal:
    """Why an export without device work cannot be answered."""
    if any(export.has(table) for table in (*_OF_NSYS, KERNELS, COPIES, FILLS, GRAPHS)):
        return Refusal(RefusalCode.CUDA_NOT_TRACED)
    return Refusal(RefusalCode.NOT_READ_YET, {"kind": "SQLite database"})


def _gpus(export: Export) -> dict[tuple[int, int], int]:
    """(process id, device of the process) to physical GPU."""
    found = {}
    for row in export.rows("target_info_cuda_device", ("pid", "cudaId", "gpuId")):
        pid, device, gpu = (integer(value, high=1 << 30) for value in row)
        if pid is not None and device is not None and gpu is not None:
            found.setdefault((pid, device), gpu)
    return found


def _device_names(export: Export, work: DeviceWork) -> dict[int, str]:
    """Name of each device of the machine, by physical number where rows are numbered so, else as CUDA numbers it."""
    found = {}
    for number, ordinal, name in export.rows("target_info_gpu", ("id", "cuDevice", "name")):
        usual = integer(ordinal, high=1 << 30)
        index = integer(number, high=1 << 30) if work.gpus or usual is None else usual
        if index is not None and isinstance(name, str) and len(found) < work.columns.limits.devices:
            found.setdefault(index, name.strip()[:120])
    return found


def _epoch_ns(export: Export) -> int | None:
    first = next(export.rows("target_info_session_start_time", ("utcEpochNs",)), None)
    return None if first is None else integer(first[0], low=1)


def _lost(export: Export) -> bool:
    """Whether the profiler says that it lost events of devices."""
    return any(isinstance(text, str) and _tells_of_loss(text) for (text,) in export.rows("diagnostic_event", ("text",)))


def _tells_of_loss(text: str) -> bool:
    text = text[:1000]
    if not _LOST.search(text) or _NONE_LOST.search(text):
        return False
    return bool(_OF_DEVICE.search(text)) or not _OF_HOST.search(text)


def _content_notes(work: DeviceWork, calls: Calls, *, incomplete: bool) -> Iterator[Note]:
    if incomplete:
        yield Note(NoteCode.EVENTS_DROPPED)
    counts = {
        NoteCode.BAD_TIMES: work.bad_times,
        NoteCode.NEGATIVE_DURATIONS: work.negative,
        NoteCode.GRAPHS_WHOLE: work.graphs,
    }
    yield from (Note(code, {"count": count}) for code, count in counts.items() if count)
    if calls.graphs_under_recorded:
        seen = {"count": calls.graphs, "seen": calls.graphs_at_work}
        yield Note(NoteCode.GRAPHS_UNDER_RECORDED, seen)


def _environment_notes(export: Export) -> list[Note]:
    """Told by the names of entries alone; their values stay unread."""
    names = (
        name for table in ("meta_data_capture", "target_info_system_env") for (name,) in export.rows(table, ("name",))
    )
    seen = any(isinstance(name, str) and _ENVIRONMENT.search(name[:200]) for name in names)
    return [Note(NoteCode.ENVIRONMENT_NOT_READ)] if seen else []


def _timelines(work: DeviceWork, calls: Calls, marks: Marks, around: Around) -> tuple[tuple[Timeline, ...], list[Note]]:
    notes: list[Note] = []
    groups = []
    for members in _sharing(work.columns):
        mine = replace(around, host=host_side(calls, marks, members))
        marked = steps_from_ranges(marks.ranges(members))
        if marked is not None:
            mine = replace(mine, steps=marked.steps, steps_from=StepSource.RANGES)
            told = {"count": len(marked.steps), "name": shown(marked.name)}
            notes = notes or [Note(NoteCode.STEPS_FROM_RANGES, told)]
        groups.append((members, mine))
    launched = calls.launched.starts_of(work.columns.column("correlation")) if work.export.has(CALLS) else None
    lines, more = assemble_groups(work.columns, launched, groups)
    return lines, [*notes, *more]


def _sharing(device: DeviceColumns) -> list[list[int]]:
    """Numbers of the processes of each group, in order of the group's first device."""
    pairs = np.unique(np.stack((device.column("device"), device.column("process"))), axis=1).T.tolist()
    group_of: dict[int, list[int]] = {}
    first: dict[int, int] = {}
    for gpu, process in pairs:
        mine = group_of.setdefault(process, [process])
        other = group_of[first.setdefault(gpu, process)]
        if mine is not other:
            other.extend(mine)
            group_of.update((one, other) for one in mine)
    return list({id(group): group for group in group_of.values()}.values())
