"""The engine against published runs that it has never seen: what it reaches today, source by source.

``data/unseen_runs.csv`` holds 323 training runs of eight publishers, transcribed after the engine's constants were
fitted; each row names the page that published it. No constant was ever fitted to them, none may be, and none of these
publishers is among the runs that calibration reads. Bars are today's figures with some room.
"""

import csv
from pathlib import Path

import pytest

from advisor.calibration.tables import DATA
from advisor.evaluation.document import evaluation_document
from advisor.evaluation.outcomes import outcomes_of
from advisor.evaluation.rows import read_rows

UNSEEN = Path(__file__).parent / "data" / "unseen_runs.csv"

BARS = {
    "llm-foundry": (0.11, 0.30, 0.80),
    "nemo-docs": (0.14, 0.35, 0.75),
    "fms-fsdp": (0.12, 0.25, 0.80),
    "vectorlm": (0.10, 0.22, 0.80),
    "kempnerforge": (0.18, 0.50, 0.80),
    "server-gear": (0.30, 1.40, 0.55),
}
"""Median and 90 % of the relative error at most, share of measurements inside the 80 % range at least.

The convolutional networks of server-gear are told the run on one GPU; that run itself is predicted about twice too
slow, which is its 90 %.
"""

KNOWN_TO_FAIL = {"qwen": 0.60, "hf-blog": 0.55}
"""Median error at most. Adapters on weights of 4 bit, and one short sequence at a time in Hugging Face's trainer,
run at half of the speed that the engine says: unpacking weights and the launches of adapters are not in it.
"""


@pytest.fixture(scope="module")
def rows():
    return read_rows(UNSEEN)


@pytest.fixture(scope="module")
def scores(rows):
    return evaluation_document(outcomes_of(rows, rows))


def test_no_publisher_is_among_the_fitted_runs(rows):
    fitted = set()
    for name in ("training_runs.csv", "scaling_runs.csv"):
        with (DATA / name).open(encoding="utf-8", newline="") as lines:
            fitted |= {row["source_group"] for row in csv.DictReader(lines) if "source_group" in row}
    assert fitted
    assert not fitted & {row.source_group for row in rows}


def test_every_run_is_predicted(scores):
    assert scores["overall"]["rows"] == scores["overall"]["predicted"] == 323


def test_all_sources_together(scores):
    assert scores["overall"]["median_ape"] <= 0.15
    assert scores["overall"]["coverage80"] >= 0.7


@pytest.mark.parametrize("source", BARS)
def test_a_source_by_itself(scores, source):
    median, nearly_all, inside = BARS[source]
    found = scores["groups"]["source_group"][source]
    assert found["median_ape"] <= median
    assert found["p90_ape"] <= nearly_all
    assert found["coverage80"] >= inside


@pytest.mark.parametrize("source", KNOWN_TO_FAIL)
def test_what_is_known_to_be_too_fast_gets_no_worse(scores, source):
    found = scores["groups"]["source_group"][source]
    assert found["median_ape"] <= KNOWN_TO_FAIL[source]


def test_scaling_from_one_gpu(scores):
    scaling = scores["scaling"]
    assert scaling["n"] >= 50
    assert scaling["median_abs_error"] <= 0.11
