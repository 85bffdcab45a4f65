"""Table files: what is read is what is written, and a bad cell is told by line and column."""

import io
import json
from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from catalog import columns, layouts, sheets, tables
from catalog.cells import Money, Real, Whole
from catalog.importers.printed import ListUnreadable
from catalog.layouts import CellProblem, FileRow

PROVIDER = "key,name,kind,country,source,source_licence,notes\n"
OFFER = {
    "provider": "aws",
    "sku": "p4d.24xlarge",
    "pricing_model": "on_demand",
    "currency": "USD",
    "price_per_server_hour": "21.9576",
    "observed_on": "2026-07-20",
    "source": "a list",
    "source_licence": "MIT",
}


def parsed(table: str, text: str, **given_cells: str) -> list[FileRow | CellProblem]:
    rows = sheets.rows_of(io.BytesIO(text.encode()))
    return list(columns.LAYOUTS[table].parsed(rows, given_cells))


def offer(**changes: str) -> list[FileRow | CellProblem]:
    cells = OFFER | changes
    return list(columns.LAYOUTS["offers"].parsed([(2, cells)]))


def test_every_column_that_can_be_set_is_in_the_file_of_its_table():
    for name, table in tables.TABLES.items():
        filled = {name for column in columns.LAYOUTS[name].columns for name in column.fills}
        assert filled == set(table.columns)


@pytest.mark.parametrize("unit", [columns.ONE, columns.GIGABIT, columns.GIGA, columns.MEBI])
@given(number=st.integers(min_value=1, max_value=2**53), places=st.integers(min_value=0, max_value=6))
def test_numbers_are_written_as_the_shortest_text_that_reads_back(unit, number, places):
    for kind, value in ((Whole(unit), number), (Real(unit), float(number) / 10**places)):
        text = kind.write(value)
        assert "e" not in text.lower()
        assert not ("." in text and text.endswith("0"))
        assert kind.read(text) == value


@given(text=st.from_regex(r"[1-9][0-9]{0,6}(\.[0-9]{0,3}[1-9])?", fullmatch=True))
def test_what_people_type_is_written_as_they_typed_it(text):
    for unit in (columns.ONE, columns.KILO, columns.MEGA, columns.GIGABIT, columns.GIGA, columns.TERA):
        assert Real(unit).write(Real(unit).read(text)) == text
    assert Money().write(Money().read(text)) == text


def test_units_become_base_units_of_one_direction():
    row = next(row for row in columns.shipped("fabrics") if row.key == "aws/p4d.24xlarge")
    assert row.values["bandwidth_bytes_per_s"] == 300e9
    assert row.values["network_bandwidth_bytes_per_s"] == 50e9
    card = next(row.values for row in columns.shipped("accelerators") if row.key == "h100-pcie-80")
    assert (card["memory_bytes"], card["memory_is_reported"]) == (81559 * 2**20, True)
    assert (card["memory_marketing_bytes"], card["dense_bf16_flops_per_s"]) == (80 * 10**9, 756e12)


def test_a_measured_curve_is_in_gigabytes_in_the_file_and_in_bytes_in_the_catalog():
    column = next(c for c in columns.LAYOUTS["fabrics"].columns if c.header == "measured_curve")
    cell = json.dumps(
        [{"collective": "all_reduce", "gpus": 8, "bytes": None, "bus_gb_per_s": 364.72, "source": "Zürich"}],
        ensure_ascii=False,
    )
    assert column.read(cell)[0]["bus_bytes_per_s"] == 364.72e9
    assert column.write(column.read(cell)) == cell
    assert column.write([]) == ""


def test_an_empty_cell_is_not_known_or_what_the_column_says():
    (row,) = offer()
    assert row.values["upfront_percent"] is None
    assert (row.values["tenancy"], row.values["status"], row.values["zone"]) == ("unknown", "live", "")
    assert row.values["last_seen_on"] == date(2026, 7, 20)
    assert "zone" not in row.named
    assert {"server", "price_per_hour"} <= row.named


def test_the_term_of_a_usual_reservation_need_not_be_said():
    (row,), (other,) = offer(pricing_model="reserved_3y"), offer(pricing_model="reserved_3y", term_months="36")
    assert row.values["term_months"] == 36
    assert row.key == other.key


def test_what_is_said_of_the_whole_file_counts_where_a_row_does_not_say_it():
    rows = parsed("providers", "key,name,source\na,A,\nb,B,own\n", source="a list", source_licence="MIT")
    assert [(row.values["source"], row.values["source_licence"]) for row in rows] == [("a list", "MIT"), ("own", "MIT")]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"price_per_server_hour": "12,50"}, "column price_per_server_hour: “12,50” has a comma"),
        ({"price_per_server_hour": "$12"}, "column price_per_server_hour: “$12” is not a number"),
        ({"price_per_server_hour": "1e9"}, "“1e9” is not a number"),
        ({"price_per_server_hour": "-1"}, "“-1” is not a number"),
        ({"price_per_server_hour": "0"}, "must be above zero"),
        ({"price_per_server_hour": ""}, "column price_per_server_hour: This cell may not be empty."),
        ({"price_per_server_hour": "0.12345678"}, "6 decimal places"),
        ({"price_per_server_hour": "9" * 200}, "is not a number"),
        ({"observed_on": "20.07.2026"}, "column observed_on: “20.07.2026” is no date"),
        ({"observed_on": "2026-02-30"}, "“2026-02-30” is no date"),
        ({"pricing_model": "serverless"}, "enter one of: on_demand, spot"),
        ({"currency": "usd"}, "column currency: Three capital letters"),
        ({"term_months": "1.5"}, "“1.5” is not a whole number"),
        ({"zone": "x" * 41}, "column zone: Ensure this value has at most 40 characters"),
        ({"source_url": "javascript:alert(1)"}, "column source_url: Enter a valid URL"),
    ],
)
def test_a_bad_cell_is_one_sentence_with_its_place(changes, says):
    (problem,) = offer(**changes)
    assert str(problem).startswith("Line 2, column ")
    assert says in str(problem)


@pytest.mark.parametrize(
    "cell", ["yes", "[", "{}", '{"a": 1}', "[1]", '[{"gpus": 8}]', "[NaN]", "[" * 5000, '[{"gpus": 0}]']
)
def test_a_curve_that_is_none_is_told(cell):
    row = {"provider": "a", "sku": "b", "measured_curve": cell, "source": "x", "source_licence": "y"}
    (problem,) = columns.LAYOUTS["fabrics"].parsed([(7, row)])
    assert str(problem).startswith("Line 7, column measured_curve: ")


def test_several_bad_cells_are_all_told_and_good_rows_are_read():
    text = PROVIDER + "a,A,shop,,s,MIT,\nb,B,cloud,Germany,s,MIT,\nc,C,cloud,,s,MIT,\nc,C,cloud,,s,MIT,\nd,D,cloud\n"
    *problems, last = [entry for entry in parsed("providers", text) if isinstance(entry, CellProblem)]
    assert [(p.line, p.column) for p in problems] == [(2, "kind"), (3, "country"), (5, "")]
    assert "names the same row as line 4" in str(problems[2])
    assert "more or fewer cells" in str(last)
    assert len([entry for entry in parsed("providers", text) if isinstance(entry, FileRow)]) == 1


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("key,name,source,source_license", "column source_license: The table has no such column. Did you mean"),
        ("key,name,source,source_licence,weight", "column weight: The table has no such column. Remove it"),
        ("key,name,source", "column source_licence: This column is missing. Add it."),
        ("key,name,source,source_licence,", "A column has no name"),
    ],
)
def test_a_header_that_does_not_fit_is_told_and_nothing_is_read(header, says):
    found = parsed("providers", f"{header}\n{'a,' * header.count(',')}a\n")
    assert all(isinstance(entry, CellProblem) and entry.line == 1 for entry in found)
    assert says in str(found[0])


def test_problems_are_collected_over_the_whole_file_up_to_a_limit(tmp_path):
    lines = "".join(f"p{n},P,shop,,s,MIT,\n" for n in range(70))
    (tmp_path / "providers.csv").write_text(PROVIDER + lines, encoding="utf-8")
    with pytest.raises(layouts.FileRefused) as refused:
        columns.shipped("providers", tmp_path)
    assert len(refused.value.problems) == 50
    assert str(refused.value).endswith("… and 20 more problems.")
    assert "providers.csv: Line 2, column kind: “shop”" in str(refused.value)


def book(*rows: list[object]) -> io.BytesIO:
    file, made = io.BytesIO(), Workbook()
    for row in rows:
        made.active.append(row)
    made.save(file)
    file.seek(0)
    return file


def test_cells_of_a_workbook_are_as_one_would_type_them():
    header = ["a", "b", "c", "d", "e", None]
    row = [14.06, 150.0, date(2026, 7, 20), True, None, None]
    later = [1e-7, 10**20, datetime(2026, 7, 20, 12, 30), False, "=text", None]  # noqa: DTZ001 - sheets have no zones
    blank = [None] * 6
    (first, second, long) = sheets.rows_of(book(header, row, blank, [*later[:4], "x", None], [*row[:5], "extra"]))
    assert first == (2, {"a": "14.06", "b": "150", "c": "2026-07-20", "d": "yes", "e": ""})
    assert second[0] == 4
    assert list(second[1].values())[:4] == ["0.0000001", "100000000000000000000", "2026-07-20 12:30:00", "no"]
    assert long == (5, None)


def test_money_from_a_workbook_is_the_number_that_is_shown():
    cells = [*OFFER.values()]
    cells[4] = 21.9576
    (row,) = columns.LAYOUTS["offers"].parsed(sheets.rows_of(book(list(OFFER), cells)))
    assert row.values["price_per_hour"] == Decimal("21.9576")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"PK\x03\x04 is no archive", "workbook-broken"),
        (b"", "empty"),
        (b"\xff\xfe", "encoding"),
    ],
)
def test_a_file_that_is_none_is_refused(content, code):
    with pytest.raises(ListUnreadable) as refused:
        list(sheets.rows_of(io.BytesIO(content)))
    assert refused.value.code == code
    assert str(refused.value).count("\n") == 0
