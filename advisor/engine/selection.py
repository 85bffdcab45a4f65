"""Which offers count, and how many do not and why."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from advisor.engine.cost import Goal
from advisor.engine.explain import EngineCode
from advisor.engine.hardware import running_dtype
from catalog.specs import OfferSpec
from profiling.notes import Note
from profiling.workload import Workload


def selected(workload: Workload, offers: Iterable[OfferSpec], goal: Goal) -> tuple[list[OfferSpec], list[Note]]:
    """Offers paid for as wanted, fresh enough, and of accelerators whose rate for the job's precision is known."""
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


def with_currency(goal: Goal, offers: Sequence[OfferSpec]) -> Goal:
    """Where all offers are in one other currency, they are compared in it."""
    currencies = {offer.currency for offer in offers}
    return replace(goal, currency=currencies.pop()) if len(currencies) == 1 else goal
