"""What rocprof adds up: time per kernel, and hardware counters per kernel."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiling.evidence import KernelProfile, KernelProfiles, KernelSums, SummedKernel
from profiling.formats.limits import Limits
from profiling.formats.numbers import MOST_CALLS, integer
from profiling.formats.quantities import number
from profiling.formats.rocm import copy_kind, is_host_call
from profiling.kernels import Family, classify
from profiling.notes import Refusal, RefusalCode
from profiling.timeline import WorkKind

COUNTERS = ("FETCH_SIZE", "WRITE_SIZE")
"""Kilobytes of 1024 bytes that a kernel read from and wrote to the memory of the device, as rocprof derives them."""
_MOST_NS = 2**62
_DOMAIN = re.compile(r"[A-Z]+(_[A-Z]+)*_API(_EXT)?|KERNEL_DISPATCH|MEMORY_COPY|MEMORY_ALLOCATION|SCRATCH_MEMORY")
_NAME = 1000


@dataclass(slots=True)
class SumTable:
    """Rows of tables of sums; those of API calls and of whole domains are no work of a device."""

    rows: list[SummedKernel] = field(default_factory=list)

    def add(self, names: Sequence[str], calls: Sequence[str], totals: Sequence[str]) -> None:
        """Calls as printed, totals in ns as printed. Rows without a total are left out."""
        for name, count, total in zip(names, calls, totals, strict=True):
            nanoseconds = number(total)
            if nanoseconds is None or not 0 <= nanoseconds < _MOST_NS or is_host_call(name) or _DOMAIN.fullmatch(name):
                continue
            kind = copy_kind(name)
            self.rows.append(
                SummedKernel(
                    name=name[:_NAME],
                    kind=_kernel_kind(name) if kind is None else kind,
                    count=integer(count, high=MOST_CALLS),
                    total_ns=int(nanoseconds),
                )
            )

    def evidence(self, device_name: str | None) -> KernelSums | None:
        return KernelSums(device_name=device_name, rows=tuple(self.rows)) if self.rows else None


def _kernel_kind(name: str) -> WorkKind:
    """Copies that run as kernels are copies."""
    if classify(name)[0] is not Family.COPY:
        return WorkKind.KERNEL
    return WorkKind.FILL if "fill" in name.casefold() else WorkKind.COPY


@dataclass(slots=True)
class _Tally:
    """Dispatches of one kernel: durations in ns by dispatch, and sum and number of values by counter."""

    durations: dict[str, int] = field(default_factory=dict)
    values: dict[str, tuple[float, int]] = field(default_factory=dict)

    def mean(self, counter: str) -> float | None:
        total, count = self.values.get(counter, (0.0, 0))
        return total / count if count else None


@dataclass(slots=True)
class CounterTable:
    """Counters by kernel. Kernels run one at a time under them: durations hold, gaps and overlap mean nothing."""

    _tallies: defaultdict[str, _Tally] = field(default_factory=lambda: defaultdict(_Tally))
    _seen: int = 0

    def add(
        self,
        names: Sequence[str],
        dispatches: Sequence[str],
        durations: Sequence[int],
        counters: Sequence[str],
        values: Sequence[str],
        limits: Limits,
    ) -> None:
        """One row per dispatch and counter; durations in ns, 0 or less where they are unknown."""
        self._seen += len(names)
        if self._seen > limits.rows:
            raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": limits.rows})
        for name, dispatch, duration, counter, text in zip(names, dispatches, durations, counters, values, strict=True):
            tally = self._tallies[name[:_NAME]]
            if duration > 0:
                tally.durations[dispatch] = duration
            value = number(text)
            if counter in COUNTERS and value is not None and value >= 0:
                total, count = tally.values.get(counter, (0.0, 0))
                tally.values[counter] = (total + float(value), count + 1)

    def evidence(self, device_name: str | None) -> KernelProfiles | None:
        """Means per dispatch."""
        if not self._tallies:
            return None
        kernels = tuple(_profile(name, tally) for name, tally in self._tallies.items())
        return KernelProfiles(device_name=device_name, kernels=kernels)


def _profile(name: str, tally: _Tally) -> KernelProfile:
    seconds = sum(tally.durations.values()) / len(tally.durations) / 1e9 if tally.durations else None
    read, written = (tally.mean(counter) for counter in COUNTERS)
    moved = None if read is None or written is None else (read + written) * 1024
    rate = moved / seconds if moved is not None and seconds else None
    return KernelProfile(name=name, duration_s=seconds, dram_bytes=moved, dram_bytes_per_s=rate)
