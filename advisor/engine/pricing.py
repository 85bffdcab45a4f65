"""Every offer with its best prediction, on as many of its servers as that takes, and why some have none."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from advisor.engine.cost import Goal, Priced, priced, total_samples
from advisor.engine.explain import EngineCode
from advisor.engine.network import network_is_known
from advisor.engine.plans import GPU_COUNTS, legal_plans
from advisor.engine.prediction import Outcome, Prediction, Shortage
from advisor.engine.step import Job
from advisor.engine.system import System
from advisor.engine.table import Table, takes_several
from catalog.specs import OfferSpec
from profiling.notes import Note


@dataclass(slots=True, kw_only=True)
class _Missed:
    """Offers without a prediction: bytes short of each that does not fit; how many lack something else.

    ``unjoined``: several servers are needed, and nobody states their network.
    """

    short: list[float] = field(default_factory=list)
    small: int = 0
    unjoined: int = 0
    undivided: int = 0


def price_all(job: Job, table: Table, offers: Iterable[OfferSpec], goal: Goal) -> tuple[list[Priced], list[Note]]:
    """Each offer at the GPU count that finishes first (or the one asked for), and why some have none."""
    samples, lines, missed, needed = total_samples(job.workload, goal), [], _Missed(), _least_gpus(job, goal)
    for offer in offers:
        outcomes = table.of_offer(offer)
        ready = [one for count, one in outcomes.items() if goal.gpus in (None, count) and isinstance(one, Prediction)]
        if ready:
            best = min(ready, key=lambda one: (samples / one.samples_per_s, one.gpus))
            lines.append(priced(offer, best, samples))
        else:
            _count(missed, offer, outcomes, goal, needed)
    return lines, _missed_notes(missed, goal, needed)


def _least_gpus(job: Job, goal: Goal) -> int | None:
    """GPUs that are asked for, else the fewest over which the job can be divided; None where there is no such."""
    legal = [count for count in GPU_COUNTS if legal_plans(job.workload, count)]
    return goal.gpus if goal.gpus is not None else min(legal, default=None)


def _count(missed: _Missed, offer: OfferSpec, outcomes: Mapping[int, Outcome], goal: Goal, needed: int | None) -> None:
    wanted = [one for count, one in outcomes.items() if goal.gpus in (None, count)]
    if wanted:
        missed.short.append(min(one.memory.shortfall_bytes or 0.0 for one in wanted if isinstance(one, Shortage)))
    elif goal.gpus is not None and _is_unjoined(offer, goal.gpus):
        missed.unjoined += 1
    elif needed is not None and offer.server.gpu_count < needed:
        missed.small += 1
    else:
        missed.undivided += 1


def _is_unjoined(offer: OfferSpec, gpus: int) -> bool:
    system = System.of(offer.server)
    return takes_several(system, gpus) and not network_is_known(system, gpus)


def _missed_notes(missed: _Missed, goal: Goal, needed: int | None) -> list[Note]:
    notes = []
    if missed.short:
        least = round(min(missed.short) / 2**30, 1)
        notes.append(Note(EngineCode.OFFERS_DO_NOT_FIT, {"count": len(missed.short), "least_gib": least}))
    if missed.unjoined and goal.gpus is not None:
        notes.append(Note(EngineCode.OFFERS_NETWORK_UNKNOWN, {"count": missed.unjoined, "gpus": goal.gpus}))
    if missed.small and needed is not None:
        notes.append(Note(EngineCode.SERVERS_TOO_SMALL, {"count": missed.small, "gpus": needed}))
    if missed.undivided and goal.gpus is not None:
        notes.append(Note(EngineCode.NO_LEGAL_PLAN, {"gpus": goal.gpus}))
    elif missed.undivided:
        notes.append(Note(EngineCode.NOT_DIVIDED, {"count": missed.undivided}))
    return notes
