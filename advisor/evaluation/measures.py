"""The step time that a row measured, as stated or from its rate.

A rate of model FLOP/s is divided into the FLOPs of products and attention that the step needs, nothing counted twice
and of causal attention only the half that is needed (``advisor/engine/shapes.py``).
"""

import re

from advisor.engine.shapes import model_flops
from advisor.evaluation.rows import MeasuredRow
from advisor.evaluation.samples import per_sample
from profiling.workload import Workload

_SAMPLES = r"(samples|sequences|images|items|molecules|sentences|requests)\??/(m?s)\b"


def measured_step_s(row: MeasuredRow, workload: Workload, gpus: int) -> float | None:
    """Seconds of one training step of the whole job; None where the row's figure does not give them."""
    return row.step_time_s or _from_rate(row, workload, gpus)


def is_per_gpu(row: MeasuredRow) -> bool:
    """Whether a rate is that of one GPU of the job."""
    said = f"{row.metric} {row.unit}".lower()
    return any(words in said for words in ("per_gpu", "per gpu", "/gpu"))


def _from_rate(row: MeasuredRow, workload: Workload, gpus: int) -> float | None:
    value, unit = row.value, row.unit.lower()
    if not value:
        return None
    if row.metric in ("iteration_time", "step_time", "latency"):
        return {"s": value, "ms": value / 1e3}.get(unit)
    if row.metric == "model_tflops_per_gpu":
        flops = model_flops(workload, workload.batch_per_step)
        return flops / (value * 1e12 * gpus) if flops else None
    if unit.startswith("tokens/s") and workload.model:
        ranks = gpus if is_per_gpu(row) else 1
        return workload.batch_per_step * workload.model.sequence_length / (value * ranks)
    if workload.totals and not re.match(_SAMPLES, unit):
        held = per_sample(row.model, unit.partition("/")[0])
        return workload.batch_per_step * held / value if held else None
    samples = re.match(_SAMPLES, unit)
    return workload.batch_per_step / (value * (1e3 if samples.group(2) == "ms" else 1)) if samples else None
