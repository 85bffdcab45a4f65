"""Where the time of a step goes, as rows of a table and bars of a chart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from advisor.engine.document import Document
from advisor.labels import PARTS

_ALWAYS = ("compute_s", "memory_s", "communication_exposed_s")
Cell = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsRow:
    """``parts`` in seconds by the keys of ``PARTS``; no range where the step was measured."""

    where: str
    step_s: float
    low_s: float | None
    high_s: float | None
    parts: Mapping[str, float]
    hidden_s: float | None

    def cell(self, key: str) -> Cell:
        """Seconds, and share of the step; unknown where the answer is older than this part."""
        seconds = self.parts.get(key)
        return seconds, None if seconds is None else seconds / self.step_s


@dataclass(frozen=True, slots=True)
class PartsTable:
    """Parts that no row has take no column."""

    rows: Sequence[PartsRow]

    def __bool__(self) -> bool:
        return bool(self.rows)

    @property
    def keys(self) -> list[str]:
        return [key for key in PARTS if key in _ALWAYS or any(row.parts.get(key) for row in self.rows)]

    @property
    def names(self) -> list[str]:
        return [str(PARTS[key]) for key in self.keys]

    @property
    def lines(self) -> list[tuple[PartsRow, list[Cell]]]:
        return [(row, [row.cell(key) for key in self.keys]) for row in self.rows]


def predicted_row(where: str, predicted: Document) -> PartsRow:
    """``predicted``: an offer or a plan of an answer."""
    return PartsRow(
        where=where,
        step_s=predicted["step_s"],
        low_s=predicted["low_s"],
        high_s=predicted["high_s"],
        parts=predicted["parts"],
        hidden_s=predicted["parts"]["communication_hidden_s"],
    )


def measured_row(measured: Document) -> PartsRow:
    """The same parts as the engine predicts: kernels of no known class count as memory traffic."""
    busy: dict[str, float] = {}
    for work in measured["kernels"]:
        busy[work["kernel_class"]] = busy.get(work["kernel_class"], 0.0) + work["busy_s"]
    exposed = sum(work["exposed_s"] for work in measured["collectives"])
    parts = {
        "compute_s": busy.get("matmul", 0.0) + busy.get("attention", 0.0),
        "memory_s": busy.get("memory", 0.0) + busy.get("other", 0.0),
        "copy_s": busy.get("copy", 0.0),
        "communication_exposed_s": exposed,
        "host_s": measured["idle_s"],
    }
    return PartsRow(
        where=_("captured: %(gpus)s × %(device)s")
        % {"gpus": measured["gpu_count"], "device": measured.get("device_name") or _("unknown GPU")},
        step_s=measured["step_s"],
        low_s=None,
        high_s=None,
        parts=parts,
        hidden_s=sum(work["busy_s"] for work in measured["collectives"]) - exposed,
    )
