"""A finished study's document, with the sentences and rows that its page shows and its charts draw."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from django.utils.translation import gettext as _

from advisor.bottleneck_view import Bottleneck, sentence
from advisor.captured import Captured
from advisor.contrast import links_contrast
from advisor.engine.document import Document
from advisor.engine.explain import EngineCode
from advisor.engine.reasons import FIXABLE
from advisor.evidence_tables import Table, tables
from advisor.labels import METHODS, ROLES, SHARES, machine_name, name_of
from advisor.models import Study
from advisor.parts_table import PartsTable, measured_row, predicted_row
from advisor.plan_tables import PlanTable, plan_tables
from advisor.scaling_tables import ScalingTable, scaling_tables

BARS = 5
FIRST_OFFERS = 10
_LEFT_OUT = frozenset(
    {
        EngineCode.NO_RATE_FOR_PRECISION,
        EngineCode.OFFERS_DO_NOT_FIT,
        EngineCode.OFFERS_TOO_OLD,
        EngineCode.OFFERS_IN_OTHER_CURRENCY,
        EngineCode.NO_LEGAL_PLAN,
        EngineCode.NOT_DIVIDED,
        EngineCode.SERVERS_TOO_SMALL,
        EngineCode.NO_OFFERS,
        EngineCode.NOTHING_FITS,
    }
)
_FIXABLE = frozenset(FIXABLE.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """``document`` is what the API and the commands print; ``measured`` the captured step, None for a description."""

    document: Document
    measured: Document | None

    @classmethod
    def of(cls, study: Study) -> Self:
        workload = study.trace.workload if study.trace else None
        return cls(document=study.result, measured=(workload or {}).get("measured"))

    @property
    def is_predicted(self) -> bool:
        """False where the engine refused: then the verdict is the reason, and there are no offers to rank."""
        return self.document["verdict"]["code"] not in set(EngineCode)

    @property
    def verdict_sentence(self) -> str:
        return sentence(self.document["verdict"])

    @property
    def verdict_notes(self) -> list[str]:
        """What must be known beside the sentence; then what each side's prediction rests on.

        What bounds the job has a section of its own, with the warnings that belong to it.
        """
        verdict = self.document["verdict"]
        sides = [(name_of(ROLES, role), verdict.get(role, {}).get("notes", ())) for role in ("nvlink", "pcie")]
        told = [
            _("%(side)s: %(note)s") % {"side": side, "note": sentence(one)}
            for side, own in sides
            for one in own
            if one["code"] not in _FIXABLE
        ]
        return [*map(sentence, verdict.get("notes", ())), *told]

    @property
    def verdict_sides(self) -> list[Document]:
        verdict = self.document["verdict"]
        return [verdict[role] for role in ("nvlink", "pcie") if role in verdict]

    @property
    def memory_warning(self) -> str | None:
        """Stands above the offers: first ones of which it is not known whether the job fits."""
        return next((text for code, text in self._told() if code == EngineCode.OFFERS_MEMORY_UNKNOWN), None)

    @property
    def bottleneck(self) -> Bottleneck:
        captured = self.captured
        return Bottleneck(
            document=self.document["bottleneck"],
            machines=list(self._bounded()),
            idle_causes=captured.idle_causes if captured else (),
        )

    @property
    def links_contrast(self) -> str | None:
        """Stands above the offers: where what bounds the job depends on how the GPUs are joined."""
        return links_contrast(self.document["offers"])

    @property
    def shares(self) -> list[tuple[str, float]]:
        """What the NVLink side's speed-up is made of: factors that multiply to the whole."""
        factors = self.document["verdict"].get("speedup_shares", {})
        return [(name_of(SHARES, key), factor) for key, factor in factors.items()]

    @property
    def first_offers(self) -> list[tuple[Document, int]]:
        """(offer, number of its source in ``sources``)."""
        return self._numbered()[:FIRST_OFFERS]

    @property
    def more_offers(self) -> list[tuple[Document, int]]:
        return self._numbered()[FIRST_OFFERS:]

    @property
    def sources(self) -> list[str]:
        """Where the listed prices come from, each once, in order of first mention."""
        return list(dict.fromkeys(offer["source"] or _("source unknown") for offer in self.document["offers"]))

    @property
    def has_ties(self) -> bool:
        return any(offer["ties_with_first"] for offer in self.document["offers"])

    @property
    def scaling(self) -> list[ScalingTable]:
        """Throughput over GPU counts, on both sides of the verdict and on the first offer."""
        return scaling_tables(self.document)

    @property
    def has_ranked(self) -> bool:
        return any(offer["rank"] is not None for offer in self.document["offers"])

    @property
    def parts(self) -> PartsTable:
        """The captured step, then the best offers: one row per kind of server and number of GPUs."""
        rows = {} if self.measured is None else {"": measured_row(self.measured)}
        for offer in self.document["offers"]:
            if len(rows) == BARS:
                break
            where = server_label(offer)
            rows.setdefault(where, predicted_row(where, offer))
        return PartsTable(list(rows.values()))

    @property
    def plans(self) -> list[PlanTable]:
        """Ways of dividing the job, on both sides of the verdict and on the first offer."""
        return plan_tables(self.document)

    @property
    def captured(self) -> Captured | None:
        """What the timelines of a capture show; None without one."""
        capture = self.document.get("capture") or {}
        return Captured(capture) if capture.get("ranks") else None

    @property
    def evidence(self) -> list[Table]:
        """What the files of a capture tell beside its timeline."""
        return tables((self.document.get("capture") or {}).get("evidence", ()))

    @property
    def left_out(self) -> list[str]:
        return [text for code, text in self._told() if code in _LEFT_OUT]

    @property
    def notes(self) -> list[str]:
        shown = _LEFT_OUT | {EngineCode.OFFERS_MEMORY_UNKNOWN, self.document["verdict"]["code"]}
        return [text for code, text in self._told() if code not in shown]

    def _numbered(self) -> list[tuple[Document, int]]:
        number = {source: place for place, source in enumerate(self.sources, start=1)}
        return [(offer, number[offer["source"] or _("source unknown")]) for offer in self.document["offers"]]

    def _bounded(self) -> Iterator[tuple[str, Document]]:
        """Machines with what bounds the job there: the captured one by its replay, and the first offer."""
        bottleneck = self.document["bottleneck"]
        if replayed := bottleneck.get("replayed"):
            yield measured_row(self.measured).where if self.measured else name_of(METHODS, "captured"), replayed
        first = next((offer for offer in self.document["offers"] if offer["rank"] == 1), None)
        if first is not None and ("limits_s" in first or bottleneck.get("sensitivities")):
            yield _("first offer: %(machine)s") % {"machine": server_label(first)}, first

    def _told(self) -> Iterator[tuple[str, str]]:
        capture = self.document.get("capture") or {}
        for note in (*capture.get("notes", ()), *self.document["notes"]):
            yield note["code"], sentence(note)


def server_label(offer: Document) -> str:
    """Hardware only: many offers are the same machine at another price."""
    server = offer["server"]
    return machine_name(offer["gpus"], server["accelerator_name"], server["topology"])
