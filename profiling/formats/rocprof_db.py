"""The reader of rocprof's (v1) SQLite file: operations, copies and HIP calls as they stand in its own Chrome trace."""

from collections.abc import Mapping
from typing import Any

from profiling.formats.capture import Capture, Format
from profiling.formats.numbers import integers
from profiling.formats.rocm import RocmCollector, Work, copy_kind
from profiling.formats.sqlite_file import Database
from profiling.timeline import UNKNOWN, WorkKind

_COLUMNS = ("BeginNs", "EndNs", "Index", "dev-id", "Name", "queue-id", "stream-id")


def is_of(tables: Mapping[str, str]) -> bool:
    return {"ops", "copy"} <= tables.keys()


def read_database(database: Database) -> Capture:
    """One Timeline of kernels and copies; times in ns. Raises Refusal."""
    seen = RocmCollector(database.source.limits)
    tables = database.tables(views=False)
    if "hip" in tables:
        for batch in database.batches(tables["hip"], ("BeginNs", "EndNs", "Index", "Name")):
            start, end, index = (integers([row[at] for row in batch], UNKNOWN) for at in range(3))
            seen.call([str(row[3]) for row in batch], start, end, index)
    for table, kind in (("ops", WorkKind.KERNEL), ("copy", WorkKind.COPY)):
        if table in tables:
            for batch in database.batches(tables[table], _COLUMNS):
                _add(batch, kind, seen)
    line, notes = seen.timeline(database.source.name, database.source.notes)
    return Capture(format=Format.ROCPROF, timelines=(line,), notes=notes)


def _add(batch: list[Any], kind: WorkKind, seen: RocmCollector) -> None:
    start, end, index = (integers([row[at] for row in batch], UNKNOWN) for at in range(3))
    names = [str(row[4]) for row in batch]
    seen.add(
        Work(
            start=start,
            end=end,
            names=names,
            kinds=[kind if kind is WorkKind.KERNEL else copy_kind(name) or kind for name in names],
            devices=[row[3] for row in batch],
            streams=[f"queue {row[5]}" if row[6] is None else row[6] for row in batch],
            correlation=index,
        )
    )
