"""A predicted step, by parts, for a batch of candidates; and the one prediction that is a batch of one."""

from dataclasses import dataclass

import numpy as np

from advisor.engine.candidates import AS_IS, Candidates, Parts, Speed
from advisor.engine.carry import Captured, carried_parts
from advisor.engine.collectives import Floats, bus_factor
from advisor.engine.described import described_parts
from advisor.engine.explain import EngineCode, EngineRefusal
from advisor.engine.fabric import GROUPS, route
from advisor.engine.hardware import hardware, running_dtype
from advisor.engine.plans import is_data_parallel
from catalog.specs import AcceleratorSpec, FabricSpec, TopologyClass
from profiling.workload import CollectiveWork, MeasuredStep, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A workload and, for a traced one, the hardware that it was captured on."""

    workload: Workload
    traced: AcceleratorSpec | None = None
    captured: Captured | None = None

    @property
    def estimated_bytes(self) -> bool:
        """Whether a message size had to be inferred from the time it took."""
        step = self.workload.measured
        return step is not None and any(work.message_bytes is None for work in step.collectives)


def job_of(workload: Workload, traced: AcceleratorSpec | None) -> Job:
    """Joins a traced workload with the accelerator that it ran on.

    EngineRefusal for a traced workload without one, or where nothing is known of its rate in the job's precision.
    """
    if workload.measured is None:
        return Job(workload=workload)
    if traced is None:
        raise EngineRefusal(EngineCode.ACCELERATOR_UNKNOWN, device=workload.measured.device_name or "?")
    if running_dtype(traced, workload.precision) is None:
        raise no_rate(traced, workload.precision)
    fabric = _likely_fabric(traced)
    sizes = tuple(_message_bytes(work, workload.measured, traced, fabric) for work in workload.measured.collectives)
    captured = Captured(
        step=workload.measured, source=hardware([(traced, fabric)], workload.precision), message_bytes=sizes
    )
    return Job(workload=workload, traced=traced, captured=captured)


def no_rate(accelerator: AcceleratorSpec, precision: str) -> EngineRefusal:
    return EngineRefusal(EngineCode.NO_RATE_FOR_PRECISION, accelerators=accelerator.name, precision=precision)


def _likely_fabric(accelerator: AcceleratorSpec) -> FabricSpec:
    """The capture does not say how its server was built: modules sit on NVSwitch, cards on PCIe."""
    module = accelerator.form_factor.upper().startswith("SXM")
    return FabricSpec(topology=TopologyClass.NVSWITCH_FULL if module else TopologyClass.PCIE_ROOT)


def _message_bytes(work: CollectiveWork, step: MeasuredStep, accelerator: AcceleratorSpec, fabric: FabricSpec) -> float:
    """As captured, else what the likely links move in the time that it took (waiting taken off)."""
    if work.message_bytes is not None:
        return work.message_bytes
    ranks = work.group_size or step.gpu_count
    group = next((size for size in GROUPS if size >= ranks), GROUPS[-1])
    total = sum(other.busy_s for other in step.collectives)
    waiting = (step.waiting_s or 0.0) * work.busy_s / total if total else 0.0
    way = route(accelerator, fabric, group)
    moving_s = max(work.busy_s - waiting, 0.0) / max(work.calls, 1.0) - way.latency_s
    return max(moving_s, 0.0) * way.bus_bytes_per_s / bus_factor(work.kind, group)


def step_parts(job: Job, candidates: Candidates, speed: Speed = AS_IS) -> Parts:
    """One step on each candidate, by parts."""
    if job.captured is not None:
        return carried_parts(job.workload, job.captured, candidates, speed)
    return described_parts(job.workload, candidates, speed)


def samples_per_step(job: Job, candidates: Candidates) -> Floats:
    """A described job keeps its batch; a traced one does per GPU what the capture did."""
    batch, measured = job.workload.batch_per_step, job.workload.measured
    if measured is None:
        return np.full(len(candidates), float(batch))
    if not is_data_parallel(job.workload, measured):
        return np.full(len(candidates), float(batch))
    return batch * candidates.dp / measured.gpu_count
