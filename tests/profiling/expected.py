"""The table of hand-made fault files and what a right reader says of each."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from tests.paths import SHARED

FAULTS = SHARED / "formats" / "faults" if SHARED else None
FIELDS = ("gpu_busy_us", "compute_us", "comm_us", "exposed_comm_us", "copy_us", "window_us", "idle_us", "kernels")


@dataclass(frozen=True)
class Row:
    path: Path
    kind: str
    outcome: str
    facts: dict[str, str]
    must_say: str
    id: str


def rows(*kinds: str) -> list[Row]:
    """Rows of the given kinds; none where the reference folder is absent."""
    return [row for row in all_rows() if row.kind in kinds]


def all_rows() -> list[Row]:
    """The whole table; nothing where the reference folder is absent."""
    if FAULTS is None:
        return []
    found = []
    with (FAULTS / "EXPECTED.tsv").open(encoding="utf-8") as file:
        for line in csv.reader((line for line in file if not line.startswith("#")), delimiter="\t"):
            name, kind, outcome, facts, must_say = line[:5]
            pairs = (part.strip().partition("=") for part in facts.split(";") if "=" in part)
            given = {key: value for key, _, value in pairs}
            must_say = "" if must_say == "-" else must_say
            found.append(Row(FAULTS / name, kind, outcome, given, must_say, Path(name).name))
    return found


def agrees(value: float | None, fact: str) -> bool:
    """Whether a figure is what the table asks for: exact, a range, a bound, or unknown."""
    if fact == "unknown":
        return value is None
    if value is None:
        return False
    if ".." in fact:
        low, high = fact.split("..")
        return float(low) <= value <= float(high)
    if fact.startswith("<="):
        return value <= float(fact[2:])
    if fact.startswith(">="):
        return value >= float(fact[2:])
    return abs(value - float(fact)) <= 0.001


def reads(value: float | str | None, fact: str) -> bool:
    """The same for figures that a fact gives rounded, in words, or in two ways (``484.9|485.5``)."""
    if "|" in fact:
        return any(reads(value, one) for one in fact.split("|"))
    if isinstance(value, float | int) and re.fullmatch(r"-?\d+\.\d+", fact):
        return abs(value - float(fact)) <= 0.5 * 10.0 ** -len(fact.partition(".")[2])
    return value == fact if isinstance(value, str) else agrees(value, fact)
