"""The reader of rocpd, the SQLite output of rocprofv3: a set of tables per process, told apart by their suffix.

The command line and the environment of the processes stand in ``rocpd_info_process``; neither is ever read. Views of
the file are not used: they are queries of the file's own making.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from profiling.formats.capture import Capture, Format
from profiling.formats.lookup import Lookup
from profiling.formats.numbers import MOST_BYTES, integer, integers
from profiling.formats.rocm import Agent, Agents, RocmCollector, Work
from profiling.formats.sqlite_file import Database
from profiling.notes import Note, NoteCode, Refusal, RefusalCode
from profiling.timeline import UNKNOWN, Timeline, WorkKind

_DISPATCHES = "rocpd_kernel_dispatch"
_COPIES = "rocpd_memory_copy"
_PLACES = ("agent_id", "queue_id", "stream_id", "track_id")
_MARKER = re.compile(r"marker|roctx|user", re.IGNORECASE)


class _Message(msgspec.Struct):
    message: Any = None


_decode_message = msgspec.json.Decoder(_Message).decode


def is_of(tables: Mapping[str, str]) -> bool:
    return any(name.startswith(("rocpd_info_", _DISPATCHES)) for name in tables)


def read_database(database: Database) -> Capture:
    """One Timeline per process with device work. Raises Refusal."""
    source, tables = database.source, database.tables(views=False)
    lines: list[Timeline] = []
    notes = list(source.notes)
    if _has_environment(database, tables):
        notes.append(Note(NoteCode.ENVIRONMENT_NOT_READ))
    for suffix in _suffixes(tables, source.limits.devices):
        seen = RocmCollector(source.limits)
        _Process(database, tables, suffix, seen).read()
        if seen.device.rows:
            line, told = seen.timeline(source.name)
            lines.append(line)
            notes += [note for note in told if note not in notes]
    if not lines:
        raise Refusal(RefusalCode.NO_DISPATCHES)
    if len(lines) > 1:
        notes.append(Note(NoteCode.RANKS_MERGED, {"count": len(lines)}))
    return Capture(format=Format.ROCPD, timelines=tuple(lines), notes=tuple(notes))


def _suffixes(tables: Mapping[str, str], most: int) -> list[str]:
    """What tells the tables of one process from those of another."""
    found = sorted({name[len(stem) :] for name in tables for stem in (_DISPATCHES, _COPIES) if name.startswith(stem)})
    if len(found) > most:
        raise Refusal(RefusalCode.TOO_MANY_DEVICES, {"limit": most})
    return found


def _has_environment(database: Database, tables: Mapping[str, str]) -> bool:
    """Whether any process brings its environment; asks for its length alone."""
    for name, table in tables.items():
        if name.startswith("rocpd_info_process") and "environment" in database.columns(table):
            where = "WHERE length(environment) > 2 LIMIT 1"
            if any(True for _ in database.rows(table, ("id",), where=where)):
                return True
    return False


@dataclass(slots=True)
class _Process:
    """The tables of one process. Of two layouts: times and places in the rows themselves, or in tables of their own."""

    database: Database
    tables: Mapping[str, str]
    suffix: str
    seen: RocmCollector
    strings: dict[Any, str] = field(default_factory=dict)
    tracks: dict[Any, Sequence[Any]] = field(default_factory=dict)
    moments: Lookup = field(init=False)
    stacks: Lookup = field(init=False)

    def __post_init__(self) -> None:
        self.moments, self.stacks = Lookup(self.seen.limits), Lookup(self.seen.limits)

    def read(self) -> None:
        self.strings = self._texts("rocpd_string", ("string",), self._used_strings())
        self._read_agents()
        self._read_shared()
        self._read_regions()
        self._read_dispatches()
        self._read_copies()

    def _batches(self, stem: str, columns: Sequence[str], where: str = "") -> Iterator[list[Any]]:
        table = self.tables.get(stem + self.suffix)
        return iter(()) if table is None else self.database.batches(table, columns, where=where)

    def _texts(self, stem: str, columns: Sequence[str], used: str) -> dict[Any, str]:
        """Texts by id, the first column that has one; only those that the query ``used`` names."""
        limits = self.seen.limits
        found: dict[Any, str] = {}
        for batch in self._batches(stem, ("id", *columns), f"WHERE id IN ({used})" if used else "WHERE 0"):
            for number, *texts in batch:
                found[number] = next((str(text)[: limits.name_characters] for text in texts if text), "")
            if len(found) > limits.names:
                raise Refusal(RefusalCode.TOO_MANY_NAMES, {"limit": limits.names})
        return found

    def _used(self, stem: str, column: str) -> list[str]:
        """A query for the ids that a column uses, where it is there."""
        table = self.tables.get(stem + self.suffix)
        if table is None or column not in self.database.columns(table):
            return []
        quoted = table.replace('"', '""')
        return [f'SELECT {column} FROM "{quoted}"']  # noqa: S608

    def _used_strings(self) -> str:
        used = [*self._used(_COPIES, "name_id"), *self._used("rocpd_region", "name_id")]
        return " UNION ".join([*used, *self._used("rocpd_event", "category_id")])

    def _read_agents(self) -> None:
        columns = ("id", "type", "absolute_index", "product_name", "name")
        listed = [
            Agent(
                keys=(number,),
                place=integer(place) or integer(number) or 0,
                is_gpu=kind == "GPU",
                name=str(product or name or ""),
            )
            for batch in self._batches("rocpd_info_agent", columns, f"LIMIT {self.seen.limits.devices}")
            for number, kind, place, product, name in batch
        ]
        self.seen.agents = Agents.of(listed)

    def _read_shared(self) -> None:
        for batch in self._batches("rocpd_timestamp", ("id", "value")):
            self.moments.add(*_columns(batch, 2))
        for batch in self._batches("rocpd_event", ("id", "stack_id")):
            self.stacks.add(*_columns(batch, 2))
        for batch in self._batches("rocpd_track", ("id", "agent_id", "queue_id", "stream_id")):
            self.tracks.update((number, places) for number, *places in batch)
            if len(self.tracks) > self.seen.limits.rows:
                raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": self.seen.limits.rows})

    def _moments(self, batch: list[Any]) -> list[NDArray[np.int64]]:
        """Starts and ends, of rows whose first four columns are times and the ids of times."""
        start, end, start_id, end_id = _columns(batch, 4)
        if (start >= 0).any() or not (start_id >= 0).any():
            return [start, end]
        return [self.moments.of(start_id), self.moments.of(end_id)]

    def _places(self, batch: list[Any], at: int) -> tuple[list[Any], list[Any], list[Any]]:
        """Agents, queues and streams, of rows with these three columns and the track from column ``at`` on."""
        rows = [row[at : at + 3] if row[at + 3] is None else self.tracks.get(row[at + 3], (None,) * 3) for row in batch]
        agents, queues, streams = zip(*rows, strict=True)
        return list(agents), list(queues), list(streams)

    def _read_dispatches(self) -> None:
        names = self._texts(
            "rocpd_info_kernel_symbol", ("display_name", "kernel_name"), "".join(self._used(_DISPATCHES, "kernel_id"))
        )
        columns = ("start", "end", "start_id", "end_id", "event_id", "kernel_id", *_PLACES)
        for batch in self._batches(_DISPATCHES, columns):
            start, end = self._moments(batch)
            agents, queues, streams = self._places(batch, 6)
            self.seen.add(
                Work(
                    start=start,
                    end=end,
                    names=[names.get(row[5]) or f"kernel {row[5]}" for row in batch],
                    kinds=[WorkKind.KERNEL] * len(batch),
                    devices=agents,
                    streams=_streams(queues, streams),
                    correlation=self.stacks.of(integers([row[4] for row in batch], UNKNOWN)),
                )
            )

    def _read_copies(self) -> None:
        columns = ("start", "end", "start_id", "end_id", "event_id", "size", "name_id", "src_agent_id", "dst_agent_id")
        for batch in self._batches(_COPIES, (*columns, *_PLACES)):
            start, end = self._moments(batch)
            _, queues, streams = self._places(batch, 9)
            names = [self.strings.get(row[6], "") for row in batch]
            kinds, devices = self.seen.agents.of_copies(names, [row[7] for row in batch], [row[8] for row in batch])
            self.seen.add(
                Work(
                    start=start,
                    end=end,
                    names=names,
                    kinds=kinds,
                    devices=devices,
                    streams=_streams(queues, streams),
                    correlation=self.stacks.of(integers([row[4] for row in batch], UNKNOWN)),
                    bytes=integers([row[5] for row in batch], UNKNOWN, high=MOST_BYTES),
                )
            )

    def _read_regions(self) -> None:
        """Calls of the HIP runtime, and ranges of the program."""
        messages = self._messages()
        for batch in self._batches("rocpd_region", ("start", "end", "start_id", "end_id", "event_id", "name_id")):
            start, end = self._moments(batch)
            names = [self.strings.get(row[5], "") for row in batch]
            hip = np.array([name.startswith("hip") for name in names], dtype=bool)
            if hip.any():
                events = integers([row[4] for row in batch], UNKNOWN)
                called = [name for name in names if name.startswith("hip")]
                self.seen.call(called, start[hip], end[hip], self.stacks.of(events)[hip])
            marks = [at for at, row in enumerate(batch) if row[4] in messages]
            if marks:
                texts = [messages[batch[at][4]] or names[at] for at in marks]
                self.seen.mark(texts, start[marks], end[marks])

    def _messages(self) -> dict[Any, str]:
        """Text of the events of the program's own ranges; empty where the range has no message besides its name."""
        wanted = [number for number, text in self.strings.items() if _MARKER.search(text) and isinstance(number, int)]
        found: dict[Any, str] = {}
        where = f"WHERE category_id IN ({', '.join(map(str, wanted[:100]))}) LIMIT {self.seen.limits.rows}"
        for batch in self._batches("rocpd_event", ("id", "extdata"), where):
            found.update((number, self._message(text)) for number, text in batch)
        return found

    def _message(self, text: Any) -> str:
        if not isinstance(text, str | bytes):
            return ""
        try:
            message = _decode_message(text).message
        except (msgspec.DecodeError, RecursionError, ValueError):
            return ""
        return message[: self.seen.limits.name_characters] if isinstance(message, str) else ""


def _columns(batch: list[Any], count: int) -> list[NDArray[np.int64]]:
    return [integers([row[at] for row in batch], UNKNOWN) for at in range(count)]


def _streams(queues: Sequence[Any], streams: Sequence[Any]) -> list[Any]:
    """Streams, and queues where the row names no stream."""
    return [f"queue {queue}" if stream is None else stream for queue, stream in zip(queues, streams, strict=True)]
