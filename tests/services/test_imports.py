"""A worker that is killed while it writes an import: the catalog is whole, and the next worker ends the work."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import environ
import psycopg
import pytest

from tests.catalog.lists import row, sky
from tests.services.stack import Stack, running, until

pytestmark = pytest.mark.services

ROWS = 4000
START = """
import time
from datetime import date
from catalog.importers import jobs
from catalog.models import ImportJob, Provider
job = jobs.start_import(
    file=open({path!r}, "rb"), file_name="vms.csv", list_format="skypilot", provider=Provider.objects.get(key="aws"),
    source="killed", source_licence="facts-only", observed_on=date(2026, 11, 1),
)
while job.status in ("queued", "checking"):
    time.sleep(0.1)
    job.refresh_from_db()
jobs.approve(job, None)
"""


class Database:
    """The stack's database, seen from outside."""

    def __init__(self, stack: Stack) -> None:
        url = stack.environment.get("DATABASE_URL", "")
        self._postgres = environ.Env.db_url_config(url) if url else None
        self._file = Path(stack.environment["ADVISOR_VAR_DIR"]) / "advisor.sqlite3"

    def one(self, query: str) -> Any:
        if found := self._postgres:
            with psycopg.connect(host=found["HOST"], user=found["USER"], dbname=found["NAME"]) as postgres:
                return postgres.execute(query).fetchone()[0]
        with sqlite3.connect(self._file) as sqlite:
            return sqlite.execute(query).fetchone()[0]

    def offers_are_being_written(self) -> bool:
        """Whether a transaction that is not committed yet inserts offers."""
        if self._postgres:
            inserting = "query LIKE 'INSERT INTO \"catalog_offer\"%' AND state <> 'idle' AND pid <> pg_backend_pid()"
            return bool(self.one(f"SELECT count(*) FROM pg_stat_activity WHERE {inserting}"))
        probe = sqlite3.connect(self._file, timeout=0.2, isolation_level=None)
        try:
            probe.execute("BEGIN IMMEDIATE")
            probe.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return True  # nobody else writes for this long
        finally:
            probe.close()
        return False


@pytest.fixture(params=["sqlite", "postgres"])
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    with running(request.param) as started:
        yield started


def test_a_worker_killed_while_writing_leaves_a_whole_catalog(stack: Stack, tmp_path: Path) -> None:
    database, path = Database(stack), tmp_path / "vms.csv"
    path.write_bytes(sky(*(row(spot="2", region=f"region {number}") for number in range(ROWS))))
    revision = database.one("SELECT max(number) FROM catalog_catalogrevision")

    stack.manage("shell", "--verbosity", "0", "--command", START.format(path=str(path)))
    until(database.offers_are_being_written, "the import was not seen writing")
    stack.kill("worker")

    assert database.one("SELECT count(*) FROM catalog_offer WHERE source = 'killed'") == 0
    assert database.one("SELECT max(number) FROM catalog_catalogrevision") == revision
    assert database.one("SELECT status FROM catalog_importjob") == "applying"
    stack.start_worker()
    until(lambda: database.one("SELECT status FROM catalog_importjob") == "applied", "the import was not taken up")
    assert database.one("SELECT count(*) FROM catalog_offer WHERE source = 'killed' AND status = 'live'") == 2 * ROWS
    assert database.one("SELECT attempts FROM catalog_importjob") == 2
    assert database.one("SELECT max(number) FROM catalog_catalogrevision") == revision + 1
