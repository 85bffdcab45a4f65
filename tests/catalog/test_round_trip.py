"""Any canonical file goes through the database and comes out byte for byte."""

import io
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from catalog import columns, exports
from catalog.cells import csv_line
from catalog.loading import load_catalog
from catalog.tables import TABLES

TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)
LONG = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=30)
NAME = st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True)
PRICES = st.decimals(min_value=Decimal("0.000001"), max_value=10**7, places=6)
PROVIDERS = st.fixed_dictionaries(
    {"name": NAME, "kind": st.sampled_from(["cloud", "marketplace"]), "country": st.sampled_from(["", "DE"])}
    | {"source": NAME, "source_licence": NAME, "notes": LONG}
)
OFFERS = st.fixed_dictionaries(
    {"region": TEXT, "price_per_server_hour": PRICES.map(lambda price: format(price.normalize(), "f")), "notes": LONG}
)


Files = tuple[Path, list[dict[str, str]], dict[str, str]]


@pytest.fixture
def files(small: Path) -> Files:
    """A folder to load, its providers, and one of its offers."""
    return small, list(columns.cells(small / "providers.csv")), next(columns.cells(small / "offers.csv"))


@pytest.mark.django_db
@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(providers=st.dictionaries(NAME, PROVIDERS, min_size=1, max_size=4), offers=st.lists(OFFERS, max_size=4))
def test_any_canonical_file_comes_out_as_it_went_in(files, providers, offers):
    folder, known, offer = files
    canonical(folder / "providers.csv", [*known, *({"key": key, **cells} for key, cells in providers.items())], "key")
    canonical(folder / "offers.csv", [offer | cells for cells in offers], "region")
    with transaction.atomic():
        load_catalog(folder)
        for name in ("providers", "offers"):
            file = io.StringIO()
            exports.write_csv(name, TABLES[name].model.objects.all(), file)
            assert file.getvalue().encode() == (folder / f"{name}.csv").read_bytes()
        transaction.set_rollback(True)


def canonical(path: Path, rows: list[dict[str, str]], key: str) -> None:
    once = {row[key]: row for row in reversed(rows)}
    headers = columns.LAYOUTS[path.stem].headers
    lines = [headers, *([once[value][header] for header in headers] for value in sorted(once))]
    path.write_bytes("".join(csv_line(line) for line in lines).encode())
