"""The one way in which people and programs change published rows: all or nothing, one revision, kept in the history."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models, transaction
from django.db.models import ProtectedError
from django.utils import timezone
from django.utils.translation import gettext as _

from catalog import provenance, validation
from catalog.constraints import check_constraints
from catalog.models import Fabric, Offer, Server
from catalog.models.base import SourcedRow
from catalog.models.offer import gpu_price
from catalog.models.revision import RevisionOrigin
from catalog.price_checks import release_problem
from catalog.services import lock_catalog, record_revision
from catalog.specs import Confidence
from catalog.tables import TABLES, Table

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

ABOUT_THE_ROW = ("source", "source_licence", "source_url", "notes", "confidence", "status", "last_seen_on", "valid_to")
"""Columns that say something of the row; no source of their own is kept for them."""

Problems = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one row shall become. Columns that are not named stay; of a new row they have their defaults.

    ``key``: natural key; empty for a new row whose key follows from its values.
    ``values``: column -> plain value, references as natural keys.
    ``decides``: a decision on a held-back price; nothing else gives such a price another status.
    ``expect_version``: refuse when the row has another version by now; 0 when it must not exist; None does not care.
    """

    table: str
    key: str
    values: Mapping[str, object] = field(default_factory=dict)
    expect_version: int | None = None
    delete: bool = False
    decides: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSource:
    """Where the changed values come from."""

    source: str
    source_licence: str = "facts-only"
    confidence: Confidence = Confidence.MEDIUM


BY_HAND = ValueSource(source="entered by hand")
"""Who it was stands in the history, which only editors see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What is wrong with one of the changes; ``index`` counts from 0, ``problems``: column (or "") -> sentences."""

    index: int
    table: str
    key: str
    problems: Problems


class ChangesRefused(Exception):
    """Some values cannot be right; nothing was changed."""

    def __init__(self, refused: Sequence[Refused]) -> None:
        super().__init__(f"{len(refused)} changes refused")
        self.refused = tuple(refused)


class VersionConflict(Exception):
    """Somebody else has changed the row since it was read; nothing was changed. ``version``: 0 when it is gone."""

    def __init__(self, *, table: str, key: str, version: int) -> None:
        super().__init__(f"{table} {key} is at version {version}")
        self.table, self.key, self.version = table, key, version


@transaction.atomic
def apply_changes(
    changes: Iterable[Change],
    *,
    origin: RevisionOrigin,
    summary: str,
    user: "AbstractBaseUser | None" = None,
    reason: str = "",
    value_source: ValueSource | None = None,
) -> int | None:
    """Make all changes, or none. Returns the catalog's new number, None where nothing differs.

    Raises ChangesRefused with all that is wrong, or VersionConflict.
    """
    lock_catalog()
    by = _Author(user=user, reason=reason, value_source=value_source or BY_HAND)
    order = list(TABLES)
    numbered = sorted(enumerate(changes), key=lambda entry: order.index(entry[1].table))
    refused: list[Refused] = []
    touched: dict[int, SourcedRow] = {}
    for index, change in numbered:
        try:
            row = _apply(TABLES[change.table], change, by)
        except ValidationError as error:
            refused.append(refused_by(error, index=index, table=TABLES[change.table], key=change.key))
        else:
            if row is not None:
                touched[index] = row
    refused += _broken_fabrics(touched)
    if refused:
        raise ChangesRefused(sorted(refused, key=lambda entry: entry.index))
    if not touched:
        return None
    return record_revision(origin=origin, summary=summary, user=user)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Author:
    user: "AbstractBaseUser | None"
    reason: str
    value_source: ValueSource


def _apply(table: Table, change: Change, by: _Author) -> SourcedRow | None:
    """The row as changed; None where it already is like that."""
    row = _find(table, change)
    version = row.version if row else 0
    if change.expect_version not in (None, version):
        raise VersionConflict(table=change.table, key=change.key, version=version)
    if change.delete:
        return _delete(row, by)
    values = resolved(table, change.values)
    if row is None:
        return _create(table, change, values, by)
    if isinstance(row, Offer) and not change.decides:
        _refuse_release(row, values)
    return _update(table, row, values, by)


def _refuse_release(offer: Offer, values: Mapping[str, object]) -> None:
    if problem := release_problem(offer.status, values.get("status", offer.status)):
        raise ValidationError({"status": problem})


def _find(table: Table, change: Change) -> SourcedRow | None:
    parts = table.split(change.key) if change.key else None
    if parts is None:
        return None
    wanted = dict(zip(table.key_fields, parts, strict=True))
    return table.rows().select_for_update(of=("self",)).filter(**wanted).first()


def _create(table: Table, change: Change, values: Mapping[str, object], by: _Author) -> SourcedRow:
    row = _new_row(table, values)
    row.edited = True
    _check(row)
    if change.key and table.key_of(row) != change.key:
        raise ValidationError(_("The values make the key %(key)s.") % {"key": table.key_of(row)})
    _save(row, by)
    return row


def key_of_new(table: Table, values: Mapping[str, object]) -> str:
    """The natural key that a new row with these plain values gets. Raises ValidationError by column."""
    row = _new_row(table, resolved(table, values))
    if "key" not in table.derived or not row.key:
        row.full_clean(validate_unique=False, validate_constraints=False)
    return table.key_of(row)


def _new_row(table: Table, values: Mapping[str, object]) -> SourcedRow:
    row = table.model(**values)
    if "key" in table.derived:
        # where a value that it needs is missing, full_clean says which
        with suppress(AttributeError, models.ObjectDoesNotExist, TypeError, ArithmeticError, ValueError):
            row.complete()
    return row


def _update(table: Table, row: SourcedRow, values: Mapping[str, object], by: _Author) -> SourcedRow | None:
    key, old = table.key_of(row), {name: getattr(row, name) for name in values}
    plain = table.values_of(row)
    changed = [name for name, value in values.items() if old[name] != value]
    if not changed:
        return None
    keep_first_state(row)
    for name in changed:
        setattr(row, name, values[name])
    if _natural_key(row, table) != key:
        raise ValidationError(_("What names a row cannot change. Add a new row instead."))
    _note_sources(row, {name: plain[name] for name in changed}, by)
    row.edited = True
    row.version += 1
    _check(row, changed)
    _save(row, by)
    if isinstance(row, Server) and "gpu_count" in changed:
        reprice(row)
    return row


def _check(row: SourcedRow, changed: Sequence[str] | None = None) -> None:
    """``full_clean`` without the checks of columns that did not change: each is a query. Raises ValidationError."""
    try:
        row.full_clean(validate_constraints=False)
    except ValidationError as error:
        wrong = [name for name in error.error_dict if name != NON_FIELD_ERRORS]
        try:
            check_constraints(row, changed=changed, exclude=wrong)
        except ValidationError as more:
            raise ValidationError(more.update_error_dict(error.error_dict)) from None
        raise
    check_constraints(row, changed=changed)


def _natural_key(row: SourcedRow, table: Table) -> str:
    return row.natural_key() if "key" in table.derived else table.key_of(row)


def _note_sources(row: SourcedRow, old: Mapping[str, object], by: _Author) -> None:
    today = timezone.now().date()
    given = by.value_source
    sources = dict(row.field_sources)
    for name, value in old.items():
        if name in ABOUT_THE_ROW:
            continue
        sources[name] = provenance.overridden(
            row,
            name,
            old=value if isinstance(value, bool | int | float | list | None) else str(value),
            source=given.source,
            source_licence=given.source_licence,
            confidence=str(given.confidence),
            reason=by.reason,
            today=today,
        )
    row.field_sources = sources


def _save(row: SourcedRow, by: _Author) -> None:
    row._history_user = by.user
    row._change_reason = by.reason[:100]
    row.save()


def _delete(row: SourcedRow | None, by: _Author) -> SourcedRow | None:
    if row is None:
        return None
    if row.file_hash:
        raise ValidationError(_("This row ships with the product and would come back. Retire its offers instead."))
    keep_first_state(row)
    row._history_user = by.user
    row._change_reason = by.reason[:100]
    try:
        row.delete()
    except ProtectedError:
        raise ValidationError(_("Other rows still point at this one. Delete or change them first.")) from None
    return row


def keep_first_state(row: SourcedRow) -> None:
    """Put the row as it is into its history, where imports left none, so that the first change can be taken back."""
    if not row.history.exists():
        stored = type(row).objects.get(pk=row.pk)
        stored.history.model.objects.create(
            history_date=timezone.now(),
            history_type="+",
            history_change_reason="before the first change",
            **{f.attname: getattr(stored, f.attname) for f in stored.history.model.tracked_fields},
        )


def reprice(server: Server) -> None:
    """Divide the prices of a server's offers again, after its number of accelerators changed."""
    offers = list(Offer.objects.filter(server=server).only("price_per_hour", "price_per_gpu_hour", "version"))
    for offer in offers:
        offer.price_per_gpu_hour = gpu_price(offer.price_per_hour, server.gpu_count)
        offer.version += 1
    Offer.objects.bulk_update(offers, ["price_per_gpu_hour", "version"], batch_size=500)


def resolved(table: Table, values: Mapping[str, object]) -> dict[str, object]:
    """Plain values as the model's own: dates, decimals, rows. Raises ValidationError by column."""
    found: dict[str, object] = {}
    problems: dict[str, list[str]] = {}
    for name, value in values.items():
        try:
            found[name] = _one(table, name, value)
        except ValidationError as error:
            problems[name] = list(error.messages)
    if problems:
        raise ValidationError(problems)
    return found


def _one(table: Table, name: str, value: object) -> object:
    if name not in table.columns:
        raise ValidationError(_("There is no such column, or it cannot be set."))
    if name not in table.refers:
        return table.model._meta.get_field(name).to_python(value)
    if value in (None, ""):
        return None
    other = TABLES[table.refers[name]].find(str(value))
    if other is None:
        raise ValidationError(
            _("%(key)s is not in the catalog. Publish it first, or check its spelling.") % {"key": str(value)[:80]}
        )
    return other


def _broken_fabrics(touched: Mapping[int, SourcedRow]) -> list[Refused]:
    """Fabrics that no longer fit a server that was changed."""
    servers = {row.pk: (index, row) for index, row in touched.items() if isinstance(row, Server) and row.pk}
    found = []
    for fabric in Fabric.objects.select_related("server__accelerator", "server__provider").filter(server__in=servers):
        if problems := validation.fabric_problems(fabric):
            sentences = [
                _("Its fabric would be wrong: %(sentence)s") % {"sentence": sentence}
                for several in problems.values()
                for sentence in several
            ]
            index, row = servers[fabric.server_id]
            found.append(Refused(index=index, table="servers", key=row.key, problems={"": sentences}))
    return found


def refused_by(error: ValidationError, *, index: int, table: Table, key: str) -> Refused:
    """What Django found wrong with a row, by column; of derived columns only where nothing else is wrong."""
    if not hasattr(error, "error_dict"):
        return Refused(index=index, table=table.name, key=key, problems={"": list(error.messages)})
    found = {"" if name == "__all__" else name: messages for name, messages in error.message_dict.items()}
    typed = {name: messages for name, messages in found.items() if name not in table.derived}
    return Refused(index=index, table=table.name, key=key, problems=typed or found)
