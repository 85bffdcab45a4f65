"""Work of one micro-batch of a model known by its totals: CNN, recurrent, recommendation, diffusion, scientific.

Products and convolutions run at the chip's shape law for sides of a middling layer; everything else streams memory.
Backward work is twice the forward. Only data parallelism divides such a model.
"""

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates, Speed
from advisor.engine.collectives import Floats
from advisor.engine.groups import collective_s
from advisor.engine.kernels import Work, no_work, slowdown, streamed
from advisor.engine.shapes import bytes_per_value
from advisor.engine.transformer import Pieces
from profiling.workload import CollectiveKind, Mode, ModelTotals, Workload

_MIDDLING_SIDE = 512.0


def totals_pieces(workload: Workload, totals: ModelTotals, candidates: Candidates, speed: Speed) -> Pieces:
    """One micro-batch forward and, in training, backward (and forward again if recomputed)."""
    passes = _passes(workload, candidates)
    compute = candidates.hardware.compute
    side = np.full(len(candidates), _MIDDLING_SIDE)
    rate = compute.peak_flops_per_s * speed.compute / slowdown(compute, side * 64, side, side)
    flops = totals.flops_per_sample * candidates.micro_batch * passes
    wide = bytes_per_value(workload.precision) / 2
    traffic = totals.traffic_bytes_per_sample * candidates.micro_batch * passes * wide
    nothing = no_work(len(candidates))
    return Pieces(
        products=Work(compute_s=flops / rate, memory_s=np.zeros(len(candidates))),
        experts=nothing,
        attention=nothing,
        elementwise=streamed(candidates, speed, traffic),
        routing=nothing,
    )


def totals_launches(workload: Workload, totals: ModelTotals, candidates: Candidates) -> Floats:
    """Launches of one micro-batch, counted in those of one pass through a transformer's layer."""
    return _passes(workload, candidates) * totals.kernels_per_pass / constant("kernels_per_layer_pass")


def _passes(workload: Workload, candidates: Candidates) -> Floats:
    """Forward passes that the work amounts to."""
    return (3.0 if workload.mode is Mode.TRAINING else 1.0) + candidates.recompute


def embedding_exchange_s(workload: Workload, totals: ModelTotals, candidates: Candidates, speed: Speed) -> Floats:
    """Looked-up values of sparse tables, which are divided over the GPUs: all-to-all forward, gradients back."""
    if not totals.embedding_values_per_sample or not (candidates.dp > 1).any():
        return np.zeros(len(candidates))
    values = totals.embedding_values_per_sample * candidates.micro_batch
    one = collective_s(
        candidates,
        CollectiveKind.ALL_TO_ALL,
        values * bytes_per_value(workload.precision),
        size=candidates.dp,
        stride=np.ones_like(candidates.dp),
        speed=speed,
    )
    return one * (2.0 if workload.mode is Mode.TRAINING else 1.0)
