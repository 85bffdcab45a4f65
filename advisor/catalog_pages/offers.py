"""What a server costs: offers that stand, what comes on top, and how prices have moved."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.db.models import Q
from django.utils.translation import gettext as _

from advisor.catalog_pages.ages import age_words
from advisor.catalog_pages.choices import country_name
from advisor.catalog_pages.history import Line, Step, Terms, lines_of
from advisor.catalog_pages.sources import Note, Notes
from catalog.models import CostLine, Offer, Region, Server
from catalog.models.offer import TERM_OF, ObservedPrecision, OfferStatus, Tenancy

HOURS_PER_MONTH = 730
MOST_ROWS = 200
"""Rows of one table; all are in the API's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferRow:
    """One offer that stands; ``per_month``: 730 hours. ``is_stale``: too old to rely on."""

    offer: Offer
    country: str
    paying: str
    tenancy: str
    per_month: Decimal
    age: str
    note: Note

    @property
    def is_stale(self) -> bool:
        return self.offer.status == OfferStatus.STALE


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """What comes on top; ``is_for_all``: for every server of the provider."""

    line: CostLine
    is_for_all: bool
    note: Note


def offers_of(server: Server) -> list[Offer]:
    """All prices ever seen, but for those that are held back, oldest first. One query."""
    rows = server.offers.exclude(status=OfferStatus.QUARANTINED).defer("printed")
    return list(rows.order_by("last_seen_on", "pk"))


def countries_of(provider_id: int) -> dict[str, str]:
    """Region -> country. One query."""
    rows = Region.objects.filter(provider=provider_id).exclude(country="")
    return {name: country_name(country) for name, country in rows.values_list("name", "country")}


def standing(offers: Iterable[Offer], countries: Mapping[str, str], today: date, notes: Notes) -> tuple[OfferRow, ...]:
    """Of each place, tenancy and way of paying the newest price that has not ended; cheapest first in its currency."""
    newest: dict[tuple[object, ...], Offer] = {}
    for offer in sorted(offers, key=lambda own: (own.status == OfferStatus.LIVE, own.last_seen_on, own.pk)):
        if offer.status != OfferStatus.RETIRED and not (offer.valid_to and offer.valid_to < today):
            newest[_terms(offer), offer.zone] = offer
    ordered = sorted(newest.values(), key=lambda own: (own.currency != "USD", own.currency, own.price_per_hour))
    return tuple(_row(offer, countries, today, notes) for offer in ordered)


def cost_rows(server: Server, notes: Notes) -> tuple[CostRow, ...]:
    """The server's own lines and those of all servers of its provider. One query."""
    own = Q(server=server) | Q(server__isnull=True)
    lines = CostLine.objects.filter(own, provider=server.provider_id).order_by("kind", "region", "unit")
    return tuple(
        CostRow(line=line, is_for_all=line.server_id is None, note=notes.of(line.source, line.source_licence))
        for line in lines
    )


def history_of(offers: Iterable[Offer], notes: Notes) -> tuple[Line, ...]:
    """How each price has moved."""
    return lines_of((_words(offer), _step(offer, notes)) for offer in offers)


def paying_words(pricing_model: str, name: str, term_months: int) -> str:
    """The way of paying, with its term where the name does not say it."""
    if not term_months or TERM_OF.get(pricing_model) == term_months:
        return name
    return _("%(paying)s, %(months)s months") % {"paying": name, "months": term_months}


def tenancy_words(tenancy: str) -> str:
    """Empty where it is not known."""
    return "" if tenancy == Tenancy.UNKNOWN else str(Tenancy(tenancy).label)


def _terms(offer: Offer) -> tuple[object, ...]:
    return offer.region, offer.tenancy, offer.pricing_model, offer.term_months, offer.currency


def _row(offer: Offer, countries: Mapping[str, str], today: date, notes: Notes) -> OfferRow:
    return OfferRow(
        offer=offer,
        country=countries.get(offer.region, ""),
        paying=_paying(offer),
        tenancy=tenancy_words(offer.tenancy),
        per_month=offer.price_per_hour * HOURS_PER_MONTH,
        age=age_words(offer.last_seen_on, today),
        note=_note(offer, notes),
    )


def _words(offer: Offer) -> Terms:
    where = " ".join(part for part in (offer.region, offer.zone) if part)
    return Terms(region=where, tenancy=tenancy_words(offer.tenancy), paying=_paying(offer), currency=offer.currency)


def _step(offer: Offer, notes: Notes) -> Step:
    return Step(
        first=offer.observed_on,
        last=offer.last_seen_on,
        price=offer.price_per_hour,
        is_day_known=offer.observed_precision == ObservedPrecision.DAY,
        source=_note(offer, notes).number,
    )


def _paying(offer: Offer) -> str:
    return paying_words(offer.pricing_model, str(offer.get_pricing_model_display()), offer.term_months)


def _note(offer: Offer, notes: Notes) -> Note:
    return notes.of(offer.source, offer.source_licence, offer.source_url)
