"""Databases of strangers: what one of them holds is bounded by bytes, not by rows alone."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiling.formats.limits import MIB, Limits, Watch
from profiling.formats.source import Source
from profiling.formats.sqlite_file import opened
from profiling.notes import Refusal, RefusalCode


def saved(tmp_path: Path, rows: Iterator[tuple[object, ...]]) -> Path:
    path = tmp_path / "file.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE work (number INTEGER, content)")
        connection.executemany("INSERT INTO work VALUES (?, ?)", rows)
    connection.close()
    return path


def batches(path: Path, *columns: str, limits: Limits | None = None) -> list[list[tuple[object, ...]]]:
    with opened(Source(path, path.name, Watch(limits=limits or Limits()))) as database:
        return list(database.batches("work", columns))


def test_rows_come_in_batches_and_absent_columns_as_nothing(tmp_path: Path) -> None:
    path = saved(tmp_path, ((number, None) for number in range(50_000)))
    found = batches(path, "number", "colour")
    assert [row for batch in found for row in batch] == [(number, None) for number in range(50_000)]
    assert len(found) == 3


@pytest.mark.parametrize("content", ["x" * 40_000, b"x" * 40_000])
def test_a_batch_of_large_cells_is_short(tmp_path: Path, content: str | bytes) -> None:
    found = batches(saved(tmp_path, ((number, content) for number in range(1500))), "number", "content")
    assert sum(map(len, found)) == 1500
    assert max(map(len, found)) * 40_000 < 40 * MIB


def test_a_cell_over_the_limit_is_refused_where_it_is_asked_for(tmp_path: Path) -> None:
    path = saved(tmp_path, iter([(1, "x" * 5000)]))
    limits = Limits(line_characters=4000)
    with pytest.raises(Refusal) as caught:
        batches(path, "content", limits=limits)
    assert caught.value.code is RefusalCode.DATABASE_DAMAGED
