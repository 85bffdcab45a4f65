"""Memory of a model that is known by its totals alone: convolutional, recurrent, recommender, diffusion and others."""

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates
from advisor.engine.collectives import Floats
from advisor.engine.memory_states import divided, trained
from advisor.engine.serving_memory import weight_bytes_per_value
from advisor.engine.shapes import bytes_per_value
from profiling.workload import Mode, ModelTotals, Workload


def totals_bytes(workload: Workload, totals: ModelTotals, candidates: Candidates) -> Floats:
    """States of the dense part on each data-parallel rank, its share of the sparse tables, kept activations.

    Serving keeps no activations.
    """
    dense = totals.parameters - totals.embedding_parameters
    tables = totals.embedding_parameters / candidates.gpus
    if workload.mode is Mode.INFERENCE:
        return weight_bytes_per_value(workload) * dense + bytes_per_value(workload.precision) * tables
    value = bytes_per_value(workload.precision)
    kept = totals.activation_bytes_per_sample * value / 2 * candidates.micro_batch
    kept = kept * np.where(candidates.recompute > 0, _kept_share(totals), 1.0)
    states = divided(trained(workload), dense, candidates.dp.astype(np.float64), candidates.zero_stage)
    return states + constant("table_bytes_per_parameter") * tables + kept


def _kept_share(totals: ModelTotals) -> float:
    """Of n operations in sqrt(n) segments the ends and one segment are kept (Chen et al., 1604.06174)."""
    return min(1.0, 2.0 / max(totals.kernels_per_pass, 1) ** 0.5)
