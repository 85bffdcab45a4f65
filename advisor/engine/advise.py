"""The whole answer: offers in order, the NVLink verdict, the scaling curves. A pure function of its inputs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.engine.cost import DEFAULT_STEPS, Goal, Priced, priced, total_samples
from advisor.engine.explain import EngineCode, Note
from advisor.engine.fabric import silicon_family
from advisor.engine.hardware import running_dtype
from advisor.engine.plans import GPU_COUNTS, is_data_parallel, legal_plans
from advisor.engine.prediction import Outcome, Prediction, Shortage, System, predict_all
from advisor.engine.ranking import Ranked, listed, ranked
from advisor.engine.scaling import Curve, curve
from advisor.engine.step import Job, job_of
from advisor.engine.verdict import Comparison, compare_families, headline
from advisor.engine.version import ENGINE_VERSION
from catalog.specs import AcceleratorSpec, FabricSpec, OfferSpec
from profiling.workload import Mode, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """``offers``: best first, then those in other currencies. ``verdict``: None where no family has both sides."""

    workload: Workload
    goal: Goal
    samples: float
    offers: tuple[Ranked, ...]
    verdict: Comparison | None
    comparisons: tuple[Comparison, ...]
    scaling: tuple[Curve, ...]
    notes: tuple[Note, ...]
    engine_version: str = ENGINE_VERSION


def advise(
    workload: Workload,
    *,
    accelerator: AcceleratorSpec | None = None,
    offers: Sequence[OfferSpec],
    goal: Goal,
) -> Advice:
    """Ranks the offers for this job.

    ``accelerator``: what a traced workload was captured on. EngineRefusal (``accelerator_unknown``) for a traced
    workload without; everything else that is missing is a note.
    """
    job, kept, notes = job_of(workload, accelerator), *_selected(workload, offers, goal)
    goal = _with_currency(goal, kept)
    table = _Table.of(job, kept)
    lines, missed = _priced(job, table, kept, goal)
    own = [one for one in lines if one.offer.currency == goal.currency]
    foreign = [one for one in lines if one.offer.currency != goal.currency]
    order = ranked(own, goal.objective)
    comparisons = compare_families(job, table.systems, table.outcomes, kept, goal)
    families = [silicon_family(one.priced.prediction.accelerator_key) for one in order]
    verdict = headline(comparisons, job, goal, list(dict.fromkeys(families)))
    return Advice(
        workload=workload,
        goal=goal,
        samples=total_samples(workload, goal),
        offers=(*order, *listed(foreign, goal.objective)),
        verdict=verdict,
        comparisons=comparisons,
        scaling=_curves(table, verdict, order),
        notes=(*_job_notes(workload, goal), *notes, *missed, *_order_notes(order, foreign)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Predictions of the distinct servers among the offers: many offers are the same machine at another price."""

    systems: tuple[System, ...]
    place: Mapping[tuple[str, FabricSpec], int]
    outcomes: Sequence[Mapping[int, Outcome]]

    @classmethod
    def of(cls, job: Job, offers: Iterable[OfferSpec]) -> "_Table":
        systems: dict[tuple[str, FabricSpec], System] = {}
        largest: Counter[tuple[str, FabricSpec]] = Counter()
        for offer in sorted(offers, key=lambda offer: offer.key):
            server = offer.server
            key = server.accelerator.key, server.fabric
            systems.setdefault(key, (server.accelerator, server.fabric))
            largest[key] = max(largest[key], server.gpu_count)
        counts = [[count for count in GPU_COUNTS if count <= largest[key]] for key in systems]
        found = predict_all(job, tuple(systems.values()), counts)
        return cls(systems=tuple(systems.values()), place={key: i for i, key in enumerate(systems)}, outcomes=found)

    def outcomes_of(self, offer: OfferSpec) -> Mapping[int, Outcome]:
        server = offer.server
        found = self.outcomes[self.place[server.accelerator.key, server.fabric]]
        return {count: outcome for count, outcome in found.items() if count <= server.gpu_count}


def _selected(workload: Workload, offers: Iterable[OfferSpec], goal: Goal) -> tuple[list[OfferSpec], list[Note]]:
    """Offers that count, and how many do not and why."""
    wanted = [one for one in offers if goal.pricing_models is None or one.pricing_model in goal.pricing_models]
    fresh = [one for one in wanted if (goal.as_of - one.observed_on).days <= goal.most_age_days]
    able = [one for one in fresh if running_dtype(one.server.accelerator, workload.precision) is not None]
    notes = []
    if len(fresh) < len(wanted):
        notes.append(Note(EngineCode.OFFERS_TOO_OLD, {"count": len(wanted) - len(fresh), "days": goal.most_age_days}))
    if len(able) < len(fresh):
        names = sorted({one.server.accelerator.name for one in fresh} - {one.server.accelerator.name for one in able})
        missing = {"count": len(fresh) - len(able), "accelerators": ", ".join(names)}
        notes.append(Note(EngineCode.NO_RATE_FOR_PRECISION, {"precision": workload.precision, **missing}))
    return able, notes


def _with_currency(goal: Goal, offers: Sequence[OfferSpec]) -> Goal:
    """Where all offers are in one other currency, they are compared in it."""
    currencies = {offer.currency for offer in offers}
    return replace(goal, currency=currencies.pop()) if len(currencies) == 1 else goal


def _priced(job: Job, table: _Table, offers: Iterable[OfferSpec], goal: Goal) -> tuple[list[Priced], list[Note]]:
    """Each offer at the GPU count that finishes first (or the one asked for), and why some have none."""
    samples, lines, short, impossible = total_samples(job.workload, goal), [], [], 0
    for offer in offers:
        outcomes = table.outcomes_of(offer)
        wanted = [out for count, out in outcomes.items() if goal.gpus in (None, count)]
        ready = [one for one in wanted if isinstance(one, Prediction)]
        if ready:
            best = min(ready, key=lambda one: (samples / one.samples_per_s, one.gpus))
            lines.append(priced(offer, best, samples))
        elif wanted:
            short.append(min(one.memory.shortfall_bytes or 0.0 for one in wanted if isinstance(one, Shortage)))
        else:
            impossible += 1
    notes = []
    if short:
        least = round(min(short) / 2**30, 1)
        notes.append(Note(EngineCode.OFFERS_DO_NOT_FIT, {"count": len(short), "least_gib": least}))
    if impossible:
        notes.append(Note(EngineCode.NO_LEGAL_PLAN, {"count": impossible}))
    return lines, notes


def _job_notes(workload: Workload, goal: Goal) -> list[Note]:
    notes = []
    if goal.samples is None and goal.steps is None:
        notes.append(Note(EngineCode.STEPS_ASSUMED, {"steps": DEFAULT_STEPS}))
    measured = workload.measured
    if measured is None:
        return notes
    if any(work.message_bytes is None for work in measured.collectives):
        notes.append(Note(EngineCode.COLLECTIVE_BYTES_ESTIMATED))
    if not is_data_parallel(workload, measured):
        return [*notes, Note(EngineCode.CAPTURE_NOT_DATA_PARALLEL, {"gpus": measured.gpu_count})]
    if workload.mode is Mode.TRAINING and not legal_plans(workload, 2):
        notes.append(Note(EngineCode.GRADIENT_SIZE_UNKNOWN))
    if any(work.group_size is None for work in measured.collectives):
        notes.append(Note(EngineCode.GROUPS_ASSUMED))
    return [*notes, Note(EngineCode.WEAK_SCALING)]


def _order_notes(order: Sequence[Ranked], foreign: Sequence[Priced]) -> list[Note]:
    notes = []
    if not order:
        notes.append(Note(EngineCode.NO_OFFERS))
    ties = sum(one.ties_with_first for one in order)
    if ties:
        notes.append(Note(EngineCode.NO_CLEAR_WINNER, {"count": ties}))
    if foreign:
        names = ", ".join(sorted({one.offer.currency for one in foreign}))
        notes.append(Note(EngineCode.OFFERS_IN_OTHER_CURRENCY, {"count": len(foreign), "currencies": names}))
    if any(one.priced.prediction.gpus < one.priced.offer.server.gpu_count for one in order):
        notes.append(Note(EngineCode.WHOLE_SERVER_PAID))
    return notes


def _curves(table: _Table, verdict: Comparison | None, order: Sequence[Ranked]) -> tuple[Curve, ...]:
    wanted: list[tuple[str, System]] = []
    if verdict is not None:
        wanted += [("nvlink", verdict.nvlink_system), ("pcie", verdict.pcie_system)]
    if order:
        server = order[0].priced.offer.server
        wanted.append(("top_offer", (server.accelerator, server.fabric)))
    return tuple(curve(role, system, table.outcomes[table.place[system[0].key, system[1]]]) for role, system in wanted)
