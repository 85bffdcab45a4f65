"""Files out of the database: byte for byte what was loaded, and typed cells in workbooks."""

import csv
import io
import zipfile
from pathlib import Path

import pytest
from django.core.management import call_command
from openpyxl import load_workbook
from openpyxl.utils.escape import unescape

from catalog import columns, exports, sheets, xlsx
from catalog.changes import Change, apply_changes
from catalog.importers.printed import ListUnreadable
from catalog.models import Accelerator, Offer, Provider
from catalog.tables import TABLES

FILES = (*TABLES, "field_sources")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "made" / "here"


@pytest.mark.django_db
@pytest.mark.usefixtures("shipped")
class TestShipped:
    def test_what_is_loaded_comes_out_byte_for_byte(self, folder):
        call_command("export_catalog", to=folder, verbosity=0)
        for name in FILES:
            assert (folder / f"{name}.csv").read_bytes() == (columns.DATA / f"{name}.csv").read_bytes(), name

    @pytest.mark.parametrize("name", ["accelerators", "cost_lines", "fabrics", "regions"])
    def test_a_workbook_reads_back_to_the_same_rows(self, name):
        file = io.BytesIO()
        exports.write_xlsx(name, TABLES[name].model.objects.all(), file)
        assert list(columns.LAYOUTS[name].parsed(sheets.rows_of(file))) == columns.shipped(name)

    def test_prices_in_a_workbook_read_back_to_the_same_prices(self):
        file = io.BytesIO()
        exports.write_xlsx("offers", Offer.objects.filter(server__provider__key="gcp"), file)
        read = {row.key: row.values for row in columns.LAYOUTS["offers"].parsed(sheets.rows_of(file))}
        wanted = columns.shipped("offers")
        assert read == {row.key: row.values for row in wanted if str(row.values["server"]).startswith("gcp/")}

    def test_some_rows_alone_in_one_query(self, django_assert_num_queries):
        file = io.StringIO()
        with django_assert_num_queries(1):
            exports.write_csv("offers", Offer.objects.filter(server__provider__key="aws"), file)
        rows = list(csv.DictReader(io.StringIO(file.getvalue())))
        assert {row["provider"] for row in rows} == {"aws"}
        assert len(rows) == Offer.objects.filter(server__provider__key="aws").count()

    def test_numbers_and_dates_of_a_workbook_are_such(self):
        file = io.BytesIO()
        exports.write_xlsx("offers", Offer.objects.filter(server__sku="p4d.24xlarge"), file)
        header, row, *_ = load_workbook(file).worksheets[0].iter_rows()
        cells = dict(zip((cell.value for cell in header), row, strict=True))
        assert cells["price_per_server_hour"].data_type == "n"
        assert cells["observed_on"].is_date
        assert header[0].font.bold

    def test_both_memories_of_an_accelerator_stay_apart_when_one_is_corrected(self):
        change = Change(table="accelerators", key="h100-pcie-80", values={"memory_marketing_bytes": 81 * 10**9})
        apply_changes([change], origin="admin", summary="memory")
        file = io.StringIO()
        exports.write_csv("accelerators", Accelerator.objects.filter(key="h100-pcie-80"), file)
        (row,) = csv.DictReader(io.StringIO(file.getvalue()))
        assert (row["memory_marketing_gb"], row["memory_reported_mib"]) == ("81", "81559")

    def test_an_override_is_exported_with_what_another_source_prints(self, folder):
        change = Change(table="accelerators", key="v100-sxm2-16", values={"tdp_w": 290.0})
        apply_changes([change], origin="admin", summary="power", reason="read on the machine")
        call_command("export_catalog", to=folder, verbosity=0)
        match = {"table": "accelerators", "key": "v100-sxm2-16", "field": "tdp_w"}
        rows = [row for row in columns.cells(folder / "field_sources.csv") if match.items() <= row.items()]
        assert [(row["reason"], row["other_value"], row["other_unit"]) for row in rows] == [
            ("read on the machine", "250", "W")
        ]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://x","y")', "#N/A", "a\r\nb\x07"])
def test_text_of_a_workbook_is_never_a_formula(text):
    file = io.BytesIO()
    xlsx.write(file, "t", ["a"], [[xlsx.text(text)]])
    cell = load_workbook(file).worksheets[0]["A2"]
    assert cell.data_type == "s"
    assert unescape(cell.value) == text


@pytest.mark.django_db
def test_a_csv_cell_keeps_its_bytes():
    Provider.objects.create(key="x", name="=1+1", source="s", source_licence="MIT", notes="@x")
    file = io.StringIO()
    exports.write_csv("providers", Provider.objects.filter(key="x"), file)
    assert file.getvalue().splitlines()[1] == "x,=1+1,cloud,,s,MIT,@x"


def workbook(sheet: str) -> io.BytesIO:
    file = io.BytesIO()
    xlsx.write(file, "t", ["a"], [])
    made = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, sheet if "sheet1" in name else old.read(name))
    return made


MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("sheet", "code"),
    [
        (f"<worksheet {MAIN}><sheetData>{'<row/>' * 2_000_000}</sheetData></worksheet>", "decompression-ratio"),
        (f'{ENTITIES}<worksheet {MAIN}><sheetData><row><c t="str"><v>&b;</v></c></row></sheetData></worksheet>',
         "workbook-broken"),
        (f'<worksheet {MAIN}><sheetData><row r="1"><c><v>1</v></c></row><row r="999999999"><c/></row></sheetData>'
         "</worksheet>", "too-many-rows"),
        (f'<worksheet {MAIN}><sheetData><row r="1"><c r="XFD1"><v>1</v></c></row></sheetData></worksheet>', "empty"),
        (f"<worksheet {MAIN}><sheetData><row>{'<c><v>1</v></c>' * 101}</row></sheetData></worksheet>",
         "too-many-columns"),
        (f'<worksheet {MAIN}><sheetData><row><c t="str"><v>{"x" * 32768}</v></c></row></sheetData></worksheet>',
         "cell-too-long"),
        (f"<worksheet {MAIN}><sheetData><row><c>", "workbook-broken"),
    ],
)  # fmt: skip
def test_a_hostile_workbook_is_refused_in_one_sentence(sheet, code):
    with pytest.raises(ListUnreadable) as refused:
        list(sheets.rows_of(workbook(sheet)))
    assert refused.value.code == code
