"""Where each value of a form comes from, said beside its field, and bringing back what an override replaced."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from catalog import provenance
from catalog.admin.sheets import Sheet
from catalog.admin.words import said
from catalog.changes import ABOUT_THE_ROW
from catalog.models.base import CONFIDENCE_CHOICES

if TYPE_CHECKING:
    from catalog.admin.page import FormPage


@dataclass(frozen=True, slots=True, kw_only=True)
class OlderValue:
    """``button``: what the button that brings it back sends."""

    value: str
    source: str
    confidence: str
    until: str
    button: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOrigin:
    """``own``: said of this value itself; otherwise it counts what the row says."""

    own: bool
    source: str
    confidence: str
    age: str
    reason: str
    replaced: Sequence[OlderValue] = ()


def origins(sheet: Sheet) -> dict[str, FieldOrigin]:
    """By column, for what is published; empty values and what speaks of the whole row have none."""
    row, table = sheet.row, sheet.table
    if row is None:
        return {}
    left_out = {*ABOUT_THE_ROW, *table.refers, *table.key_fields, "observed_on"}
    named = [name for name in table.columns if name not in left_out]
    return {
        name: _origin(sheet, name)
        for name in named
        if name in row.field_sources or getattr(row, name) not in (None, "", [])
    }


def _origin(sheet: Sheet, name: str) -> FieldOrigin:
    known = provenance.origin(sheet.row, name)
    older = [
        OlderValue(
            value=said(sheet.table, name, entry.value),
            source=entry.source,
            confidence=_sure(entry.confidence),
            until=entry.until,
            button=f"{sheet.table.name}:{name}:{index}",
        )
        for index, entry in enumerate(known.replaced)
    ]
    return FieldOrigin(
        own=known.own,
        source=known.source,
        confidence=_sure(known.confidence),
        age=age_of(known.observed_on),
        reason=known.reason,
        replaced=older,
    )


def restored(page: "FormPage", button: str) -> tuple[str, str, object] | None:
    """(table, column, plain value) of the button that was pressed; None where there is nothing to bring back."""
    table, _colon, rest = button.partition(":")
    name, _colon, index = rest.partition(":")
    sheet = page.sheets.get(table)
    if sheet is None or sheet.row is None or name not in sheet.row.field_sources or not index.isdecimal():
        return None
    older = provenance.origin(sheet.row, name).replaced
    return (table, name, older[int(index)].value) if int(index) < len(older) else None


def age_of(day: str) -> str:
    """How long ago an ISO date was, in days, months or years."""
    try:
        days = (timezone.now().date() - date.fromisoformat(day)).days
    except ValueError:
        return ""
    if days < 1:
        return _("today")
    if days < 60:
        return ngettext("%(n)s day old", "%(n)s days old", days) % {"n": days}
    months = round(days / 30.4)
    return _("%(n)s months old") % {"n": months} if months < 24 else _("%(n)s years old") % {"n": round(months / 12)}


def _sure(confidence: str) -> str:
    return str(dict(CONFIDENCE_CHOICES).get(confidence, confidence))
