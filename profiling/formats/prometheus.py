"""The text that dcgm-exporter serves to Prometheus: one line per field and device, any number of scrapes.

Of the labels only those that tell devices apart are read; host, pod and job names are left alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from profiling.formats.capture import Capture, Format
from profiling.formats.dcgm_fields import converted, dcgm_field
from profiling.formats.device_samples import DeviceSamples, figure, reading_notes
from profiling.formats.source import Head, Source
from profiling.notes import shown

KIND = "DCGM metrics for Prometheus"

_SERIES = re.compile(r"\s{0,80}(DCGM_FI_\w{1,80})\{", re.ASCII)
_LABEL = re.compile(r'\s*([A-Za-z_]\w{0,80})\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?', re.ASCII)


@dataclass(slots=True)
class _Devices:
    """Names of devices: ``GPU0``; a second one of that number, of another machine, is ``GPU0.2``."""

    names: dict[tuple[str, str], str] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)

    def name(self, labels: dict[str, str]) -> str:
        number = labels.get("gpu", "?")[:16]
        identity = (number, labels.get("UUID") or labels.get("Hostname") or labels.get("instance") or "")
        if identity not in self.names:
            self.used[number] = self.used.get(number, 0) + 1
            suffix = f".{self.used[number]}" if self.used[number] > 1 else ""
            self.names[identity] = shown(f"GPU{number}{suffix}")
        instance = labels.get("GPU_I_ID")
        return self.names[identity] + (shown(f"/GI{instance[:16]}") if instance else "")


def recognises(head: Head) -> bool:
    """A series of DCGM with labels."""
    return any(_SERIES.match(line) for line in head.lines)


def read(source: Source) -> Capture:
    """Means per device over the scrapes. Raises Refusal where no series of a device can be read."""
    samples = DeviceSamples(source.limits)
    devices = _Devices()
    rows = 0
    for line in source.lines():
        series = _SERIES.match(line)
        known = dcgm_field(series[1]) if series else None
        if series is None or known is None:
            continue
        labels, value = _labels(line, series.end())
        if "gpu" not in labels or value is None:
            continue
        rows += 1
        samples.add(
            devices.name(labels),
            {known.load: converted(known, figure(value))},
            is_slice=bool(labels.get("GPU_I_ID")),
            device_name=labels.get("modelName"),
        )
    evidence, notes = samples.evidence(KIND)
    return Capture(format=Format.DCGM_PROMETHEUS, evidence=(evidence,), notes=(*reading_notes(source, rows), *notes))


def _labels(line: str, start: int) -> tuple[dict[str, str], str | None]:
    """The labels and the text behind them, which opens with the value; None where they are not closed."""
    labels = {}
    end = start
    for match in _matches(line, start):
        labels[match[1]] = match[2]
        end = match.end()
    rest = line[end:].lstrip()
    return labels, rest[1:] if rest.startswith("}") else None


def _matches(line: str, start: int) -> Iterator[re.Match[str]]:
    while match := _LABEL.match(line, start):
        yield match
        start = match.end()
