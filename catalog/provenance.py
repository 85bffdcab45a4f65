"""Where a single value of a row comes from, how sure it is, how old, and what an override replaced.

A row has one source and confidence for all its values. What differs from that stands in ``row.field_sources``.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date

from catalog.models.base import SourcedRow

MAX_REPLACED = 20
"""Older replaced values are dropped; the history has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A value that an override took the place of. ``until``: the day of the override."""

    value: object
    source: str
    confidence: str
    until: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOrigin:
    """``own``: said of this value itself, not of its whole row. ``observed_on``: ISO date, empty where not known."""

    source: str
    source_licence: str
    confidence: str
    observed_on: str = ""
    reason: str = ""
    replaced: tuple[Replaced, ...] = ()
    own: bool = False


def origin(row: SourcedRow, name: str) -> ValueOrigin:
    """Where the value of column ``name`` comes from."""
    stored = row.field_sources.get(name)
    if stored is None:
        return _of_row(row)
    replaced = tuple(Replaced(**entry) for entry in stored.get("replaced", ()))
    plain = {key: stored[key] for key in ("source", "source_licence", "confidence", "observed_on", "reason")}
    return ValueOrigin(**plain, replaced=replaced, own=True)


def overridden(
    row: SourcedRow,
    name: str,
    *,
    old: object,
    source: str,
    source_licence: str,
    confidence: str,
    reason: str,
    today: date,
) -> dict[str, object]:
    """What to store for ``name`` when a person gives it another value; the old one and its source are kept."""
    before = origin(row, name)
    kept = Replaced(value=old, source=before.source, confidence=before.confidence, until=today.isoformat())
    return {
        "source": source,
        "source_licence": source_licence,
        "confidence": confidence,
        "observed_on": today.isoformat(),
        "reason": reason,
        "replaced": [asdict(entry) for entry in (kept, *before.replaced)][:MAX_REPLACED],
    }


def stored(entry: Mapping[str, str], replaced: Replaced | None = None) -> dict[str, object]:
    """What to store for a value whose own source a shipped file names."""
    plain = {key: entry[key] for key in ("source", "source_licence", "confidence", "observed_on", "reason")}
    return plain | {"replaced": [asdict(replaced)] if replaced else []}


def _of_row(row: SourcedRow) -> ValueOrigin:
    return ValueOrigin(
        source=row.source,
        source_licence=row.source_licence,
        confidence=getattr(row, "confidence", ""),
        observed_on=row.observed_on.isoformat() if hasattr(row, "observed_on") else "",
    )
