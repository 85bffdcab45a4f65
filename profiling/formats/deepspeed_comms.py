"""The communication logger of DeepSpeed: its summary table, its table of stragglers, and its verbose lines.

Bandwidths are gigabits (1e9 bits) per second, sizes count in units of 1024 (``deepspeed/utils/comms_logging.py``).
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from profiling.evidence import CollectiveTiming, CollectiveTimings
from profiling.formats.capture import Capture, Format
from profiling.formats.nccl_tests_figures import MOST_BUS_BYTES_PER_S, peaks
from profiling.formats.numbers import MOST_BYTES
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode
from profiling.workload import CollectiveKind

_KINDS: Mapping[str, CollectiveKind] = {
    "all_reduce": CollectiveKind.ALL_REDUCE,
    "inference_all_reduce": CollectiveKind.ALL_REDUCE,
    "all_gather": CollectiveKind.ALL_GATHER,
    "allgather": CollectiveKind.ALL_GATHER,
    "reduce_scatter": CollectiveKind.REDUCE_SCATTER,
    "all_to_all": CollectiveKind.ALL_TO_ALL,
    "broadcast": CollectiveKind.BROADCAST,
    "send": CollectiveKind.SEND_RECV,
    "recv": CollectiveKind.SEND_RECV,
    "isend": CollectiveKind.SEND_RECV,
    "irecv": CollectiveKind.SEND_RECV,
    "batch_isend_irecv": CollectiveKind.SEND_RECV,
}
_UNITS = {unit: 1024**power for power, unit in enumerate(("B", "KB", "MB", "GB", "TB", "PB"))}
_NUMBER = r"(\d{1,18}(?:\.\d{1,6})?|nan|inf)"
_SIZE = r"(\d{1,10}(?:\.\d{1,6})?) ?([KMGTP]?B)"
_ROW = re.compile(rf"(?:^|\s){_SIZE}\s+(\d{{1,12}})\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s*$")
_OPERATION = re.compile(r"(?:^|[\]>:]\s{0,4})([a-z][a-z0-9_]{2,40})(?: \| \[Caller Func: [^\]]{0,200}\])?\s*$")
_VERBOSE = re.compile(
    rf"comm op: ([a-z][a-z0-9_]{{2,40}})(?: \| \[Caller Func: [^\]]{{0,200}}\])? \| time \(ms\): {_NUMBER} \| "
    rf"msg size: {_SIZE} \| algbw \(Gbps\): {_NUMBER}\s+\| busbw \(Gbps\): {_NUMBER}"
)
_GATHERED = 0.15
"""How far printed figures, rounded as they are, may be off the world size."""


def recognises(head: Head) -> bool:
    text = head.text
    return ("Comm. Op" in text and "Message Size" in text) or _VERBOSE.search(text) is not None


def read(source: Source) -> Capture:
    """The last summary of the log, else its verbose lines added up. Raises Refusal where there is neither."""
    log = CommsLog(source.limits.rows)
    for line in source.lines():
        log.line(line)
    found = log.evidence()
    if found is None:
        raise Refusal(RefusalCode.NO_ROWS, {"kind": "DeepSpeed communication log"})
    return Capture(format=Format.DEEPSPEED_COMMS, evidence=(found,), notes=(*source.notes, *log.notes()))


@dataclass(slots=True)
class _Sum:
    """Calls of one operation with one size. ``time_ms`` of one call; Gbps as printed; None where not printed."""

    size: float
    calls: int = 0
    total_ms: float = 0.0
    time_ms: float | None = None
    algorithm_gbps: float | None = None
    bus_gbps: float | None = None
    waiting_ms: float | None = None


class CommsLog:
    """Collects summaries line by line out of any text. Counts of a later summary include those of an earlier one."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.table: dict[tuple[str, float], _Sum] = {}
        self.verbose: dict[tuple[str, float], _Sum] = {}
        self.operation: str | None = None
        self.part = ""
        self.counts: Counter[NoteCode] = Counter()

    def line(self, line: str) -> None:
        if "Comm. Op" in line:
            self._header(line)
        elif "comm op: " in line:
            if match := _VERBOSE.search(line):
                self._add(match)
        elif self.part and len(line) < 1000:
            if match := _ROW.search(line):
                self._row(match)
            elif match := _OPERATION.search(line):
                self.operation = match[1]

    def _header(self, line: str) -> None:
        self.operation = None
        if "straggler" in line:
            self.part = "straggler"
        elif "Message Size" in line:
            self.part = "summary"
            self.table = {}

    def _row(self, match: re.Match[str]) -> None:
        size = _bytes(match[1], match[2])
        if self.operation is None or size is None:
            return
        key = (self.operation, size)
        first, second, third, fourth = (_number(match[place]) for place in (4, 5, 6, 7))
        if self.part == "straggler":
            if key in self.table:
                self.table[key].waiting_ms = second
            return
        self._refuse_many(self.table, key)
        self.table[key] = _Sum(size, int(match[3]), first or 0.0, second, third, fourth)

    def _add(self, match: re.Match[str]) -> None:
        size, time = _bytes(match[3], match[4]), _number(match[2])
        if size is None or time is None:
            return
        key = (match[1], size)
        self._refuse_many(self.verbose, key)
        one = self.verbose.setdefault(key, _Sum(size))
        one.calls += 1
        one.total_ms += time
        one.time_ms = one.total_ms / one.calls
        one.algorithm_gbps = _mean(one.algorithm_gbps, _number(match[5]), one.calls)
        one.bus_gbps = _mean(one.bus_gbps, _number(match[6]), one.calls)

    def _refuse_many(self, kept: dict[tuple[str, float], _Sum], key: tuple[str, float]) -> None:
        if key not in kept and len(kept) >= self.most:
            raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": self.most})

    def evidence(self) -> CollectiveTimings | None:
        sums = self.table or self.verbose
        if not sums:
            return None
        ranks = _world_size(sums)
        self.counts.clear()
        rows = [self._timing(name, one, ranks) for (name, _), one in sums.items()]
        return CollectiveTimings(
            tool="DeepSpeed",
            ranks=ranks,
            nodes=None,
            device_name=None,
            rows=tuple(rows),
            peak_bus_bytes_per_s=peaks(rows),
        )

    def _timing(self, name: str, one: _Sum, ranks: int | None) -> CollectiveTiming:
        timing = CollectiveTiming(
            kind=_kind(name),
            operation=name,
            message_bytes=one.size * (ranks if ranks is not None and _is_scaled(name, one, ranks) else 1),
            calls=one.calls,
            time_s=None if one.time_ms is None else one.time_ms / 1e3,
            total_time_s=one.total_ms / 1e3,
            waiting_s=None if one.waiting_ms is None else one.waiting_ms / 1e3,
        )
        bus = None if one.bus_gbps is None else one.bus_gbps * 1e9 / 8
        if bus is not None and bus > MOST_BUS_BYTES_PER_S:
            self.counts[NoteCode.IMPOSSIBLE_BANDWIDTHS] += 1
            return timing
        return replace(timing, bus_bytes_per_s=bus or None)

    def notes(self) -> list[Note]:
        return [Note(code, {"count": count}) for code, count in self.counts.items()]


def _kind(name: str) -> CollectiveKind:
    """Names grow endings: ``all_gather_into_tensor``, ``reduce_scatter_fn``, ``all_to_all_single``."""
    for known, kind in _KINDS.items():
        if name == known or name.startswith(known + "_"):
            return kind
    return CollectiveKind.UNKNOWN


def _world_size(sums: Mapping[tuple[str, float], _Sum]) -> int | None:
    """busbw / algbw is (n-1)/n for both tables of an all-reduce (algbw doubled) and of a gather.

    The row with the most digits tells it; None where rounding leaves more than one answer.
    """
    kinds = (CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER)
    told = [one for (name, _), one in sums.items() if _kind(name) in kinds and one.algorithm_gbps and one.bus_gbps]
    if not told:
        return None
    best = max(told, key=lambda one: one.algorithm_gbps or 0.0)
    algorithm, bus = best.algorithm_gbps or 0.0, best.bus_gbps or 0.0
    if not 0 < bus < algorithm:
        return None
    ranks = algorithm / (algorithm - bus)
    rounding = ranks * 0.01 / (algorithm - bus)
    return round(ranks) if rounding < 0.4 and ranks < 1e6 else None


def _is_scaled(name: str, one: _Sum, ranks: int) -> bool:
    """True where the size is one rank's part: the logger took it times the ranks for the bandwidth."""
    if _kind(name) is not CollectiveKind.ALL_GATHER or not one.algorithm_gbps or not one.time_ms or not one.size:
        return False
    factor = one.algorithm_gbps * 1e9 / 8 * one.time_ms / 1e3 / one.size
    return ranks > 1 and abs(factor / ranks - 1) < _GATHERED


def _bytes(number: str, unit: str) -> float | None:
    size = round(float(number) * _UNITS[unit])
    return float(size) if size <= MOST_BYTES else None


def _number(word: str) -> float | None:
    return None if word in ("nan", "inf") else float(word)


def _mean(before: float | None, new: float | None, calls: int) -> float | None:
    return before if new is None else new if before is None else before + (new - before) / calls
