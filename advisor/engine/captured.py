"""A measured step as the engine reads it: the hardware it ran on, and what its exchanges may have been."""

from dataclasses import dataclass

import numpy as np

from advisor.engine.candidates import Candidates
from advisor.engine.fabric import USUAL_SERVER_GPUS
from advisor.engine.hardware import Hardware
from advisor.engine.plans import Plan
from profiling.step_graph import StepGraph
from profiling.workload import KernelClass, MeasuredStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One way to read the captured exchanges.

    ``message_bytes``: per collective, in order. ``waiting_s``: exposed time that was no transfer; ``late_launch_s``:
    the part of it known to be for hosts that launched late, and ``absorbed``: whether the rest gives way to longer
    transfers (``waits.py``). ``transfer_s``: exposed transfer where it was captured. ``pace``: time of a transfer over
    what the links are thought to take.
    """

    message_bytes: tuple[float, ...]
    waiting_s: float
    late_launch_s: float = 0.0
    absorbed: bool = False
    transfer_s: float = 0.0
    pace: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A measured step and the hardware it was measured on (one row).

    ``reading`` is the likely one; ``others`` are as possible, and the range has to hold them. ``unexplained``: share
    of the step that neither known waiting nor transfer over the likely links accounts for. ``graph``: of the step,
    where a replay with its own durations returns it; ``unseen_s``: what is then still lacking, which stays as idle
    time.
    """

    step: MeasuredStep
    source: Hardware
    reading: Reading
    others: tuple[Reading, ...] = ()
    unexplained: float = 0.0
    graph: StepGraph | None = None
    unseen_s: float = 0.0


def kernel_time_s(step: MeasuredStep) -> float:
    """Computing time of the capture, copies left out: what waiting for slower ranks goes with."""
    return sum(work.busy_s for work in step.kernels if work.kernel_class is not KernelClass.COPY)


def source_row(step: MeasuredStep, source: Hardware) -> Candidates:
    """The captured ranks on the hardware that they ran on, as far as one server goes."""
    ranks = Plan(dp=min(max(step.gpu_count, 2), USUAL_SERVER_GPUS), captured=True)
    return Candidates.of(source, (ranks,), np.zeros(1, dtype=np.int64))
