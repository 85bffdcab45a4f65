"""A predicted step, by parts, for a batch of candidates; and the one prediction that is a batch of one."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from advisor.engine.anchor import anchored_pace
from advisor.engine.candidates import AS_IS, Candidates, Parts, Speed
from advisor.engine.captured import Captured
from advisor.engine.carry import carried_parts
from advisor.engine.collectives import Floats
from advisor.engine.described import described_parts
from advisor.engine.explain import EngineCode, EngineRefusal
from advisor.engine.fabric import usual_fabric
from advisor.engine.hardware import running_dtype
from advisor.engine.plans import is_data_parallel
from advisor.engine.readings import captured_step, is_unverified
from advisor.engine.serving import is_served, serving_parts
from advisor.engine.shapes import parameter_count
from advisor.engine.stacks import hardware_of
from advisor.engine.system import System
from catalog.specs import AcceleratorSpec
from profiling.workload import MeasuredStep, Mode, Workload

_UNEXPLAINED = 0.1
"""Share of the step from which exchanges that are not understood count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A workload and, for a traced or anchored one, the hardware that it was measured on.

    ``pace``: time of everything but the exchanges on the anchor, as measured, over what the formulas say.
    """

    workload: Workload
    traced: AcceleratorSpec | None = None
    captured: Captured | None = None
    pace: float = 1.0

    @property
    def estimated_bytes(self) -> bool:
        """Whether a message size had to be inferred from the time it took."""
        step = self.workload.measured
        return step is not None and any(work.message_bytes is None for work in step.collectives)

    @property
    def unverified(self) -> bool:
        """Whether transfer and waiting cannot be told apart in what the capture exchanged."""
        return self.captured is not None and (is_unverified(self.captured.step) or not self.is_explained)

    @property
    def is_explained(self) -> bool:
        """Whether known waiting and transfer over the likely links account for what the capture exchanged."""
        return self.captured is None or self.captured.unexplained <= _UNEXPLAINED

    @property
    def exchange_assumed(self) -> bool:
        """Whether a capture without any exchange stands for ranks that may have one."""
        return self.captured is not None and not self.captured.step.collectives

    @property
    def exchange_unknown(self) -> bool:
        """Whether a job that trains shows no exchange, and nothing tells how large its gradients are."""
        training = self.workload.mode is Mode.TRAINING
        return self.exchange_assumed and training and parameter_count(self.workload) is None

    def readings(self) -> tuple[Self, ...]:
        """The same job by the other readings of what it exchanged."""
        if self.captured is None:
            return ()
        return tuple(replace(self, captured=replace(self.captured, reading=other)) for other in self.captured.others)


def job_of(workload: Workload, traced: AcceleratorSpec | None) -> Job:
    """Joins a traced or anchored workload with the accelerator that it ran on.

    EngineRefusal for one without it, where nothing is known of its rate in the job's precision, or where the step
    holds nothing but communication.
    """
    if workload.measured is None:
        return _described_job(workload, traced)
    if _works_s(workload.measured) <= 0:
        raise EngineRefusal(EngineCode.CAPTURE_WITHOUT_WORK)
    if traced is None:
        raise _unknown_accelerator(workload.measured.device_name)
    if running_dtype(traced, workload.precision) is None:
        raise no_rate(traced, workload.precision)
    source = hardware_of(workload, [System(traced, usual_fabric(traced))])
    return Job(workload=workload, traced=traced, captured=captured_step(workload.measured, source))


def _described_job(workload: Workload, measured_on: AcceleratorSpec | None) -> Job:
    if workload.anchor is None:
        return Job(workload=workload)
    if measured_on is None:
        raise _unknown_accelerator(workload.anchor.accelerator_key)
    if running_dtype(measured_on, workload.precision) is None:
        raise no_rate(measured_on, workload.precision)
    source = hardware_of(workload, [System(measured_on, usual_fabric(measured_on))])
    return Job(workload=workload, traced=measured_on, pace=anchored_pace(workload, workload.anchor, source))


def _unknown_accelerator(device_name: str | None) -> EngineRefusal:
    if device_name is None:
        return EngineRefusal(EngineCode.ACCELERATOR_UNNAMED)
    return EngineRefusal(EngineCode.ACCELERATOR_UNKNOWN, device=device_name)


def _works_s(step: MeasuredStep) -> float:
    """Seconds of all but communication."""
    return sum(work.busy_s for work in step.kernels) + step.idle_s


def no_rate(accelerator: AcceleratorSpec, precision: str) -> EngineRefusal:
    return EngineRefusal(EngineCode.NO_RATE_FOR_PRECISION, accelerators=accelerator.name, precision=precision)


def step_parts(job: Job, candidates: Candidates, speed: Speed = AS_IS) -> Parts:
    """One step on each candidate, by parts."""
    if job.captured is not None:
        return carried_parts(job.workload, job.captured, candidates, speed)
    if is_served(job.workload):
        return serving_parts(job.workload, candidates, speed, job.pace)
    return described_parts(job.workload, candidates, speed, job.pace)


def samples_per_step(job: Job, candidates: Candidates) -> Floats:
    """A described job keeps its batch; a traced one does per GPU what the capture did."""
    batch, measured = job.workload.batch_per_step, job.workload.measured
    if measured is None:
        return np.full(len(candidates), float(batch))
    if not is_data_parallel(job.workload, measured):
        return np.full(len(candidates), float(batch))
    return batch * candidates.dp / measured.gpu_count
