"""Planes, lines and events of an XSpace (xplane.pb), by the numbers of tsl/profiler/protobuf/xplane.proto."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from profiling.formats.protobuf_wire import BYTES, VARINT, Messages, Span, WireFile, field_columns, fields, varints
from profiling.notes import Refusal, RefusalCode

PLANES, ERRORS, WARNINGS = 1, 2, 3
_PLANE_NAME, _LINES, _EVENT_NAMES, _STAT_NAMES, _PLANE_STATS = 2, 3, 4, 5, 6
_LINE_NAME, _TIMESTAMP_NS, _EVENTS = 2, 3, 4
_METADATA_ID, _OFFSET_PS, _DURATION_PS, _STATS, _OCCURRENCES = 1, 2, 3, 4, 5
_INTEGERS, _TEXT, _REFERENCE = (3, 4), 5, 7
_BATCH = 1 << 20
_FACT = 256
_LONGEST_FACT = 4096
_LATEST_NS = 1 << 62
_LONGEST_PS = 10**18
"""Eleven days: no capture takes as long."""

Ids = NDArray[np.uint64]


@dataclass(slots=True)
class Plane:
    """One plane without its events. ``events`` and ``stats``: names by id; ``facts``: its own stats by name."""

    name: str
    lines: list[Span] = field(default_factory=list)
    events: dict[int, str] = field(default_factory=dict)
    stats: dict[int, str] = field(default_factory=dict)
    facts: dict[str, int | str] = field(default_factory=dict)

    def events_named(self, pattern: re.Pattern[str]) -> Ids:
        return _ids(number for number, name in self.events.items() if pattern.search(name))

    def stats_named(self, name: str) -> Ids:
        return _ids(number for number, found in self.stats.items() if found == name)


def _ids(numbers: Iterable[int]) -> Ids:
    return np.array(list(numbers), dtype=np.uint64)


def name_of_plane(wire: WireFile, span: Span) -> str:
    """The name of a plane, also of one that the file cuts: it stands before all that is long."""
    for number, value in wire.fields(span.start, min(span.end, wire.size)):
        if number == _PLANE_NAME and isinstance(value, Span):
            return _text(wire.payload(Span(value.start, min(value.end, value.start + _FACT, wire.size))))
        if number > _PLANE_NAME:
            break
    return ""


def read_plane(
    wire: WireFile,
    span: Span,
    name: str,
    events: Callable[[str], bool] = bool,
    stats: Callable[[str], bool] = bool,
) -> Plane:
    """Everything of a plane but its events, which are read line by line; of names those that ``events`` and ``stats``
    want.
    """
    plane = Plane(name)
    own: list[bytes] = []
    for number, value in wire.inside(span.start, span.end):
        if not isinstance(value, Span):
            continue
        if number == _LINES:
            plane.lines.append(value)
        elif number in (_EVENT_NAMES, _STAT_NAMES):
            key, text = _named(wire.payload(value), wire.limits.name_characters)
            names, wanted = (plane.events, events) if number == _EVENT_NAMES else (plane.stats, stats)
            if wanted(text):
                names[key] = text
        elif number == _PLANE_STATS and value.end - value.start <= _LONGEST_FACT:
            own.append(wire.payload(value))
        if len(plane.lines) + len(plane.events) + len(plane.stats) + len(own) > wire.limits.rows:
            raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": wire.limits.rows})
    plane.facts = dict(_fact(stat, plane.stats) for stat in own)
    return plane


def _named(entry: bytes, longest: int) -> tuple[int, str]:
    """Key and name of an entry of a map of metadata."""
    key, name = 0, b""
    for number, value in fields(entry):
        if number == 1 and isinstance(value, int):
            key = value
        elif number == 2 and isinstance(value, bytes):
            name = next((text for part, text in fields(value) if part == 2 and isinstance(text, bytes)), b"")
    return key, _text(name[: 4 * longest])[:longest]


def _fact(stat: bytes, names: dict[int, str]) -> tuple[str, int | str]:
    name, found = "", ""
    for number, value in fields(stat):
        if number == 1 and isinstance(value, int):
            name = names.get(value, "")
        elif isinstance(value, int):
            return name, names.get(value, "") if number == _REFERENCE else value
        elif number == _TEXT:
            found = _text(value[:_FACT])
    return name, found


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    timestamp_ns: int
    span: Span


@dataclass(frozen=True, slots=True)
class Events:
    """A batch of events of one plane; columns of one length, times in ns.

    ``line``: place of the line of each; ``usable``: those with a time. ``stats`` are the stats of all of them,
    ``stat_of`` the event and ``stat_name`` the name of each.
    """

    line: NDArray[np.int64]
    name: NDArray[np.uint64]
    start: NDArray[np.int64]
    duration: NDArray[np.int64]
    usable: NDArray[np.bool_]
    stats: Messages
    stat_of: NDArray[np.int64]
    stat_name: NDArray[np.uint64]

    def integers(self, names: NDArray[np.uint64], missing: int) -> NDArray[np.int64]:
        """Value of the named stat of each event, ``missing`` where it has none."""
        found = np.full(self.line.size, missing, dtype=np.int64)
        for event, number, value, _ in self._values(names):
            integer = np.isin(number, _INTEGERS)
            found[event[integer]] = value[integer].view(np.int64)
        return found

    def texts(self, names: NDArray[np.uint64], references: dict[int, str]) -> dict[int, str]:
        """Event to the text of the named stat."""
        found: dict[int, str] = {}
        for events, numbers, values, ends in self._values(names):
            for event, number, value, end in zip(
                events.tolist(), numbers.tolist(), values.tolist(), ends.tolist(), strict=True
            ):
                if number == _REFERENCE:
                    found[event] = references.get(value, "")
                elif number == _TEXT:
                    found[event] = _text(self.stats.bytes_at(value, min(end, value + _FACT)))
        return found

    def _values(self, names: NDArray[np.uint64]) -> Iterator[tuple[NDArray[np.int64], ...]]:
        """Event, field number, value and end of the values of the named stats, column by column."""
        chosen = np.flatnonzero(np.isin(self.stat_name, names)) if names.size else np.zeros(0, dtype=np.int64)
        messages = Messages(self.stats.data, self.stats.start[chosen], self.stats.end[chosen])
        for column in field_columns(messages):
            value = column.number > 1
            yield (
                self.stat_of[chosen][column.which[value]],
                column.number[value],
                column.value[value],
                column.end[value],
            )


def lines_of(wire: WireFile, plane: Plane) -> list[Line]:
    found = []
    for span in plane.lines:
        name, timestamp = "", 0
        for number, value in wire.inside(span.start, span.end):
            if number == _LINE_NAME and isinstance(value, Span):
                name = _text(wire.payload(value))
            elif number == _TIMESTAMP_NS and isinstance(value, int):
                timestamp = value
            elif number >= _EVENTS:
                break
        found.append(Line(name, timestamp, span))
    return found


def event_batches(wire: WireFile, lines: Sequence[Line], told: Callable[[int, int], None]) -> Iterator[Events]:
    """Events of the lines in batches of about 1 MiB. ``told(position, events)`` hears of each before it comes."""
    payloads: list[bytes] = []
    places: list[int] = []
    held = 0
    for place, line in enumerate(lines):
        for some in wire.repeated(_EVENTS, line.span.start, line.span.end):
            payloads += some
            places += [place] * len(some)
            held += sum(map(len, some))
            if held >= _BATCH:
                told(line.span.start, len(payloads))
                yield _events(payloads, places, lines)
                payloads, places, held = [], [], 0
    if payloads:
        told(lines[-1].span.end, len(payloads))
        yield _events(payloads, places, lines)


def _events(payloads: list[bytes], places: list[int], lines: Sequence[Line]) -> Events:
    messages = Messages.of(payloads)
    name, offset, duration, timed, summed = (np.zeros(len(payloads), dtype=np.uint64) for _ in range(5))
    none = np.zeros(0, dtype=np.int64)
    stat_of, stat_start, stat_end = [none], [none], [none]
    for which, number, kind, value, end in field_columns(messages):
        for wanted, column in ((_METADATA_ID, name), (_OFFSET_PS, offset), (_DURATION_PS, duration)):
            chosen = number == wanted
            column[which[chosen]] = value[chosen]
        timed[which[number == _OFFSET_PS]] = 1
        summed[which[number == _OCCURRENCES]] = 1
        stats = (number == _STATS) & (kind == BYTES)
        stat_of.append(which[stats])
        stat_start.append(value[stats].view(np.int64))
        stat_end.append(end[stats])
    line = np.array(places, dtype=np.int64)
    origin = np.array([min(one.timestamp_ns, _LATEST_NS) for one in lines], dtype=np.int64)[line]
    stats_of_all = Messages(messages.data, np.concatenate(stat_start), np.concatenate(stat_end))
    start, length, usable = _nanoseconds(origin, offset.view(np.int64), duration.view(np.int64))
    return Events(
        line=line,
        name=name,
        start=start,
        duration=length,
        usable=usable & ((summed == 0) | (timed == 1)),
        stats=stats_of_all,
        stat_of=np.concatenate(stat_of),
        stat_name=_stat_names(stats_of_all),
    )


def _nanoseconds(
    origin: NDArray[np.int64], offset_ps: NDArray[np.int64], duration_ps: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Start and duration, both ends rounded to whole ns, and where they can be true."""
    usable = (np.abs(offset_ps) < _LONGEST_PS) & (np.abs(duration_ps) < _LONGEST_PS) & (origin < _LATEST_NS)
    offset_ps, duration_ps = np.where(usable, offset_ps, 0), np.where(usable, duration_ps, 0)
    start = origin + (offset_ps + 500) // 1000
    return start, origin + (offset_ps + duration_ps + 500) // 1000 - start, usable


def _stat_names(stats: Messages) -> NDArray[np.uint64]:
    """The id of each stat's name; it stands first, and 0 is no name."""
    tag, at = varints(stats.data, stats.start)
    name, after = varints(stats.data, at)
    return np.where((tag == (_METADATA_ID << 3 | VARINT)) & (after <= stats.end), name, np.uint64(0))
