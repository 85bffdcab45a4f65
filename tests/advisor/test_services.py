"""Asking twice, and asking with somebody else's id."""

import json
import uuid
from datetime import date

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from advisor import services
from advisor.engine.cost import Goal
from advisor.hints import CaptureHints
from advisor.models import Study
from profiling.workload import Mode, ModelShape, Workload
from tests.workers import answer

pytestmark = pytest.mark.django_db

GOAL = Goal(as_of=date(2026, 9, 1))
SHAPE = ModelShape(layers=12, hidden=768, heads=12, vocabulary=30522, sequence_length=512)
WORKLOAD = Workload(name="job", mode=Mode.TRAINING, precision="bf16", batch_per_step=64.0, model=SHAPE)


def ask(owner: str, study_id: uuid.UUID) -> Study:
    return services.create_described_study(owner=owner, title="t", workload=WORKLOAD, goal=GOAL, study_id=study_id)


def test_a_second_click_gives_the_study_of_the_first() -> None:
    study_id = uuid.uuid4()

    assert ask("session:a", study_id) == ask("session:a", study_id)
    assert Study.objects.count() == 1


def test_the_same_form_from_another_browser_makes_its_own_study() -> None:
    study_id = uuid.uuid4()

    first, second = ask("session:a", study_id), ask("session:b", study_id)

    assert first != second
    assert (first.owner, second.owner) == ("session:a", "session:b")


def test_nul_characters_in_names_do_not_reach_the_database() -> None:
    rows = ("Time (%)  Total Time (ns)  Instances  Name   ", "--------  ---------------  ---------  -------")
    report = "\n".join((*rows, "   100.0              600          1  ge\x00mm")).encode()
    study = services.create_capture_study(
        owner="session:a",
        title="t",
        files=[SimpleUploadedFile("sums.csv", report)],
        hints=CaptureHints(),
        goal=GOAL,
    )
    answer(study.run)
    study.refresh_from_db()
    assert study.run.error_code == ""
    for document in (study.result, study.trace.analysis):
        assert "gemm" in json.dumps(document)
        assert "\\u0000" not in json.dumps(document)
