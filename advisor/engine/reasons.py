"""Which notes a prediction carries: what had to be assumed, and what is therefore wide."""

from collections.abc import Iterator, Mapping

from advisor.engine.explain import EngineCode
from advisor.engine.fabric import LIKELY_PEER_COPIES, UNKNOWN_PEER_COPIES, route
from advisor.engine.hardware import gemm_law, running_dtype
from advisor.engine.memory import Fit
from advisor.engine.step import Job
from catalog.specs import AcceleratorSpec, FabricSpec
from profiling.notes import Note
from profiling.workload import Mode

_FIT_CODES = {
    Fit.TIGHT: EngineCode.MEMORY_TIGHT,
    Fit.UNKNOWN: EngineCode.MEMORY_UNKNOWN,
    Fit.DOES_NOT_FIT: EngineCode.DOES_NOT_FIT,
}


FIXABLE: Mapping[str, EngineCode] = {
    "host": EngineCode.HOST_BOUND_THERE,
    "input": EngineCode.INPUT_BOUND_THERE,
}
"""What is cheaper to fix in the job than to rent around."""
_WORTH_FIXING = 0.2


def fixable_notes(sensitivities: Mapping[str, float]) -> Iterator[Note]:
    """Warnings where the host or its loading decides about a good part of the step, by their sensitivities."""
    for resource, code in FIXABLE.items():
        if sensitivities[resource] >= _WORTH_FIXING:
            yield Note(code, {"percent": round(100 * sensitivities[resource])})


def notes_for(job: Job, accelerator: AcceleratorSpec, fabric: FabricSpec, gpus: int, fits: Fit) -> tuple[Note, ...]:
    """The notes of one prediction, most important first."""
    return tuple(_notes(job, accelerator, fabric, gpus, fits))


def _notes(job: Job, accelerator: AcceleratorSpec, fabric: FabricSpec, gpus: int, fits: Fit) -> Iterator[Note]:
    if fits in _FIT_CODES:
        yield Note(_FIT_CODES[fits])
    if gpus > 1:
        yield from _link_notes(job, accelerator, fabric, gpus)
    dtype = running_dtype(accelerator, job.workload.precision)
    if dtype is not None and dtype != job.workload.precision and job.workload.precision not in ("fp8", "fp4"):
        yield Note(EngineCode.DTYPE_FALLBACK, {"wanted": job.workload.precision, "used": dtype})
    if job.captured is not None and job.captured.graph is None:
        yield Note(EngineCode.REPLAY_NOT_POSSIBLE)
    if gemm_law(accelerator).evidence != "measured":
        yield Note(EngineCode.ACCELERATOR_NOT_MEASURED, {"accelerator": accelerator.name})


def _link_notes(job: Job, accelerator: AcceleratorSpec, fabric: FabricSpec, gpus: int) -> Iterator[Note]:
    way = route(accelerator, fabric, gpus)
    if way.path == "unknown":
        yield Note(EngineCode.FABRIC_UNKNOWN)
    elif way.path in (LIKELY_PEER_COPIES, UNKNOWN_PEER_COPIES):
        yield Note(EngineCode.FABRIC_ASSUMED)
    if job.exchange_assumed:
        training = job.workload.mode is Mode.TRAINING
        yield Note(EngineCode.GRADIENTS_ASSUMED if training else EngineCode.REPLICAS_ASSUMED)
    if job.estimated_bytes:
        yield Note(EngineCode.COLLECTIVE_BYTES_ESTIMATED)
    if job.unverified:
        yield Note(EngineCode.TRANSFER_UNVERIFIED)
