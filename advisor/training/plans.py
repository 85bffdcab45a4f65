"""Where a drawn job runs and how it is divided there."""

import numpy as np
from numpy.random import Generator

from advisor.engine.candidates import Candidates
from advisor.engine.hardware import running_dtype
from advisor.engine.memory import FITS_IN_ORDER, Fit, fit, need_bytes
from advisor.engine.plans import GPU_COUNTS, Plan, legal_plans
from advisor.engine.prediction import best_rows, candidates_for
from advisor.engine.step import job_of, samples_per_step, step_parts
from advisor.engine.system import System
from advisor.training.jobs import Job
from advisor.training.servers import server_name
from catalog.specs import AcceleratorSpec
from profiling.workload import Workload

ROWS_PER_JOB = 12
_PLAN_SPREAD = 0.3


def chosen_candidates(
    job: Job, traced: AcceleratorSpec, systems: list[tuple[System, int]], generator: Generator
) -> tuple[Candidates, list[str]] | None:
    """Servers and plans that the job may well run on, and the server of each row; None where it runs nowhere."""
    chosen = _chosen_systems(job, traced, systems, generator)
    candidates = _plans(job, traced, chosen, generator) if chosen else None
    if candidates is None or not len(candidates):
        return None
    return candidates, [server_name(chosen[place][0]) for place in candidates.hardware.link.server]


def _chosen_systems(
    job: Job, traced: AcceleratorSpec, systems: list[tuple[System, int]], generator: Generator
) -> list[tuple[System, int]]:
    """Servers and GPU counts that can run the job, drawn at random."""
    precision = job.workload.precision
    if running_dtype(traced, precision) is None:
        return []
    counts = [count for count in GPU_COUNTS if _usual_plans(job.workload, count)]
    legal = [
        (system, count)
        for system, most in systems
        if running_dtype(system[0], precision)
        for count in counts
        if count <= most
    ]
    order = generator.permutation(len(legal))[:ROWS_PER_JOB]
    return [legal[place] for place in order]


_RARELY = 2
"""ZeRO stage that is seldom run inside one server."""


def _usual_plans(workload: Workload, count: int) -> tuple[Plan, ...]:
    """Plans that divide data and tensors, as most captures of one server show them."""
    plans = legal_plans(workload, count)
    return tuple(plan for plan in plans if plan.pp == plan.cp == plan.ep == 1 and plan.zero_stage != _RARELY)


def _plans(
    job: Job, traced: AcceleratorSpec, chosen: list[tuple[System, int]], generator: Generator
) -> Candidates | None:
    """For each server a plan that fits and is fast, though not always the fastest: people do not run the best."""
    systems = [system for system, _ in chosen]
    plans = {count: _usual_plans(job.workload, count) for count in GPU_COUNTS}
    wanted = [(place, plans[count]) for place, (_, count) in enumerate(chosen)]
    engine_job = job_of(job.workload, traced)
    candidates = candidates_for(engine_job, systems, wanted)
    group = np.repeat(np.arange(len(wanted)), [len(own) for _, own in wanted])
    need = need_bytes(job.workload, candidates)
    fits = fit(job.workload, need, candidates.hardware.memory.capacity_bytes, None)
    per_sample = step_parts(engine_job, candidates).step_s / samples_per_step(engine_job, candidates)
    wavering = per_sample * generator.lognormal(0.0, _PLAN_SPREAD, len(candidates))
    rows = best_rows(group, fits, need, wavering)
    return candidates.take(rows[fits[rows] != FITS_IN_ORDER.index(Fit.DOES_NOT_FIT)])
