"""Our own tables: what each row would change, and writing and taking back all of it."""

import io
from decimal import Decimal
from pathlib import Path

import pytest

from catalog import exports, provenance, xlsx
from catalog.changes import Change, apply_changes
from catalog.importers import jobs
from catalog.loading import load_catalog
from catalog.models import ImportJob, Offer, Server
from catalog.models.revision import RevisionOrigin
from tests.catalog.lists import start, work

pytestmark = pytest.mark.django_db
GIVEN = {"list_format": "own", "provider": None, "source": "our own survey", "file_name": "table.csv"}


@pytest.fixture(autouse=True)
def catalog(small: Path) -> None:
    load_catalog(small)


def table(name: str, text: str) -> ImportJob:
    return work(start(text.strip().encode(), table=name, **GIVEN))


def approve(job: ImportJob) -> ImportJob:
    jobs.approve(job, None)
    return work(job)


def plain(model: type) -> list[tuple]:
    names = [f.attname for f in model._meta.concrete_fields if f.name != "version"]
    return sorted(model.objects.values_list(*names), key=str)


SERVERS = """
provider,sku,accelerator,gpu_count,cpu_cores
aws,g5.12xlarge,a10g,4,44
aws,p4d.24xlarge,a100-sxm4-40,8,96
aws,g5.99xlarge,a10g,2,8
"""


def test_changes_are_shown_column_by_column_then_written_then_taken_back() -> None:
    before = plain(Server)
    job = table("servers", SERVERS)
    assert job.report["counts"] == {"created": 1, "changed": 1, "unchanged": 1, "refused": 0}
    (changed,) = job.report["samples"]["changed"]
    assert (changed["line"], changed["key"], changed["columns"]) == (2, "aws/g5.12xlarge", {"cpu_cores": ["48", "44"]})
    assert plain(Server) == before

    approve(job)

    assert job.status == "applied"
    assert Server.objects.get(sku="g5.99xlarge").source == "our own survey"
    server = Server.objects.get(sku="g5.12xlarge")
    assert (server.cpu_cores, server.edited) == (44, True)
    assert server.source != provenance.origin(server, "cpu_cores").source == "our own survey"
    assert table("servers", SERVERS).status == "unchanged"
    assert jobs.roll_back(job, None) == 0
    assert plain(Server) == before


def test_a_row_that_cannot_be_right_refuses_the_table_with_its_sentences() -> None:
    job = table(
        "servers",
        """
provider,sku,accelerator,gpu_count
aws,g5.12xlarge,a10g,four
aws,new,z9000,4
aws,newer,a10g,4
""",
    )

    assert (job.status, job.error_code) == ("failed", "rows-refused")
    first, second = job.report["samples"]["refused"]
    assert first["line"] == 2
    assert "gpu_count" in first["problems"][0]
    assert "z9000" in second["problems"][0]
    assert not Server.objects.filter(sku="newer").exists()


def test_offers_find_their_rows_by_what_they_are() -> None:
    text = """
provider,sku,region,tenancy,pricing_model,currency,price_per_server_hour,price_basis,observed_on,observed_precision,status
aws,g5.12xlarge,mars-1,vm,on_demand,USD,5.5,per_server,2026-11-01,day,live
"""
    before = plain(Offer)
    job = approve(table("offers", text))
    assert job.status == "applied"
    again = table("offers", text.replace("5.5", "5.6"))

    assert again.report["samples"]["changed"][0]["columns"]["price_per_hour"] == ["5.500000", "5.6"]
    approve(again)
    assert Offer.objects.get(region="mars-1").price_per_gpu_hour == Decimal("1.4")
    jobs.roll_back(again, None)
    assert str(Offer.objects.get(region="mars-1").price_per_hour) == "5.500000"
    jobs.roll_back(job, None)
    assert plain(Offer) == before


def test_tables_are_taken_back_one_after_the_other_but_not_over_what_a_person_typed() -> None:
    before = plain(Server)
    first = approve(table("servers", SERVERS))
    second = approve(table("servers", SERVERS.replace("44", "40")))
    jobs.roll_back(second, None)
    assert Server.objects.get(sku="g5.12xlarge").cpu_cores == 44
    assert (jobs.roll_back(first, None), plain(Server)) == (0, before)

    again = approve(table("servers", SERVERS))
    typed = Change(table="servers", key="aws/g5.12xlarge", values={"cpu_cores": 46})
    apply_changes([typed], origin=RevisionOrigin.ADMIN, summary="typed")

    assert jobs.roll_back(again, None) == 1
    assert Server.objects.get(sku="g5.12xlarge").cpu_cores == 46


def test_an_xlsx_file_is_read_as_well() -> None:
    file = io.BytesIO()
    header, *rows = [line.split(",") for line in SERVERS.strip().splitlines()]
    xlsx.write(file, "servers", header, [[xlsx.text(cell) for cell in row] for row in rows])

    job = work(start(file.getvalue(), table="servers", **GIVEN))

    assert job.report["counts"]["created"] == 1


def test_a_table_as_it_was_exported_changes_nothing() -> None:
    text = "".join(exports.csv_chunks("servers", Server.objects.all())).encode()

    assert work(start(text, table="servers", **GIVEN)).status == "unchanged"
