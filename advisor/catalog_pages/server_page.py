"""Everything that the page of one server shows."""

from dataclasses import dataclass, fields
from datetime import date

from django.utils.safestring import SafeString

from advisor.catalog_pages.facts import Group, confidence_name, groups_of, least_sure, unknown_parts
from advisor.catalog_pages.history import Line, drawn_of
from advisor.catalog_pages.offers import (
    MOST_ROWS,
    CostRow,
    OfferRow,
    cost_rows,
    countries_of,
    history_of,
    offers_of,
    standing,
)
from advisor.catalog_pages.sources import Notes
from catalog.models import Fabric, Server
from catalog.specs import FabricSpec, TopologyClass
from catalog.topology_drawing import draw


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPage:
    """``drawing``: inline SVG, empty where nobody knows how the accelerators are joined or which they are."""

    name: str
    confidence: str
    drawing: SafeString
    groups: tuple[Group, ...]
    unknown_parts: list[str]
    offers: tuple[OfferRow, ...]
    more_offers: int
    costs: tuple[CostRow, ...]
    history: tuple[Line, ...]
    more_history: int
    has_chart: bool
    notes: Notes

    @classmethod
    def of(cls, server: Server, today: date) -> "ServerPage":
        """Three queries."""
        notes = Notes()
        groups = groups_of(server, notes)
        prices = offers_of(server)
        offers = standing(prices, countries_of(server.provider_id), today, notes)
        history = history_of(prices, notes)
        return cls(
            name=server.accelerator.name if server.accelerator else server.accelerator_printed,
            confidence=_confidence(server),
            drawing=_drawing(server),
            groups=groups,
            unknown_parts=unknown_parts(server),
            offers=offers[:MOST_ROWS],
            more_offers=max(len(offers) - MOST_ROWS, 0),
            costs=cost_rows(server, notes),
            history=history[:MOST_ROWS],
            more_history=max(len(history) - MOST_ROWS, 0),
            has_chart=bool(drawn_of(history)),
            notes=notes,
        )

    @property
    def is_anything_unknown(self) -> bool:
        return bool(self.unknown_parts) or any(group.unknown for group in self.groups)


def server_or_none(provider: str, sku: str) -> Server | None:
    """With what it consists of. One query."""
    rows = Server.objects.select_related("provider", "accelerator", "fabric")
    return rows.filter(provider__key=provider, sku=sku).first()


def history(server: Server) -> tuple[Line, ...]:
    """How each of its prices has moved. One query."""
    return history_of(offers_of(server), Notes())


def _confidence(server: Server) -> str:
    fabric: Fabric | None = getattr(server, "fabric", None)
    return confidence_name(least_sure(server.confidence, fabric.confidence if fabric else server.confidence))


def _drawing(server: Server) -> SafeString:
    fabric: Fabric | None = getattr(server, "fabric", None)
    if fabric is None or server.accelerator is None:
        return SafeString("")
    columns = {field.name: getattr(fabric, field.name) for field in fields(FabricSpec)}
    return draw(
        FabricSpec(**columns | {"topology": TopologyClass(fabric.topology)}),
        gpu_count=server.gpu_count,
        accelerator_name=server.accelerator.name,
        sockets=server.sockets,
        numa_nodes=fabric.numa_nodes,
        gpus_per_pcie_switch=fabric.gpus_per_pcie_switch,
    )
