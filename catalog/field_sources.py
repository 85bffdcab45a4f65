"""The file of values whose source differs from that of their row: ``field_sources.csv``, both ways.

``other_value`` is what another source prints, in ``other_unit``; it is kept as that text beside the value that counts.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import IO

from django.utils.translation import gettext as _

from catalog import columns
from catalog.cells import BadCell, Day, Text, csv_line
from catalog.layouts import CellProblem, Column, FileRefused, Layout, Values, accepted
from catalog.provenance import Replaced, stored
from catalog.specs import Confidence
from catalog.tables import TABLES

FILE = "field_sources.csv"
Sources = dict[str, dict[str, object]]
"""Column -> what ``row.field_sources`` keeps of it."""


class FieldSources:
    """What the file says, by table and natural key. Raises FileRefused."""

    def __init__(self, directory: Path) -> None:
        path = directory / FILE
        rows = enumerate(columns.cells(path), start=2) if path.exists() else ()
        self._lines: dict[tuple[str, str], int] = {}
        self._found: dict[tuple[str, str], Sources] = {}
        for row in accepted(FILE, _LAYOUT.parsed(rows)):
            place = str(row.values["table"]), str(row.values["key"])
            self._lines.setdefault(place, row.line)
            self._found.setdefault(place, {})[str(row.values["field"])] = _entry(row.values)

    def of(self, table: str, key: str) -> Sources:
        return self._found.get((table, key), {})

    def check(self, table: str, keys: set[str]) -> None:
        """Raises FileRefused where rows are named that ``table`` does not have."""
        lost = [(line, key) for (name, key), line in self._lines.items() if name == table and key not in keys]
        sentence = _("%(table)s has no row %(key)s. Check its spelling.")
        problems = [
            CellProblem(line=line, column="key", sentence=sentence % {"table": table, "key": key[:80]})
            for line, key in lost
        ]
        if problems:
            raise FileRefused(FILE, problems)


def write_field_sources(file: IO[str]) -> None:
    """Write all sources of single values to a text file opened with ``newline=""``. One query for each table."""
    file.write(csv_line(_LAYOUT.headers))
    for table in sorted(TABLES):
        file.writelines(csv_line(cells) for cells in sorted(_lines_of(table)))


def _lines_of(table: str) -> Iterator[tuple[str, ...]]:
    known = TABLES[table]
    for row in known.rows().exclude(field_sources={}):
        for name, entry in row.field_sources.items():
            values = {**entry, "table": table, "key": known.key_of(row), "field": name, **_other(entry)}
            yield tuple(values[header] for header in _LAYOUT.headers)


def _other(entry: Mapping[str, object]) -> dict[str, str]:
    """What another source prints; an override that took a value's place is history, not another source."""
    printed = next((old for old in entry["replaced"] if not old["until"]), None)  # type: ignore[attr-defined]
    value, _space, unit = str(printed["value"]).partition(" ") if printed else ("", "", "")
    return {"other_value": value, "other_unit": unit, "other_source": printed["source"] if printed else ""}


def _entry(values: Mapping[str, object]) -> dict[str, object]:
    day = values["observed_on"]
    plain = {name: str(values[name]) for name in ("source", "source_licence", "confidence", "reason")}
    plain["observed_on"] = day.isoformat() if isinstance(day, date) else ""
    other = None
    if values["other_value"]:
        text = f"{values['other_value']} {values['other_unit']}".strip()
        other = Replaced(value=text, source=str(values["other_source"]), confidence="", until="")
    return stored(plain, other)


def _checked(values: Values) -> Values:
    table, name = str(values["table"]), str(values["field"])
    if name not in TABLES[table].columns:
        raise BadCell(_("%(table)s has no column %(column)s.") % {"table": table, "column": name[:80]})
    if " " in str(values["other_value"]):
        raise BadCell(_("Enter the other value without spaces, and its unit in the next column."))
    return values


def _column(name: str, kind: Text | Day, *, required: bool = False) -> Column:
    empty = "" if isinstance(kind, Text) else None
    return Column(header=name, name=name, kind=kind, fills=(name,), paths=(name,), required=required, empty=empty)


_LAYOUT = Layout(
    columns=(
        _column("table", Text(tuple(sorted(TABLES))), required=True),
        _column("key", Text(), required=True),
        _column("field", Text(), required=True),
        _column("confidence", Text(tuple(Confidence)), required=True),
        _column("source", Text(), required=True),
        _column("source_licence", Text(), required=True),
        _column("observed_on", Day()),
        _column("reason", Text()),
        _column("other_value", Text()),
        _column("other_unit", Text()),
        _column("other_source", Text()),
    ),
    order=("table", "key", "field"),
    key=lambda values: f"{values['table']}/{values['key']}/{values['field']}",
    join=_checked,
)
