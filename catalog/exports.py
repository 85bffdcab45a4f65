"""Tables as CSV and XLSX files, row by row: memory does not grow with the table.

A CSV cell holds exactly what the catalog holds, also where it begins with = + - @, so that a file read back is the
same table; a spreadsheet may take such a cell for a formula. XLSX has typed cells: there text is always text.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from django.db import connections
from django.db.models import CharField, F, Field, QuerySet, TextField
from django.db.models.expressions import OrderBy
from django.db.models.functions import Collate

from catalog import xlsx
from catalog.cells import Day, Kind, Money, Real, Whole, csv_line
from catalog.columns import LAYOUTS
from catalog.field_sources import FILE, write_field_sources
from catalog.layouts import Layout
from catalog.models.base import SourcedRow
from catalog.tables import TABLES

CHUNK = 2000
LINES_AT_ONCE = 200


def csv_chunks(table: str, queryset: QuerySet[SourcedRow]) -> Iterator[str]:
    """The file in pieces of some hundred lines, for a streamed answer. One query; sorted by natural key."""
    layout = LAYOUTS[table]
    lines = [csv_line(layout.headers)]
    for cells in _printed(layout, queryset):
        lines.append(csv_line(cells))
        if len(lines) == LINES_AT_ONCE:
            yield "".join(lines)
            lines.clear()
    yield "".join(lines)


def write_csv(table: str, queryset: QuerySet[SourcedRow], file: IO[str]) -> None:
    """Write these rows of ``table`` to a text file opened with ``newline=""``. One query."""
    for chunk in csv_chunks(table, queryset):
        file.write(chunk)


def write_xlsx(table: str, queryset: QuerySet[SourcedRow], file: IO[bytes]) -> None:
    """Write these rows of ``table`` as a workbook with one sheet. One query. Raises xlsx.TooManyRows."""
    layout = LAYOUTS[table]
    typed = [_typed(column.kind) for column in layout.columns]
    rows = ([make(cell) for make, cell in zip(typed, row, strict=True)] for row in _printed(layout, queryset))
    xlsx.write(file, table, layout.headers, rows)


def write_folder(directory: Path) -> Iterator[Path]:
    """Write every table's CSV file, and the sources of single values; yields each file when it is written."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        path = directory / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            write_csv(name, TABLES[name].model.objects.all(), file)
        yield path
    path = directory / FILE
    with path.open("w", newline="", encoding="utf-8") as file:
        write_field_sources(file)
    yield path


def _typed(kind: Kind) -> Callable[[str], str]:
    if isinstance(kind, Whole | Real | Money):
        return xlsx.number
    return xlsx.day if isinstance(kind, Day) else xlsx.text


def _printed(layout: Layout, queryset: QuerySet[SourcedRow]) -> Iterator[list[str]]:
    paths = list(dict.fromkeys(path for column in layout.columns for path in column.paths))
    places = [(column.write, [paths.index(path) for path in column.paths]) for column in layout.columns]
    for row in _sorted(layout, queryset).values_list(*paths).iterator(chunk_size=CHUNK):
        yield [write(*(row[place] for place in where)) for write, where in places]


def _sorted(layout: Layout, queryset: QuerySet[SourcedRow]) -> QuerySet[SourcedRow]:
    """By natural key, text by its bytes whatever the language of the database, empty references first."""
    bytewise = connections[queryset.db].vendor == "postgresql"
    order = []
    for path in layout.order:
        text = isinstance(_field(queryset, path), CharField | TextField)
        order.append(OrderBy(Collate(F(path), "C") if text and bytewise else F(path), nulls_first=True))
    return queryset.order_by(*order)


def _field(queryset: QuerySet[SourcedRow], path: str) -> Field:
    *links, last = path.split("__")
    model = queryset.model
    for link in links:
        model = model._meta.get_field(link).related_model
    return model._meta.get_field(last)
