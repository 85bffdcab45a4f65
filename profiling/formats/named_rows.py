"""Device work of Chrome traces that tell it by the names of processes alone: Ascend's profilers and rocprof.

Which process is which may stand behind its rows, so that these are read in a second pass over the file.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from profiling.formats.columns import DeviceColumns, Rows
from profiling.formats.kineto_args import decoded
from profiling.formats.numbers import MOST_BYTES, integer, integers
from profiling.formats.times import INVALID, nanoseconds
from profiling.formats.trace_events import Batch, Event
from profiling.timeline import AMD, UNKNOWN, WorkKind

_GPU = re.compile(r"GPU ?([0-9]{1,4})$")
_LONGEST_NS = 86_400 * 10**9
_NAMES = 1 << 14
_ASCEND, _ASCEND_CALLS, _ROCM_COPIES = "Ascend Hardware", ("HCCL", "Communication"), "COPY"
_WORK = re.compile(r"ai_?c(?:ore|pu)|ai_?v|mix_ai|kernel", re.IGNORECASE)
_COPY = re.compile(r"memcpy|sdma|dma_sqe", re.IGNORECASE)
_NO_WORK = re.compile(r"event|notify|wait|record|model|place_?holder|task_?timeout|stars", re.IGNORECASE)


class _Args(msgspec.Struct, gc=False, frozen=True):
    begin: Any = msgspec.field(name="BeginNs", default=None)
    end: Any = msgspec.field(name="EndNs", default=None)
    device: Any = msgspec.field(name="dev-id", default=None)
    stream: Any = msgspec.field(name="stream-id", default=None)
    task: Any = msgspec.field(name="Task Type", default=None)
    size: Any = msgspec.field(name="size(B)", default=None)


@dataclass(slots=True)
class NamedProcesses:
    """Names of processes and of threads, by their ids as text: files write these as numbers and as text."""

    processes: dict[str, str] = field(default_factory=dict)
    threads: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, event: Event, name: Any) -> None:
        """Take in an event of metadata."""
        if not isinstance(name, str) or len(self.processes) + len(self.threads) >= _NAMES:
            return
        if event.name == "process_name":
            self.processes[_id(event.pid)] = name.strip()[:80]
        elif event.name == "thread_name":
            self.threads[_id(event.pid), _id(event.tid)] = name[:80]

    @property
    def maker(self) -> str | None:
        """Maker of the devices, where processes are named as its profiler does; None: no process is a device."""
        names = set(self.processes.values())
        if _ASCEND in names:
            return "Huawei"
        return AMD if any(_GPU.match(name) for name in names) and "CPU HIP API" in names else None


def _id(value: Any) -> str:
    return str(value)[:40]


def add_named_rows(batch: Batch, names: NamedProcesses, device: DeviceColumns) -> int:
    """Add the device work of a batch of events; returns how many rows have no usable time."""
    found = [(event, place) for event in batch.events if (place := _place(event, names)) is not None]
    if not found:
        return 0
    events = [event for event, _ in found]
    args = [decoded(event.args, _Args) for event in events]
    kinds = [_kind(event, one, names) for event, one in zip(events, args, strict=True)]
    start, duration = _times(events, args)
    wanted = np.array([kind is not None for kind in kinds])
    good = (start != INVALID) & (duration >= 0) & (duration <= _LONGEST_NS) & (np.abs(start) < 2**62)
    rows = np.flatnonzero(wanted & good).tolist()
    if rows:
        device.add(_rows(rows, found, args, kinds, start, duration))
    return int((wanted & ~good).sum())


def _rows(
    rows: Sequence[int],
    found: Sequence[tuple[Event, int]],
    args: Sequence[_Args],
    kinds: Sequence[WorkKind | None],
    start: NDArray[np.int64],
    duration: NDArray[np.int64],
) -> Rows:
    places = [found[at][1] if integer(args[at].device) is None else integer(args[at].device) for at in rows]
    return Rows(
        start=start[rows],
        duration=duration[rows],
        names=[str(found[at][0].name) for at in rows],
        kinds=[int(kinds[at] or 0) for at in rows],
        devices=integers(places, 0, high=2**31 - 1),
        streams=[
            f"{found[at][0].pid} {found[at][0].tid if args[at].stream is None else args[at].stream}" for at in rows
        ],
        processes=[0] * len(rows),
        correlation=np.zeros(len(rows), dtype=np.int64),
        bytes=integers([args[at].size for at in rows], UNKNOWN, high=MOST_BYTES),
    )


def _place(event: Event, names: NamedProcesses) -> int | None:
    """The device that the rows of a process stand for; None where they are no device work."""
    if event.ph != "X":
        return None
    name = names.processes.get(_id(event.pid), "")
    if name in (_ASCEND, *_ASCEND_CALLS) or name == _ROCM_COPIES:
        return 0
    match = _GPU.match(name)
    return int(match[1]) if match else None


def _kind(event: Event, args: _Args, names: NamedProcesses) -> WorkKind | None:
    process = names.processes[_id(event.pid)]
    if process == _ROCM_COPIES:
        return WorkKind.COPY
    if names.maker != "Huawei":
        return WorkKind.KERNEL
    thread = names.threads.get((_id(event.pid), _id(event.tid)), "")
    if process in _ASCEND_CALLS:
        return WorkKind.KERNEL if str(event.name).startswith("hcom_") and "Plane" not in thread else None
    if thread and "Stream" not in thread:
        return None
    task = str(args.task or event.name)
    if _COPY.search(task) or _COPY.search(str(event.name)):
        return WorkKind.COPY
    return None if _NO_WORK.search(task) and not _WORK.search(task) else WorkKind.KERNEL


def _times(events: Sequence[Event], args: Sequence[_Args]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and durations in ns: of the arguments where they are there, for these are finer."""
    exact = [(integer(one.begin), integer(one.end)) for one in args]
    if all(begin is not None and end is not None for begin, end in exact):
        times = np.array(exact, dtype=np.int64).reshape(-1, 2)
        return times[:, 0], times[:, 1] - times[:, 0]
    start = nanoseconds([event.ts for event in events], lambda: [str(event.ts) for event in events])
    return start, nanoseconds([event.dur for event in events], lambda: [str(event.dur) for event in events])
