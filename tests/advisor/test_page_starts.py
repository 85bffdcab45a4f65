"""What the description form starts from: named jobs, public models, config.json, an earlier question."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from advisor.forms import DescriptionForm
from advisor.models import Study
from advisor.preset_titles import PRESET_TITLES
from profiling.hf_config import read_config
from profiling.known_models import find_model
from profiling.presets import PRESETS, Preset, preset_workload
from profiling.workload_json import workload_from_json
from tests.advisor.form_reader import as_query, as_sent
from tests.advisor.page_support import description, errors_of
from tests.profiling.hf_configs import LLAMA3_8B

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shipped_catalog")]

DESCRIPTION = "/studies/new/description/"


def test_unknown_preset_or_model_is_an_empty_form(browser: Client) -> None:
    for query in ({"preset": "<x>"}, {"model": "<x>"}, {"model": ""}):
        response = browser.get(DESCRIPTION, query)
        assert response.status_code == 200
        assert as_sent(response.content.decode())["layers"] == ""


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.key)
def test_preset_fills_in_the_form_that_means_its_job(browser: Client, preset: Preset) -> None:
    page = browser.get(DESCRIPTION, {"preset": preset.key}).content.decode()
    form = DescriptionForm(as_query(as_sent(page)))
    assert form.errors == {}
    assert replace(form.workload(), name="") == replace(preset.workload, name="")


def test_every_preset_can_be_chosen_and_says_where_it_comes_from(browser: Client) -> None:
    html = browser.get(DESCRIPTION, {"preset": "dlrm"}).content.decode()
    assert [key for key in (one.key for one in PRESETS) if f'<option value="{key}"' not in html] == []
    assert '<option value="dlrm" selected>' in html
    assert "MLPerf" in html
    assert dict(PRESET_TITLES) == {one.key: one.title for one in PRESETS}


@pytest.mark.parametrize("key", ["lora-8b", "serve-moe-671b", "segmentation-3d", "weather", "embeddings"])
def test_preset_is_answered_as_it_stands(browser: Client, key: str) -> None:
    sent = as_sent(browser.get(DESCRIPTION, {"preset": key}).content.decode())
    response = browser.post(DESCRIPTION, sent, follow=True)
    assert errors_of(response.content.decode()) == []
    assert response.status_code == 200
    assert Study.objects.get().result["workload"]["mode"] == preset_workload(key).mode


@pytest.mark.parametrize("name", ["Llama-3-8B", "Qwen3-235B-A22B", "GLM4.5", "BERT-large", "ResNet-50"])
def test_public_model_fills_in_the_form_that_means_it(browser: Client, name: str) -> None:
    html = browser.get(DESCRIPTION, {"model": name}).content.decode()
    response = browser.post(DESCRIPTION, {**as_sent(html), "batch_per_step": "64"})
    assert errors_of(response.content.decode()) == []
    workload = workload_from_json(Study.objects.get().inputs["workload"])
    known = find_model(name)
    assert known in (workload.model, workload.totals)


def test_an_earlier_question_can_be_changed_and_asked_again(browser: Client) -> None:
    told = {
        "kind": "inference",
        "output_tokens": "64",
        "weight_bits": "8",
        "anchor_accelerator": "a100-sxm4-80",
        "anchor_gpus": "8",
        "anchor_step_s": "2.5",
        "gpus": "4",
        "pricing": ["spot", "reserved_1y"],
    }
    study_page = browser.post(DESCRIPTION, description(**told), follow=True).content.decode()
    first = Study.objects.get()
    address = f"{DESCRIPTION}?study={first.pk}"
    assert f'href="{address}"' in study_page
    sent = as_sent(browser.get(address).content.decode())
    browser.post(DESCRIPTION, sent)
    again = Study.objects.exclude(pk=first.pk).get()
    assert (again.title, again.inputs) == (first.title, first.inputs)


def test_questions_of_others_stay_theirs(browser: Client) -> None:
    browser.post(DESCRIPTION, description())
    study = Study.objects.get()
    other = Client(headers={"host": "localhost"})
    for key in (str(study.pk), "x", "0" * 32):
        assert as_sent(other.get(DESCRIPTION, {"study": key}).content.decode())["layers"] == ""


def config(**sent: Any) -> dict[str, Any]:
    return {"start": "config", "config_text": "", **sent}


def test_pasted_config_fills_in_the_shape(browser: Client) -> None:
    response = browser.post(DESCRIPTION, config(config_text=json.dumps(LLAMA3_8B)))
    html = response.content.decode()
    assert response.status_code == 200
    assert "The shape is filled in from config.json." in html
    assert not Study.objects.exists()
    browser.post(DESCRIPTION, {**as_sent(html), "batch_per_step": "64"})
    assert workload_from_json(Study.objects.get().inputs["workload"]).model == read_config(LLAMA3_8B).shape


def test_uploaded_config_fills_in_the_shape(browser: Client) -> None:
    upload = SimpleUploadedFile("config.json", json.dumps(LLAMA3_8B).encode())
    response = browser.post(DESCRIPTION, config(config_file=upload))
    assert as_sent(response.content.decode())["layers"] == str(LLAMA3_8B["num_hidden_layers"])


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({}, "Paste the text, or choose the file."),
        ({"config_text": "{"}, "This is not a JSON document"),
        ({"config_text": "[" * 100_000}, "This is not a JSON document"),
        ({"config_text": "[1]"}, "must be an object"),
        ({"config_text": '{"model_type": "mamba"}'}, "state space"),
        ({"config_text": '{"hidden_size": ' + "9" * 5000 + "}"}, "This is not a JSON document"),
        ({"config_text": '{"a": "' + "x" * 256 * 1024 + '"}'}, "This is larger than 256 KiB"),
        ({"config_file": SimpleUploadedFile("config.json", b"\xff\xfe\0")}, "This is not a JSON document"),
        ({"config_file": SimpleUploadedFile("config.json", b" " * 300_000)}, "This is larger than 256 KiB"),
        ({"config_file": SimpleUploadedFile("config.json", b"")}, "Paste the text, or choose the file."),
    ],
    ids=["nothing", "cut", "deep", "list", "mamba", "huge number", "long", "binary", "large file", "empty file"],
)
def test_config_that_cannot_be_read_is_refused_beside_its_field(
    browser: Client, sent: dict[str, Any], sentence: str
) -> None:
    response = browser.post(DESCRIPTION, config(**sent))
    html = response.content.decode()
    assert response.status_code == 422
    assert sentence in html
    assert re.search(r'<details class="fold" open>\s*<summary>or a model', html)
    assert len(html) < 400_000 + len(sent.get("config_text", ""))
