"""How often the classifier and a replay of the same capture say the same.

``replays.csv`` holds the last comparison on real captures (``manage.py evaluate_classifier --captures FOLDER``), so
that the model card can count it without them.
"""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_TABLE = Path(__file__).parent / "replays.csv"
_FIELDS = ("capture", "classifier", "sure", "replay", "agreement")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """``agreement``: agrees, disagrees, or open where the classifier cannot tell."""

    capture: str
    classifier: str
    sure: str
    replay: str
    agreement: str


def store(rows: Sequence[Compared]) -> None:
    with _TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def stored_agreement() -> Mapping[tuple[str, str], int]:
    """Captures by (agreement, whether the classifier was sure)."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return Counter((row["agreement"], row["sure"]) for row in csv.DictReader(file))
