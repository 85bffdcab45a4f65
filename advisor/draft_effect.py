"""What publishing drafts of the catalog would change in stored studies.

Both rankings are computed now, so that only the drafts make the difference, not an older catalog or engine.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from advisor.answers import measured_on
from advisor.engine.advise import advise
from advisor.engine.cost import Goal
from advisor.engine.document import document, workload_summary
from advisor.engine.explain import EngineRefusal
from advisor.inputs import goal_from_json
from advisor.models import Study
from catalog import drafts as catalog_drafts
from catalog.models import Draft
from catalog.selectors import offer_specs
from catalog.specs import AcceleratorSpec, OfferSpec
from profiling.workload import Workload
from profiling.workload_json import workload_from_json

STUDIES = 20
"""The newest; each takes two rankings of about a tenth of a second."""
FIRST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """``offers``: the first ten. ``refusal``: why there is none, as an engine code with its parameters."""

    offers: tuple[Mapping[str, Any], ...] = ()
    total: int = 0
    verdict: Mapping[str, Any] | None = None
    refusal: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One offer before and after; a place of None: not among the first ten. Costs as printed, with their currency."""

    label: str
    before: int | None
    after: int | None
    cost_before: str | None
    cost_after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One study. Editors see what kind of job it is, never whose or how it is called."""

    study: str
    job: Mapping[str, Any]
    before: Ranking
    after: Ranking

    @property
    def places(self) -> list[Place]:
        """Offers among the first ten on either side whose place or cost differs, in the new order."""
        before, after = _by_key(self.before), _by_key(self.after)
        keys = sorted({*before, *after}, key=lambda key: (after.get(key, before.get(key, _LAST))[0], key))
        places = [_place(before.get(key), after.get(key)) for key in keys]
        return [one for one in places if (one.before, one.cost_before) != (one.after, one.cost_after)]

    @property
    def differs(self) -> bool:
        return (
            bool(self.places) or self.before.verdict != self.after.verdict or self.before.refusal != self.after.refusal
        )


def effects(drafts: Iterable[Draft]) -> list[Effect]:
    """The newest studies that can be ranked, before and after.

    Raises ChangesRefused or VersionConflict where the drafts cannot be published. The catalog is as if published only
    while it is read; ranking happens afterwards.
    """
    asked = list(_asked())
    days = {goal.as_of for _, _, goal in asked}
    now = _Catalog.read(asked, days)
    with catalog_drafts.previewed(drafts):
        then = _Catalog.read(asked, days)
    return [
        Effect(
            study=study,
            job=workload_summary(workload),
            before=_ranking(study, workload, goal, now),
            after=_ranking(study, workload, goal, then),
        )
        for study, workload, goal in asked
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Catalog:
    """What ranking needs of the catalog at one moment: offers by day, and by study what it was measured on."""

    offers: Mapping[date, Sequence[OfferSpec]]
    measured: Mapping[str, AcceleratorSpec | None]

    @classmethod
    def read(cls, asked: Sequence[tuple[str, Workload, Goal]], days: Iterable[date]) -> "_Catalog":
        return cls(
            offers={day: offer_specs(on=day) for day in days},
            measured={study: measured_on(workload) for study, workload, _ in asked},
        )


_LAST = (FIRST + 1, {})


def _asked() -> Iterable[tuple[str, Workload, Goal]]:
    """Short name, workload and goal of the newest answered studies."""
    found = Study.objects.filter(result__isnull=False).select_related("trace").order_by("-created_at")
    for study in found[:STUDIES]:
        stored = study.trace.workload if study.trace else study.inputs.get("workload")
        if stored:
            yield str(study.pk)[:8], workload_from_json(stored), goal_from_json(study.inputs["goal"])


def _ranking(study: str, workload: Workload, goal: Goal, catalog: _Catalog) -> Ranking:
    offers, accelerator = catalog.offers[goal.as_of], catalog.measured[study]
    try:
        answer = document(advise(workload, accelerator=accelerator, offers=offers, goal=goal), FIRST)
    except EngineRefusal as refusal:
        return Ranking(refusal={"code": str(refusal.code), "params": dict(refusal.params)})
    verdict = {name: answer["verdict"].get(name) for name in ("outcome", "code", "params")}
    return Ranking(offers=tuple(answer["offers"]), total=answer["offers_total"], verdict=verdict)


def _by_key(ranking: Ranking) -> dict[str, tuple[int, Mapping[str, Any]]]:
    return {offer["offer"]: (place, offer) for place, offer in enumerate(ranking.offers, start=1)}


def _place(before: tuple[int, Mapping[str, Any]] | None, after: tuple[int, Mapping[str, Any]] | None) -> Place:
    offer = (after or before or _LAST)[1]
    return Place(
        label=f"{offer['server']['key']} {offer['region']}".strip(),
        before=before[0] if before else None,
        after=after[0] if after else None,
        cost_before=_cost(before),
        cost_after=_cost(after),
    )


def _cost(placed: tuple[int, Mapping[str, Any]] | None) -> str | None:
    return None if placed is None else f"{placed[1]['cost_to_finish']} {placed[1]['currency']}"
