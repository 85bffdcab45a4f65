"""The workload document: what it says comes back, and what it may not say is refused at its place."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.plans import legal_plans
from profiling.workload_json import WorkloadCode, WorkloadError, workload_from_json, workload_to_json
from profiling.workload_messages import SENTENCES, workload_sentence
from tests.engine.machines import TRACED, TRAINING_7B, described_jobs, traced_jobs

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "docs" / "examples").glob("*.json"))


def changed(pointer, value, workload=TRACED):
    """The document of a workload with one place set; ``...`` removes it."""
    document = json.loads(json.dumps(workload_to_json(workload)))
    *path, last = (int(part) if part.isdigit() else part for part in pointer.strip("/").split("/"))
    place = document
    for part in path:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return document


@settings(max_examples=100)
@given(st.one_of(described_jobs(), traced_jobs()))
def test_a_workload_comes_back(job):
    assert workload_from_json(json.loads(json.dumps(workload_to_json(job)))) == job


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_answered(path):
    job = workload_from_json(json.loads(path.read_text()))
    assert legal_plans(job, 8)


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize(
    ("pointer", "value", "code"),
    [
        ("/surprise", 1, WorkloadCode.UNKNOWN_FIELD),
        ("/measured/surprise", 1, WorkloadCode.UNKNOWN_FIELD),
        ("/name", ..., WorkloadCode.MISSING_FIELD),
        ("/name", "", WorkloadCode.NOT_TEXT),
        ("/name", "a\x00b", WorkloadCode.NOT_TEXT),
        ("/name", "x" * 201, WorkloadCode.NOT_TEXT),
        ("/name", 5, WorkloadCode.NOT_TEXT),
        ("/mode", "sleeping", WorkloadCode.NOT_A_CHOICE),
        ("/mode", [], WorkloadCode.NOT_A_CHOICE),
        ("/precision", "fp12", WorkloadCode.NOT_A_CHOICE),
        ("/batch_per_step", -1, WorkloadCode.OUT_OF_RANGE),
        ("/batch_per_step", 0, WorkloadCode.OUT_OF_RANGE),
        ("/batch_per_step", 1e300, WorkloadCode.OUT_OF_RANGE),
        ("/batch_per_step", 10**310, WorkloadCode.OUT_OF_RANGE),
        ("/batch_per_step", "64", WorkloadCode.NOT_A_NUMBER),
        ("/batch_per_step", True, WorkloadCode.NOT_A_NUMBER),
        ("/batch_per_step", math.nan, WorkloadCode.NOT_A_NUMBER),
        ("/batch_per_step", math.inf, WorkloadCode.NOT_A_NUMBER),
        ("/micro_batch", 1.5, WorkloadCode.NOT_A_WHOLE_NUMBER),
        ("/micro_batch", 100_000, WorkloadCode.OUT_OF_RANGE),
        ("/flash_attention", 1, WorkloadCode.NOT_A_BOOLEAN),
        ("/measured", [], WorkloadCode.NOT_AN_OBJECT),
        ("/measured", None, WorkloadCode.NEEDS_MODEL_OR_MEASURED),
        ("/measured/gpu_count", 0, WorkloadCode.OUT_OF_RANGE),
        ("/measured/step_s", 0, WorkloadCode.OUT_OF_RANGE),
        ("/measured/step_s", 0.001, WorkloadCode.PARTS_EXCEED_STEP),
        ("/measured/idle_s", -0.1, WorkloadCode.OUT_OF_RANGE),
        ("/measured/kernels", {}, WorkloadCode.NOT_A_LIST),
        ("/measured/kernels", [{}] * 201, WorkloadCode.TOO_MANY_ITEMS),
        ("/measured/kernels/0", 7, WorkloadCode.NOT_AN_OBJECT),
        ("/measured/kernels/0/busy_s", ..., WorkloadCode.MISSING_FIELD),
        ("/measured/kernels/0/kernel_class", "magic", WorkloadCode.NOT_A_CHOICE),
        ("/measured/collectives/0/exposed_s", 0.05, WorkloadCode.PARTS_EXCEED_STEP),
        ("/measured/collectives/0/message_bytes", 0, WorkloadCode.OUT_OF_RANGE),
    ],
)
def test_what_cannot_be_true_is_refused_at_its_place(pointer, value, code):
    with pytest.raises(WorkloadError) as refused:
        workload_from_json(changed(pointer, value))
    assert refused.value.code is code
    assert "%(" not in workload_sentence(refused.value)
    if code is not WorkloadCode.NEEDS_MODEL_OR_MEASURED:
        assert refused.value.pointer == pointer


@pytest.mark.parametrize(
    ("pointer", "value", "code"),
    [
        ("/model/layers", 0, WorkloadCode.OUT_OF_RANGE),
        ("/model/layers", 10**9, WorkloadCode.OUT_OF_RANGE),
        ("/model/hidden", 4095, WorkloadCode.NOT_DIVISIBLE),
        ("/model/kv_heads", 7, WorkloadCode.NOT_DIVISIBLE),
        ("/model/vocabulary", ..., WorkloadCode.MISSING_FIELD),
    ],
)
def test_shapes_that_no_model_has_are_refused(pointer, value, code):
    with pytest.raises(WorkloadError) as refused:
        workload_from_json(changed(pointer, value, TRAINING_7B))
    assert refused.value.code is code


@pytest.mark.parametrize("document", [None, [], "text", 5, True])
def test_a_document_is_an_object(document):
    with pytest.raises(WorkloadError) as refused:
        workload_from_json(document)
    assert refused.value.code is WorkloadCode.NOT_AN_OBJECT


@settings(max_examples=200)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
        max_leaves=20,
    )
)
def test_anything_else_is_refused_with_a_sentence(document):
    with pytest.raises(WorkloadError) as refused:
        workload_from_json(document)
    assert workload_sentence(refused.value)


def test_every_reason_has_a_sentence():
    assert set(SENTENCES) == set(WorkloadCode)
