"""``nvidia-smi -q`` and ``-q -x``: the state of every GPU at one moment, or at several where it ran in a loop.

Both are read line by line as sections and values. No XML parser is used, so nothing in a file from strangers expands.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from profiling.formats.capture import Capture, Format
from profiling.formats.device_samples import MIB, DeviceSamples, figure, reading_notes
from profiling.formats.source import Head, Source

KIND = "nvidia-smi output"

_START = re.compile(r"={4}NVSMI LOG={4}|<nvidia_smi_log>", re.ASCII)
_GPU = re.compile(r"""GPU ([0-9A-Fa-f:.]{7,20})$|\s{0,40}<gpu id="([0-9A-Fa-f:.]{7,20})">""", re.ASCII)
_OPEN = re.compile(r"\s{0,80}<(\w{1,80})(?: [^<>]{0,200})?>$", re.ASCII)
_CLOSE = re.compile(r"\s{0,80}</(\w{1,80})>$", re.ASCII)
_ELEMENT = re.compile(r"\s{0,80}<(\w{1,80})>([^<>]{0,400})</\w{1,80}>$", re.ASCII)
_BETWEEN = re.compile(r">\s*<")
_DEEPEST, _LONGEST = 32, 400
_SLICES = "mig device"

_VALUES = {
    "utilization/gpu": ("utilisation", 0.01),
    "utilization/gpu util": ("utilisation", 0.01),
    "utilization/memory": ("memory_utilisation", 0.01),
    "utilization/memory util": ("memory_utilisation", 0.01),
    "fb memory usage/used": ("peak_memory_bytes", MIB),
    "power readings/power draw": ("power_w", 1.0),
    "gpu power readings/power draw": ("power_w", 1.0),
    "gpu power readings/average power draw": ("power_w", 1.0),
    "pci/tx throughput": ("pcie_tx_bytes_per_s", 1e3),
    "pci/tx util": ("pcie_tx_bytes_per_s", 1e3),
    "pci/rx throughput": ("pcie_rx_bytes_per_s", 1e3),
    "pci/rx util": ("pcie_rx_bytes_per_s", 1e3),
}


@dataclass(slots=True)
class _Gpu:
    entity: str
    name: str | None = None
    values: dict[str, float | None] = field(default_factory=dict)

    def take(self, sections: list[str], key: str, value: str) -> None:
        if any(section.startswith(_SLICES) for section in sections):
            return
        if key == "product name":
            self.name = value
        known = _VALUES.get(f"{sections[-1]}/{key}") if sections else None
        number = figure(value)
        if known and number is not None:
            self.values[known[0]] = number * known[1]


def recognises(head: Head) -> bool:
    """The banner of the text form, or the root element of the other."""
    return _START.search(head.text) is not None


def read(source: Source) -> Capture:
    """The state per GPU, means over the moments. Raises Refusal where no GPU is listed."""
    samples = DeviceSamples(source.limits)
    rows = 0
    for gpu in _gpus(source):
        rows += 1
        samples.add(gpu.entity, gpu.values, device_name=gpu.name)
    evidence, notes = samples.evidence(KIND)
    return Capture(format=Format.SMI_REPORT, evidence=(evidence,), notes=(*reading_notes(source, rows), *notes))


def _gpus(source: Source) -> Iterator[_Gpu]:
    """Each listing of a GPU; they are numbered in order of appearance, since the report has bus addresses only."""
    numbers: dict[str, int] = {}
    gpu: _Gpu | None = None
    sections: list[tuple[int, str]] = []
    take = _take_text
    lines = (part for line in source.lines() for part in _BETWEEN.sub(">\n<", line).split("\n"))
    for line in lines:
        start = _GPU.match(line)
        if start:
            if gpu is not None:
                yield gpu
            number = numbers.setdefault(start[1] or start[2], len(numbers))
            gpu, sections, take = _Gpu(f"GPU{number}"), [], _take_text if start[1] else _take_element
        elif gpu is not None:
            take(gpu, sections, line)
        if len(numbers) > source.limits.devices:
            break
    if gpu is not None:
        yield gpu


def _take_element(gpu: _Gpu, sections: list[tuple[int, str]], line: str) -> None:
    """One line of XML below a GPU: a value, or the start or the end of a section."""
    element = _ELEMENT.match(line)
    if element:
        gpu.take([name for _, name in sections], _folded(element[1]), element[2])
    elif opened := _OPEN.match(line):
        if len(sections) < _DEEPEST:
            sections.append((len(sections), _folded(opened[1])))
    elif _CLOSE.match(line):
        del sections[-1:]


def _take_text(gpu: _Gpu, sections: list[tuple[int, str]], line: str) -> None:
    """One line of text below a GPU: sections hold what is indented further than their title."""
    text = line[:_LONGEST].strip()
    if not text:
        return
    indent = len(line) - len(line.lstrip())
    key, colon, value = text.partition(":")
    while sections and sections[-1][0] >= indent:
        sections.pop()
    if colon:
        gpu.take([name for _, name in sections], _folded(key), value)
    elif len(sections) < _DEEPEST:
        sections.append((indent, _folded(key)))


def _folded(name: str) -> str:
    return name.strip().replace("_", " ").casefold()
