"""A step time that the buyer measured, and what it says of the formulas.

One measured run of the job repairs most of what a formula gets wrong about a model and its software, so everything but
the exchanges is paced by it: measured over predicted. Exchanges are always timed from their bytes on the target's
links.
"""

from dataclasses import replace
from math import log

import numpy as np

from advisor.engine.candidates import AS_IS, Candidates
from advisor.engine.collectives import Floats
from advisor.engine.described import described_parts
from advisor.engine.explain import EngineCode, EngineRefusal
from advisor.engine.hardware import Hardware
from advisor.engine.memory import FITS_IN_ORDER, Fit, fit, need_bytes
from advisor.engine.plans import Plan, legal_plans
from advisor.engine.serving import is_served, serving_parts
from profiling.workload import Anchor, Workload

_SLOWEST, _FASTEST = 1e3, 1e-3
_HALVINGS = 60


def anchored_pace(workload: Workload, anchor: Anchor, source: Hardware) -> float:
    """Time of everything but the exchanges, as measured, over what the formulas say; ``source``: one row.

    EngineRefusal where the measured run cannot have been this job: it cannot be divided so, or its step is out of all
    proportion.
    """
    run = replace(workload, batch_per_step=anchor.batch_per_step, micro_batch=anchor.micro_batch)
    plan = _likely_plan(run, anchor, source)
    ran = Candidates.of(source, (plan,), np.zeros(1, dtype=np.int64))

    def step_s(pace: float) -> float:
        return float(_step_s(run, ran, pace)[0])

    if not step_s(_FASTEST) < anchor.step_s < step_s(_SLOWEST):
        raise EngineRefusal(EngineCode.ANCHOR_IMPOSSIBLE, step_s=anchor.step_s, gpus=anchor.gpus)
    low, high = log(_FASTEST), log(_SLOWEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if step_s(np.exp(middle)) < anchor.step_s else (low, middle)
    return float(np.exp((low + high) / 2))


def _step_s(run: Workload, candidates: Candidates, pace: float) -> Floats:
    return (serving_parts if is_served(run) else described_parts)(run, candidates, AS_IS, pace).step_s


def _likely_plan(run: Workload, anchor: Anchor, source: Hardware) -> Plan:
    """The plainest plan: data-parallel where its states fit, else the fastest of the others that do.

    A micro-batch that the buyer names ran, whatever the memory formula says of it.
    """
    plans = legal_plans(run, anchor.gpus)
    if not plans:
        raise EngineRefusal(EngineCode.NO_LEGAL_PLAN, gpus=anchor.gpus)
    rows = Candidates.of(source.take(np.zeros(len(plans), dtype=np.int64)), plans, np.arange(len(plans)))
    fits = fit(run, need_bytes(run, rows), rows.hardware.memory.capacity_bytes, None)
    ready = (fits <= FITS_IN_ORDER.index(Fit.UNKNOWN)) | (anchor.micro_batch is not None)
    seconds = _step_s(run, rows, 1.0)
    plain = np.array([plan.gpus == plan.dp and plan.zero_stage == 0 and plan.recompute == "none" for plan in plans])
    order = np.lexsort((seconds, ~plain, ~ready))
    return plans[order[0]]
