"""The label of a capture by its own replay, beside that of the classifier."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from advisor import answers
from advisor.engine.cost import Goal
from advisor.hints import CaptureHints
from profiling.analysis import Analysis, analyse
from profiling.bottleneck import COMMUNICATION, COMPUTE, HOST, LABELS, MEMORY, Bottleneck
from profiling.generate import write
from profiling.label import bottleneck_of
from profiling.notes import BottleneckCode, Note
from profiling.sample_capture import sample_capture

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shipped_catalog")]


@pytest.fixture
def analysis(tmp_path: Path) -> Analysis:
    write(sample_capture(), tmp_path / "rank0.json")
    return analyse([tmp_path / "rank0.json"])


def replayed(analysis: Analysis, found: Bottleneck | None) -> answers.Answer | None:
    goal = Goal(as_of=date(2026, 9, 1))
    answer, _ = answers.captured(analysis=analysis, bottleneck=found, hints=CaptureHints(), goal=goal, limit=1)
    return answer["bottleneck"]["replayed"]


def says(label: str | None) -> Bottleneck:
    return Bottleneck(
        label=label,
        probabilities={name: float(name == label) for name in LABELS},
        host_bound=label == HOST,
        evidence=(Note(BottleneckCode.IDLE_SHARE, {"percent": 1.0}),),
        warnings=(),
    )


def test_a_capture_is_answered_with_what_its_replay_says(analysis: Analysis) -> None:
    found = replayed(analysis, bottleneck_of(analysis))
    assert found is not None
    assert set(found["sensitivities"]) == set(found["limits_s"]) == {COMPUTE, MEMORY, COMMUNICATION, HOST}
    assert found["step_s"] == analysis.workload.measured.step_s
    assert all(0 <= limit <= found["step_s"] for limit in found["limits_s"].values())
    assert found["label"] in (*LABELS, "balanced")
    assert found["transfer_unverified"], "of one rank nobody knows what was waiting"


def test_both_labels_are_held_against_each_other(analysis: Analysis) -> None:
    label = replayed(analysis, says(None))["label"]
    assert label in LABELS
    other = next(name for name in LABELS if name != label)
    for said, agrees, code in (
        (label, True, BottleneckCode.REPLAY_AGREES),
        (other, False, BottleneckCode.REPLAY_DISAGREES),
        (None, None, BottleneckCode.REPLAY_OPEN),
    ):
        found = replayed(analysis, says(said))
        assert found["agrees"] is agrees
        assert found["note"]["code"] == code
        assert found["note"]["params"] == {"resource": label}
        assert found["note"]["sentence"]


def test_nothing_is_replayed_where_there_is_too_little(analysis: Analysis) -> None:
    found = bottleneck_of(analysis)
    step = analysis.workload.measured
    without = replace(analysis, workload=replace(analysis.workload, measured=replace(step, graph=None)))
    few = replace(analysis, features=replace(analysis.features, kernels=9))
    assert replayed(without, found) is None
    assert replayed(few, found) is None
    assert replayed(replace(analysis, workload=None), found) is None
    assert replayed(analysis, None) is None
