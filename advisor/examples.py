"""Well-known public models, to fill in the description form with one click."""

import csv
from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "data" / "example_jobs.csv"


@cache
def example_jobs() -> tuple[dict[str, str], ...]:
    """One row per example: the form's fields by name, and ``key`` and ``source``."""
    with _FILE.open(newline="", encoding="utf-8") as lines:
        return tuple(csv.DictReader(lines))


def example_values(key: str) -> dict[str, str | bool]:
    """First values of the description form; empty for an unknown key."""
    row = next((row for row in example_jobs() if row["key"] == key), None)
    if row is None:
        return {}
    values: dict[str, str | bool] = {name: text for name, text in row.items() if name not in ("key", "source", "mode")}
    values["kind"] = row["mode"]
    return values | {"gated_mlp": row["gated_mlp"] == "yes"}
