"""Changes that wait to be published: saved by an editor, looked at by a publisher, then made all at once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction

from catalog.changes import (
    Change,
    ChangesRefused,
    Refused,
    VersionConflict,
    apply_changes,
    key_of_new,
    refused_by,
    resolved,
)
from catalog.models import Draft
from catalog.models.base import SourcedRow
from catalog.models.revision import RevisionOrigin
from catalog.services import lock_catalog
from catalog.tables import TABLES, Table

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the editor looked at while editing: the version of the published row and of the draft, 0 for none."""

    row: int = 0
    draft: int = 0

    @classmethod
    def now(cls, table: str, key: str) -> "Seen":
        row = TABLES[table].find(key) if key else None
        draft = find(table, key)
        return cls(row=row.version if row else 0, draft=draft.version if draft else 0)

    def __str__(self) -> str:
        return f"{self.row}.{self.draft}"

    @classmethod
    def parse(cls, text: str) -> "Seen":
        """Raises ValueError for anything that ``str`` of a Seen has not made."""
        row, draft = text.split(".")
        return cls(row=int(row), draft=int(draft))


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One row of a form that was sent: ``values`` are plain, as in a Change; so is ``key``, empty where it follows."""

    table: str
    key: str
    values: Mapping[str, object]
    seen: Seen | None = None


class DraftConflict(VersionConflict):
    """The draft itself is not what its publisher looked at: edited since, published or discarded."""


def find(table: str, key: str) -> Draft | None:
    return Draft.objects.filter(table=table, key=key).first()


@transaction.atomic
def save_drafts(edits: Sequence[Edit], *, user: "AbstractBaseUser | None", reason: str = "") -> list[Draft]:
    """Keep what was edited, on top of what the rows' drafts already hold; a draft without a difference is deleted.

    Raises VersionConflict when somebody else has saved or published one of the rows since ``seen``, ChangesRefused
    when the values cannot be right. Either way nothing is kept.
    """
    lock_catalog()
    drafts: list[Draft] = []
    refused: list[Refused] = []
    for index, edit in enumerate(edits):
        try:
            draft = _saved(edit, user, reason)
        except ValidationError as error:
            refused.append(refused_by(error, index=index, table=TABLES[edit.table], key=edit.key))
        else:
            drafts += [draft] if draft is not None else []
    if refused:
        raise ChangesRefused(refused)
    with previewed(drafts):
        return drafts


def discard(drafts: Iterable[Draft]) -> int:
    """Throw drafts away; how many there were. One that was edited since it was read stays."""
    return sum(Draft.objects.filter(pk=draft.pk, version=draft.version).delete()[0] for draft in drafts)


@transaction.atomic
def publish(drafts: Sequence[Draft], *, user: "AbstractBaseUser | None", reason: str = "") -> int | None:
    """Make the drafts part of the catalog, all or none, as one revision. Returns its number.

    Raises VersionConflict when a row has changed since its draft began, DraftConflict when a draft is not as given any
    more, ChangesRefused when a value cannot be right.
    """
    lock_catalog()
    stored = Draft.objects.select_for_update().in_bulk([draft.pk for draft in drafts])
    for draft in drafts:
        now = stored.get(draft.pk)
        if now is None or now.version != draft.version:
            raise DraftConflict(table=draft.table, key=draft.key, version=now.base_version if now else 0)
    found = list(stored.values())
    summary = ", ".join(str(draft) for draft in found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
    reasons = reason or "; ".join(dict.fromkeys(draft.reason for draft in found if draft.reason))
    number = apply_changes(
        [_change(draft) for draft in found], origin=RevisionOrigin.ADMIN, summary=summary, user=user, reason=reasons
    )
    discard(found)
    return number


@contextmanager
def previewed(drafts: Iterable[Draft]) -> Iterator[None]:
    """Inside, the catalog looks as if these drafts, and those that they need, were published; then it is as before.

    Raises what ``publish`` raises. On SQLite nobody else can write meanwhile: read what is needed, then leave.
    """
    with transaction.atomic():
        apply_changes(
            [_change(draft) for draft in _with_needed(drafts)], origin=RevisionOrigin.ADMIN, summary="preview"
        )
        yield
        transaction.set_rollback(True)


def _change(draft: Draft) -> Change:
    return Change(table=draft.table, key=draft.key, values=draft.values, expect_version=draft.base_version)


def _saved(edit: Edit, user: "AbstractBaseUser | None", reason: str) -> Draft | None:
    table = TABLES[edit.table]
    key = edit.key or key_of_new(table, edit.values)
    row = table.find(key)
    draft = Draft.objects.select_for_update().filter(table=edit.table, key=key).first()
    now = Seen(row=row.version if row else 0, draft=draft.version if draft else 0)
    if edit.seen is not None and edit.seen != now:
        raise VersionConflict(table=edit.table, key=key, version=now.row)
    values = {**(draft.values if draft else {}), **as_json(edit.values)}
    if row is not None:
        values = {name: value for name, value in values.items() if not _is_published(table, row, name, value)}
    if draft is None:
        return _new(table, key, values, now, user, reason) if values else None
    if not values:
        draft.delete()
        return None
    draft.values, draft.base_version, draft.version = values, now.row, draft.version + 1
    draft.author, draft.reason = user, reason[:200] or draft.reason
    draft.save()
    return draft


def _is_published(table: Table, row: SourcedRow, name: str, value: object) -> bool:
    # as the column's own type: a price of 12.5 is one of 12.500000
    try:
        return resolved(table, {name: value})[name] == getattr(row, name)
    except ValidationError:
        return False


def _new(table: Table, key: str, values: dict, now: Seen, user: "AbstractBaseUser | None", reason: str) -> Draft:
    return Draft.objects.create(
        table=table.name, key=key, values=values, base_version=now.row, author=user, reason=reason[:200]
    )


def as_json(values: Mapping[str, object]) -> dict[str, object]:
    """Plain values as the JSON column will give them back."""
    encoder = DjangoJSONEncoder()
    return {name: _plain(value, encoder) for name, value in values.items()}


def _plain(value: object, encoder: DjangoJSONEncoder) -> object:
    return value if isinstance(value, str | int | float | bool | list | dict | None) else encoder.default(value)


def _with_needed(drafts: Iterable[Draft]) -> list[Draft]:
    """The drafts, and the drafts of rows that they refer to and that are not published yet."""
    found = {(draft.table, draft.key): draft for draft in drafts}
    unpublished = {(draft.table, draft.key): draft for draft in Draft.objects.filter(base_version=0)}
    waiting = list(found.values())
    while waiting:
        draft = waiting.pop()
        for place in _refers(TABLES[draft.table], draft.values):
            if place in unpublished and place not in found:
                found[place] = unpublished[place]
                waiting.append(unpublished[place])
    return list(found.values())


def _refers(table: Table, values: Mapping[str, object]) -> list[tuple[str, str]]:
    """(table, key) of the rows that a row with these values points at."""
    return [(other, str(values[name])) for name, other in table.refers.items() if values.get(name)]
