"""Columns and values in the words and units of the forms."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _

from catalog.changes import Refused
from catalog.forms import unit_of
from catalog.models import Draft
from catalog.models.base import SourcedRow
from catalog.tables import TABLES, Table

LONGEST = 160
IN_TITLES = (
    *("server", "provider", "region", "pricing_model", "kind", "price_per_hour", "amount", "currency", "observed_on"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One column of a row, before and after, as people read it."""

    name: str
    label: str
    old: str
    new: str


def label_of(table: Table, name: str) -> str:
    try:
        return first_upper(table.model._meta.get_field(name).verbose_name)
    except FieldDoesNotExist:
        return name


def first_upper(text: object) -> str:
    return str(text)[:1].upper() + str(text)[1:]


def said(table: Table, name: str, value: object) -> str:
    """A plain value as a form shows it: in its unit, by its label, "not known" where it is empty."""
    column = table.model._meta.get_field(name)
    if value is None or value == "":
        return _("not known") if not isinstance(column, models.CharField | models.TextField) else _("empty")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if column.choices:
        return str(dict(column.flatchoices).get(value, value))
    unit = unit_of(column)
    if unit and isinstance(value, int | float):
        return f"{number_format(f'{value / unit.scale:.10g}', use_l10n=True, force_grouping=True)} {unit.name}"
    if isinstance(column, models.DecimalField):
        return _decimal(value)
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    text = date_format(value, "Y-m-d") if hasattr(value, "year") else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _decimal(value: object) -> str:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return str(value)
    return f"{number.normalize():f}"


def differences(table: Table, old: Mapping[str, object], new: Mapping[str, object]) -> list[Difference]:
    """What ``new`` changes of ``old``, in the order of the table's columns; columns it does not name stay."""
    return [
        Difference(
            name=name,
            label=label_of(table, name),
            old=said(table, name, old.get(name)),
            new=said(table, name, new[name]),
        )
        for name in table.columns
        if name in new and new[name] != old.get(name)
    ]


def table_label(name: str) -> str:
    return str(TABLES[name].model._meta.verbose_name)


def title_of(draft: Draft, row: SourcedRow | None) -> str:
    """What a draft is about: the row, or what a new row will be called. Hashes say nothing to people."""
    if row is not None:
        return str(row)
    if "key" not in TABLES[draft.table].derived:
        return draft.key
    table = TABLES[draft.table]
    parts = [said(table, name, draft.values[name]) for name in IN_TITLES if draft.values.get(name)]
    return " ".join(parts)


def sentences(refused: Iterable[Refused]) -> list[str]:
    """All that is wrong, each with the column that it is about."""
    found = []
    for entry in refused:
        table = TABLES[entry.table]
        for name, problems in entry.problems.items():
            start = f"{label_of(table, name)}: " if name else ""
            row = f"{entry.key}: " if "key" not in table.derived and entry.key else ""
            found += [f"{row}{start}{problem}" for problem in problems]
    return found
