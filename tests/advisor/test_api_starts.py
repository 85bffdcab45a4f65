"""Described jobs over REST that start from something known: presets, public models, config.json."""

from typing import Any

import pytest
from django.test import Client

from advisor.models import Study
from profiling.hf_config import read_config
from profiling.known_models import find_model, known_models
from profiling.presets import PRESETS, preset_workload
from profiling.workload_json import workload_from_json
from tests.advisor.test_api import assert_problem, nothing_is_stored, post, workload
from tests.profiling.hf_configs import LLAMA3_8B

pytestmark = pytest.mark.django_db

JOB = {"mode": "training", "precision": "bf16", "batch_per_step": 64}


def asked() -> Any:
    """The workload of the one study."""
    return workload_from_json(Study.objects.get().inputs["workload"])


def test_a_preset_is_asked_about_as_it_stands(client: Client, key: dict[str, str], shipped_catalog: None) -> None:
    response = post(client, key, {"preset": "finetune-8b"})

    assert response.status_code == 201
    assert response.json()["title"] == "Fine-tuning all of an 8B language model"
    assert asked() == preset_workload("finetune-8b")


def test_what_differs_from_a_preset_takes_its_place(client: Client, key: dict[str, str], shipped_catalog: None) -> None:
    patch = {"batch_per_step": 16, "model": {"sequence_length": 1024, "kv_heads": None}}
    post(client, key, {"preset": "finetune-8b", "workload": patch})

    model, before = asked().model, preset_workload("finetune-8b").model
    assert asked().batch_per_step == 16
    assert (model.sequence_length, model.kv_heads, model.layers) == (1024, None, before.layers)


def test_a_public_model_needs_only_what_is_done_to_it(
    client: Client, key: dict[str, str], shipped_catalog: None
) -> None:
    assert post(client, key, {"model": "qwen3 8b", "workload": JOB}).status_code == 201
    assert asked().model == find_model("Qwen3-8B")


def test_a_config_needs_only_what_is_done_to_it(client: Client, key: dict[str, str], shipped_catalog: None) -> None:
    assert post(client, key, {"hf_config": LLAMA3_8B, "workload": JOB}).status_code == 201
    assert asked().model == read_config(LLAMA3_8B).shape


@pytest.mark.parametrize(
    ("document", "status", "pointer"),
    [
        ({"preset": "abacus"}, 422, "#/preset"),
        ({"preset": 3.5}, 422, "#/preset"),
        ({"model": "abacus", "workload": JOB}, 422, "#/model"),
        ({"model": "Qwen3-8B"}, 422, "#/workload/mode"),
        ({"model": "Qwen3-8B", "workload": 3}, 422, "#/workload"),
        ({"preset": "finetune-8b", "workload": {"batchsize": 8}}, 422, "#/workload/batchsize"),
        ({"preset": "finetune-8b", "model": "Qwen3-8B"}, 422, "#/model"),
        ({"hf_config": [], "workload": JOB}, 422, "#/hf_config"),
        ({"hf_config": {"model_type": "mamba"}, "workload": JOB}, 422, "#/hf_config/model_type"),
        ({"hf_config": {**LLAMA3_8B, "hidden_size": -1}, "workload": JOB}, 422, "#/hf_config/hidden_size"),
        ({"hf_config": {**LLAMA3_8B, "hidden_size": 4095}, "workload": JOB}, 422, "#/hf_config/hidden_size"),
    ],
)
def test_a_start_that_cannot_be_is_pointed_at(
    client: Client, key: dict[str, str], document: dict[str, Any], status: int, pointer: str
) -> None:
    response = post(client, key, document)

    assert response.status_code == status, response.content
    assert [error["pointer"] for error in response.json()["errors"]] == [pointer]
    assert nothing_is_stored()


def test_the_presets_are_listed_and_each_is_a_workload(client: Client, key: dict[str, str]) -> None:
    listed = client.get("/api/v1/presets/", headers=key).json()

    assert [one["key"] for one in listed] == [one.key for one in PRESETS]
    assert [workload_from_json(one["workload"]) for one in listed] == [one.workload for one in PRESETS]
    assert all(one["source"] and one["title"] and find_model(one["model"]) for one in listed)


def test_the_public_models_are_listed_with_sources(client: Client, key: dict[str, str]) -> None:
    listed = client.get("/api/v1/models/", headers=key).json()

    assert [one["name"] for one in listed] == [one.key for one in known_models()]
    assert all(("model" in one) != ("totals" in one) and one["source"] for one in listed)


@pytest.mark.parametrize("path", ["/api/v1/presets/", "/api/v1/models/"])
def test_lists_need_a_key_and_know_no_filters(client: Client, key: dict[str, str], path: str) -> None:
    assert_problem(client.get(path), 401, "unauthenticated")
    assert_problem(client.get(path + "?group=vision", headers=key), 400, "invalid")


def test_an_anchor_narrows_the_answer(client: Client, key: dict[str, str], shipped_catalog: None) -> None:
    """A measured step of the very job on the very GPU is better evidence than formulas."""

    def spread(document: dict[str, Any]) -> float:
        offers = post(client, key, {"workload": document, "gpus": 8}).json()["result"]["offers"]
        one = next(offer for offer in offers if offer["server"]["accelerator"] == "a100-sxm4-80")
        return one["high_s"] / one["low_s"]

    anchor = {"accelerator_key": "a100-sxm4-80", "gpus": 8, "step_s": 4.0, "batch_per_step": 64}
    assert spread(workload(batch_per_step=64, anchor=anchor)) < spread(workload(batch_per_step=64))


def test_an_anchor_on_what_the_catalog_lacks_is_refused(
    client: Client, key: dict[str, str], shipped_catalog: None
) -> None:
    anchor = {"accelerator_key": "abacus", "gpus": 8, "step_s": 4.0, "batch_per_step": 64}
    assert_problem(post(client, key, {"workload": workload(anchor=anchor)}), 422, "accelerator_unknown")
