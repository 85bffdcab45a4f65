"""The workload document: what it says comes back, and what it may not say is refused at its place."""

import json
import math
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.plans import legal_plans
from profiling.presets import preset_workload
from profiling.workload import Anchor, CollectiveWork, InputPipeline, KernelWork, ModelShape, ModelTotals, Workload
from profiling.workload_errors import WorkloadCode, WorkloadError
from profiling.workload_json import workload_from_json, workload_to_json
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


def test_the_description_of_the_document_names_each_field_and_shows_each_example():
    page = (EXAMPLES[0].parents[1] / "workload.md").read_text()
    kinds = (Workload, ModelShape, ModelTotals, Anchor, InputPipeline, KernelWork, CollectiveWork)
    for item in (item for kind in kinds for item in fields(kind)):
        assert f"`{item.name}`" in page
    assert all(f"examples/{path.name}" in page for path in EXAMPLES)
    assert len(EXAMPLES) >= 8


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


def test_a_micro_batch_above_the_batch_is_told_the_batch():
    with pytest.raises(WorkloadError) as refused:
        workload_from_json(changed("/micro_batch", 65, TRAINING_7B))
    assert workload_sentence(refused.value) == "micro_batch must be between 1 and 64."


MOE = preset_workload("moe-671b")
SERVING = preset_workload("serve-70b-answers")
QLORA = preset_workload("qlora-70b")
WINDOWED = preset_workload("serve-moe-120b")
RECOMMENDER = preset_workload("dlrm")
ANCHORED = replace(
    TRAINING_7B,
    anchor=Anchor(accelerator_key="a100-sxm4-80", gpus=8, step_s=9.5, batch_per_step=64, micro_batch=1),
)


@pytest.mark.parametrize("job", [MOE, SERVING, QLORA, WINDOWED, RECOMMENDER, ANCHORED], ids=lambda job: job.name)
def test_jobs_of_every_kind_come_back(job):
    assert workload_from_json(json.loads(json.dumps(workload_to_json(job)))) == job


@pytest.mark.parametrize(
    ("job", "pointer", "value", "code"),
    [
        (MOE, "/model/experts_per_token", ..., WorkloadCode.NEEDS_FIELD),
        (MOE, "/model/expert_ffn", ..., WorkloadCode.NEEDS_FIELD),
        (MOE, "/model/experts", ..., WorkloadCode.NEEDS_FIELD),
        (MOE, "/model/experts_per_token", 257, WorkloadCode.EXCEEDS),
        (MOE, "/model/dense_layers", 62, WorkloadCode.EXCEEDS),
        (MOE, "/model/kv_latent", ..., WorkloadCode.NEEDS_FIELD),
        (MOE, "/model/kv_latent", 64, WorkloadCode.EXCEEDS),
        (MOE, "/totals", workload_to_json(RECOMMENDER)["totals"], WorkloadCode.MODEL_AND_TOTALS),
        (TRAINING_7B, "/model/shared_expert_ffn", 2048, WorkloadCode.NEEDS_FIELD),
        (TRAINING_7B, "/model/dense_layers", 2, WorkloadCode.NEEDS_FIELD),
        (TRAINING_7B, "/model/attention_window", 512, WorkloadCode.NEEDS_FIELD),
        (TRAINING_7B, "/output_tokens", 100, WorkloadCode.NOT_IN_MODE),
        (TRAINING_7B, "/weight_bits", 4, WorkloadCode.NEEDS_FIELD),
        (TRAINING_7B, "/weight_bits", 33, WorkloadCode.OUT_OF_RANGE),
        (ANCHORED, "/anchor/step_s", 0, WorkloadCode.OUT_OF_RANGE),
        (ANCHORED, "/anchor/micro_batch", 65, WorkloadCode.OUT_OF_RANGE),
        (WINDOWED, "/model/attention_window", ..., WorkloadCode.NEEDS_FIELD),
        (WINDOWED, "/model/windowed_layers", 37, WorkloadCode.EXCEEDS),
        (SERVING, "/lora_rank", 16, WorkloadCode.NOT_IN_MODE),
        (SERVING, "/gradient_bits", 16, WorkloadCode.NOT_IN_MODE),
        (QLORA, "/mode", "inference", WorkloadCode.NOT_IN_MODE),
        (QLORA, "/lora_rank", 0, WorkloadCode.OUT_OF_RANGE),
        (RECOMMENDER, "/totals/embedding_values_per_sample", ..., WorkloadCode.NEEDS_FIELD),
        (RECOMMENDER, "/totals/embedding_parameters", 1e14, WorkloadCode.EXCEEDS),
        (RECOMMENDER, "/totals/family", ..., WorkloadCode.MISSING_FIELD),
    ],
)
def test_fields_that_contradict_each_other_are_refused(job, pointer, value, code):
    with pytest.raises(WorkloadError) as refused:
        workload_from_json(changed(pointer, value, job))
    assert refused.value.code is code
    assert "%(" not in workload_sentence(refused.value)


def test_heads_need_not_divide_a_model_that_states_their_width():
    document = changed("/model/heads", 33, TRAINING_7B)
    with pytest.raises(WorkloadError) as refused:
        workload_from_json(document)
    assert refused.value.code is WorkloadCode.NOT_DIVISIBLE
    document["model"]["head_dim"] = 128
    assert workload_from_json(document).model.heads == 33


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
