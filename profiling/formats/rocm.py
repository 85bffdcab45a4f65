"""What all captures of ROCm tools share: agents as devices, copies, HIP calls, and the way to a Timeline."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.assemble import Around, assemble
from profiling.formats.columns import Column, DeviceColumns, LaunchColumns, Rows
from profiling.formats.limits import Limits
from profiling.intervals import NOTHING, Intervals, union
from profiling.marks import steps_from_ranges
from profiling.notes import Note, NoteCode, Refusal, RefusalCode, shown
from profiling.timeline import AMD, UNKNOWN, HostSide, StepSource, Timeline, WorkKind

MOST_DEVICE = 2**31 - 1
_LONGEST_NS = 86_400 * 10**9
"""No work of a device takes a day."""
_LAUNCH = re.compile(r"^hip(?!.*Node).*(launch|memcpy|memset)", re.IGNORECASE)
_WAIT = re.compile(r"^hip(.*synchronize|memcpy(?!.*(async|node|param|peer)))", re.IGNORECASE)
_GRAPH_LAUNCH = re.compile(r"^hipGraphLaunch")
_HOST_CALL = re.compile(r"^(__)?hip[A-Z]|^hsa_|^[nr]ccl(?!Dev|Kernel)[A-Z]|^roctx|^roc(dec|jpeg)", re.IGNORECASE)
_FILL = re.compile(r"fill(buffer|image)")
_COPY = re.compile(
    r"(memory)?(copy)?(host|device|peer)to(host|device|peer)(2d|3d|rect)?|(memory)?copy(none|image|buffer)"
)
_LAST_DIGITS = re.compile(r"(?<![0-9])[0-9]{1,10}$")
_CALL_CHARACTERS = 80


def is_host_call(name: str) -> bool:
    """Whether this is a call of a library and no work of a device."""
    return _HOST_CALL.match(name[:_CALL_CHARACTERS]) is not None


def copy_kind(name: str) -> WorkKind | None:
    """Kind of a copy or fill by the names of the tools: ``MEMORY_COPY_HOST_TO_DEVICE``, ``CopyDeviceToHost``,
    ``FillBuffer``.

    None for anything else. Whether a copy from device to device has two devices, its name does not tell.
    """
    folded = name[:_CALL_CHARACTERS].replace("_", "").casefold()
    if _FILL.fullmatch(folded):
        return WorkKind.FILL
    return WorkKind.COPY if _COPY.fullmatch(folded) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A processor of the machine. ``keys``: what the rows of the capture may call it; ``place``: its order."""

    keys: tuple[Any, ...]
    place: int
    is_gpu: bool
    name: str


@dataclass(frozen=True, slots=True)
class Agents:
    """``devices``: GPUs numbered from 0 in order, by each key. Where no agents are listed, a key is a number itself."""

    devices: Mapping[Any, int]
    hosts: frozenset[Any]
    names: Mapping[int, str]

    @classmethod
    def of(cls, listed: Sequence[Agent]) -> "Agents":
        """Of equal keys the earlier kind counts: the first key of every agent, then the second."""
        gpus = sorted((agent for agent in listed if agent.is_gpu), key=lambda agent: agent.place)
        devices: dict[Any, int] = {}
        for rank in range(max((len(agent.keys) for agent in gpus), default=0)):
            for number, agent in enumerate(gpus):
                for key in agent.keys[rank : rank + 1]:
                    devices.setdefault(key, number)
        hosts = frozenset(key for agent in listed if not agent.is_gpu for key in agent.keys) - devices.keys()
        return cls(devices, hosts, {number: agent.name[:120] for number, agent in enumerate(gpus) if agent.name})

    def number(self, key: Any) -> int:
        """The device of a key; one that is not listed stands for the number in it, 0 where there is none."""
        known = self.devices.get(key)
        if known is not None:
            return known
        digits = _LAST_DIGITS.search(str(key)[:_CALL_CHARACTERS])
        return min(int(digits[0]), MOST_DEVICE) if digits else 0

    def of_copies(
        self, directions: Sequence[str], sources: Sequence[Any], targets: Sequence[Any]
    ) -> tuple[list[int], list[Any]]:
        """Kinds of copies, and the device at the end of each, by its key; of two devices the one that sends."""
        rows = list(zip(directions, sources, targets, strict=True))
        known = {row: self._copy(*row) for row in set(rows)}
        return [known[row][0] for row in rows], [known[row][1] for row in rows]

    def _copy(self, direction: str, source: Any, target: Any) -> tuple[int, Any]:
        folded = direction[:_CALL_CHARACTERS].replace("_", "").casefold()
        if folded.endswith("devicetodevice") and not {source, target} & self.hosts:
            kind = WorkKind.PEER_COPY if None not in (source, target) and source != target else WorkKind.COPY
            return kind, target if source is None else source
        from_host = source in self.hosts or folded.endswith(("hosttodevice", "hosttohost"))
        return WorkKind.COPY, target if from_host else source


NO_AGENTS = Agents({}, frozenset(), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Neighbouring rows of device work: columns of one length, times in ns, ``UNKNOWN`` where a value is missing.

    ``devices``: keys as in ``Agent``.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    names: Sequence[Any]
    kinds: Sequence[int]
    devices: Sequence[Any]
    streams: Sequence[Any]
    correlation: NDArray[np.int64]
    bytes: NDArray[np.int64] | None = None


@dataclass(slots=True)
class RocmCollector:
    """Device work, host calls and ranges of one process, filled batch by batch; ``agents`` may come last.

    ``calls_recorded``: the capture traces HIP calls, so that no launches means none.
    """

    limits: Limits
    device: DeviceColumns = field(init=False)
    agents: Agents = NO_AGENTS
    operators: int | None = None
    calls_recorded: bool = False
    _keys: dict[Any, int] = field(default_factory=dict)
    _calls: LaunchColumns = field(default_factory=LaunchColumns)
    _launches: int = 0
    _graph_launches: int = 0
    _wait_starts: Column = field(default_factory=lambda: Column(np.int64))
    _wait_ends: Column = field(default_factory=lambda: Column(np.int64))
    _ranges: list[tuple[str, int, int]] = field(default_factory=list)
    _counts: Counter[NoteCode] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.device = DeviceColumns(self.limits)

    def add(self, work: Work) -> None:
        """Keep the rows that have usable times; the others are counted."""
        duration = work.end - work.start
        missing = (work.start < 0) | (work.end < 0) | ((work.start == 0) & (work.end == 0)) | (duration > _LONGEST_NS)
        negative = ~missing & (duration < 0)
        self._counts[NoteCode.BAD_TIMES] += int(missing.sum())
        self._counts[NoteCode.NEGATIVE_DURATIONS] += int(negative.sum())
        good = np.flatnonzero(~(missing | negative))
        if not good.size:
            return
        places = good.tolist()
        self.device.add(
            Rows(
                start=work.start[good],
                duration=duration[good],
                names=[work.names[at] for at in places],
                kinds=[work.kinds[at] for at in places],
                devices=self._key_numbers([work.devices[at] for at in places]),
                streams=[work.streams[at] for at in places],
                processes=[0] * len(places),
                correlation=work.correlation[good],
                bytes=np.full(good.size, UNKNOWN, dtype=np.int64) if work.bytes is None else work.bytes[good],
            )
        )
        if self.device.rows > self.limits.events:
            raise Refusal(RefusalCode.TOO_MANY_EVENTS, {"limit": self.limits.events})

    def _key_numbers(self, keys: Sequence[Any]) -> NDArray[np.int64]:
        for key in set(keys) - self._keys.keys():
            self._keys[key] = len(self._keys)
        return np.array([self._keys[key] for key in keys], dtype=np.int64)

    def call(
        self,
        names: Sequence[str],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        correlation: NDArray[np.int64],
    ) -> None:
        """Calls of the HIP runtime, in any order."""
        self.calls_recorded = True
        counts = Counter(names)
        self._launches += sum(count for name, count in counts.items() if _LAUNCH.match(name[:_CALL_CHARACTERS]))
        self._graph_launches += sum(count for name, count in counts.items() if _GRAPH_LAUNCH.match(name))
        waiting = {name for name in counts if _WAIT.match(name[:_CALL_CHARACTERS])}
        waits = np.array([name in waiting for name in names], dtype=bool) & (start >= 0) & (end > start)
        self._wait_starts.append(start[waits])
        self._wait_ends.append(end[waits])
        self._calls.add(start, correlation)
        if max(self._calls.ids.size, self._wait_starts.size) > self.limits.events:
            raise Refusal(RefusalCode.TOO_MANY_EVENTS, {"limit": self.limits.events})

    def mark(self, names: Sequence[str], start: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        """Ranges of the program; those without length are left out."""
        long = np.flatnonzero((start >= 0) & (end > start)).tolist()
        room = max(0, self.limits.rows - len(self._ranges))
        self._ranges += [(names[at], int(start[at]), int(end[at])) for at in long[:room]]

    def timeline(
        self, source: str, more: Sequence[Note] = (), *, incomplete: bool = False
    ) -> tuple[Timeline, tuple[Note, ...]]:
        """The one Timeline of all rows, and what is to be told. Uses the columns up. Raises Refusal without rows.

        ``more``: what the reader has to tell; ``incomplete`` as in ``Timeline``.
        """
        if not self.device.rows and any(self._counts.values()):
            raise Refusal(RefusalCode.NO_ROWS, {"kind": "trace by a ROCm tool"})
        if not self.device.rows:
            raise Refusal(RefusalCode.NO_DISPATCHES)
        device = self.device.column("device")
        device[:] = np.array([self.agents.number(key) for key in self._keys], dtype=np.int32)[device]
        marked = steps_from_ranges(self._ranges)
        around = Around(
            source=source,
            host=self._host(),
            steps=() if marked is None else marked.steps,
            steps_from=StepSource.PROFILER if marked is None else StepSource.RANGES,
            device_names=self.agents.names,
            vendor=AMD,
            incomplete=incomplete,
        )
        launched = self._calls.starts_of(self.device.column("correlation")) if self.calls_recorded else None
        line, notes = assemble(self.device, launched, around)
        notes += [Note(code, {"count": count}) for code, count in self._counts.items() if count]
        if marked is not None:
            params = {"count": len(marked.steps), "name": shown(marked.name)}
            notes.append(Note(NoteCode.STEPS_FROM_RANGES, params))
        return line, (*notes, *more)

    def _host(self) -> HostSide:
        return HostSide(
            operators=self.operators,
            launches=self._launches if self.calls_recorded else None,
            graph_launches=self._graph_launches,
            waits=self._waits(),
        )

    def _waits(self) -> Intervals:
        return union(self._wait_starts.values, self._wait_ends.values) if self._wait_starts.size else NOTHING
