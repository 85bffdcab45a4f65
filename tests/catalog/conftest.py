"""A loaded catalog for reading tests, a tiny folder of files for loading tests."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.db import transaction
from django.test import Client

from catalog import columns
from catalog.groups import EDITOR, PUBLISHER
from catalog.loading import load_catalog
from catalog.tables import TABLES
from tests.catalog.import_support import of_group

SMALL_SERVERS = {
    ("hyperstack", "n3-H100x8"),
    ("hyperstack", "n3-H100x8-NVLink"),
    ("aws", "p4d.24xlarge"),
    ("aws", "g5.12xlarge"),
}
SMALL_ACCELERATORS = {"h100-pcie-80", "a100-sxm4-40", "a10g"}

Edit = Callable[[str, dict[str, str], dict[str, str]], None]


@pytest.fixture(scope="module")
def shipped(django_db_setup: None, django_db_blocker: object) -> Iterator[None]:
    """The shipped files, loaded once for a module and taken back after it."""
    with django_db_blocker.unblock(), transaction.atomic():
        load_catalog()
        yield
        transaction.set_rollback(True)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder of catalog files with four servers of two providers."""
    for name in (*TABLES, "field_sources"):
        wanted = [row for row in columns.cells(columns.DATA / f"{name}.csv") if _is_small(name, row)]
        write(tmp_path / f"{name}.csv", wanted)
    return tmp_path


@pytest.fixture
def edit(small: Path) -> Edit:
    """Changes cells of the rows of a file that match."""

    def change(name: str, match: dict[str, str], cells: dict[str, str]) -> None:
        table = list(columns.cells(small / f"{name}.csv"))
        matching = [row for row in table if match.items() <= row.items()]
        assert matching
        for row in matching:
            row.update(cells)
        write(small / f"{name}.csv", table)

    return change


def write(path: Path, table: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


def _is_small(name: str, row: dict[str, str]) -> bool:
    if name == "field_sources":
        provider, _slash, sku = row["key"].partition("/")
        return _is_small(row["table"], {"key": row["key"], "provider": provider, "sku": sku})
    if name == "accelerators":
        return row["key"] in SMALL_ACCELERATORS
    if row.get("sku"):
        return (row["provider"], row["sku"]) in SMALL_SERVERS
    return row.get("provider", row.get("key")) in {provider for provider, _sku in SMALL_SERVERS}


@pytest.fixture
def uploads(settings, tmp_path: Path) -> None:
    """Uploaded files go to a folder of the test."""
    settings.MEDIA_ROOT = tmp_path / "uploads"


@pytest.fixture
def publisher() -> Client:
    return of_group(PUBLISHER)


@pytest.fixture
def editor() -> Client:
    return of_group(EDITOR)
