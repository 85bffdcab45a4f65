"""Everything that the page of NVLink's price shows."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from babel.numbers import format_decimal
from django.core.cache import cache
from redis.exceptions import RedisError

from advisor.catalog_pages.charts import series_name
from advisor.catalog_pages.choices import reader_locale
from advisor.catalog_pages.offers import paying_words, tenancy_words
from advisor.catalog_pages.premium import Kind, Observed, Point, Series
from advisor.catalog_pages.premium_data import premium_history
from advisor.catalog_pages.sources import Note, Notes
from catalog.models.offer import PRICING_CHOICES
from catalog.selectors import current_revision

log = logging.getLogger(__name__)
KEPT_FOR_S = 24 * 3600
SMALL = 0.0995


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """One observation in words; ``low`` and ``high`` are empty where one region alone tells."""

    point: Point
    premium: str
    low: str
    high: str
    paying: str
    tenancy: str
    dear_note: Note
    cheap_note: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesTable:
    """One pair of forms."""

    ident: str
    name: str
    series: Series
    rows: tuple[PointRow, ...]

    @property
    def is_link_alone(self) -> bool:
        return self.series.kind is Kind.LINK


@dataclass(frozen=True, slots=True, kw_only=True)
class PremiumPage:
    forms: tuple[SeriesTable, ...]
    links: tuple[SeriesTable, ...]
    notes: Notes

    @classmethod
    def of(cls, series: Sequence[Series]) -> "PremiumPage":
        """No query."""
        notes = Notes()
        tables = [_table(one, notes) for one in series]
        return cls(
            forms=tuple(table for table in tables if not table.is_link_alone),
            links=tuple(table for table in tables if table.is_link_alone),
            notes=notes,
        )


def kept_series() -> tuple[Series, ...]:
    """The history of this catalog, worked out once for each of its revisions."""
    key = f"premium:2:{current_revision()}"
    try:
        found = cache.get(key)
        if found is None:
            found = premium_history()
            cache.set(key, found, KEPT_FOR_S)
    except (RedisError, OSError):
        log.warning("the cache does not answer; the history of premiums is worked out on each request")
        return premium_history()
    return found


def _table(series: Series, notes: Notes) -> SeriesTable:
    return SeriesTable(
        ident=f"{series.kind}-{series.dear.key}-{series.cheap.key}",
        name=series_name(series),
        series=series,
        rows=tuple(_row(point, notes) for point in reversed(series.points)),
    )


def _row(point: Point, notes: Notes) -> PointRow:
    dear = point.dear
    names = {str(value): str(name) for value, name in PRICING_CHOICES}
    return PointRow(
        point=point,
        premium=premium_words(point.premium),
        low=premium_words(point.low) if point.regions > 1 else "",
        high=premium_words(point.high) if point.regions > 1 else "",
        paying=paying_words(dear.pricing_model, names[dear.pricing_model], dear.term_months),
        tenancy=tenancy_words(dear.tenancy),
        dear_note=_note(dear, notes),
        cheap_note=_note(point.cheap, notes),
    )


def premium_words(share: float) -> str:
    """With its sign; a small one with a decimal, for a bridge costs a few percent."""
    pattern = "+#,##0%;-#,##0%" if abs(share) >= SMALL else "+0.0%;-0.0%"
    return format_decimal(share, format=pattern, locale=reader_locale())


def _note(observed: Observed, notes: Notes) -> Note:
    source, licence = observed.source
    return notes.of(source, licence)
