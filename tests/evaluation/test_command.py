"""`manage.py evaluate`: one document, a table, a line for each row; one sentence where a file is no measurement."""

import csv
import json
from collections import Counter
from io import StringIO

import pytest
from django.core.management import call_command

from advisor.evaluation.document import evaluation_document
from advisor.evaluation.outcomes import outcomes_of
from advisor.evaluation.rows import read_rows
from tests.evaluation.measured import LLAMA, RESNET, write
from tests.paths import SHARED

GROUP = {"rows", "predicted", "median_ape", "p90_ape", "bias", "coverage80", "kendall_mfu"}
RESNET_8 = {**RESNET, "id": "resnet-8", "gpus_per_node": "8", "gpus_total": "8", "dp": "8", "value": "20000"}
CARDS = {"gpu_key": "A100-PCIe-80GB", "intra_class": "pcie", "pair": "resnet-pair"}
MODULES = {"pair": "resnet-pair"}


def evaluate(*arguments):
    out = StringIO()
    call_command("evaluate", *map(str, arguments), stdout=out)
    return out.getvalue()


@pytest.fixture
def measured(tmp_path):
    unknown = {**LLAMA, "id": "unknown", "gpu_key": "Riva 128"}
    return write(
        tmp_path / "measured.csv",
        LLAMA,
        unknown,
        {**LLAMA, "id": "doubtful", "quality": "C"},
        RESNET | MODULES,
        RESNET_8 | MODULES,
        RESNET | CARDS | {"id": "card-1", "series": "cards", "value": "2500"},
        RESNET_8 | CARDS | {"id": "card-8", "series": "cards", "value": "18500"},
    )


def test_the_document(measured):
    document = json.loads(evaluate(measured, "--json"))
    assert set(document["overall"]) == GROUP
    assert (document["overall"]["rows"], document["overall"]["predicted"]) == (6, 5)
    assert set(document["groups"]) == {"source_group", "family", "intra_class", "mode"}
    assert document["groups"]["family"]["cnn"]["predicted"] == document["unanchored"]["predicted"] == 4
    assert document["refused"] == {"gpu_unknown": 1}
    assert document["scaling"]["n"] == 2
    assert document["nvlink_over_pcie"]["n"] == 1
    assert document["evidence"]["anchored"]["rows"] == 2
    assert sum(level["predicted"] for level in document["evidence"].values()) == 5


def test_an_anchored_prediction_scales_what_was_measured(measured):
    """Eight replicas that exchange 50 MB over NVSwitch: between 70 and 100 % of eight single runs."""
    rows = [row for row in read_rows(measured) if row.is_scored]
    (found,) = [one for one in outcomes_of(rows, rows) if one.row.id == "resnet-8"]
    efficiency = found.anchored.samples_per_s / (8 * 2600)
    assert 0.7 < efficiency <= 1.0
    assert found.prediction is found.anchored
    assert found.alone.step_s != found.anchored.step_s


def test_all_rows_on_request(measured):
    assert json.loads(evaluate(measured, "--all", "--json"))["overall"]["rows"] == 7


def test_a_table_for_people(measured):
    text = evaluate(measured)
    assert text.splitlines()[0].split() == [
        "rows",
        "predicted",
        "median_ape",
        "p90_ape",
        "bias",
        "coverage80",
        "kendall_mfu",
    ]
    assert "gpu_unknown" in text


def test_a_line_for_each_row(measured, tmp_path):
    evaluate(measured, "--by-row", tmp_path / "lines.csv")
    with (tmp_path / "lines.csv").open(newline="") as file:
        lines = {line["id"]: line for line in csv.DictReader(file)}
    assert set(lines) == {"llama", "unknown", "resnet-1", "resnet-8", "card-1", "card-8"}
    assert lines["unknown"]["reason"] == "gpu_unknown"
    assert float(lines["llama"]["low_s"]) < float(lines["llama"]["predicted_s"]) < float(lines["llama"]["high_s"])


@pytest.mark.parametrize("without", [("gpu_key",), ("value", "unit")])
def test_a_file_without_the_columns_ends_with_one_sentence(tmp_path, without):
    path, err = write(tmp_path / "short.csv", LLAMA, without=without), StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("evaluate", str(path), stderr=err)
    assert ended.value.code == 2
    assert len(err.getvalue().strip().splitlines()) == 1
    assert all(name in err.getvalue() for name in without)


def test_a_file_that_is_not_there(tmp_path):
    err = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("evaluate", str(tmp_path / "nothing.csv"), stderr=err)
    assert ended.value.code == 2


@pytest.mark.skipif(SHARED is None, reason="published figures are not beside this checkout")
def test_published_training_runs_of_every_source():
    """Up to four rows of each source and family: nearly all are predicted, every other has a reason."""
    rows = read_rows(SHARED / "measured" / "measured_dev.csv")
    taken, seen = [], Counter()
    for row in rows:
        if row.is_scored and row.mode != "infer" and seen[row.source_group, row.family] < 4:
            seen[row.source_group, row.family] += 1
            taken.append(row)
    outcomes = outcomes_of(taken, taken)
    document = evaluation_document(outcomes)
    assert all(one.prediction or one.reason for one in outcomes)
    transformers = [one for one in outcomes if one.row.family in ("transformer-decoder", "transformer-encoder")]
    assert sum(one.prediction is not None for one in transformers) > 0.75 * len(transformers)
    assert document["groups"]["family"]["transformer-decoder"]["median_ape"] < 0.5
