"""A table's own checks, by the column that each is about, and only those that a change can have broken."""

from collections.abc import Collection, Iterable

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models


def check_constraints(
    row: models.Model, *, changed: Collection[str] | None = None, exclude: Iterable[str] | None = None
) -> None:
    """Raises ValidationError by column. ``changed``: columns, None for a new row; ``exclude``: known to be wrong."""
    found: dict[str, list[ValidationError]] = {}
    for constraint in row._meta.constraints:
        columns = _columns(constraint)
        if changed is not None and not columns & set(changed):
            continue
        try:
            constraint.validate(type(row), row, exclude=set(exclude or ()))
        except ValidationError as error:
            # a check of one column is that column's; Django would not name it
            place = next(iter(columns)) if len(columns) == 1 else NON_FIELD_ERRORS
            found.setdefault(place, []).append(error)
    if found:
        raise ValidationError(found)


def _columns(constraint: models.BaseConstraint) -> set[str]:
    condition = getattr(constraint, "condition", None)
    named = set(getattr(constraint, "fields", ()))
    return named | (set(condition.referenced_base_fields) if condition else set())
