"""``nvidia-smi dmon`` and ``pmon``: columns named in header lines, which differ by driver and by option."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from profiling.formats.capture import Capture, Format
from profiling.formats.device_samples import MIB, DeviceSamples, figure, reading_notes
from profiling.formats.source import Head, Source

KIND = "nvidia-smi output"

_COLUMNS = {
    "pwr": ("power_w", 1.0),
    "sm": ("utilisation", 0.01),
    "mem": ("memory_utilisation", 0.01),
    "fb": ("peak_memory_bytes", MIB),
    "rxpci": ("pcie_rx_bytes_per_s", 1e6),
    "txpci": ("pcie_tx_bytes_per_s", 1e6),
}
_OTHERS = frozenset({"gtemp", "mtemp", "temp", "enc", "dec", "jpg", "ofa", "mclk", "pclk", "pviol", "bar1", "pid"})
_FIRST_COLUMNS = 3
"""A date and a time may stand before the number of the GPU."""
_MOST_TITLES = 100
_GPU = re.compile(r"\d{1,4}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Table:
    titles: tuple[str, ...]

    @property
    def by_process(self) -> bool:
        return "pid" in self.titles

    def row(self, line: str) -> dict[str, str] | None:
        """Cells by title; the name of a process, at the end, may have blanks. None for what is no row of a GPU."""
        words = line.replace(",", " ").split(maxsplit=len(self.titles) - 1)
        if len(words) < len(self.titles) or (not self.by_process and " " in words[-1].strip()):
            return None
        row = dict(zip(self.titles, words, strict=True))
        return row if _GPU.fullmatch(row["gpu"]) else None


@dataclass(slots=True)
class _Processes:
    """Rows of ``pmon`` added up to samples of GPUs: a process that comes again opens the next sample."""

    samples: DeviceSamples
    seen: set[str] = field(default_factory=set)
    sums: dict[str, float] = field(default_factory=dict)
    gpu: str = ""

    def add(self, gpu: str, process: str, values: Mapping[str, float | None]) -> None:
        if gpu != self.gpu or process in self.seen:
            self.flush()
        self.gpu = gpu
        self.seen.add(process)
        for name, value in values.items():
            if value is not None:
                self.sums[name] = self.sums.get(name, 0.0) + value

    def flush(self) -> None:
        """Hand over the sample that is complete; processes that share a GPU may add up to a little over 100 %."""
        if self.gpu:
            capped = {name: min(value, 1.0) if name in _SHARES else value for name, value in self.sums.items()}
            self.samples.add(f"GPU{self.gpu}", capped)
        self.seen.clear()
        self.sums.clear()


_SHARES = ("utilisation", "memory_utilisation")


def recognises(head: Head) -> bool:
    """A line of titles as these tools print it."""
    return any(_table(line) is not None for line in head.lines)


def read(source: Source) -> Capture:
    """Means per GPU over all tables of the file. Raises Refusal where no row of a GPU can be read."""
    samples = DeviceSamples(source.limits)
    processes = _Processes(samples)
    table: _Table | None = None
    rows = 0
    for line in source.lines():
        if line.lstrip().startswith("#"):
            table = _table(line) or table
            continue
        row = table.row(line) if table else None
        if table is None or row is None:
            continue
        rows += 1
        values = _values(row)
        if table.by_process:
            processes.add(str(int(row["gpu"])), row["pid"], values)
        else:
            samples.add(f"GPU{int(row['gpu'])}", values)
    processes.flush()
    evidence, notes = samples.evidence(KIND)
    return Capture(format=Format.SMI_DMON, evidence=(evidence,), notes=(*reading_notes(source, rows), *notes))


def _table(line: str) -> _Table | None:
    stripped = line.lstrip()
    if not stripped.startswith("#"):
        return None
    titles = [title.casefold() for title in stripped[1:4096].replace(",", " ").split()]
    return _Table(tuple(titles)) if _is_header(titles) else None


def _is_header(titles: Sequence[str]) -> bool:
    if "gpu" not in titles[:_FIRST_COLUMNS] or len(titles) > _MOST_TITLES:
        return False
    return any(title in _COLUMNS or title in _OTHERS for title in titles)


def _values(row: Mapping[str, str]) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for title, (name, factor) in _COLUMNS.items():
        value = figure(row[title]) if title in row else None
        values[name] = None if value is None else value * factor
    return values
