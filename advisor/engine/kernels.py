"""Time of compute and memory work on an accelerator.

Matrix products follow a shape law fitted to measured products of each chip (``calibration/gemm.csv``); they never run
above the best utilisation measured there, and never faster than their operands can be read. Everything is per rank;
arrays are one row per candidate.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from advisor.engine.candidates import Candidates, Speed
from advisor.engine.collectives import Floats, Ints
from advisor.engine.hardware import Compute


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Seconds bound by arithmetic and by memory traffic."""

    compute_s: Floats
    memory_s: Floats

    @property
    def total_s(self) -> Floats:
        return self.compute_s + self.memory_s

    def __add__(self, other: Self) -> Self:
        return type(self)(compute_s=self.compute_s + other.compute_s, memory_s=self.memory_s + other.memory_s)

    def take(self, rows: Ints) -> Self:
        """The given rows, in the given order."""
        return type(self)(compute_s=self.compute_s[rows], memory_s=self.memory_s[rows])

    def times(self, factor: Floats | float) -> Self:
        return type(self)(compute_s=self.compute_s * factor, memory_s=self.memory_s * factor)


def no_work(rows: int) -> Work:
    return Work(compute_s=np.zeros(rows), memory_s=np.zeros(rows))


def slowdown(compute: Compute, m: Floats, n: Floats, k: Floats) -> Floats:
    """Time of an M x N x K product over its time at peak, at least the best ever measured on that chip."""
    law = compute.c0 + compute.m0 / m + compute.n0 / n + compute.k0 / k
    return np.maximum(law, 1.0 / compute.max_utilisation)


def matmul(
    candidates: Candidates,
    speed: Speed,
    sides: tuple[Floats, Floats, Floats],
    *,
    width: float,
    count: Floats | float = 1.0,
    grouped: Floats | float = 1.0,
) -> Work:
    """``count`` products of these sides (M, N, K), operands of ``width`` bytes a value.

    The whole is memory time where reading the operands takes longer. Each takes its launch besides, or its
    share of one where ``grouped`` products are launched together.
    """
    m, n, k = sides
    hardware = candidates.hardware
    rate = hardware.compute.peak_flops_per_s * speed.compute
    arithmetic = 2 * m * n * k / rate * slowdown(hardware.compute, m, n, k)
    traffic = width * (m * n + n * k + m * k) / memory_rate(candidates, speed)
    bound, whole = arithmetic >= traffic, np.maximum(arithmetic, traffic) + hardware.compute.launch_s / grouped
    return Work(compute_s=np.where(bound, whole, 0.0) * count, memory_s=np.where(bound, 0.0, whole) * count)


def streamed(candidates: Candidates, speed: Speed, traffic_bytes: Floats) -> Work:
    """Work that only moves bytes of device memory."""
    return Work(compute_s=np.zeros(len(candidates)), memory_s=traffic_bytes / memory_rate(candidates, speed))


def memory_rate(candidates: Candidates, speed: Speed) -> Floats:
    """Achievable bytes/s of device memory."""
    return candidates.hardware.memory.bytes_per_s * speed.memory
