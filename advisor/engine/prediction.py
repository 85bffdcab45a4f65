"""Predictions of one job on many servers: every legal plan tried, the best that fits kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from advisor.engine.calibrated import Evidence, constant
from advisor.engine.candidates import Candidates
from advisor.engine.collectives import Floats, Ints
from advisor.engine.explain import EngineCode, EngineRefusal
from advisor.engine.hardware import Hardware, running_dtype
from advisor.engine.intervals import evidence, link_range, step_halfwidth
from advisor.engine.memory import FITS_IN_ORDER, Fit
from advisor.engine.network import network_is_known
from advisor.engine.plans import Plan, legal_plans, plans_like
from advisor.engine.reasons import fixable_notes, notes_for
from advisor.engine.search import Rows, best_rows, checked, plainly, worth_timing
from advisor.engine.sensitivity import bounds
from advisor.engine.serving import is_served, token_times
from advisor.engine.stacks import hardware_of
from advisor.engine.step import Job, job_of, no_rate, samples_per_step, step_parts
from advisor.engine.system import System
from catalog.specs import AcceleratorSpec, ServerSpec
from profiling.notes import Note
from profiling.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of one step by part. All but the hidden communication add up to ``Prediction.step_s``."""

    compute_s: float
    memory_s: float
    copy_s: float
    communication_exposed_s: float
    bubble_s: float
    host_s: float
    input_s: float
    communication_hidden_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFit:
    """``need_bytes`` is None where neither a measured peak nor a shape is there; ``shortfall_bytes`` > 0 if short."""

    verdict: Fit
    need_bytes: float | None
    capacity_bytes: float

    @property
    def shortfall_bytes(self) -> float | None:
        if self.need_bytes is None:
            return None
        return self.need_bytes - constant("usable_memory") * self.capacity_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTimes:
    """What one request waits: seconds to its first token, and for each one after it (None where there is none)."""

    first_s: float
    each_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One job on one server with one plan.

    ``low_s`` to ``high_s``: nominal 80 % range. ``link_low``, ``link_high``: the part of it (ln) that comes from not
    knowing the links better; the rest is shared by all servers with this accelerator. ``bottleneck``,
    ``sensitivities``, ``limits_s``: see ``sensitivity.py``. ``tokens``: of a described job that serves answers.
    """

    accelerator_key: str
    gpus: int
    plan: Plan
    step_s: float
    low_s: float
    high_s: float
    link_low: float
    link_high: float
    parts: StepTime
    samples_per_step: float
    memory: MemoryFit
    bottleneck: str
    sensitivities: Mapping[str, float]
    limits_s: Mapping[str, float]
    evidence: Evidence
    notes: tuple[Note, ...]
    tokens: TokenTimes | None = None

    @property
    def samples_per_s(self) -> float:
        return self.samples_per_step / self.step_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A GPU count at which no plan fits: the one that lacks least."""

    gpus: int
    plan: Plan
    memory: MemoryFit


Outcome = Prediction | Shortage


def predict(
    workload: Workload,
    *,
    traced_accelerator: AcceleratorSpec | None = None,
    server: ServerSpec,
    gpus: int,
    plan: Plan | None = None,
) -> Prediction:
    """The job on ``gpus`` GPUs of this server, or of several of them: with this plan, else with the best that fits.

    A given plan is predicted whether it fits or not (``memory.verdict``); its micro-batch is chosen if it names none.
    EngineRefusal where there is no answer:
    unknown accelerator of a trace, no rate for the precision, no legal plan, an unknown network, nothing fits.
    """
    job, system = job_of(workload, traced_accelerator), System.of(server)
    if running_dtype(server.accelerator, workload.precision) is None:
        raise no_rate(server.accelerator, workload.precision)
    plans = legal_plans(workload, gpus) if plan is None else plans_like(workload, plan)
    whole_servers = gpus <= server.gpu_count or gpus % server.gpu_count == 0
    if not plans or not whole_servers or (plan is not None and plan.gpus != gpus):
        raise EngineRefusal(EngineCode.NO_LEGAL_PLAN, gpus=gpus)
    if not network_is_known(system, gpus):
        raise EngineRefusal(EngineCode.NETWORK_UNKNOWN, gpus=gpus)
    (chosen,) = outcomes(job, [system], Rows.of([(0, plans)]), keep=plan is not None)
    if isinstance(chosen, Shortage):
        raise EngineRefusal(EngineCode.NOTHING_FITS, gpus=gpus, short_gib=_gib(chosen.memory.shortfall_bytes))
    return chosen


def _gib(size: float | None) -> float:
    return round((size or 0.0) / 2**30, 1)


def predict_all(job: Job, systems: Sequence[System], counts: Sequence[Sequence[int]]) -> list[dict[int, Outcome]]:
    """For each system, by GPU count: the best plan that fits, or what is short. One vectorised evaluation.

    ``counts``: GPU counts wanted of each system. Counts without a legal plan are missing from the answer. Systems that
    do not differ for the job and the count share one outcome.
    """
    plans = {count: legal_plans(job.workload, count) for count in sorted(set(chain.from_iterable(counts)))}
    wanted = [(place, count) for place, own in enumerate(counts) for count in own if plans[count]]
    seen = [seen_by(job.workload, system) for system in systems]
    kinds = [seen[place].at(count) for place, count in wanted]
    alike: dict[System, int] = {}
    for kind in kinds:
        alike.setdefault(kind, len(alike))
    groups = dict.fromkeys((alike[kind], count) for kind, (_, count) in zip(kinds, wanted, strict=True))
    found: list[dict[int, Outcome]] = [{} for _ in systems]
    if not groups:
        return found
    rows = Rows.of([(place, plans[count]) for place, count in groups])
    ready = dict(zip(groups, outcomes(job, tuple(alike), rows), strict=True))
    for kind, (place, count) in zip(kinds, wanted, strict=True):
        found[place][count] = ready[alike[kind], count]
    return found


@dataclass(frozen=True, slots=True)
class Seen:
    """A system as a job sees it: ``alone`` where it stays in one server, which then needs no network."""

    whole: System
    alone: System

    def at(self, count: int) -> System:
        return self.alone if count <= (self.whole.node_gpus or count) else self.whole


def seen_by(workload: Workload, system: System) -> Seen:
    """Processors count only for jobs that are fed by them; then it matters how many GPUs share them."""
    pipeline = workload.input_pipeline
    fed = pipeline is not None and pipeline.cpu_s_per_sample is not None
    whole = system if fed else system._replace(cpu_cores=None)
    inside = replace(system.fabric, network_bandwidth_bytes_per_s=None, rdma=None)
    return Seen(whole, whole._replace(fabric=inside, node_gpus=whole.node_gpus if fed else 0))


def candidates_for(job: Job, systems: Sequence[System], wanted: Sequence[tuple[int, Sequence[Plan]]]) -> Candidates:
    """Rows for these plans on these systems; ``wanted``: (place in ``systems``, plans), in order."""
    return candidates_on(hardware_of(job.workload, systems), wanted)


def candidates_on(servers: Hardware, wanted: Sequence[tuple[int, Sequence[Plan]]]) -> Candidates:
    return Rows.of(wanted).on(servers)


def outcomes(job: Job, systems: Sequence[System], rows: Rows, *, keep: bool = False) -> list[Outcome]:
    """The best of each group, in order of group; ``keep`` answers even where the plan does not fit."""
    servers = hardware_of(job.workload, systems)
    timed = worth_timing(checked(job, servers, rows))
    best = best_rows(timed.rows.group, timed.fits, timed.need, _paces(job, servers, timed.rows))
    won = timed.take(best)
    ready = _predictions(job, systems, won.rows.on(servers), won.need, won.fits)
    short = FITS_IN_ORDER.index(Fit.DOES_NOT_FIT)
    return [
        Shortage(gpus=one.gpus, plan=one.plan, memory=one.memory) if fits == short and not keep else one
        for fits, one in zip(won.fits, ready, strict=True)
    ]


_AT_ONCE = 2**15
"""Rows that are timed together: a few dozen arrays of that many stay in a processor's cache."""


def _paces(job: Job, servers: Hardware, rows: Rows) -> Floats:
    """What each row is chosen by: seconds per sample, a little more for what is less plain."""
    found = []
    for first in range(0, len(rows.which), _AT_ONCE):
        some = rows.take(slice(first, first + _AT_ONCE)).on(servers)
        found.append(step_parts(job, some).step_s / samples_per_step(job, some) * plainly(some))
    return np.concatenate(found)


def _predictions(job: Job, systems: Sequence[System], rows: Candidates, need: Floats, fits: Ints) -> list[Prediction]:
    parts = step_parts(job, rows)
    step_s = parts.step_s
    places = rows.hardware.link.server
    levels = [evidence(job, systems[place][0], int(gpus)) for place, gpus in zip(places, rows.gpus, strict=True)]
    low, high = link_range(job, rows, step_s)
    width = step_halfwidth(job, levels)
    bound = bounds(job, rows, parts)
    samples, capacity = samples_per_step(job, rows), rows.hardware.memory.capacity_bytes
    names = StepTime.__dataclass_fields__
    tokens = _token_times(job, rows)
    return [
        Prediction(
            accelerator_key=systems[places[i]][0].key,
            gpus=int(rows.gpus[i]),
            plan=rows.plan(i),
            step_s=float(step_s[i]),
            low_s=float(step_s[i] * np.exp(-np.hypot(width[i], low[i]))),
            high_s=float(step_s[i] * np.exp(np.hypot(width[i], high[i]))),
            link_low=float(low[i]),
            link_high=float(high[i]),
            parts=StepTime(**{name: float(getattr(parts, name)[i]) for name in names}),
            samples_per_step=float(samples[i]),
            memory=MemoryFit(
                verdict=FITS_IN_ORDER[fits[i]],
                need_bytes=None if np.isnan(need[i]) else float(need[i]),
                capacity_bytes=float(capacity[i]),
            ),
            bottleneck=bound.label_of(i),
            sensitivities=bound.sensitivities_of(i),
            limits_s=bound.limits_of(i),
            evidence=levels[i],
            notes=(
                *notes_for(job, *systems[places[i]][:2], int(rows.gpus[i]), FITS_IN_ORDER[fits[i]]),
                *fixable_notes(bound.sensitivities_of(i)),
            ),
            tokens=tokens[i],
        )
        for i in range(len(rows))
    ]


def _token_times(job: Job, rows: Candidates) -> list[TokenTimes | None]:
    if not is_served(job.workload) or job.workload.output_tokens < 1:
        return [None] * len(rows)
    first, each = token_times(job.workload, rows, pace=job.pace)
    single = job.workload.output_tokens == 1
    return [
        TokenTimes(first_s=float(one), each_s=None if single else float(other))
        for one, other in zip(first, each, strict=True)
    ]
