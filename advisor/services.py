"""Asking and answering studies. Arguments are domain values: never a request, a form or a serializer."""

import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import IntegrityError, transaction

from advisor import answers
from advisor.engine.cost import Goal
from advisor.hints import CaptureHints
from advisor.inputs import goal_from_json, goal_to_json, hints_from_json, hints_to_json
from advisor.models import Study
from advisor.pipeline import STUDY_STEPS, StudyContext
from profiling import runs
from profiling.document import analysis_document
from profiling.models import Run
from profiling.services import delete_read_captures, kept_files, record_capture
from profiling.workload import Workload
from profiling.workload_json import workload_to_json

TASK = "advisor.study"
"""Name of the background task that answers a study of a capture; see advisor.tasks."""


def create_described_study(
    *, owner: str, title: str, workload: Workload, goal: Goal, study_id: uuid.UUID | None = None
) -> Study:
    """A study of a described job, answered at once. Asked again with the same ``study_id``, the first one.

    Raises EngineRefusal when nothing can be predicted from the workload.
    """
    inputs = {"workload": workload_to_json(workload), "goal": goal_to_json(goal)}
    study = Study(pk=_key(study_id, owner), owner=owner, title=title, inputs=inputs)
    _give(study, answers.described(workload=workload, goal=goal))
    try:
        with transaction.atomic():
            study.save(force_insert=True)
    except IntegrityError:
        return _asked_before(study)
    return study


def create_capture_study(
    *,
    owner: str,
    title: str,
    files: Sequence[UploadedFile],
    hints: CaptureHints,
    goal: Goal,
    study_id: uuid.UUID | None = None,
    is_sample: bool = False,
) -> Study:
    """A study of a capture, answered by a background run. Asked again with the same ``study_id``, the first one.

    Raises Refusal when the files cannot be taken; then nothing is kept.
    """
    inputs = {"hints": hints_to_json(hints), "goal": goal_to_json(goal)}
    study = Study(pk=_key(study_id, owner), owner=owner, title=title, inputs=inputs, is_sample=is_sample)
    try:
        with kept_files(files) as kept, transaction.atomic():
            study.inputs["files"] = [row.sha256 for row in kept]
            study.run = Run.objects.create(task=TASK)
            study.trace = record_capture(owner=owner, kept=kept, run=study.run)
            study.save(force_insert=True)
            runs.enqueue(study.run)
    except IntegrityError:
        return _asked_before(study)
    return study


def answer_capture_study(claim: runs.Claim) -> None:
    """Do the work of a claimed run; afterwards the capture's files are gone."""
    study = Study.objects.select_related("trace").get(run_id=claim.run_id)
    context = StudyContext(
        hints=hints_from_json(study.inputs["hints"]),
        goal=goal_from_json(study.inputs["goal"]),
    )
    runs.execute(claim, steps=STUDY_STEPS, context=context, save=lambda done: _save(study, done))
    delete_read_captures()


def delete_study(study: Study) -> None:
    """Forget a study, its capture and its run."""
    with transaction.atomic():
        trace, run = study.trace, study.run
        study.delete()
        if trace:
            files = list(trace.files.all())
            trace.delete()
            transaction.on_commit(lambda: [row.file.delete(save=False) for row in files if row.file])
        if run:
            run.delete()


def fingerprint(document: Any) -> str:
    """SHA-256 of a plain document, the same whatever the order of its keys."""
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _save(study: Study, done: StudyContext) -> None:
    study.trace.analysis = _storable(analysis_document(done.analysis))
    study.trace.workload = None if done.workload is None else _storable(workload_to_json(done.workload))
    study.trace.save(update_fields=["analysis", "workload"])
    _give(study, done.answer)
    study.save(update_fields=["result", "input_sha256", "engine_version", "model_sha256", "catalog_revision"])


def _give(study: Study, answer: answers.Answer) -> None:
    study.result = _storable(answer)
    study.input_sha256 = fingerprint(study.inputs)
    study.engine_version = answer["engine_version"]
    study.model_sha256 = answer.get("model_sha256", "")
    study.catalog_revision = answer["catalog_revision"]


def _storable(document: Any) -> Any:
    """A plain document without NUL characters, which files may have in names and PostgreSQL's JSON has not."""
    if isinstance(document, str):
        return document.replace("\x00", "")
    if isinstance(document, dict):
        return {_storable(key): _storable(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [_storable(value) for value in document]
    return document


def _key(study_id: uuid.UUID | None, owner: str) -> uuid.UUID:
    """The primary key: the same for the same question of one owner, never that of another owner's study."""
    return uuid.uuid4() if study_id is None else uuid.uuid5(study_id, owner)


def _asked_before(study: Study) -> Study:
    """The study that a first click has already made."""
    return Study.objects.get(pk=study.pk, owner=study.owner)
