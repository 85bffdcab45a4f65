"""Samples of devices, added up to one mean per device, whatever tool printed them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from profiling.evidence import DeviceLoad, DeviceLoads
from profiling.formats.limits import Limits
from profiling.formats.numbers import MOST_BYTES
from profiling.formats.source import Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode, shown

MIB = float(1 << 20)

_COUNTERS = (
    "graphics_active", "sm_active", "dram_active", "tensor_active", "fp64_active", "fp32_active", "fp16_active",
    "nvlink_tx_bytes_per_s", "nvlink_rx_bytes_per_s", "pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s",
)  # fmt: skip
_MOST = {
    "nvlink_tx_bytes_per_s": 2e12,
    "nvlink_rx_bytes_per_s": 2e12,
    "pcie_tx_bytes_per_s": 128e9,
    "pcie_rx_bytes_per_s": 128e9,
    "power_w": 1e4,
    "peak_memory_bytes": float(MOST_BYTES),
}
"""What no device can exceed in one direction: NVLink 6 and PCIe 6.0 x16. A sample above it is one that failed."""

_FRACTION_SLACK = 1.05
"""Counters that are read one after the other may add up to a little more than all of the time."""
_BUSY, _BUSY_POWER_W = 0.2, 250.0
"""From here a device works: one busy multiprocessor would show in a counter of three decimals, and no accelerator idles
at so much power (stated judgement)."""

_NUMBER = re.compile(r"(-?(?:0|[1-9]\d{0,30})(?:\.\d{0,30})?(?:[eE][+-]?\d{1,2})?)(?![\d.])", re.ASCII)
_LAST_NUMBER = re.compile(r"(\d{1,9})$", re.ASCII)


def figure(text: str) -> float | None:
    """The number that a cell opens with: ``96``, ``96 %``, ``96(by hand)``; None for ``N/A``, ``-``, and ``012``.

    Tools print no leading zeros, so a number with one has lost its first digits.
    """
    match = _NUMBER.match(text.lstrip()[:80])
    return float(match[1]) if match else None


@dataclass(slots=True)
class _Sum:
    total: float = 0.0
    count: int = 0
    peak: float = 0.0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1
        if value > self.peak:
            self.peak = value


@dataclass(slots=True)
class _Device:
    is_slice: bool
    device_name: str | None
    sums: dict[str, _Sum] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        return max((one.count for one in self.sums.values()), default=0)

    def figures(self) -> dict[str, float]:
        """Means by field of DeviceLoad; memory is the most that was in use."""
        return {
            name: one.peak if name == "peak_memory_bytes" else one.total / one.count for name, one in self.sums.items()
        }

    def not_measured(self) -> bool:
        """Whether no multiprocessor ever worked on a device that does: someone else held the counters.

        See NVIDIA/DCGM#169 and #303.
        """
        figures = self.figures()
        activity = self.sums.get("sm_active") or self.sums.get("graphics_active")
        used = max(figures.get("utilisation", 0.0), figures.get("graphics_active", 0.0))
        works = used > _BUSY or figures.get("power_w", 0.0) > _BUSY_POWER_W
        return activity is not None and activity.peak == 0 and works


@dataclass(slots=True)
class DeviceSamples:
    """Sums per device in bounded memory. Raises Refusal for more devices than ``limits.devices``."""

    limits: Limits
    failed: int = 0
    _devices: dict[str, _Device] = field(default_factory=dict)

    def add(
        self,
        entity: str,
        values: Mapping[str, float | None],
        *,
        is_slice: bool = False,
        device_name: str | None = None,
    ) -> None:
        """One sample: figures by field of DeviceLoad, in its units. None, and what cannot be true, is left out."""
        device = self._devices.get(entity)
        if device is None:
            if len(self._devices) >= self.limits.devices:
                raise Refusal(RefusalCode.TOO_MANY_DEVICES, {"limit": self.limits.devices})
            device = self._devices[entity] = _Device(is_slice, shown(device_name.strip()) if device_name else None)
        for name, value in values.items():
            if value is None:
                continue
            most = _MOST.get(name)
            if value < 0 or value > (_FRACTION_SLACK if most is None else most):
                self.failed += 1
            else:
                one = device.sums.get(name) or device.sums.setdefault(name, _Sum())
                one.add(min(value, 1.0) if most is None else value)

    def evidence(self, kind: str) -> tuple[DeviceLoads, tuple[Note, ...]]:
        """The means and what must be said of them. Raises Refusal where there is no figure; ``kind``: of file."""
        if not any(device.sums for device in self._devices.values()):
            raise Refusal(RefusalCode.NO_ROWS, {"kind": kind})
        devices, unmeasured = [], []
        for entity in sorted(self._devices, key=lambda entity: (self._devices[entity].is_slice, *_natural(entity))):
            device = self._devices[entity]
            figures = device.figures()
            if device.not_measured():
                unmeasured.append(entity)
                figures = {name: value for name, value in figures.items() if name not in _COUNTERS or value > 0}
            devices.append(
                DeviceLoad(
                    entity=entity,
                    samples=device.samples,
                    is_slice=device.is_slice,
                    device_name=device.device_name,
                    **figures,  # ty: ignore[invalid-argument-type]
                )
            )
        notes = [Note(NoteCode.COARSE_SAMPLES)]
        if unmeasured:
            notes.append(Note(NoteCode.COUNTERS_NOT_MEASURED, {"names": shown(", ".join(unmeasured))}))
        if self.failed:
            notes.append(Note(NoteCode.SAMPLES_IMPOSSIBLE, {"count": self.failed}))
        return DeviceLoads(devices=tuple(devices)), tuple(notes)


def _natural(entity: str) -> tuple[str, int]:
    match = _LAST_NUMBER.search(entity)
    return (entity[: match.start()], int(match[1])) if match else (entity, -1)


def reading_notes(source: Source, rows: int) -> tuple[Note, ...]:
    """What the latest pass over a file of samples has to tell; ``rows``: that were read before a cut."""
    notes = list(source.notes)
    if source.unpacked.truncated:
        notes.append(Note(NoteCode.FILE_TRUNCATED, {"events": rows}))
    elif source.unpacked.damaged:
        notes.append(Note(NoteCode.GZIP_DAMAGED, {"events": rows}))
    return tuple(notes)
