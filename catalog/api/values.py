"""From the members of a JSON object to the columns of a table: names, JSON types, words of a choice, nothing missing.

What a value means is checked where all changes are, in ``catalog.changes``.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cached_property

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext as _

from catalog.api.problems import unknown_field
from catalog.price_checks import date_problem
from catalog.tables import Table

_DECIMAL = re.compile(r"-?[0-9]{1,20}(\.[0-9]{1,20})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
LARGEST = 2**63 - 1

SEEN_ON = ("observed_on", "last_seen_on")

Problems = dict[str, list[str]]


@dataclass(frozen=True)
class Members:
    """The members that a table's rows have in JSON. ``renamed``: member -> column, where the two differ."""

    table: Table
    renamed: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """Member -> column."""
        given = {column: member for member, column in self.renamed.items()}
        return {given.get(column, column): column for column in self.table.columns}

    @cached_property
    def _above_zero(self) -> frozenset[str]:
        """Columns that a constraint holds above zero: what it says does not name the column."""
        meta = self.table.model._meta
        held = {constraint.name for constraint in meta.constraints}
        return frozenset(name for name in self.table.columns if f"{meta.model_name}_{name}_positive" in held)

    @cached_property
    def _in_addresses(self) -> frozenset[str]:
        """Columns that the address of a row is made of."""
        return frozenset(path for path in self.table.key_fields if path in self.table.columns)

    def member(self, column: str) -> str:
        return next((name for name, of in self.columns.items() if of == column), column)

    def read(self, members: Mapping[str, object]) -> tuple[dict[str, object], Problems]:
        """Values by column, and what is wrong by member."""
        values: dict[str, object] = {}
        problems: Problems = {}
        for name, value in members.items():
            column = self.columns.get(name)
            sentence = self._problem(column, value) if column else unknown_field(list(self.columns))
            if sentence:
                problems[shown_name(name)] = [sentence]
            else:
                values[column] = self._plain(column, value)
        return values, problems

    def missing(self, values: Mapping[str, object]) -> Problems:
        """What a new row cannot do without."""
        sentence = _("A new row needs this field.")
        return {self.member(f.name): [sentence] for f in self._fields() if f.name not in values and _is_needed(f)}

    def defaults(self) -> dict[str, object]:
        """What columns become that a whole row does not name; dates that follow from others stay out."""
        found = {f.name: _default(f) for f in self._fields() if not _is_needed(f)}
        nullable = {f.name for f in self._fields() if f.null}
        return {name: value for name, value in found.items() if value is not None or name in nullable}

    def _fields(self) -> list[models.Field]:
        return [self.table.model._meta.get_field(name) for name in self.table.columns]

    def _plain(self, column: str, value: object) -> object:
        """Of a decimal number its shortest form is meant, not the binary fraction that stands for it."""
        is_decimal = isinstance(self.table.model._meta.get_field(column), models.DecimalField)
        return str(value) if is_decimal and value is not None else value

    def _problem(self, column: str, value: object) -> str | None:
        described = self.table.model._meta.get_field(column)
        if value is None or (value == "" and column in self.table.refers):
            return None if described.null else _("This field cannot be null.")
        if column in self.table.refers:
            return _line(value)
        sentence = _check_of(described)(value)
        if sentence is None and column in SEEN_ON:
            return _seen(value)
        if sentence is None and column in self._in_addresses:
            return _part_of_address(column, value)
        if sentence is None and isinstance(described, models.IntegerField) and abs(value) > _largest(described):
            return _("This number is too large.")
        if sentence is None and described.choices:
            return _choice(value, [str(word) for word, _title in described.flatchoices])
        if sentence is None and column in self._above_zero and Decimal(value) <= 0:
            return _("This number must be above zero; leave it empty where it is not known.")
        return sentence


def shown_name(name: str) -> str:
    """A member's name as an error may repeat it: short, and nothing in it that cannot be seen."""
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in name[:80])


def _is_needed(described: models.Field) -> bool:
    return not (described.null or described.blank or described.has_default())


def _default(described: models.Field) -> object:
    if described.has_default():
        return described.get_default()
    return None if described.null or not isinstance(described, models.CharField | models.TextField) else ""


def _line(value: object) -> str | None:
    """One line of what can be seen and stand in an address: other blanks than the common one cannot."""
    if isinstance(value, str) and not value.isprintable():
        return _("Leave out characters that cannot be seen.")
    return _text(value, allowed="")


def _seen(value: str) -> str | None:
    """Nobody has seen a price that is still to come; what is no date at all is told where all changes are checked."""
    try:
        return date_problem(date.fromisoformat(value), timezone.now().date())
    except ValueError:
        return None


def _part_of_address(column: str, value: str) -> str | None:
    """What clients and servers take for something else than the name of a row."""
    if {".", ".."} & set(value.split("/")) or (column == "key" and value == "bulk"):
        return _("This cannot be part of an address; choose another name.")
    return None


def _largest(described: models.IntegerField) -> int:
    """What PostgreSQL can hold: no database takes more, so that no answer depends on which one there is."""
    return next(most for kind, most in _LARGEST.items() if isinstance(described, kind))


def _text(value: object, allowed: str = "\n\t") -> str | None:
    if not isinstance(value, str):
        return _("Send text.")
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in allowed for c in value):
        return _("Leave out characters that cannot be seen.")
    return None


def _whole(value: object) -> str | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole:
        return _("Send a whole number.")
    return None if abs(value) <= LARGEST else _("This number is too large.")


def _number(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _("Send a number.")
    return None if abs(value) <= 1e30 else _("This number is too large.")


def _decimal(value: object) -> str | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if (number or isinstance(value, str)) and _DECIMAL.fullmatch(str(value)):
        return None
    return _("Send a decimal number as text, as in “21.957600”.")


def _boolean(value: object) -> str | None:
    return None if isinstance(value, bool) else _("Send true or false.")


def _date(value: object) -> str | None:
    return None if isinstance(value, str) and _DATE.fullmatch(value) else _("Send a date as text, as in “2026-07-20”.")


def _list(value: object) -> str | None:
    return None if isinstance(value, list) else _("Send a list.")


def _choice(value: object, words: list[str]) -> str | None:
    if value in words:
        return None
    return _("This is none of: %(words)s.") % {"words": ", ".join(word or "“”" for word in words)}


_CHECKS: Mapping[type[models.Field], Callable[[object], str | None]] = {
    models.CharField: _line,
    models.TextField: _text,
    models.IntegerField: _whole,
    models.FloatField: _number,
    models.DecimalField: _decimal,
    models.BooleanField: _boolean,
    models.DateField: _date,
    models.JSONField: _list,
}


_LARGEST: Mapping[type[models.Field], int] = {
    models.SmallIntegerField: 2**15 - 1,
    models.PositiveSmallIntegerField: 2**15 - 1,
    models.BigIntegerField: LARGEST,
    models.PositiveBigIntegerField: LARGEST,
    models.IntegerField: 2**31 - 1,
}
"""Special kinds before the general one."""


def _check_of(described: models.Field) -> Callable[[object], str | None]:
    return next(check for kind, check in _CHECKS.items() if isinstance(described, kind))
