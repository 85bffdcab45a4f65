"""Metrics of Nsight Compute under all of their names, and what they say of a kernel.

Names changed with the versions of the tool and the pages of its reports; what a number means is decided by its unit.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from profiling.evidence import KernelProfile
from profiling.formats.quantities import bytes_per, nanoseconds_per, number, per_second
from profiling.kernels import Family, classify

_PEAK = ".avg.pct_of_peak_sustained_elapsed"
_TIME, _PERCENT, _SIZE, _RATE, _COUNT = "time", "percent", "size", "rate", "count"
_NAMES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "duration": ((_TIME, "gpu__time_duration.sum"), (_TIME, "gpu__time_duration.avg"), (_TIME, "duration")),
    "compute": (
        (_PERCENT, "sm__throughput" + _PEAK),
        (_PERCENT, "compute (sm) throughput"),
        (_PERCENT, "compute (sm) [%]"),
        (_PERCENT, "sol sm"),
        (_PERCENT, "sm [%]"),
    ),
    "memory": (
        (_PERCENT, "gpu__compute_memory_throughput" + _PEAK),
        (_PERCENT, "memory throughput"),
        (_PERCENT, "memory [%]"),
        (_PERCENT, "sol memory"),
    ),
    "dram": (
        (_PERCENT, "dram__throughput" + _PEAK),
        (_PERCENT, "gpu__dram_throughput" + _PEAK),
        (_PERCENT, "dram throughput"),
        (_PERCENT, "sol dram"),
    ),
    "tensor": (
        (_PERCENT, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"),
        (_PERCENT, "sm__pipe_tensor_cycles_active" + _PEAK),
        (_PERCENT, "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"),
        (_PERCENT, "sm__pipe_tensor_op_hmma_cycles_active" + _PEAK),
        (_PERCENT, "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"),
        (_PERCENT, "sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active"),
    ),
    "bytes": ((_SIZE, "dram__bytes.sum"),),
    "read": ((_SIZE, "dram__bytes_read.sum"),),
    "written": ((_SIZE, "dram__bytes_write.sum"),),
    "rate": ((_RATE, "dram__bytes.sum.per_second"), (_RATE, "memory throughput"), (_RATE, "dram throughput")),
    "read rate": ((_RATE, "dram__bytes_read.sum.per_second"),),
    "write rate": ((_RATE, "dram__bytes_write.sum.per_second"),),
    **{
        operation: tuple(
            (_COUNT, f"{unit}__sass_thread_inst_executed_op_{operation}_pred_on.sum") for unit in ("smsp", "sm")
        )
        for operation in ("fadd", "fmul", "ffma", "hadd", "hmul", "hfma", "dadd", "dmul", "dfma")
    },
}
"""Figure to the kinds and names of the metrics that give it, the better first; names in lower case."""
_PLACES = {
    (kind, name): (figure, place) for figure, names in _NAMES.items() for place, (kind, name) in enumerate(names)
}
_KINDS = (_TIME, _PERCENT, _SIZE, _RATE, _COUNT)
_KNOWN = frozenset(name for _, name in _PLACES)
_LATENCY_BOUND = 0.60
"""``latency_bound_threshold`` of the rule ``SpeedOfLight.py`` that Nsight Compute comes with: below it in both compute
and memory throughput, "latency issues" are what it tells; otherwise the higher of the two is utilised more heavily."""


def is_known(metric: str) -> bool:
    """Whether a metric is one of those that are read."""
    return metric.strip().casefold() in _KNOWN


@dataclass(slots=True)
class Launch:
    """Figures of one profiled launch as they are printed: place among the names of the figure, kind, unit, number."""

    name: str
    figures: dict[str, tuple[int, str, str, str]] = field(default_factory=dict)

    def add(self, metric: str, unit: str, text: str) -> None:
        """Keep a metric that is known, unless a better one for the same figure is there."""
        for kind in _KINDS:
            found = _PLACES.get((kind, metric.strip().casefold()))
            if found and _factor(kind, unit) is not None:
                figure, place = found
                if figure not in self.figures or place < self.figures[figure][0]:
                    self.figures[figure] = (place, kind, unit, text)
                return

    def values(self, *, decimal_comma: bool) -> dict[str, float]:
        """Figures in seconds, bytes, bytes per second, fractions and counts."""
        found = {}
        for figure, (_, kind, unit, text) in self.figures.items():
            value, factor = number(text, decimal_comma=decimal_comma), _factor(kind, unit)
            if value is not None and value >= 0 and factor is not None:
                found[figure] = float(value * factor)
        return found


def _factor(kind: str, unit: str) -> Decimal | None:
    """What a number in this unit is multiplied with; None where the unit is not of this kind."""
    if kind == _TIME:
        nanoseconds = nanoseconds_per(unit)
        return None if nanoseconds is None else Decimal(nanoseconds).scaleb(-9)
    if kind == _PERCENT:
        return Decimal("0.01") if unit.strip() in ("%", "") else None
    if kind == _COUNT:
        return Decimal(1)
    size = bytes_per(unit) if kind == _SIZE else per_second(unit)
    return None if size is None else Decimal(size)


def profile(name: str, launches: Iterable[Mapping[str, float]]) -> KernelProfile:
    """All launches of one kernel as one: means per launch, fractions weighted by time where it is known."""
    rows = list(launches)
    mean = {figure: _mean(rows, figure) for figure in _NAMES}
    memory = mean["dram"] if mean["memory"] is None else mean["memory"]
    duration = mean["duration"]
    moved = _first(mean["bytes"], _sum(mean["read"], mean["written"]))
    rate = _first(mean["rate"], _sum(mean["read rate"], mean["write rate"]))
    flops = _flops(name, mean)
    return KernelProfile(
        name=name,
        launches=len(rows),
        duration_s=duration,
        compute_fraction=mean["compute"],
        memory_fraction=memory,
        dram_fraction=mean["dram"],
        tensor_fraction=mean["tensor"],
        dram_bytes=_first(moved, rate * duration if rate is not None and duration else None),
        dram_bytes_per_s=_first(rate if moved is None else None, _per(moved, duration), rate),
        flops=flops,
        flops_per_s=_per(flops, duration),
        bound=_bound(mean["compute"], memory),
    )


def _bound(compute: float | None, memory: float | None) -> str | None:
    if compute is None or memory is None:
        return None
    if max(compute, memory) < _LATENCY_BOUND:
        return "latency"
    return "compute" if compute >= memory else "memory"


def _mean(rows: list[Mapping[str, float]], figure: str) -> float | None:
    """Mean over the launches that have the figure; weighted by time for fractions and rates, where all have times."""
    known = [row for row in rows if figure in row]
    if len(known) < 2:
        return known[0][figure] if known else None
    timed = _NAMES[figure][0][0] in (_PERCENT, _RATE) and all(row.get("duration") for row in known)
    weights = [row["duration"] if timed else 1.0 for row in known]
    return sum(row[figure] * weight for row, weight in zip(known, weights, strict=True)) / sum(weights)


def _flops(name: str, mean: Mapping[str, float | None]) -> float | None:
    """Floating-point operations per launch, a multiply-add being two.

    The counters are those of threads: tensor cores are not in them, so that a kernel that uses these is unknown.
    """
    counted = [mean[kind + operation] for kind in "fhd" for operation in ("add", "mul", "fma")]
    if all(value is None for value in counted):
        return None
    tensor = mean["tensor"]
    if tensor or (tensor is None and classify(name)[0] in (Family.MATMUL, Family.ATTENTION)):
        return None
    weights = [1, 1, 2] * 3
    return sum(weight * (value or 0.0) for weight, value in zip(weights, counted, strict=True))


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _per(amount: float | None, duration: float | None) -> float | None:
    return amount / duration if amount is not None and duration else None
