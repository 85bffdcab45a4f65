"""What no software can beat: the arithmetic of a step at the chip's peak, and the weights that answers have to read.

The laws of kernels keep below both. What is put on top of them (the pace of a buyer's own measurement, what long runs
showed, the factors of a stack) may be carried to a chip or a shape where it would not, so a step is held under its
roofs once more when it is whole.
"""

from dataclasses import replace

import numpy as np

from advisor.engine.candidates import Candidates, Parts, Speed
from advisor.engine.collectives import Floats
from advisor.engine.serving_memory import weight_bytes_per_value
from advisor.engine.shapes import counted, model_flops
from profiling.workload import Workload


def under_roofs(workload: Workload, parts: Parts, candidates: Candidates, speed: Speed) -> Parts:
    """The same step; where work takes less than its roof allows, the rest is added to what the roof bounds."""
    computing = np.maximum(_arithmetic_s(workload, candidates, speed) - parts.compute_s - parts.memory_s, 0.0)
    compute_s = parts.compute_s + computing
    reading = np.maximum(_reading_s(workload, candidates, speed) - compute_s - parts.memory_s, 0.0)
    return replace(parts, compute_s=compute_s, memory_s=parts.memory_s + reading)


def _arithmetic_s(workload: Workload, candidates: Candidates, speed: Speed) -> Floats:
    """Seconds of the model's FLOPs, spread evenly over all GPUs, at the peak of what its products run in."""
    compute = candidates.hardware.compute
    flops = model_flops(workload, workload.batch_per_step) or 0.0
    return flops / (compute.peak_flops_per_s * speed.compute * candidates.gpus)


def _reading_s(workload: Workload, candidates: Candidates, speed: Speed) -> Floats:
    """Each token of an answer but the first reads every weight that is not a routed expert's, once for a round."""
    if workload.model is None or workload.output_tokens < 2:
        return np.zeros(len(candidates))
    shape = counted(workload.model)
    weights = shape.layers * sum(one.weights for one in shape.attention)
    weights += shape.dense_layers * sum(one.weights for one in shape.mlp)
    size = weights * weight_bytes_per_value(workload) / (candidates.tp * candidates.pp)
    rounds = np.ceil(np.ceil(workload.batch_per_step / candidates.dp) / candidates.micro_batch)
    rate = candidates.hardware.memory.bytes_per_s * speed.memory
    return rounds * (workload.output_tokens - 1) * size / rate
