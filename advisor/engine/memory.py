"""Bytes that a plan needs on one GPU, and whether they fit.

Allocated = states + activations + working set of the largest pipeline stage; times a fragmentation factor, plus what
the driver and the libraries take; a measured peak replaces the formula. The parts are in ``memory_stages.py`` (what a
stage holds), ``memory_states.py``, ``memory_activations.py``, ``memory_totals.py`` and, of servers,
``serving_memory.py``.
"""

from enum import StrEnum

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates
from advisor.engine.collectives import Floats, Ints
from advisor.engine.memory_activations import activation_bytes, working_bytes
from advisor.engine.memory_stages import micro_batches, stages, weights_of
from advisor.engine.memory_states import state_bytes
from advisor.engine.memory_totals import totals_bytes
from advisor.engine.serving_memory import SERVING_LOG_HALFWIDTH, request_bytes, serving_bytes
from advisor.engine.shapes import counted
from advisor.engine.stacks import UNTOLD, stack_of
from profiling.workload import Mode, Workload


class Fit(StrEnum):
    FITS = "fits"
    TIGHT = "tight"
    DOES_NOT_FIT = "does_not_fit"
    UNKNOWN = "unknown"


def need_bytes(workload: Workload, candidates: Candidates) -> Floats:
    """Bytes per GPU; NaN where neither a measured peak nor a shape nor totals are there.

    A measured peak counts for every plan that does on each GPU what the capture did; tensor parallelism divides it as
    the formula says.
    """
    if workload.measured is None:
        once, place = _each_plan_once(candidates)
        return _formula(workload, once)[place]
    if workload.peak_memory_bytes is None:
        return np.full(len(candidates), np.nan)
    need = np.full(len(candidates), workload.peak_memory_bytes)
    if workload.model is None or not (candidates.tp > 1).any():
        return need
    rows = candidates.passing(workload.batch_per_step / workload.measured.gpu_count)
    return need * _formula(workload, rows) / _formula(workload, rows.undivided())


def _each_plan_once(candidates: Candidates) -> tuple[Candidates, Ints]:
    """One row for each plan, and the place among them of every row: what a plan needs is the same on every server."""
    row_of = np.full(len(candidates.plans), -1, dtype=np.int64)
    row_of[candidates.which] = np.arange(len(candidates))
    present = row_of >= 0
    place = np.cumsum(present) - 1
    return candidates.take(row_of[present]), place[candidates.which]


def _formula(workload: Workload, candidates: Candidates) -> Floats:
    return constant("fragmentation") * allocated_bytes(workload, candidates) + _library_bytes(candidates)


def allocated_bytes(workload: Workload, candidates: Candidates) -> Floats:
    """Peak bytes of tensors per GPU, of the largest pipeline stage: what ``torch.cuda.max_memory_allocated`` counts.

    An encoder that serves keeps no keys and values. NaN where the job is known by its capture alone.
    """
    if workload.totals is not None:
        return totals_bytes(workload, workload.totals, candidates)
    if workload.model is None:
        return np.full(len(candidates), np.nan)
    shape = counted(workload.model, workload.parameters)
    if workload.mode is Mode.INFERENCE:
        cached = 0.0 if shape.causal else candidates.micro_batch * request_bytes(workload, shape, candidates)
        return serving_bytes(workload, candidates) - cached
    weights = weights_of(shape)
    found = np.zeros(len(candidates))
    for stage in stages(shape, weights, candidates, micro_batches(workload, candidates)):
        states = state_bytes(workload, shape, weights, stage, candidates)
        kept = activation_bytes(workload, shape, stage, candidates)
        found = np.maximum(found, states + kept + working_bytes(workload, shape, weights, stage, candidates))
    return found


FITS_IN_ORDER = (Fit.FITS, Fit.TIGHT, Fit.UNKNOWN, Fit.DOES_NOT_FIT)
"""Best first; ``fit`` answers with places in this tuple."""


def fit(workload: Workload, need: Floats, capacity: Floats, source_capacity: float | None) -> Ints:
    """Place in ``FITS_IN_ORDER`` per candidate.

    ``source_capacity``: memory of the accelerator that the capture ran on, where there is one; a GPU with at least as
    much memory fits what ran there.
    """
    usable = constant("usable_memory") * capacity
    spread = np.exp(_log_halfwidth(workload))
    ran = capacity >= source_capacity if source_capacity is not None else np.zeros(len(need), dtype=bool)
    fits, unknown, never = ran | (need * spread <= usable), np.isnan(need), need / spread > usable
    verdicts = (Fit.FITS, Fit.UNKNOWN, Fit.DOES_NOT_FIT)
    places = [FITS_IN_ORDER.index(verdict) for verdict in verdicts]
    return np.select([fits, unknown, never], places, FITS_IN_ORDER.index(Fit.TIGHT))


def _log_halfwidth(workload: Workload) -> float:
    """ln half-width of the 80 % range of the need; a measured peak has none."""
    if workload.measured is not None:
        return 0.0
    if workload.mode is Mode.INFERENCE and workload.model is not None:
        return SERVING_LOG_HALFWIDTH
    told = stack_of(workload.stack).name != UNTOLD
    return constant("memory_log_halfwidth_told" if told else "memory_log_halfwidth")


def _library_bytes(candidates: Candidates) -> Floats:
    """The driver's context, library workspaces, and a buffer for each communicator."""
    sizes = (candidates.dp, candidates.tp, candidates.pp, candidates.cp, candidates.ep)
    groups = sum((size > 1).astype(np.float64) for size in sizes)
    return constant("context_bytes") + constant("communicator_bytes") * groups
