"""Where a drawn job runs and how it is divided there: what fits and is not slow, though seldom the best.

People divide data first, then shard what they replicate, then tensors and stages; few try what is fastest. So a kind of
dividing is drawn by how usual it is, then a good one of a few plans of that kind.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.random import Generator

from advisor.engine.candidates import Candidates
from advisor.engine.collectives import Floats, Ints
from advisor.engine.hardware import Hardware, running_dtype
from advisor.engine.memory import FITS_IN_ORDER, Fit, fit, need_bytes
from advisor.engine.network import network_is_known
from advisor.engine.plans import Plan, legal_plans
from advisor.engine.search import Rows
from advisor.engine.serving_memory import cached_bytes_per_token
from advisor.engine.shapes import counted, parameter_count
from advisor.engine.stacks import hardware_of
from advisor.engine.step import Job as EngineJob
from advisor.engine.step import job_of, samples_per_step, step_parts
from advisor.engine.system import System
from advisor.training.draws import chosen
from advisor.training.job import Job
from advisor.training.servers import server_name
from catalog.specs import AcceleratorSpec
from profiling.workload import Mode, Workload

ROWS_PER_JOB = 12
_COUNTS: Mapping[int, float] = {1: 1.2, 2: 2.0, 4: 3.0, 8: 4.0, 16: 2.0, 32: 1.5, 64: 1.0}
_SERVING_COUNTS: Mapping[int, float] = {1: 2.0, 2: 2.0, 4: 3.0, 8: 3.0, 16: 0.6, 32: 0.2}
"""GPU counts and how often they are drawn; captures of more look alike."""
_COUNTS_PER_JOB = 3
_SERVERS_TRIED = 2 * ROWS_PER_JOB
"""Servers that are looked at: some are too small."""
_MOST_PLANS_TRIED = 3
"""People try one to three plans of a kind before they keep one."""
_PLAN_SPREAD = 0.3
_LONGEST_STEP_S = 60.0
"""Who waits longer for one step takes more GPUs or another plan."""
_NEVER = FITS_IN_ORDER.index(Fit.DOES_NOT_FIT)


def chosen_candidates(
    job: Job, traced: AcceleratorSpec, systems: Sequence[tuple[System, int]], generator: Generator
) -> tuple[Candidates, list[str]] | None:
    """Up to ``ROWS_PER_JOB`` rows of servers and plans that the job may well run on, and the server of each.

    ``systems``: with the most GPUs that are taken of each. ``traced``: what a capture was made on. None where the
    job runs nowhere.
    """
    if job.workload.measured is not None and running_dtype(traced, job.workload.precision) is None:
        return None
    plans = _plans(job.workload, generator)
    places = _places(job.workload, plans, systems, generator)
    if not places:
        return None
    kinds = [systems[place][0] for place, _ in places]
    servers = hardware_of(job.workload, kinds)
    rows = Rows.of([(at, plans[count]) for at, (_, count) in enumerate(places)])
    tried = _tried(rows, _fits(job, servers, rows), servers, job.workload.mode, generator)
    if not len(tried.which):
        return None
    kept = _best(job_of(job.workload, traced), servers, tried, generator)
    if not len(kept.which):
        return None
    return kept.on(servers), [server_name(kinds[at]) for at in kept.server]


def _plans(workload: Workload, generator: Generator) -> dict[int, tuple[Plan, ...]]:
    """Legal plans of a few GPU counts that the job can be divided over and that may hold it."""
    least, serves = _least_gpus(workload), workload.mode is Mode.INFERENCE
    usual = _SERVING_COUNTS if serves else _COUNTS
    odds = {count: odd for count, odd in usual.items() if count >= least}
    found: dict[int, tuple[Plan, ...]] = {}
    while odds and len(found) < _COUNTS_PER_JOB:
        count = chosen(generator, odds)
        del odds[count]
        plans = legal_plans(workload, count)
        if plans:
            found[count] = plans
    return found


_LARGEST_MEMORY = 2.9e11
_STATE_BYTES = 12.0
"""Bytes of a parameter that trains, spread over all GPUs, at the least: weight, moments."""


def _least_gpus(workload: Workload) -> float:
    """GPUs without which the weights fit on no accelerator: only spares looking at what cannot run."""
    trains = workload.mode is Mode.TRAINING and workload.lora_rank is None
    each = _STATE_BYTES if trains else (workload.weight_bits or 8) / 8
    return each * (parameter_count(workload) or 0.0) / _LARGEST_MEMORY


def _places(
    workload: Workload,
    plans: Mapping[int, Sequence[Plan]],
    systems: Sequence[tuple[System, int]],
    generator: Generator,
) -> list[tuple[int, int]]:
    """Systems (places in ``systems``) and GPU counts, the count drawn first: few servers have a network."""
    runs = [place for place, (system, _) in enumerate(systems) if running_dtype(system[0], workload.precision)]
    found = []
    for count in plans:
        able = [place for place in runs if _holds(*systems[place], count)]
        found += [(able[at], count) for at in generator.permutation(len(able))[: _SERVERS_TRIED // len(plans)]]
    return found


def _holds(system: System, most: int, count: int) -> bool:
    whole = count <= system.node_gpus or count % system.node_gpus == 0
    return count <= most and whole and network_is_known(system, count)


def _fits(job: Job, servers: Hardware, rows: Rows) -> Ints:
    """Rows that fit; where nobody knows what a capture needs, all of them."""
    once = Candidates.of(
        servers.take(np.zeros(len(rows.plans), dtype=np.int64)), rows.plans, np.arange(len(rows.plans))
    )
    need = (need_bytes(job.workload, once) + _cached_bytes(job, once))[rows.which]
    return np.flatnonzero(fit(job.workload, need, servers.memory.capacity_bytes[rows.server], None) != _NEVER)


def _cached_bytes(job: Job, candidates: Candidates) -> Floats:
    """Keys and values of earlier tokens, which the workload itself does not tell of."""
    if not job.cached_tokens or job.workload.model is None:
        return np.zeros(len(candidates))
    each = cached_bytes_per_token(job.workload, counted(job.workload.model), candidates)
    return each * job.cached_tokens * candidates.micro_batch / candidates.pp


def _tried(rows: Rows, fitting: Ints, servers: Hardware, mode: Mode, generator: Generator) -> Rows:
    """Of each group a few plans of one kind, drawn by how usual it is; ``ROWS_PER_JOB`` groups at most."""
    kind_of = np.array([_kind(plan) for plan in rows.plans], dtype=np.int64)[rows.which]
    split = np.array([plan.tp * plan.cp for plan in rows.plans])[rows.which]
    near = split <= servers.link.domain_gpus[rows.server]
    large = np.array([max(plan.micro_batch, 1) for plan in rows.plans]) ** 0.5
    kept: list[Ints] = []
    usual = _USUAL[mode]
    for group in generator.permutation(np.unique(rows.group[fitting]))[:ROWS_PER_JOB]:
        own = fitting[rows.group[fitting] == group]
        own = own[near[own]] if near[own].any() else own
        present = np.unique(kind_of[own])
        odds = usual[present]
        alike = own[kind_of[own] == generator.choice(present, p=odds / odds.sum())]
        kept.append(_some(alike, large[rows.which[alike]], generator))
    return rows.take(np.sort(np.concatenate([*kept, np.array([], dtype=np.int64)])))


def _some(rows: Ints, odds: Floats, generator: Generator) -> Ints:
    """What people try; large micro-batches rather than small ones."""
    size = min(int(generator.integers(1, _MOST_PLANS_TRIED + 1)), len(rows))
    return generator.choice(rows, size=size, replace=False, p=odds / odds.sum())


_ZERO_USUAL = (1.0, 0.5, 0.35, 0.8)
_SPLIT_USUAL = {Mode.TRAINING: (0.6, 0.25, 0.4, 1.0), Mode.INFERENCE: (1.0, 0.1, 0.1, 1.0)}
"""How usual each ZeRO stage is; and dividing tensors, stages, sequences and experts beside not doing so."""


def _kind(plan: Plan) -> int:
    """A number for what a plan divides: place in ``_USUAL``."""
    splits = (plan.tp > 1, plan.pp > 1, plan.cp > 1, plan.ep > 1)
    return plan.zero_stage + len(_ZERO_USUAL) * sum(2**place for place, divides in enumerate(splits) if divides)


def _usual(kind: int, split_usual: Sequence[float]) -> float:
    found, splits = _ZERO_USUAL[kind % len(_ZERO_USUAL)], kind // len(_ZERO_USUAL)
    for place, odds in enumerate(split_usual):
        found *= odds if splits >> place & 1 else 1.0
    return found


_USUAL = {
    mode: np.array([_usual(kind, odds) for kind in range(len(_ZERO_USUAL) * 2 ** len(odds))])
    for mode, odds in _SPLIT_USUAL.items()
}


def _best(engine_job: EngineJob, servers: Hardware, rows: Rows, generator: Generator) -> Rows:
    """The fastest of each group, as far as people can tell, where one step is not too long."""
    candidates = rows.on(servers)
    step_s = step_parts(engine_job, candidates).step_s
    per_sample = step_s / samples_per_step(engine_job, candidates)
    seen = per_sample * generator.lognormal(0.0, _PLAN_SPREAD, len(candidates))
    order = np.lexsort((seen, rows.group))
    order = order[step_s[order] < _LONGEST_STEP_S]
    _, first = np.unique(rows.group[order], return_index=True)
    return rows.take(order[first])
