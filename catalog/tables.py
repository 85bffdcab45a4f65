"""The catalog's tables by name and natural key: how files, REST, drafts and imports point at a row."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db import models

from catalog.models import Accelerator, CostLine, Fabric, Offer, Provider, Region, Server
from catalog.models.base import SourcedRow

BOOKKEEPING = ("id", "version", "edited", "file_hash", "field_sources", "printed", "import_job")
"""Columns that nobody types: they say how a row came to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``key_fields``: lookup paths whose values, joined by slashes, are the natural key of a row.

    ``refers``: column -> name of the table that it points into; its value is that table's natural key.
    ``derived``: columns that follow from others and are never typed.
    """

    name: str
    model: type[SourcedRow]
    key_fields: tuple[str, ...]
    refers: Mapping[str, str] = field(default_factory=dict)
    derived: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """What a person, a file or a request can set, in the order of the model."""
        left_out = {*BOOKKEEPING, *self.derived}
        return tuple(f.name for f in self.model._meta.concrete_fields if f.name not in left_out)

    def rows(self) -> models.QuerySet:
        """All rows with what is needed for ``key_of`` and ``values_of``; one query."""
        paths = [path.rpartition("__")[0] for path in self.key_fields]
        paths += [self._path(name, path) for name, table in self.refers.items() for path in TABLES[table].key_fields]
        related = sorted({path for path in paths if path})
        return self.model.objects.select_related(*related) if related else self.model.objects.all()

    def find(self, key: str) -> SourcedRow | None:
        """The row with this natural key. One query."""
        parts = self.split(key)
        return self.rows().filter(**dict(zip(self.key_fields, parts, strict=True))).first() if parts else None

    def split(self, key: str) -> list[str] | None:
        """The parts of a natural key; None where it cannot be one. Only a last part may hold a slash."""
        parts = key.split("/", len(self.key_fields) - 1)
        return parts if len(parts) == len(self.key_fields) else None

    def key_of(self, row: SourcedRow) -> str:
        return "/".join(str(_follow(row, path)) for path in self.key_fields)

    def values_of(self, row: SourcedRow) -> dict[str, object]:
        """Column -> plain value; references as natural keys, None where empty."""
        return {name: self._value(row, name) for name in self.columns}

    def _value(self, row: SourcedRow, name: str) -> object:
        if name not in self.refers:
            return getattr(row, name)
        other = getattr(row, name)
        return None if other is None else TABLES[self.refers[name]].key_of(other)

    def _path(self, name: str, path: str) -> str:
        head = path.rpartition("__")[0]
        return f"{name}__{head}" if head else name


def _follow(row: object, path: str) -> object:
    for name in path.split("__"):
        row = getattr(row, name)
    return row


SERVER_KEY = ("provider__key", "sku")

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        Table(name="providers", model=Provider, key_fields=("key",)),
        Table(name="accelerators", model=Accelerator, key_fields=("key",)),
        Table(name="regions", model=Region, key_fields=("provider__key", "name"), refers={"provider": "providers"}),
        Table(
            name="servers",
            model=Server,
            key_fields=SERVER_KEY,
            refers={"provider": "providers", "accelerator": "accelerators"},
        ),
        Table(
            name="fabrics",
            model=Fabric,
            key_fields=("server__provider__key", "server__sku"),
            refers={"server": "servers"},
        ),
        Table(
            name="cost_lines",
            model=CostLine,
            key_fields=("key",),
            refers={"provider": "providers", "server": "servers"},
            derived=("key",),
        ),
        Table(
            name="offers",
            model=Offer,
            key_fields=("key",),
            refers={"server": "servers"},
            derived=("key", "price_per_gpu_hour", "quarantine_reason"),
        ),
    )
}
"""In the order in which they can be written: what is referred to comes first."""
