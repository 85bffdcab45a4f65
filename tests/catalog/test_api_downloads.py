"""Lists as files: the whole filtered list, with the columns of the catalog's own files."""

import csv
import io

import openpyxl
import pytest

from catalog.columns import LAYOUTS
from catalog.models import Offer
from tests.catalog.api_support import CACHE, caller, few_rows

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.catalog.urls"), pytest.mark.usefixtures("rows")]

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
LISTS = {
    "accelerators": "accelerators",
    "providers": "providers",
    "regions": "regions",
    "servers": "servers",
    "fabrics": "fabrics",
    "cost-lines": "cost_lines",
    "offers": "offers",
}


@pytest.fixture
def rows(settings):
    settings.CACHES = CACHE
    few_rows()


@pytest.fixture
def reader():
    return caller()


def table(answer):
    assert answer.status_code == 200
    return list(csv.DictReader(io.StringIO(answer.getvalue().decode())))


def test_every_table_comes_as_csv_and_xlsx(reader, settings):
    for name, of in LISTS.items():
        text = reader.get(f"/api/v1/{name}/", {"format": "csv"}).getvalue().decode()
        assert text.splitlines()[0].split(",") == list(LAYOUTS[of].headers)
        book = openpyxl.load_workbook(io.BytesIO(caller().get(f"/api/v1/{name}/", {"format": "xlsx"}).getvalue()))
        assert [cell.value for cell in book.active[1]] == list(LAYOUTS[of].headers)


def test_the_file_names_table_revision_and_day(reader):
    answer = reader.get("/api/v1/offers/", {"format": "csv"})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"].startswith('attachment; filename="offers-r1-20')
    assert answer["Content-Disposition"].endswith('.csv"')


def test_a_file_holds_the_whole_filtered_list_and_no_more(reader):
    offer = Offer.objects.select_related("server").get()
    for i in range(60):
        offer.pk, offer.key, offer.region = None, "", f"us-{i}"
        offer.save()
    assert len(table(reader.get("/api/v1/offers/", {"format": "csv"}))) == 61
    assert len(table(reader.get("/api/v1/offers/", {"format": "csv", "region": "us-7"}))) == 1


def test_prices_that_are_held_back_are_in_no_file(reader):
    Offer.objects.update(status="quarantined")
    assert table(reader.get("/api/v1/offers/", {"format": "csv"})) == []


def test_the_accept_header_asks_too(reader):
    answer = reader.get("/api/v1/offers/", headers={"Accept": XLSX})
    assert answer["Content-Type"] == XLSX
    assert openpyxl.load_workbook(io.BytesIO(answer.getvalue())).active.max_row == 2


def test_revisions_come_as_a_file_too(reader):
    (row,) = table(reader.get("/api/v1/revisions/", {"format": "csv"}))
    assert (row["number"], row["origin"], row["summary"]) == ("1", "files", "files")


def test_what_is_wrong_is_told_in_json(reader):
    answer = reader.get("/api/v1/offers/", {"format": "csv", "colour": "red"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert answer.json()["errors"][0]["pointer"] == "#/colour"
    assert reader.get("/api/v1/offers/", {"format": "pdf"}).status_code == 400
    assert reader.get("/api/v1/providers/acme/", {"format": "csv"}).status_code == 400


def test_files_have_a_limit_of_their_own(reader):
    codes = [reader.get("/api/v1/regions/", {"format": "csv"}).status_code for _ in range(11)]
    assert codes == [200] * 10 + [429]
    assert reader.get("/api/v1/regions/").status_code == 200
