"""The table that ``nvidia-smi`` prints for people, once or in a loop (``-l``): two lines for each GPU."""

import re
from dataclasses import dataclass

from profiling.formats.capture import Capture, Format
from profiling.formats.device_samples import MIB, DeviceSamples, reading_notes
from profiling.formats.source import Head, Source

KIND = "nvidia-smi output"

_BANNER = re.compile(r"\|\s{0,8}NVIDIA-SMI\s{1,8}\d", re.ASCII)
_GPU = re.compile(
    r"\|\s{1,8}(\d{1,3})\s{1,8}(\S[^|]{0,60}?)\s{1,60}(?:On|Off|N/A)?\s{0,8}\|\s{0,8}[0-9A-Fa-f]{4,8}:", re.ASCII
)
_POWER = re.compile(r"\s(\d{1,5})W\s{0,8}/", re.ASCII)
_MEMORY = re.compile(r"(\d{1,9})MiB\s{0,8}/", re.ASCII)
_UTILISATION = re.compile(r"\s(\d{1,3})%", re.ASCII)
_CELLS, _LONGEST = 5, 200


@dataclass(frozen=True, slots=True)
class _Gpu:
    number: int
    name: str


def recognises(head: Head) -> bool:
    """The banner of the table."""
    return _BANNER.search(head.text) is not None


def read(source: Source) -> Capture:
    """Means per GPU over the tables of the file. Raises Refusal where there is none."""
    samples = DeviceSamples(source.limits)
    gpu: _Gpu | None = None
    rows = 0
    for whole in source.lines():
        line = whole[:_LONGEST].lstrip()
        match = _GPU.match(line)
        if match:
            gpu = _Gpu(int(match[1]), match[2])
        elif gpu is not None:
            rows += 1
            samples.add(f"GPU{gpu.number}", _values(line), device_name=gpu.name)
            gpu = None
    evidence, notes = samples.evidence(KIND)
    return Capture(format=Format.SMI_TABLE, evidence=(evidence,), notes=(*reading_notes(source, rows), *notes))


def _values(line: str) -> dict[str, float | None]:
    """Figures of the second line; what reads N/A is left out. The first cell may hold the speed of a fan in percent."""
    cells = line.split("|")
    if len(cells) < _CELLS:
        return {}
    return {
        "power_w": _number(_POWER, cells[1], 1.0),
        "peak_memory_bytes": _number(_MEMORY, cells[2], MIB),
        "utilisation": _number(_UTILISATION, cells[3], 0.01),
    }


def _number(pattern: re.Pattern[str], line: str, factor: float) -> float | None:
    match = pattern.search(line)
    return int(match[1]) * factor if match else None
