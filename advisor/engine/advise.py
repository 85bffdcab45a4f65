"""The whole answer: offers in order, the NVLink verdict, the scaling curves. A pure function of its inputs."""

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.engine.compare import Comparable, comparables
from advisor.engine.cost import DEFAULT_STEPS, Goal, Priced, total_samples
from advisor.engine.explain import EngineCode
from advisor.engine.headline import headline, verdict_notes, why_no_verdict
from advisor.engine.memory import Fit
from advisor.engine.plans import is_data_parallel, legal_plans
from advisor.engine.pricing import price_all
from advisor.engine.ranking import Ranked, listed, ranked
from advisor.engine.scaling import Curve, curves
from advisor.engine.selection import selected, with_currency
from advisor.engine.step import job_of
from advisor.engine.system import System
from advisor.engine.table import Table
from advisor.engine.verdict import Comparison, compare_families
from advisor.engine.version import ENGINE_VERSION
from catalog.specs import AcceleratorSpec, OfferSpec
from profiling.notes import Note
from profiling.workload import Mode, Workload

_FIRST = 10
"""Offers that a reader looks at first: of these it is counted for how many memory was not checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """``offers``: best first, then those in other currencies.

    ``verdict``: None where nothing can be compared; then ``verdict_notes`` has the one reason, a VerdictCode.
    """

    workload: Workload
    goal: Goal
    samples: float
    offers: tuple[Ranked, ...]
    verdict: Comparison | None
    verdict_notes: tuple[Note, ...]
    comparisons: tuple[Comparison, ...]
    plans: tuple[Comparable, ...]
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
    job, (kept, left_out) = job_of(workload, accelerator), selected(workload, offers, goal)
    goal = with_currency(goal, kept)
    table = Table.of(job, kept, goal.gpus)
    lines, missed = price_all(job, table, kept, goal)
    order = ranked((one for one in lines if one.offer.currency == goal.currency), goal.objective)
    foreign = [one for one in lines if one.offer.currency != goal.currency]
    comparisons = compare_families(job, table.systems, table.outcomes, kept, goal)
    verdict = headline(comparisons, job, goal, order)
    shown = _shown(verdict, order)
    beside = verdict_notes(verdict, job, goal, order) if verdict else (why_no_verdict(job, table.outcomes),)
    return Advice(
        workload=workload,
        goal=goal,
        samples=total_samples(workload, goal),
        offers=(*order, *listed(foreign, goal.objective)),
        verdict=verdict,
        verdict_notes=beside,
        comparisons=comparisons,
        plans=comparables(job, shown),
        scaling=curves(job, [(role, system) for role, system, _ in shown]),
        notes=(*_unchecked(order), *_job_notes(workload, goal), *left_out, *missed, *_order_notes(order, foreign)),
    )


def _unchecked(order: Sequence[Ranked]) -> list[Note]:
    first = order[:_FIRST]
    count = sum(one.priced.prediction.memory.verdict is Fit.UNKNOWN for one in first)
    return [Note(EngineCode.OFFERS_MEMORY_UNKNOWN, {"count": count, "first": len(first)})] if count else []


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


def _shown(verdict: Comparison | None, order: Sequence[Ranked]) -> list[tuple[str, System, int]]:
    """Machines that are shown more closely, with the number of GPUs: both sides of the verdict, the first offer."""
    wanted: list[tuple[str, System, int]] = []
    if verdict is not None:
        wanted += [("nvlink", verdict.nvlink_system, verdict.gpus), ("pcie", verdict.pcie_system, verdict.gpus)]
    if order:
        best = order[0].priced
        wanted.append(("top_offer", System.of(best.offer.server), best.prediction.gpus))
    return wanted
