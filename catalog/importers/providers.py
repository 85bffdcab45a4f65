"""Whose prices a list prints: one firm goes by several names, and brokers print other firms' machines.

Lists' names and ours stand in ``catalog/data/provider_names.csv``.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"
KEY_LENGTH = 40
_NOT_IN_KEYS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    key: str
    tenancy: str


def canonical(printed: str) -> str:
    """Our key of a provider that a list names; a name nobody knows becomes a key of its own, "" stays ""."""
    slug = _slug(printed)
    known = _known().get(slug)
    return known.key if known else slug


def tenancy_of(provider: str) -> str:
    """How machines of a provider are shared, "" where it is not known."""
    return _tenancies().get(provider, "")


def _slug(printed: str) -> str:
    return _NOT_IN_KEYS.sub("-", printed.strip().lower()).strip("-")[:KEY_LENGTH].strip("-")


@cache
def _known() -> dict[str, Known]:
    with (DATA / "provider_names.csv").open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        return {_slug(row["printed"]): Known(key=row["provider"], tenancy=row["tenancy"]) for row in rows}


@cache
def _tenancies() -> dict[str, str]:
    return {known.key: known.tenancy for known in _known().values()}
