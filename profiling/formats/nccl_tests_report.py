"""The JSON report of nccl-tests (``-J``, since 2025)."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from profiling.evidence import CollectiveTimings
from profiling.formats.capture import Capture, Format
from profiling.formats.damaged_json import invalid_json
from profiling.formats.json_repair import repaired
from profiling.formats.limits import MIB
from profiling.formats.nccl_tests_figures import PROGRAM, Direction, Row, direction, number, peaks, timings
from profiling.formats.numbers import MOST_BYTES, integer
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode, shown

_MOST_BYTES = 16 * MIB
_REPORT = re.compile(
    r'\{\s*"version"\s*:\s*[\d".]{1,20}\s*,\s*(?:"start_time"\s*:\s*"[^"]{0,40}"\s*,\s*)?"args"\s*:\s*\['
)


def recognises(head: Head) -> bool:
    """True by its results, and by its first keys where a long environment stands before them."""
    text = head.text.lstrip()
    results = '"out_of_place"' in text and '"bus_bw"' in text
    return text.startswith("{") and (results or (_REPORT.match(text) is not None and PROGRAM.search(text) is not None))


class _Result(msgspec.Struct):
    size: Any = None
    redop: Any = None
    root: Any = None
    out_of_place: Any = None
    in_place: Any = None


class _Device(msgspec.Struct):
    hostname: Any = None
    device_info: Any = None


class _Config(msgspec.Struct):
    nthreads: Any = None
    ngpus: Any = None
    devices: list[_Device] = []


class _Report(msgspec.Struct):
    """What is read of a report: the environment is not among it, so no value of it is ever decoded."""

    args: list[Any] = []
    config: _Config | None = None
    devices: list[_Device] = []
    results: list[_Result] = []


def read(source: Source) -> Capture:
    """The JSON report of nccl-tests. Raises Refusal."""
    text = source.whole(_MOST_BYTES)
    counts: Counter[NoteCode] = Counter()
    cut = False
    try:
        report = msgspec.json.decode(text, type=_Report)
    except msgspec.ValidationError:
        raise Refusal(RefusalCode.NO_ROWS, {"kind": "nccl-tests output"}) from None
    except (msgspec.DecodeError, RecursionError):
        report, cut = _mended(text, counts)
    rows = [row for result in report.results if (row := _row_of(result, counts))]
    if len(rows) > source.limits.rows:
        raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": source.limits.rows})
    if not any(row.out.time_s is not None or row.inside.time_s is not None for row in rows):
        raise Refusal(RefusalCode.NO_ROWS, {"kind": "nccl-tests output"})
    notes = [*source.notes, *(Note(code, {"count": count}) for code, count in counts.items() if count)]
    if re.search(rb'"env"\s*:\s*\[\s*"', text):
        notes.append(Note(NoteCode.ENVIRONMENT_NOT_READ))
    if cut:
        notes.append(Note(NoteCode.FILE_TRUNCATED, {"events": len(rows)}))
    return Capture(format=Format.NCCL_TESTS_JSON, evidence=(_of_report(report, rows, source.name),), notes=tuple(notes))


def _mended(text: bytes, counts: Counter[NoteCode]) -> tuple[_Report, bool]:
    """A report with bare ``inf``, or one that is cut: the results before the cut."""
    text = repaired(text, counts)
    try:
        return msgspec.json.decode(text, type=_Report), False
    except (msgspec.DecodeError, RecursionError) as error:
        start = re.search(rb'"results"\s*:\s*\[', text)
        if start is None or "truncated" not in str(error):
            raise invalid_json(str(error), 0) from None
    results: list[_Result] = []
    for part in re.split(rb'(?=\{\s*"size"\s*:)', text[start.end() :])[1:]:
        try:
            results.append(msgspec.json.decode(part.rstrip(b", \t\r\n"), type=_Result))
        except msgspec.DecodeError:
            break
    arguments = re.search(rb'"args"\s*:\s*\[\s*"((?:[^"\\]|\\.){0,4096})"', text[:65536])
    return _Report(args=[arguments[1].decode(errors="replace")] if arguments else [], results=results), True


def _row_of(result: _Result, counts: Counter[NoteCode]) -> Row | None:
    size = integer(result.size, high=MOST_BYTES)
    if size is None:
        counts[NoteCode.VALUES_MISSING] += 1
        return None
    root = integer(result.root.strip() if isinstance(result.root, str) else result.root, low=-1)
    redop = result.redop if isinstance(result.redop, str) else ""
    return Row(
        size, redop, -1 if root is None else root, _side(result.out_of_place, counts), _side(result.in_place, counts)
    )


def _side(value: Any, counts: Counter[NoteCode]) -> Direction:
    if not isinstance(value, dict):
        return Direction()
    if wrong := number(value.get("nwrong")):
        counts[NoteCode.WRONG_RESULTS] += int(min(max(wrong, 0), 1e15))
    time = number(value.get("time", value.get("cpu_time")))
    return direction(None if time is None else time / 1e6, value.get("alg_bw"), value.get("bus_bw"), counts)


def _of_report(report: _Report, rows: Sequence[Row], name: str) -> CollectiveTimings:
    program = next((match[1] for word in report.args[:1] if (match := PROGRAM.search(str(word)[:4096]))), None)
    config = report.config or _Config()
    devices = report.devices or config.devices
    names = Counter(one.device_info for one in devices if isinstance(one.device_info, str))
    local = (integer(config.nthreads) or 0) * (integer(config.ngpus) or 0)
    found = timings(rows, program, name)
    return CollectiveTimings(
        tool="nccl-tests",
        ranks=max(len(devices), local) or None,
        ranks_listed=len(devices) or None,
        nodes=len({one.hostname for one in devices if isinstance(one.hostname, str)}) or None,
        device_name=next((shown(text) for text, _ in names.most_common(1)), None),
        rows=tuple(found),
        peak_bus_bytes_per_s=peaks(found),
    )
