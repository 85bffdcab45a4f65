"""How often the classifier and a replay of the same capture say the same.

``replays.csv`` holds the last comparison on real captures (``manage.py evaluate_classifier --captures FOLDER``), so
that the model card can count it without them.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from advisor.engine.own_replay import agrees, bound_of
from profiling.analysis import analyse
from profiling.label import bottleneck_of
from profiling.notes import Refusal

_TABLE = Path(__file__).parent / "replays.csv"
NOT_TOLD = "cannot tell"
_FIELDS = ("capture", "classifier", "sure", "replay", "agreement")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """``agreement``: agrees, disagrees, or open where the classifier cannot tell."""

    capture: str
    classifier: str
    sure: str
    replay: str
    agreement: str


def compared(folder: Path) -> Iterator[Compared]:
    """Both labels of every capture in the folder whose step can be replayed."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        try:
            analysis = analyse([path])
        except Refusal:
            continue
        found, workload = bottleneck_of(analysis), analysis.workload
        bound = bound_of(analysis.features, workload and workload.measured)
        if found is None or bound is None:
            continue
        same = agrees(bound, found)
        yield Compared(
            capture=str(path.relative_to(folder)),
            classifier=found.label or NOT_TOLD,
            sure="yes" if found.sure else "no",
            replay=bound.label,
            agreement={True: "agrees", False: "disagrees", None: "open"}[same],
        )


def store(rows: Sequence[Compared]) -> None:
    with _TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, _FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def stored_agreement() -> Mapping[tuple[str, str], int]:
    """Captures by (agreement, whether the classifier was sure)."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return Counter((row["agreement"], row["sure"]) for row in csv.DictReader(file))
