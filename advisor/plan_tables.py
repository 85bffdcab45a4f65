"""Ways of dividing the job over one machine, side by side."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from advisor.engine.document import Document
from advisor.figures import size
from advisor.labels import FITS, ROLES, machine_name, method_name, name_of
from advisor.parts_table import PartsTable, predicted_row


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One method with its best plan. ``times_best``: its time per sample over that of the first, None if too large."""

    document: Document
    times_best: float | None

    @property
    def name(self) -> str:
        return method_name(self.document["method"])

    @property
    def memory(self) -> str:
        """Whether it fits, and by how much not."""
        memory = self.document["memory"]
        if memory["verdict"] != "does_not_fit":
            return name_of(FITS, memory["verdict"])
        return _("%(size)s short on each GPU") % {"size": size(memory["shortfall_bytes"])}


@dataclass(frozen=True, slots=True)
class PlanTable:
    """The methods on one machine, best first."""

    document: Document

    @property
    def role(self) -> str:
        return self.document["role"]

    @property
    def title(self) -> str:
        one = self.document
        return machine_name(one["gpus"], one["accelerator_name"], one["topology"])

    @property
    def role_name(self) -> str:
        return name_of(ROLES, self.role)

    @property
    def chart(self) -> str:
        """Name of its chart."""
        return f"plans-{self.role}"

    @property
    def rows(self) -> list[PlanRow]:
        plans = self.document["plans"]
        best = next((plan["samples_per_s"] for plan in plans if plan["samples_per_s"]), None)
        return [PlanRow(plan, _ratio(best, plan["samples_per_s"])) for plan in plans]

    @property
    def parts(self) -> PartsTable:
        """Of the methods that fit."""
        fitting = (plan for plan in self.document["plans"] if plan["parts"] is not None)
        return PartsTable([predicted_row(method_name(plan["method"]), plan) for plan in fitting])


def plan_tables(answer: Document) -> list[PlanTable]:
    """One for each machine on which there is more than one way; the first offer is left out where it is a side."""
    seen: dict[tuple[Any, ...], PlanTable] = {}
    for one in _comparable(answer.get("plans", ())):
        seen.setdefault((one["accelerator"], one["topology"], one["gpus"]), PlanTable(one))
    return list(seen.values())


def _comparable(machines: Iterable[Document]) -> Iterable[Document]:
    return (one for one in machines if len(one["plans"]) > 1)


def _ratio(best: float | None, rate: float | None) -> float | None:
    return best / rate if best and rate else None
