"""Tables in text: found by content, between anything else."""

import csv
import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.formats.limits import Limits
from profiling.formats.tables import cut, header_in, ruled_columns, tables
from profiling.notes import Refusal, RefusalCode

Found = list[tuple[tuple[str, ...], list[list[str]]]]
_cells = st.text(st.characters(exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=8)


def _is_header(titles: Sequence[str]) -> bool:
    return titles[0] == "Name" and len(titles) > 1


def _found(text: str, **limits: int) -> Found:
    lines = text.split("\n")
    return [(table.titles, list(table.rows)) for table in tables(lines, _is_header, Limits(**limits))]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_tables_between_other_lines(delimiter: str) -> None:
    text = "hello, world\n\ufeffName,Time\na,1\n\nProcessing [x]\nb,2,3\nc\nName,Size,Unit\nd,4,MB\n"
    first, second = _found(text.replace(",", delimiter))
    assert first == (("Name", "Time"), [["a", "1"], ["b", "2"]])
    assert second == (("Name", "Size", "Unit"), [["d", "4", "MB"]])


def test_cells_are_quoted_padded_and_filled() -> None:
    text = 'Name, A, B, C\n"x, ""y""", 1 ,2\nz,1,2,3,4\n'
    assert _found(text) == [(("Name", "A", "B", "C"), [['x, "y"', "1", "2", ""], ["z", "1", "2", "3"]])]


def test_a_quoted_cell_may_go_on_in_the_next_lines_and_a_stray_quote_swallows_nothing() -> None:
    assert _found('Name,A\n"x\ny",1\nz,2')[0][1] == [["x y", "1"], ["z", "2"]]
    stray = 'Name,A,B\n"x,1\n' + "".join(f"r{n},1,2\n" for n in range(200))
    assert _found(stray)[0][1][-200:] == [[f"r{n}", "1", "2"] for n in range(200)]


def test_aligned_columns_stand_over_a_rule() -> None:
    text = """
 Name       Total (ns)  Kernel
 ---------  ----------  ------
 a b               1,0  x  y z
 no row for this long line of text
 c                   2

 d                   3  after
"""
    assert _found(text) == [(("Name", "Total (ns)", "Kernel"), [["a b", "1,0", "x  y z"], ["c", "2", ""]])]


def test_tables_not_read_are_passed_over() -> None:
    titles = [table.titles for table in tables(["Name,A", "1,2", "3,4", "Name,B", "5,6"], _is_header, Limits())]
    assert titles == [("Name", "A"), ("Name", "B")]


def test_rows_are_bounded() -> None:
    text = "Name,A\n" + "a,1\n" * 5 + "Name,B\n" + "b,2\n" * 5
    assert sum(len(rows) for _, rows in _found(text, rows=10)) == 10
    with pytest.raises(Refusal) as caught:
        _found(text, rows=9)
    assert caught.value.code == RefusalCode.TOO_MANY_ROWS


def test_columns_are_found_in_any_case() -> None:
    (table,) = tables(["Name,Start (ns)", "a,1"], _is_header, Limits())
    assert (table.place("start (NS)"), table.place("End", "name"), table.place("End"), table.column("NAME")) == (
        1,
        0,
        None,
        0,
    )


def test_headers_in_lines() -> None:
    assert header_in(["x", "Name;A"], _is_header)
    assert not header_in(["x", "Nam;A", "Name"], _is_header)


@pytest.mark.parametrize("line", ["", "---", "-- --", "--- text", "- - -", "ab --- ---"])
def test_no_rule(line: str) -> None:
    assert ruled_columns(line) is None


def test_text_between_columns_is_no_row() -> None:
    columns = ruled_columns(" ---  ----")
    assert columns
    assert cut(" abc  d", columns) == ["abc", "d"]
    assert cut(" abcde d", columns) == []


@given(st.lists(st.lists(_cells, min_size=3, max_size=3), max_size=10))
def test_any_table_that_csv_writes_is_read_back(rows: list[list[str]]) -> None:
    rows = [row for row in rows if row[0] != "Name"]
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["Name", "A", "B"], *rows])
    assert _found(text.getvalue()) == [(("Name", "A", "B"), rows)]


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for titles, rows in _found("Name,A\n" + text):
        assert all(len(row) == len(titles) for row in rows)
