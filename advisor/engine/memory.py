"""Bytes that a plan needs on one GPU, and whether they fit.

States + activations + logits + libraries, times a fragmentation factor with a range; a measured peak replaces the
formula. Activations follow the 34-bytes-a-token form (Korthikanti et al., 2205.05198), generalised to grouped heads and
gated MLPs.
"""

from enum import StrEnum

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates
from advisor.engine.collectives import Floats, Ints
from advisor.engine.shapes import Counted, bytes_per_value, counted
from profiling.workload import Mode, Workload

_MASTER_BYTES = 12.0


class Fit(StrEnum):
    FITS = "fits"
    TIGHT = "tight"
    DOES_NOT_FIT = "does_not_fit"
    UNKNOWN = "unknown"


def need_bytes(workload: Workload, candidates: Candidates) -> Floats:
    """Bytes per GPU; NaN where neither a measured peak nor a shape is there.

    A measured peak counts for every plan that does on each GPU what the capture did; tensor parallelism divides it as
    the formula says.
    """
    if workload.measured is None:
        return _formula(workload, candidates)
    if workload.peak_memory_bytes is None:
        return np.full(len(candidates), np.nan)
    need = np.full(len(candidates), workload.peak_memory_bytes)
    if workload.model is None or not (candidates.tp > 1).any():
        return need
    rows = candidates.passing(workload.batch_per_step / workload.measured.gpu_count)
    return need * _formula(workload, rows) / _formula(workload, rows.undivided())


def _formula(workload: Workload, candidates: Candidates) -> Floats:
    if workload.model is None:
        return np.full(len(candidates), np.nan)
    shape = counted(workload.model, workload.parameters)
    work = _activation_bytes if _trains(workload) else _serving_bytes
    used = _state_bytes(workload, shape, candidates) + work(workload, shape, candidates)
    return constant("fragmentation") * used + _library_bytes(candidates)


FITS_IN_ORDER = (Fit.FITS, Fit.TIGHT, Fit.UNKNOWN, Fit.DOES_NOT_FIT)
"""Best first; ``fit`` answers with places in this tuple."""


def fit(workload: Workload, need: Floats, capacity: Floats, source_capacity: float | None) -> Ints:
    """Place in ``FITS_IN_ORDER`` per candidate.

    ``source_capacity``: memory of the accelerator that the capture ran on, where there is one; a GPU with at least as
    much memory fits what ran there.
    """
    usable = constant("usable_memory") * capacity
    spread = 1.0 if workload.measured is not None else np.exp(constant("memory_log_halfwidth"))
    ran = capacity >= source_capacity if source_capacity is not None else np.zeros(len(need), dtype=bool)
    fits, unknown, never = ran | (need * spread <= usable), np.isnan(need), need / spread > usable
    verdicts = (Fit.FITS, Fit.UNKNOWN, Fit.DOES_NOT_FIT)
    places = [FITS_IN_ORDER.index(verdict) for verdict in verdicts]
    return np.select([fits, unknown, never], places, FITS_IN_ORDER.index(Fit.TIGHT))


def _trains(workload: Workload) -> bool:
    return workload.mode is Mode.TRAINING


def _state_bytes(workload: Workload, shape: Counted, candidates: Candidates) -> Floats:
    """Weights, gradients and optimizer, by sharding stage."""
    local = shape.parameters / candidates.tp
    if not _trains(workload):
        return local * bytes_per_value(workload.precision)
    replicated = constant("state_bytes_per_parameter") * local
    optimizer = _MASTER_BYTES if bytes_per_value(workload.precision) == 2 else _MASTER_BYTES - 4
    sharded_optimizer = replicated - optimizer * local * (1 - 1 / candidates.dp)
    gathered = 2 * 2 * bytes_per_value(workload.precision) * local / shape.layers
    fully_sharded = replicated / candidates.dp + gathered
    return np.select(
        [candidates.zero_stage == 0, candidates.zero_stage == 1], [replicated, sharded_optimizer], fully_sharded
    )


def _activation_bytes(workload: Workload, shape: Counted, candidates: Candidates) -> Floats:
    tokens, tp = candidates.micro_batch * shape.sequence, candidates.tp
    wide = bytes_per_value(workload.precision) / 2
    mlp = (8 if shape.gated else 4) * shape.ffn
    layer = tokens * wide * (16 * shape.hidden + 4 * shape.kv_width + mlp - 2 * shape.hidden) / tp
    if not workload.flash_attention:
        layer = layer + 5 * wide * shape.heads * shape.sequence * tokens / tp
    kept = tokens * wide * 2 * shape.hidden / tp
    recomputed = candidates.recompute > 0
    layers = np.where(recomputed, kept * shape.layers + layer, layer * shape.layers)
    return layers + constant("logits_bytes") * tokens * shape.vocabulary / tp


def _serving_bytes(workload: Workload, shape: Counted, candidates: Candidates) -> Floats:
    """Keys and values of all sequences of one pass, and the working set of one layer."""
    tokens, tp = candidates.micro_batch * shape.sequence, candidates.tp
    wide = bytes_per_value(workload.precision)
    cache = 2 * shape.kv_width * shape.layers * tokens * wide / tp
    working = tokens * wide * (4 * shape.hidden + shape.up_width + shape.ffn) / tp
    logits = 4.0 * candidates.micro_batch * shape.vocabulary / tp
    return cache + working + logits


def _library_bytes(candidates: Candidates) -> Floats:
    groups = (candidates.dp > 1).astype(float) + (candidates.tp > 1)
    return constant("context_bytes") + constant("communicator_bytes") * groups
