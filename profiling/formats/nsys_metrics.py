"""GPU metrics that Nsight Systems sampled (``--gpu-metrics-devices``): means over the capture, per GPU."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.evidence import DeviceLoad, DeviceLoads
from profiling.formats.nsys_tables import NONE, Export
from profiling.formats.numbers import integers

Integers = NDArray[np.int64]

_SAMPLES, _NAMES = "gpu_metrics", "target_info_gpu_metrics"
_FIELDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("graphics_active", re.compile(r"gr active", re.IGNORECASE)),
    ("sm_active", re.compile(r"sms? active", re.IGNORECASE)),
    ("tensor_active", re.compile(r"tensor active", re.IGNORECASE)),
    ("dram_read", re.compile(r"dram (?:read )?bandwidth", re.IGNORECASE)),
    ("dram_write", re.compile(r"dram write bandwidth", re.IGNORECASE)),
)
_GPU_MASK = 0xFF
"""The lowest byte of a type id is the number of the GPU."""
_METRIC_BITS = 16
_MOST_PAIRS = 4096


@dataclass(slots=True)
class _Mean:
    total: float = 0.0
    samples: int = 0


def device_loads(export: Export) -> Iterator[DeviceLoads]:
    """Means of the metrics that are known, per GPU; nothing where the export has none.

    The samples are percent of a peak, so that rates of links are not known in bytes.
    """
    named = _fields(export)
    means: dict[tuple[int, str], _Mean] = {}
    if named:
        for batch in export.batches(_SAMPLES, ("typeId", "metricId", "value")):
            _add(means, named, *(integers(column, missing=NONE, low=NONE + 1) for column in batch))
    gpus = sorted({gpu for gpu, _ in means})
    if gpus:
        yield DeviceLoads(devices=tuple(_load(gpu, means) for gpu in gpus))


def _fields(export: Export) -> dict[int, tuple[int, str]]:
    """Which field a pair of type and metric is, and of which GPU; the pair as one integer."""
    found: dict[int, tuple[int, str]] = {}
    for kind, metric, name in export.rows(_NAMES, ("typeId", "metricId", "metricName")):
        matched = next((key for key, pattern in _FIELDS if isinstance(name, str) and pattern.match(name)), None)
        sound = matched and type(kind) is int and type(metric) is int and 0 <= metric < 1 << _METRIC_BITS
        if sound and len(found) < _MOST_PAIRS:
            found[int(_pair(np.array([kind]), np.array([metric]))[0])] = (kind & _GPU_MASK, matched)
    return found


def _pair(kind: Integers, metric: Integers) -> Integers:
    return ((kind & ((1 << 46) - 1)) << _METRIC_BITS) + metric


def _add(
    means: dict[tuple[int, str], _Mean],
    named: dict[int, tuple[int, str]],
    kind: Integers,
    metric: Integers,
    value: Integers,
) -> None:
    sound = (kind != NONE) & (metric >= 0) & (metric < 1 << _METRIC_BITS) & (value >= 0) & (value <= 100)
    pairs, back = np.unique(_pair(kind[sound], metric[sound]), return_inverse=True)
    totals = np.bincount(back, weights=value[sound], minlength=pairs.size)
    counts = np.bincount(back, minlength=pairs.size)
    for pair, total, count in zip(pairs.tolist(), totals.tolist(), counts.tolist(), strict=True):
        if pair in named:
            mean = means.setdefault(named[pair], _Mean())
            mean.total += total
            mean.samples += count


def _load(gpu: int, means: dict[tuple[int, str], _Mean]) -> DeviceLoad:
    def fraction(field: str) -> float | None:
        mean = means.get((gpu, field))
        return mean.total / mean.samples / 100 if mean else None

    read, written = fraction("dram_read"), fraction("dram_write")
    return DeviceLoad(
        entity=f"GPU {gpu}",
        samples=max(mean.samples for (one, _), mean in means.items() if one == gpu),
        graphics_active=fraction("graphics_active"),
        sm_active=fraction("sm_active"),
        tensor_active=fraction("tensor_active"),
        dram_active=None if read is None and written is None else (read or 0.0) + (written or 0.0),
    )
