"""Servers side by side: each fact a row, differences marked in words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from advisor.catalog_pages.facts import Fact, Group, groups_of
from advisor.catalog_pages.offers import OfferRow, standing
from advisor.catalog_pages.sources import Notes
from catalog.filters import USUAL_CURRENCY, buyable_offers
from catalog.models import Offer, Server

LEAST, MOST = 2, 6


class BadSelection(Exception):
    """What was chosen cannot be compared; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One fact of all servers, in their order; None where it is not known."""

    name: str
    cells: tuple[Fact | None, ...]

    @property
    def differs(self) -> bool:
        return len({cell.text if cell else None for cell in self.cells}) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """The cheapest offer of each server for one way of paying, in one currency."""

    name: str
    cells: tuple[OfferRow | None, ...]

    @property
    def differs(self) -> bool:
        return len({cell.offer.price_per_gpu_hour if cell else None for cell in self.cells}) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    servers: tuple[Server, ...]
    sections: tuple[Section, ...]
    prices: tuple[PriceRow, ...]
    notes: Notes


def comparison_of(keys: Sequence[str]) -> Comparison:
    """Two queries. Raises ``BadSelection``."""
    today = timezone.now().date()
    servers = _servers(list(dict.fromkeys(keys)))
    notes = Notes()
    groups = [groups_of(server, notes) for server in servers]
    titles = dict.fromkeys(group.title for own in groups for group in own)
    sections = tuple(_section(title, groups) for title in titles)
    return Comparison(servers=servers, sections=sections, prices=_prices(servers, today, notes), notes=notes)


def _servers(keys: list[str]) -> tuple[Server, ...]:
    if not LEAST <= len(keys) <= MOST:
        raise BadSelection(
            _("Choose %(least)s to %(most)s different servers; these are %(count)s.")
            % {"least": LEAST, "most": MOST, "count": len(keys)}
        )
    wanted = Q(pk=None)
    for key in keys:
        provider, _slash, sku = key.partition("/")
        wanted |= Q(provider__key=provider, sku=sku)
    rows = Server.objects.select_related("provider", "accelerator", "fabric").filter(wanted)
    found = {server.key: server for server in rows}
    missing = [key for key in keys if key not in found]
    if missing:
        names = ", ".join(key[:80] for key in missing)
        raise BadSelection(_("The catalog has no server %(names)s. Choose from the list.") % {"names": names})
    return tuple(found[key] for key in keys)


def _section(title: str, groups: Sequence[Sequence[Group]]) -> Section:
    own = [next((group for group in one if group.title == title), None) for one in groups]
    facts = [{fact.column: fact for fact in group.facts} if group else {} for group in own]
    names = {column: fact.name for one in facts for column, fact in one.items()}
    order = [column for column in _order(own) if column in names]
    rows = (Row(name=names[column], cells=tuple(one.get(column) for one in facts)) for column in order)
    return Section(title=title, rows=tuple(rows))


def _order(groups: Iterable[Group | None]) -> list[str]:
    """Columns in the order in which a fact table has them, also where the first server lacks some."""
    longest = max((group for group in groups if group), key=lambda group: len(group.facts))
    order = [fact.column for fact in longest.facts]
    rest = (fact.column for group in groups if group for fact in group.facts)
    return list(dict.fromkeys([*order, *rest]))


def _prices(servers: Sequence[Server], today: date, notes: Notes) -> tuple[PriceRow, ...]:
    offers = list(
        buyable_offers(today).filter(server__in=servers, currency=USUAL_CURRENCY).defer("printed").order_by("pk")
    )
    by_server = [_cheapest([one for one in offers if one.server_id == server.pk], today, notes) for server in servers]
    names = dict.fromkeys(name for own in by_server for name in own)
    return tuple(PriceRow(name=name, cells=tuple(own.get(name) for own in by_server)) for name in names)


def _cheapest(offers: list[Offer], today: date, notes: Notes) -> dict[str, OfferRow]:
    found: dict[str, OfferRow] = {}
    for row in standing(offers, {}, today, notes):
        found.setdefault(row.paying, row)
    return found
