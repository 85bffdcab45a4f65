"""Throughput over GPU counts, one table and chart for each way of growing."""

from dataclasses import dataclass
from typing import Any

from advisor.engine.document import Document
from advisor.labels import SCALINGS, name_of

STRONG, WEAK = "strong", "weak"
CHART_NAMES = {STRONG: "scaling", WEAK: "scaling-weak"}


@dataclass(frozen=True, slots=True)
class ScalingTable:
    """Curves of one kind, each with at least one point."""

    kind: str
    curves: list[Document]

    @property
    def title(self) -> str:
        return name_of(SCALINGS, self.kind)

    @property
    def chart(self) -> str:
        """Name of its chart."""
        return CHART_NAMES[self.kind]

    @property
    def takes_servers(self) -> bool:
        """Whether a point takes more than one server."""
        return any(servers_of(point) > 1 for curve in self.curves for point in curve["points"])


def servers_of(point: Document) -> int:
    """Older answers know one server alone."""
    return point.get("nodes", 1)


def scaling_tables(answer: Document) -> list[ScalingTable]:
    """Strong scaling first. The first offer's curve is left out where it is the same machine as a side of the verdict.

    Answers that do not say how they grow kept the batch.
    """
    seen: dict[tuple[Any, ...], Document] = {}
    for curve in answer["scaling"]:
        if curve["points"]:
            seen.setdefault((curve.get("kind", STRONG), curve["accelerator"], curve["topology"]), curve)
    curves = [(key[0], curve) for key, curve in seen.items()]
    tables = (ScalingTable(kind, [curve for own, curve in curves if own == kind]) for kind in CHART_NAMES)
    return [table for table in tables if table.curves]
