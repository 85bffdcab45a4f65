"""Labels of real captures beside those of an expert: ``python -m tests.profiling.labels_report [PART OF A NAME]``.

Rows that belong to one job are answered together: all ranks of a set whose judgement is about the set, and all files
of one run of a benchmark.
"""

import csv
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

from profiling.analysis import analyse
from profiling.bottleneck import HOST, SURE, Bottleneck
from profiling.label import bottleneck_of
from profiling.notes import BottleneckCode, Refusal
from tests.paths import SHARED

TRACES = SHARED / "traces" if SHARED else None
NONE, ABSTAINS, HOST_IDLE = "none", "abstains", "host_idle"
RANKS_OF_ONE_JOB = "kineto-megatron-tp8"
FILES_OF_ONE_RUN = "p2pbench-5060ti"
_TOO_LITTLE = (BottleneckCode.TOO_FEW_KERNELS, BottleneckCode.TOO_FEW_SAMPLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the expert says of one file. ``first`` and ``second``: our names, ``host_idle`` and ``none`` besides.

    ``together``: the files of the job, this one among them.
    """

    path: str
    first: str
    second: str | None
    confidence: str
    judgement: str
    together: tuple[str, ...]

    @property
    def id(self) -> str:
        return self.path.removeprefix("files/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Our answer. ``label``: as in ``Row``, or ``abstains``. ``likeliest``: labels, the likeliest first."""

    label: str
    sure: bool
    probability: float | None
    likeliest: tuple[str, ...]
    because: str


def rows(*confidences: str) -> list[Row]:
    """Rows of the expert's table; nothing where the reference folder is absent."""
    if TRACES is None:
        return []
    with (TRACES / "LABELS.tsv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file, delimiter="\t"))
    jobs = {key: tuple(one["path"] for one in found) for key, found in groupby(table, _job)}
    found = [_row(one, jobs[_job(one)]) for one in table]
    return [row for row in found if not confidences or row.confidence in confidences]


def _job(row: dict[str, str]) -> str:
    if row["slug"] == RANKS_OF_ONE_JOB:
        return row["slug"]
    if row["slug"] == FILES_OF_ONE_RUN:
        return row["path"].partition("__")[0]
    return row["path"]


def _row(row: dict[str, str], together: tuple[str, ...]) -> Row:
    second = None if row["second_label"] == "-" else row["second_label"]
    first = row["label"]
    if row["slug"] == RANKS_OF_ONE_JOB:
        first, second = HOST_IDLE, None
    return Row(
        path=row["path"],
        first=first,
        second=second,
        confidence=row["confidence"],
        judgement=row["judgement"],
        together=together,
    )


def said(row: Row) -> Said:
    return _said_of(row.together)


@cache
def _said_of(paths: tuple[str, ...]) -> Said:
    assert TRACES is not None
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = bottleneck_of(analyse([_gathered(paths, Path(folder))]))
    except Refusal as refusal:
        return Said(label=NONE, sure=False, probability=None, likeliest=(), because=str(refusal.code))
    if found is None:
        return Said(label=NONE, sure=False, probability=None, likeliest=(), because="no work of a job")
    return answer(found)


def _gathered(paths: Sequence[str], folder: Path) -> Path:
    """One file where it lies, several in a folder, where what tells nothing is passed over."""
    assert TRACES is not None
    if len(paths) == 1:
        return TRACES / paths[0]
    for path in paths:
        shutil.copyfile(TRACES / path, folder / Path(path).name)
    return folder


def answer(found: Bottleneck) -> Said:
    code = found.statement.code
    if found.label == HOST or (code == BottleneckCode.WAITING_LEADS and found.label is None):
        label = HOST_IDLE
    elif found.label is not None:
        label = found.label
    else:
        label = NONE if code in _TOO_LITTLE else ABSTAINS
    likeliest = sorted(found.probabilities, key=lambda name: -found.probabilities[name])
    return Said(
        label=label,
        sure=found.sure,
        probability=max(found.probabilities.values(), default=None),
        likeliest=tuple(HOST_IDLE if name == HOST else name for name in likeliest),
        because=str(code),
    )


def is_right(row: Row, ours: Said) -> bool:
    """Whether our answer is what the table asks for: the label alone where its author is certain, the second one too
    where that is fairly so, a matching spread where it is not."""
    if ours.label == row.first:
        return True
    if row.confidence == "high":
        return False
    if row.confidence == "medium":
        return ours.label == row.second
    return ours.label in (NONE, ABSTAINS) or not {row.first, row.second}.isdisjoint((ours.label, *ours.likeliest[:2]))


def is_surely_wrong(row: Row, ours: Said) -> bool:
    """A label that is neither of the expert's, given as sure or nearly so."""
    if ours.label in (row.first, row.second, NONE, ABSTAINS):
        return False
    return ours.sure or (ours.probability or 0.0) > SURE


def report(wanted: str = "") -> Iterator[str]:
    """Lines of the table, then how many rows of each confidence are right."""
    chosen = [row for row in rows() if wanted in row.path]
    for row in chosen:
        ours = said(row)
        mark = "surely WRONG" if is_surely_wrong(row, ours) else "right" if is_right(row, ours) else "wrong"
        expert = row.first if row.second is None else f"{row.first} / {row.second}"
        how = "" if ours.probability is None else f"{ours.probability:.2f}{' sure' if ours.sure else ''}"
        yield "\t".join((row.confidence, mark, expert, ours.label, how, ours.because, row.id))
    for confidence in ("high", "medium", "low"):
        judged = [is_right(row, said(row)) for row in chosen if row.confidence == confidence]
        yield f"{confidence}: {sum(judged)} of {len(judged)} right"
    yield f"surely wrong: {sum(is_surely_wrong(row, said(row)) for row in chosen)}"


if __name__ == "__main__":
    for text in report(*sys.argv[1:2]):
        sys.stdout.write(text + "\n")
