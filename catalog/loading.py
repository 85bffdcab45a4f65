"""Bringing the shipped files into the database: again and again, without touching what a person has changed."""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from django.db import models, transaction
from django.utils.translation import gettext as _
from simple_history.utils import bulk_create_with_history, bulk_update_with_history

from catalog import columns
from catalog.changes import reprice
from catalog.field_sources import FieldSources, Sources
from catalog.layouts import CellProblem, FileRefused, FileRow
from catalog.models import ImportJob, Offer, Server
from catalog.models.base import SourcedRow
from catalog.models.imports import ImportStatus, ListFormat
from catalog.models.revision import RevisionOrigin
from catalog.services import lock_catalog, record_revision
from catalog.tables import TABLES, Table

BATCH = 500
REASON = "shipped files"
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    """``kept``: rows where the file says something new but a person has edited the row, so it stays.

    ``skipped``: new rows of the file whose place is taken by a row that a person has changed; the log names that one.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """What loading did, by table; ``revision`` is the new catalog revision, None when nothing changed."""

    tables: dict[str, TableReport] = field(default_factory=dict)
    revision: int | None = None


@transaction.atomic
def load_catalog(directory: Path = columns.DATA) -> LoadReport:
    """Create and update rows by natural key, all or nothing. A second run of the same files changes nothing.

    A new row that would break a unique constraint of its table is skipped and counted. Raises FileRefused where a
    cell cannot be read, IntegrityError where values contradict each other.
    """
    lock_catalog()
    load = _Load(directory)
    tables = {name: load.sync(table) for name, table in TABLES.items()}
    created = sum(report.created for report in tables.values())
    updated = sum(report.updated for report in tables.values())
    revision = None
    if created or updated:
        summary = f"{created} rows created, {updated} updated"
        revision = record_revision(origin=RevisionOrigin.FILES, summary=summary)
    return LoadReport(tables=tables, revision=revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    pk: int
    file_hash: str
    edited: bool


class _Load:
    """One run. Tables are written in the order of ``TABLES``, so that what is referred to is there."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sources = FieldSources(directory)
        self._targets: dict[str, dict[str, SourcedRow]] = {}

    def sync(self, table: Table) -> TableReport:
        rows = columns.shipped(table.name, self._directory)
        self._sources.check(table.name, {row.key for row in rows})
        if not rows:
            return TableReport()
        known = _known(table)
        new: list[FileRow] = []
        changed: list[FileRow] = []
        kept = unchanged = 0
        for row in rows:
            before = known.get(row.key)
            if before is None:
                new.append(row)
            elif before.file_hash == self._fingerprint(table, row):
                unchanged += 1
            elif before.edited:
                kept += 1
            else:
                changed.append(row)
        created = _create(table, self._resolved(table, new))
        _update(table, dict(zip((known[row.key].pk for row in changed), self._resolved(table, changed), strict=True)))
        skipped = len(new) - created
        return TableReport(created=created, updated=len(changed), unchanged=unchanged, kept=kept, skipped=skipped)

    def _fingerprint(self, table: Table, row: FileRow) -> str:
        return fingerprint(row, self._sources.of(table.name, row.key))

    def _resolved(self, table: Table, rows: list[FileRow]) -> list[dict[str, object]]:
        """What to set on the model: rows instead of natural keys, and how the row came to be."""
        problems: list[CellProblem] = []
        found = []
        for row in rows:
            values = {**row.values, "field_sources": self._sources.of(table.name, row.key)}
            values["file_hash"] = self._fingerprint(table, row)
            if "key" in table.derived:
                values["key"] = row.key
            for name, target in table.refers.items():
                values[name] = self._target(target, row.values[name])
                if values[name] is None and row.values[name] is not None:
                    sentence = _("There is no %(key)s.") % {"key": str(row.values[name])[:80]}
                    problems.append(CellProblem(line=row.line, column=name, sentence=sentence))
            found.append(values)
        if problems:
            raise FileRefused(f"{table.name}.csv", problems[:50], len(problems[50:]))
        return found

    def _target(self, table: str, key: object) -> SourcedRow | None:
        if key is None:
            return None
        if table not in self._targets:
            self._targets[table] = {TABLES[table].key_of(row): row for row in TABLES[table].rows()}
        return self._targets[table].get(str(key))


def fingerprint(row: FileRow, sources: Sources) -> str:
    """Tells whether a file says something new of a row."""
    text = json.dumps([row.key, row.values, sources], sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()


def _create(table: Table, values: list[dict[str, object]]) -> int:
    """How many rows found their place."""
    objects = [table.model(**row) for row in _placeable(table.model, values)] if values else []
    for row in objects:
        _complete(row)
    if objects:
        bulk_create_with_history(objects, table.model, batch_size=BATCH, default_change_reason=REASON)
    return len(objects)


def _complete(row: SourcedRow) -> None:
    if hasattr(row, "complete"):
        row.complete()


def _placeable(model: type[models.Model], values: list[dict[str, object]]) -> list[dict[str, object]]:
    """The rows that meet no row with the same values of a unique constraint.

    A row's key is made from those values; it meets one under another key only where a person changed the values.
    """
    for names in _places(model):
        taken = {tuple(place): pk for pk, *place in model.objects.values_list("pk", *names)}
        places = [tuple(getattr(row[name], "pk", row[name]) for name in names) for row in values]
        for pk in (taken[place] for place in places if place in taken):
            logger.warning("A shipped %s is skipped: row %s has its place.", model._meta.model_name, pk)
        values = [row for row, place in zip(values, places, strict=True) if place not in taken]
    return values


def _places(model: type[models.Model]) -> Iterable[tuple[str, ...]]:
    """Columns of each unique constraint, with those that its condition looks at."""
    for constraint in model._meta.constraints:
        if isinstance(constraint, models.UniqueConstraint):
            looked_at = constraint.condition.referenced_base_fields if constraint.condition else set()
            yield (*constraint.fields, *sorted(looked_at - set(constraint.fields)))


def _update(table: Table, values: Mapping[int, dict[str, object]]) -> None:
    if not values:
        return
    objects = table.model.objects.in_bulk(list(values))
    resized = []
    kept = _kept_of_imports(objects) if table.model is Offer else {}
    for pk, row in values.items():
        if isinstance(objects[pk], Server) and objects[pk].gpu_count != row["gpu_count"]:
            resized.append(objects[pk])
        for name, value in (row | kept.get(pk, {})).items():
            setattr(objects[pk], name, value)
        _complete(objects[pk])
        objects[pk].version += 1
    names = {*next(iter(values.values())), "version", *table.derived}
    bulk_update_with_history(
        list(objects.values()), table.model, sorted(names), batch_size=BATCH, default_change_reason=REASON
    )
    for server in resized:
        reprice(server)


def _kept_of_imports(offers: Mapping[int, Offer]) -> dict[int, dict[str, object]]:
    """Whether a shipped offer still counts is said by the price lists of its source, once some are imported."""
    imported = ImportJob.objects.filter(status=ImportStatus.APPLIED).exclude(list_format=ListFormat.OWN)
    sources = set(imported.values_list("source", flat=True))
    columns_of_lists = ("status", "valid_to", "last_seen_on")
    mine = {pk: row for pk, row in offers.items() if row.source in sources}
    return {pk: {name: getattr(row, name) for name in columns_of_lists} for pk, row in mine.items()}


def _known(table: Table) -> dict[str, _Known]:
    found = table.model.objects.values_list("pk", "file_hash", "edited", *table.key_fields)
    return {"/".join(key): _Known(pk=pk, file_hash=hashed, edited=edited) for pk, hashed, edited, *key in found}
