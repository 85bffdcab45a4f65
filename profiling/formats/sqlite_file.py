"""SQLite files of strangers: opened read-only, only tables and columns that are there are asked for, time bounded."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any
from urllib.parse import quote

from profiling.formats.limits import MIB
from profiling.formats.source import Source
from profiling.notes import Refusal, RefusalCode

MAGIC = b"SQLite format 3\x00"
_BATCH = 20_000
_AT_ONCE = 100
_MOST_TEXT = 32 * MIB
"""A batch ends behind so many characters, looked at after every ``_AT_ONCE`` rows of ``line_characters`` at most."""
_STEPS = 100_000
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
_FUNCTIONS = {"count", "min", "max", "sum", "length", "substr", "coalesce"}


@dataclass(slots=True)
class Database:
    """An open file. Names of tables and columns come from readers, never from the file."""

    connection: sqlite3.Connection
    source: Source

    def tables(self, *, views: bool = True) -> dict[str, str]:
        """Names in lower case to names as spelled. A view of a stranger may compute anything, within the time limit."""
        rows = self.connection.execute("SELECT name, type FROM sqlite_master LIMIT 10000")
        kinds = ("table", "view") if views else ("table",)
        return {str(name).lower(): str(name) for name, kind in rows if kind in kinds}

    def columns(self, table: str) -> dict[str, str]:
        """Names in lower case to names as spelled, of a table that is there."""
        cursor = self.connection.execute(f"SELECT * FROM {_quoted(table)} LIMIT 0")  # noqa: S608
        return {entry[0].lower(): entry[0] for entry in cursor.description}

    def has_rows(self, table: str) -> bool:
        """Whether a table that is there has any row."""
        return self.connection.execute(f"SELECT 1 FROM {_quoted(table)} LIMIT 1").fetchone() is not None  # noqa: S608

    def batches(self, table: str, columns: Sequence[str], *, where: str = "", order: str = "") -> Iterator[list[Any]]:
        """Rows of the chosen columns in lists of at most some ten thousand; absent columns come as None.

        ``where`` and ``order`` are clauses of the reader's own making.
        """
        there = self.columns(table)
        chosen = ", ".join(_quoted(there[name.lower()]) if name.lower() in there else "NULL" for name in columns)
        query = f"SELECT {chosen} FROM {_quoted(table)} {where} {order}"  # noqa: S608
        cursor = self.connection.execute(query)
        batch: list[Any] = []
        text = 0
        while rows := cursor.fetchmany(_AT_ONCE):
            batch += rows
            text += _characters(rows)
            if len(batch) >= _BATCH or text > _MOST_TEXT:
                yield self._on_time(batch)
                batch, text = [], 0
        if batch:
            yield self._on_time(batch)

    def _on_time(self, batch: list[Any]) -> list[Any]:
        self.source.watch.at(0, self.source.path.stat().st_size)
        return batch

    def rows(self, table: str, columns: Sequence[str], *, where: str = "", order: str = "") -> Iterator[Any]:
        """The same, row by row."""
        for batch in self.batches(table, columns, where=where, order=order):
            yield from batch


def _characters(rows: list[Any]) -> int:
    """Length of all text and binary data in the rows."""
    if not {str, bytes} & set(map(type, chain.from_iterable(rows))):
        return 0
    return sum(len(cell) for cell in chain.from_iterable(rows) if isinstance(cell, str | bytes))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def opened(source: Source) -> Iterator[Database]:
    """The file as a database. Raises Refusal where it cannot be read; what SQLite says is not shown."""
    with source.on_disk() as path:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True, isolation_level=None)
        try:
            _prepare(connection, source)
            yield Database(connection, source)
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            if "interrupted" in str(error):
                raise Refusal(
                    RefusalCode.TOO_SLOW, {"limit": source.limits.seconds or 0, "done": 0, "total": 0}
                ) from None
            raise Refusal(RefusalCode.DATABASE_DAMAGED) from None
        finally:
            connection.close()


def _prepare(connection: sqlite3.Connection, source: Source) -> None:
    """Nothing of the file's own making runs, and nothing runs for longer than it may."""
    connection.text_factory = lambda data: data.decode("utf-8", errors="replace")
    for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "query_only=ON", "mmap_size=0", "cache_size=-8192"):
        connection.execute(f"PRAGMA {pragma}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, source.limits.line_characters)
    connection.set_authorizer(_authorise)
    if source.watch.deadline is not None:
        connection.set_progress_handler(lambda: int(source.watch.expired()), _STEPS)


def _authorise(action: int, first: str | None, second: str | None, *_: Any) -> int:
    if action in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and str(second).lower() in _FUNCTIONS):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY
