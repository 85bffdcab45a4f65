"""Bringing the shipped files into the database: again and again, without touching what a person has changed."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.db import models, transaction
from simple_history.utils import bulk_create_with_history, bulk_update_with_history

from catalog import rows
from catalog.models import Accelerator, CostLine, Fabric, Offer, Provider, Server
from catalog.models.revision import RevisionOrigin
from catalog.rows import FileRow
from catalog.services import lock_catalog, record_revision

SERVER_KEY = ("provider__key", "sku")
BATCH = 500
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
def load_catalog(directory: Path = rows.DATA) -> LoadReport:
    """Create and update rows by natural key, all or nothing. A second run of the same files changes nothing.

    A new row that would break a unique constraint of its table is skipped and counted.
    """
    lock_catalog()
    tables = {table.name: _sync(table, directory) for table in TABLES}
    created = sum(report.created for report in tables.values())
    updated = sum(report.updated for report in tables.values())
    revision = None
    if created or updated:
        summary = f"{created} rows created, {updated} updated"
        revision = record_revision(origin=RevisionOrigin.FILES, summary=summary)
    return LoadReport(tables=tables, revision=revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    name: str
    model: type[models.Model]
    read: Callable[[Path], Iterator[FileRow]]
    key_fields: tuple[str, ...]
    refers: dict[str, "tuple[type[models.Model], tuple[str, ...]]"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    pk: int
    file_hash: str
    edited: bool


TABLES = (
    _Table(name="providers", model=Provider, read=rows.providers, key_fields=("key",)),
    _Table(name="accelerators", model=Accelerator, read=rows.accelerators, key_fields=("key",)),
    _Table(
        name="servers",
        model=Server,
        read=rows.servers,
        key_fields=SERVER_KEY,
        refers={"provider": (Provider, ("key",)), "accelerator": (Accelerator, ("key",))},
    ),
    _Table(
        name="fabrics",
        model=Fabric,
        read=rows.fabrics,
        key_fields=("server__provider__key", "server__sku"),
        refers={"server": (Server, SERVER_KEY)},
    ),
    _Table(
        name="offers",
        model=Offer,
        read=rows.offers,
        key_fields=("key",),
        refers={"server": (Server, SERVER_KEY)},
    ),
)


def _sync(table: _Table, directory: Path) -> TableReport:
    known = _known(table)
    ids = {name: _ids(model, fields) for name, (model, fields) in table.refers.items()}
    new: list[FileRow] = []
    changed: list[FileRow] = []
    kept = unchanged = 0
    for row in table.read(directory):
        before = known.get(row.key)
        if before is None:
            new.append(row)
        elif before.file_hash == row.hash:
            unchanged += 1
        elif before.edited:
            kept += 1
        else:
            changed.append(row)
    created = _create(table, [_values(row, ids) for row in new])
    _update(table, {known[row.key].pk: _values(row, ids) for row in changed})
    skipped = len(new) - created
    return TableReport(created=created, updated=len(changed), unchanged=unchanged, kept=kept, skipped=skipped)


def _values(row: FileRow, ids: dict[str, dict[str, int]]) -> dict[str, object]:
    links = {f"{name}_id": ids[name][key] for name, key in row.refers.items()}
    return {**row.values, **links, "file_hash": row.hash}


def _create(table: _Table, values: list[dict[str, object]]) -> int:
    """How many rows found their place."""
    objects = [table.model(**row) for row in _placeable(table.model, values)] if values else []
    for row in objects:
        if isinstance(row, Offer | CostLine):
            row.complete()
    if objects:
        bulk_create_with_history(objects, table.model, batch_size=BATCH, default_change_reason="shipped files")
    return len(objects)


def _placeable(model: type[models.Model], values: list[dict[str, object]]) -> list[dict[str, object]]:
    """The rows that meet no row with the same values of a unique constraint.

    A row's key is made from those values; it meets one under another key only where a person changed the values.
    """
    for constraint in model._meta.total_unique_constraints:
        columns = [model._meta.get_field(name).attname for name in constraint.fields]
        taken = {tuple(place): pk for pk, *place in model.objects.values_list("pk", *columns)}
        places = [tuple(row[column] for column in columns) for row in values]
        for pk in (taken[place] for place in places if place in taken):
            logger.warning("A shipped %s is skipped: row %s has its place.", model._meta.model_name, pk)
        values = [row for row, place in zip(values, places, strict=True) if place not in taken]
    return values


def _update(table: _Table, values: dict[int, dict[str, object]]) -> None:
    if not values:
        return
    objects = table.model.objects.in_bulk(list(values))
    for pk, row in values.items():
        for name, value in row.items():
            setattr(objects[pk], name, value)
        objects[pk].version += 1
    fields = sorted({name.removesuffix("_id") for name in next(iter(values.values()))} | {"version"})
    bulk_update_with_history(
        list(objects.values()), table.model, fields, batch_size=BATCH, default_change_reason="shipped files"
    )


def _known(table: _Table) -> dict[str, _Known]:
    found = table.model.objects.values_list("pk", "file_hash", "edited", *table.key_fields)
    return {"/".join(key): _Known(pk=pk, file_hash=hashed, edited=edited) for pk, hashed, edited, *key in found}


def _ids(model: type[models.Model], key_fields: tuple[str, ...]) -> dict[str, int]:
    return {"/".join(key): pk for pk, *key in model.objects.values_list("pk", *key_fields)}
