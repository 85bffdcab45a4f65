"""The step time that a row measured, as stated or from its rate.

A rate of model FLOP/s is divided into the FLOPs of products and attention that the step needs, nothing counted twice
and of causal attention only the half that is needed (``advisor/engine/shapes.py``).
"""

import re

from advisor.engine.shapes import model_flops
from advisor.evaluation.rows import MeasuredRow
from advisor.evaluation.samples import is_in_tokens, per_sample
from advisor.evaluation.shapes import sequence_length
from profiling.workload import Workload

_SAMPLES = r"(samples|sequences|images|items|molecules|sentences|requests)\??/(m?s)\b"


def measured_step_s(row: MeasuredRow, workload: Workload, gpus: int, batch: float) -> float | None:
    """Seconds of one training step of the whole job; None where the row's figure does not give them.

    ``batch``: of one step, as the row counts it.
    """
    return row.step_time_s or _from_rate(row, workload, gpus, batch)


def samples_in_a_step(row: MeasuredRow, gpus: int, sequence: int) -> float | None:
    """The global batch that a row's step time and its rate give together; ``sequence``: tokens, 0 where not known."""
    if not row.step_time_s or not row.value:
        return None
    unit, rate = row.unit.lower(), row.value * (gpus if is_per_gpu(row) else 1)
    if re.match(_SAMPLES, unit) and "/ms" not in unit:
        return round(row.step_time_s * rate) or None
    if unit.startswith("tokens/s") and sequence:
        return round(row.step_time_s * rate / sequence) or None
    return None


def is_per_gpu(row: MeasuredRow) -> bool:
    """Whether a rate is that of one GPU of the job."""
    said = f"{row.metric} {row.unit}".lower()
    return any(words in said for words in ("per_gpu", "per gpu", "/gpu"))


def _from_rate(row: MeasuredRow, workload: Workload, gpus: int, batch: float) -> float | None:
    value, unit = row.value, row.unit.lower()
    if not value:
        return None
    if row.metric in ("iteration_time", "step_time", "latency"):
        return seconds_of(value, unit)
    if row.metric == "model_tflops_per_gpu":
        flops = model_flops(workload, workload.batch_per_step)
        return flops / (value * 1e12 * gpus) if flops else None
    rate = value * (gpus if is_per_gpu(row) else 1)
    samples = re.match(_SAMPLES, unit)
    if samples:
        return batch / (rate * (1e3 if samples.group(2) == "ms" else 1))
    held = _held_by_one(row, workload, unit)
    return batch * held / rate if held else None


def seconds_of(value: float | None, unit: str) -> float | None:
    """A time in ``s`` or ``ms``, None in anything else."""
    return {"s": value, "ms": value / 1e3}.get(unit.lower()) if value else None


def _held_by_one(row: MeasuredRow, workload: Workload, unit: str) -> float | None:
    """How much one of the row's samples holds of what its rate counts."""
    counted = unit.partition("/")[0]
    if counted != "tokens":
        return per_sample(row.model, counted)
    if workload.model:
        return workload.model.sequence_length
    if unit.startswith("tokens/s?"):
        return None  # whose tokens, or whether it is sequences, the source leaves open
    if is_in_tokens(row.family, row.micro_batch):
        return 1.0
    return sequence_length(row.seq_len) or per_sample(row.model, "tokens")
