"""Pages that the TensorFlow profiler makes of a trace: input pipeline, overview and operations.

Fields and units: ``tensorflow/core/profiler/protobuf/{input_pipeline,overview_page,tf_stats}.proto`` of
github.com/tensorflow/tensorflow. Parts of a step do not overlap: where several things go on, the device counts first.
"""

import math
import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean

from profiling.evidence import OpShare, StepSummary
from profiling.formats.capture import Capture, Format
from profiling.formats.protobuf_wire import Span, WireFile, fields
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode

KIND = "page of the TensorFlow profiler"
INPUT_PIPELINE, OVERVIEW, OPERATIONS = "input_pipeline", "overview_page", "tensorflow_stats"

_STATS = re.compile(rb"\A[\x0a\x12\x1a\x22\x2a].{2,16}?\x08\x01\x12(?:\x06Device|\x04Host)\x1a", re.DOTALL)
_TYPES = b"type.googleapis.com/tensorflow.profiler."
_STEP_TYPE = _TYPES + b"PerGenericStepDetails"
_TPU_STEP = _TYPES + b"PerTpuStepDetails"
_MILLI, _PERCENT = 1e-3, 1e-2
_KINDS_KEPT = 200
_IDLE = "IDLE"

_STEP_PARTS: Mapping[int, str] = {
    2: "step_s",
    3: "unknown_s",
    5: "output_s",
    6: "device_compute_s",
    7: "device_to_device_s",
    8: "host_compute_s",
    9: "launch_s",
    10: "compile_s",
    11: "input_s",
    12: "to_device_s",
    13: "collectives_s",
}
"""Fields of PerGenericStepDetails, milliseconds; one that is 0 is not written."""


def recognises(head: Head) -> bool:
    """True for the pages that the profiler makes of a trace, whether they are read or not."""
    data = head.data
    opens = data[:1] in (b"\x0a", b"\x12", b"\x1a", b"\x22")
    return (opens and _TYPES in data) or _STATS.match(data) is not None


def read(source: Source) -> Capture:
    """One StepSummary. Raises Refusal: other pages are no basis for an answer."""
    with source.on_disk() as path, path.open("rb") as file:
        summary = _Page(WireFile(file, path.stat().st_size, source.limits), source).summary()
    if summary.device_type is not None and "TPU" in summary.device_type.upper():
        raise Refusal(RefusalCode.TPU_PROFILE)
    if summary.device_type is not None and "CPU" in summary.device_type.upper():
        raise Refusal(RefusalCode.NO_STREAM_ROWS)
    if summary.step_s is None and not summary.ops and summary.idle_share is None:
        raise Refusal(RefusalCode.NO_ROWS, {"kind": KIND})
    notes = (*source.notes, Note(NoteCode.SUMMED_PAGE))
    return Capture(format=Format.TF_PROFILER_PAGE, evidence=(summary,), notes=notes)


@dataclass(slots=True)
class _Steps:
    """Milliseconds per part of every step."""

    values: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in _STEP_PARTS.values()})

    def add(self, message: bytes) -> None:
        known = {_STEP_PARTS[number]: value for number, value in fields(message) if number in _STEP_PARTS}
        times = {name: _amount(known.get(name, bytes(8))) for name in self.values}
        if all(time is not None for time in times.values()) and times["step_s"]:
            for name, time in times.items():
                self.values[name].append(time or 0.0)

    @property
    def count(self) -> int:
        return len(self.values["step_s"])

    def means(self) -> dict[str, float | None]:
        return {name: fmean(times) * _MILLI if times else None for name, times in self.values.items()}


@dataclass(slots=True)
class _Page:
    wire: WireFile
    source: Source
    rows: int = 0

    def summary(self) -> StepSummary:
        top = [(number, value) for number, value in self._inside(Span(0, self.wire.size)) if isinstance(value, Span)]
        numbers = {number for number, _ in top}
        if numbers and numbers <= {4, 5} and self._is_table(top[0][1]):
            return self._operations(dict(reversed(top)))
        analysis = next((span for number, span in top if number == 2), None)
        if analysis is None:
            raise Refusal(RefusalCode.TOOL_SUMMARY)
        if self._is_spread(analysis):
            return self._steps(Span(0, self.wire.size), INPUT_PIPELINE)
        return self._overview(top, analysis)

    def _inside(self, span: Span) -> Iterator[tuple[int, int | Span]]:
        """Fields of a message; each counts against the limit of rows."""
        for number, value in self.wire.inside(span.start, span.end):
            self.rows += 1
            if self.rows > self.source.limits.rows:
                raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": self.source.limits.rows})
            yield number, value

    def _is_table(self, span: Span) -> bool:
        """A TfStatsTable opens with a record, which opens with its rank; a step's details with the name of a type."""
        opening = next(self._inside(span), None)
        if opening is None or opening[0] != 1 or not isinstance(opening[1], Span):
            return False
        inner = next(self._inside(opening[1]), None)
        return inner is not None and isinstance(inner[1], int)

    def _is_spread(self, span: Span) -> bool:
        """A StepSummary of the profiler: average, deviation, smallest, largest."""
        found = list(self._inside(span)) if span.end - span.start <= 36 else []
        return bool(found) and all(
            number in (1, 2, 3, 4) and isinstance(value, Span) and value.end - value.start == 8
            for number, value in found
        )

    def _steps(self, span: Span, tool: str) -> StepSummary:
        """InputPipelineAnalysisResult: 4 details of a step, 9 kind of hardware."""
        steps, hardware = _Steps(), None
        for number, value in self._inside(span):
            if number == 4 and isinstance(value, Span):
                self._detail(value, steps)
            elif number == 9 and isinstance(value, Span):
                hardware = self._text(value)
        return StepSummary(tool=tool, device_type=hardware, steps=steps.count, **steps.means())  # ty: ignore[invalid-argument-type]

    def _detail(self, span: Span, steps: _Steps) -> None:
        """An Any: 1 type, 2 message."""
        parts = dict(fields(self.wire.payload(span)))
        if parts.get(1) == _TPU_STEP:
            raise Refusal(RefusalCode.TPU_PROFILE)
        message = parts.get(2)
        if parts.get(1) == _STEP_TYPE and isinstance(message, bytes):
            steps.add(message)

    def _overview(self, top: list[tuple[int, Span]], analysis: Span) -> StepSummary:
        """OverviewPage: 2 InputPipelineAnalysisResult, 3 OverviewPageAnalysis, 6 OverviewPageRunEnvironment."""
        found = self._steps(analysis, OVERVIEW)
        for number, span in top:
            if number == 3:
                found = self._analysis(span, found)
            elif number == 6:
                found = self._environment(span, found)
        return found

    def _analysis(self, span: Span, found: StepSummary) -> StepSummary:
        """4 top operations of the device, 9 and 10 percent of its computing in 16 and 32 bit."""
        shares: Counter[str] = Counter()
        percent: dict[int, float | None] = {}
        for number, value in self._inside(span):
            if number == 4 and isinstance(value, Span):
                parts = dict(fields(self.wire.payload(value)))
                shares[_name(parts.get(2))] += _amount(parts.get(3)) or 0.0
            elif number in (9, 10) and isinstance(value, Span):
                percent[number] = _amount(self.wire.payload(value))
        half, single = (percent.get(number) or 0.0 for number in (9, 10))
        known = abs(half + single - 100) < 1
        return replace(found, ops=_shares(shares, None), half_share=half * _PERCENT if known else None)

    def _environment(self, span: Span, found: StepSummary) -> StepSummary:
        """4 type of device, 5 number of devices."""
        for number, value in self._inside(span):
            if number == 4 and isinstance(value, Span):
                found = replace(found, device_type=self._text(value) or found.device_type)
            elif number == 5 and isinstance(value, int) and 0 < value <= self.source.limits.devices:
                found = replace(found, devices=value)
        return found

    def _operations(self, tables: Mapping[int, Span]) -> StepSummary:
        """TfStatsDatabase: 4 the table with idle time, 5 the one without."""
        idle_known = 4 in tables
        span = tables[4] if idle_known else tables[5]
        times: Counter[str] = Counter()
        calls: Counter[str] = Counter()
        for records in self.wire.repeated(1, span.start, span.end):
            self.rows += len(records)
            if self.rows > self.source.limits.rows:
                raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": self.source.limits.rows})
            self.source.watch.at(span.start, self.wire.size)
            for record in records:
                _count_record(record, times, calls)
        idle = times.pop(_IDLE, 0.0)
        total = sum(times.values()) + idle
        if not total:
            raise Refusal(RefusalCode.NO_STREAM_ROWS)
        busy = total - idle
        shares = Counter({name: time / busy for name, time in times.items()}) if busy else Counter()
        return StepSummary(
            tool=OPERATIONS,
            device_type=None,
            idle_share=idle / total if idle_known else None,
            ops=_shares(shares, calls),
        )

    def _text(self, span: Span) -> str | None:
        return _name(self.wire.payload(span)[:100]) or None


def _count_record(record: bytes, times: Counter[str], calls: Counter[str]) -> None:
    """TfStatsRecord: 2 host or device, 3 type, 5 occurrences, 8 total self time in microseconds."""
    parts = dict(fields(record))
    time = _amount(parts.get(8))
    if parts.get(2) != b"Device" or time is None:
        return
    kind, count = _name(parts.get(3)), parts.get(5)
    times[kind] += time
    calls[kind] += count if isinstance(count, int) and count < 1 << 62 else 0


def _shares(shares: Mapping[str, float], calls: Mapping[str, int] | None) -> tuple[OpShare, ...]:
    """Operations by type, the largest first. Shares of one page add up to 1 at most, whatever a file claims."""
    kept = sorted(shares.items(), key=lambda one: (-one[1], one[0]))[:_KINDS_KEPT]
    whole = max(sum(shares.values()), 1.0)
    return tuple(
        OpShare(name=name, share=share / whole, calls=None if calls is None else calls.get(name))
        for name, share in kept
    )


def _amount(value: int | bytes | None) -> float | None:
    """A double that is an amount."""
    if not isinstance(value, bytes) or len(value) != 8:
        return None
    (amount,) = struct.unpack("<d", value)
    return amount if math.isfinite(amount) and 0 <= amount < 1e15 else None


def _name(value: int | bytes | None) -> str:
    return value[:100].decode("utf-8", errors="replace") if isinstance(value, bytes) else ""
