"""Rows with other values laid over them, found by key in few queries."""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_

from django.core.exceptions import ValidationError
from django.db.models import Q

from catalog.changes import resolved
from catalog.drafts import as_json
from catalog.models.base import SourcedRow
from catalog.tables import Table


def lay_over(row: SourcedRow, table: Table, values: Mapping[str, object]) -> SourcedRow:
    """``row`` with these plain values in place of its own; what cannot be read is left as it is. Nothing is saved."""
    own = as_json(table.values_of(row)) if row.pk else {}
    for name, value in values.items():
        if name in own and own[name] == value:
            continue
        try:
            column = resolved(table, {name: value})
        except ValidationError:
            continue
        setattr(row, name, column[name])
    return row


def by_keys(table: Table, keys: Iterable[str]) -> dict[str, SourcedRow]:
    """The published rows with these natural keys, in one query."""
    split = [parts for key in keys if (parts := table.split(key))]
    if not split:
        return {}
    wanted = reduce(or_, (Q(**dict(zip(table.key_fields, parts, strict=True))) for parts in split))
    return {table.key_of(row): row for row in table.rows().filter(wanted)}
