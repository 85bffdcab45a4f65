"""Our own tables, filled in by people: what each row would change, column by column, and writing it.

Rows that the file does not hold stay as they are. What is written counts as typed by the person who approved it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from django.conf import settings
from django.db import transaction
from django.db.models import ProtectedError

from catalog.changes import Change, ChangesRefused, ValueSource, apply_changes, keep_first_state, reprice
from catalog.columns import LAYOUTS
from catalog.importers import bulk, listing
from catalog.importers.changed import changed_since, tag
from catalog.importers.errors import ImportRefused
from catalog.importers.listing import Progress
from catalog.importers.report import SAMPLES
from catalog.layouts import CellProblem, FileRow
from catalog.models import ImportJob, Server
from catalog.models.base import SourcedRow
from catalog.models.revision import RevisionOrigin
from catalog.tables import TABLES, Table

TRIED_AT_ONCE = 100
READ_SHARE = 0.3
ABOUT = ("source", "source_licence")
KINDS = ("created", "changed", "unchanged", "refused")
Undo = dict[str, Any]


@dataclass(slots=True)
class Compared:
    """A table's file against the catalog. ``changes`` and ``lines`` belong together."""

    table: Table
    rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """True where writing would change nothing."""
        return not self.changes

    def report(self) -> dict[str, Any]:
        return {
            "table": self.table.name,
            "rows": self.rows,
            "counts": {kind: self.counts[kind] for kind in KINDS},
            "samples": self.samples,
            "asks_for_a_person": [],
            "note": "",
        }

    def note(self, kind: str, line: int, **said: object) -> None:
        self.counts[kind] += 1
        samples = self.samples.setdefault(kind, [])
        if kind != "unchanged" and len(samples) < SAMPLES:
            samples.append({"line": line, **said})


def compare(job: ImportJob, progress: Progress, *, try_out: bool) -> Compared:
    """What the file would change. Raises ListUnreadable and ImportRefused.

    ``try_out``: make each change and take it back, so that what publishing would refuse is refused now.
    """
    compared = Compared(TABLES[job.table])
    share_read = READ_SHARE if try_out else 1.0
    with listing.opened(job) as file:
        _read(compared, job, file, lambda share: progress(share_read * share))
    if try_out:
        _try_out(compared, lambda share: progress(READ_SHARE + (1 - READ_SHARE) * share))
    return compared


def write(job: ImportJob, compared: Compared) -> tuple[int | None, Undo]:
    """Make all changes, or none; the new revision and what takes it back. Call it in a transaction.

    Raises ImportRefused where a row cannot be right.
    """
    table = compared.table
    before = _stored(table, [change.key for change in compared.changes])
    number = _made(
        compared.changes,
        origin=RevisionOrigin.IMPORT,
        summary=f"{job.file_name}: {compared.counts['created']} new, {compared.counts['changed']} changed",
        user=job.decided_by or job.created_by,
        reason=f"import of {job.file_name[:60]} {tag(job)}",
        value_source=ValueSource(source=job.source, source_licence=job.source_licence) if job.source else None,
    )
    changed = [[row.pk, _plain(row)] for row in before.values()]
    created = [row.pk for key, row in _stored(table, compared.keys).items() if key not in before]
    return number, {"table": table.name, "changed": changed, "created": created}


def _made(changes: list[Change], **said: Any) -> int | None:
    try:
        return apply_changes(changes, **said)
    except ChangesRefused as refusal:
        raise ImportRefused("rows-refused", count=len(refusal.refused)) from refusal


def take_back(job: ImportJob, undo: Undo) -> int:
    """Give every row its former values; how many stay because a person has changed them since, or rows need them."""
    table = TABLES[undo["table"]]
    rows = table.model.objects.exclude(pk__in=changed_since(job, table.model))
    reason = f"import rolled back {tag(job)}"
    kept = 0
    for pk in undo["created"]:
        row = rows.filter(pk=pk).first()
        kept += row is None or not _delete(row, reason)
    for pk, values in undo["changed"]:
        row = rows.filter(pk=pk).first()
        kept += row is None
        if row is not None:
            _restore(row, values, reason)
    return kept


def _read(compared: Compared, job: ImportJob, file: BinaryIO, progress: Progress) -> None:
    size = max(job.file.size, 1)
    given = {name: text for name in ABOUT if (text := getattr(job, name))}
    parsed = LAYOUTS[job.table].parsed(_cells(file), given)
    for batch in bulk.in_batches(parsed):
        progress(min(file.tell() / size, 1.0))
        compared.rows += len(batch)
        if compared.rows > settings.IMPORT_MAX_ROWS:
            raise ImportRefused("too-many-rows", limit=settings.IMPORT_MAX_ROWS)
        rows = [entry for entry in batch if isinstance(entry, FileRow)]
        stored = _stored(compared.table, [row.key for row in rows])
        for entry in batch:
            if isinstance(entry, CellProblem):
                compared.note("refused", entry.line, problems=[str(entry)])
            else:
                _compare(compared, entry, stored.get(entry.key), given)


def _cells(file: BinaryIO) -> Iterator[tuple[int, Mapping[str, str] | None]]:
    """Line and header -> cell, of a CSV file or of the first sheet of an XLSX file."""
    from catalog import sheets  # openpyxl is loaded only where a table is read

    return sheets.rows_of(file)


def _compare(compared: Compared, row: FileRow, stored: SourcedRow | None, given: Mapping[str, str]) -> None:
    """What is said of the whole file is the source of new rows and of changed values, not of rows that stay."""
    table = compared.table
    if stored is None:
        key = "" if "key" in table.derived else row.key
        compared.note("created", row.line, key=row.key, values=_shown(row.values))
        _will(compared, row, Change(table=table.name, key=key, values=row.values, expect_version=None))
        return
    now = table.values_of(stored)
    differs = (name for name in sorted(row.named) if now[name] != row.values[name])
    changed = {name: row.values[name] for name in differs if row.values[name] != given.get(name)}
    if not changed:
        compared.note("unchanged", row.line)
        return
    columns = {name: [_text(now[name]), _text(value)] for name, value in changed.items()}
    compared.note("changed", row.line, key=row.key, columns=columns)
    _will(compared, row, Change(table=table.name, key=row.key, values=changed, expect_version=stored.version))


def _will(compared: Compared, row: FileRow, change: Change) -> None:
    compared.changes.append(change)
    compared.keys.append(row.key)
    compared.lines.append(row.line)


def _try_out(compared: Compared, progress: Progress) -> None:
    """A few at a time, so that others can write in between."""
    for first in range(0, len(compared.changes), TRIED_AT_ONCE):
        progress(first / len(compared.changes))
        some = compared.changes[first : first + TRIED_AT_ONCE]
        try:
            with transaction.atomic():
                apply_changes(some, origin=RevisionOrigin.IMPORT, summary="tried out")
                transaction.set_rollback(True)
        except ChangesRefused as refusal:
            for refused in refusal.refused:
                place = first + refused.index
                problems = [sentence for sentences in refused.problems.values() for sentence in sentences]
                compared.note("refused", compared.lines[place], key=compared.keys[place], problems=problems)


def _stored(table: Table, keys: list[str]) -> dict[str, SourcedRow]:
    """Rows by natural key, read in a few queries."""
    found: dict[str, SourcedRow] = {}
    wanted = {key for key in keys if key and table.split(key)}
    for batch in bulk.in_batches(sorted(wanted)):
        parts = [table.split(key) for key in batch]
        near = {f"{path}__in": {part[place] for part in parts} for place, path in enumerate(table.key_fields)}
        for row in table.rows().filter(**near):
            if (key := table.key_of(row)) in wanted:
                found[key] = row
    return found


def _plain(row: SourcedRow) -> dict[str, object]:
    return {f.attname: _as_text(f, row) if _needs_text(f) else getattr(row, f.attname) for f in _fields(row)}


def _fields(row: SourcedRow) -> list[Any]:
    return [f for f in row._meta.concrete_fields if f.name not in ("id", "version")]


def _needs_text(column: Any) -> bool:
    return column.get_internal_type() in ("DecimalField", "DateField")


def _as_text(column: Any, row: SourcedRow) -> str | None:
    value = getattr(row, column.attname)
    return None if value is None else str(value)


def _restore(row: SourcedRow, values: Mapping[str, object], reason: str) -> None:
    for column in _fields(row):
        value = values[column.attname]
        setattr(row, column.attname, column.to_python(value))
    row.version += 1
    row._change_reason = reason
    row.save()
    if isinstance(row, Server):
        reprice(row)


def _delete(row: SourcedRow, reason: str) -> bool:
    """False where other rows have come to need it."""
    keep_first_state(row)
    row._change_reason = reason
    try:
        with transaction.atomic():
            row.delete()
    except ProtectedError:
        return False
    return True


def _shown(values: Mapping[str, object]) -> dict[str, str]:
    return {name: text for name, value in values.items() if (text := _text(value))}


def _text(value: object) -> str:
    return "" if value is None else str(value)[:200]
