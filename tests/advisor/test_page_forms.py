"""The two forms: what is wrong is said beside its field, what was typed stays, a double click makes one study."""

import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from advisor.models import Study
from profiling.models import Trace
from profiling.workload import ModelShape
from profiling.workload_json import workload_from_json, workload_to_json
from tests.advisor.form_reader import as_sent
from tests.advisor.page_support import capture, description, errors_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shipped_catalog")]

DESCRIPTION, CAPTURE = "/studies/new/description/", "/studies/new/capture/"


def test_description_becomes_the_workload_that_was_meant(browser: Client) -> None:
    response = browser.post(DESCRIPTION, description(title="my job", micro_batch="2", gpus="8", pricing=["spot"]))
    study = Study.objects.get()
    assert response.headers["Location"] == reverse("study", args=[study.pk])
    workload, goal = study.inputs["workload"], study.inputs["goal"]
    assert (study.title, workload["batch_per_step"], workload["micro_batch"]) == ("my job", 64, 2)
    assert ModelShape(**workload["model"]) == ModelShape(
        layers=32,
        hidden=4096,
        heads=32,
        kv_heads=8,
        ffn_hidden=14336,
        vocabulary=128256,
        sequence_length=4096,
        gated_mlp=True,
        parameters=8.03e9,
    )
    assert (goal["objective"], goal["samples"], goal["gpus"], goal["pricing_models"]) == ("cost", 1e5, 8, ["spot"])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"batch_per_step": "-4"}, "Enter a whole number from 1 to 10,000,000."),
        ({"batch_per_step": "many"}, "Enter a whole number from 1 to 10,000,000."),
        ({"batch_per_step": "9" * 5000}, "Enter a whole number from 1 to 10,000,000."),
        ({"layers": "0"}, "Enter a whole number from 1 to 1,000."),
        ({"samples": "nan"}, "Enter a number from 1 to"),
        ({"samples": "-1"}, "Enter a number from 1 to"),
        ({"parameters_billions": "1e400"}, "Enter a number from"),
        ({"heads": "33", "kv_heads": None}, "The hidden size must be a multiple of the number of attention heads."),
        ({"kv_heads": "5"}, "The attention heads must be a multiple of the key and value heads."),
        ({"micro_batch": "65"}, "The micro-batch cannot be larger than the batch per step."),
        ({"pricing": []}, "Choose at least one kind of price."),
        ({"precision": "int3"}, "Select a valid choice."),
        ({"gpus": "3"}, "Select a valid choice."),
        ({"title": "x" * 121}, "at most 120 characters"),
    ],
)
def test_wrong_value_gives_one_sentence_and_keeps_the_rest(
    browser: Client, changes: dict[str, Any], sentence: str
) -> None:
    response = browser.post(DESCRIPTION, description(**{"title": "kept & safe", **changes}))
    html = response.content.decode()
    assert response.status_code == 422
    assert len(errors_of(html)) == 1
    assert sentence in errors_of(html)[0]
    assert "autofocus" in html
    assert "title" in changes or 'value="kept &amp; safe"' in html
    assert not Study.objects.exists()


@pytest.mark.parametrize(
    ("changes", "meant"),
    [
        ({"kind": "full"}, {"mode": "training"}),
        ({"kind": "lora", "lora_rank": "8"}, {"mode": "training", "lora_rank": 8}),
        ({"kind": "qlora"}, {"mode": "training", "lora_rank": 16, "weight_bits": 4}),
        (
            {"kind": "inference", "output_tokens": "256", "weight_bits": "4", "precision": "fp4"},
            {"mode": "inference", "output_tokens": 256, "weight_bits": 4, "precision": "fp4"},
        ),
        ({"gradient_bits": "8", "stack": "megatron-core"}, {"gradient_bits": 8, "stack": "megatron-core"}),
        (
            {"input_cpu_ms": "12.5", "input_kilobytes": "110"},
            {"input_pipeline": {"cpu_s_per_sample": 0.0125, "bytes_per_sample": 110_000}},
        ),
        (
            {"anchor_accelerator": "a100-sxm4-80", "anchor_gpus": "8", "anchor_step_s": "9.5"},
            {"anchor": {"accelerator_key": "a100-sxm4-80", "gpus": 8, "step_s": 9.5, "batch_per_step": 64}},
        ),
    ],
    ids=["full", "lora", "qlora", "serving", "exchange", "input", "anchor"],
)
def test_what_is_told_of_the_job_reaches_the_workload(
    browser: Client, changes: dict[str, Any], meant: dict[str, Any]
) -> None:
    response = browser.post(DESCRIPTION, description(**changes))
    assert errors_of(response.content.decode()) == []
    workload = Study.objects.get().inputs["workload"]
    assert {name: workload.get(name) for name in meant} == meant
    assert workload_to_json(workload_from_json(workload)) == workload


def test_fields_that_other_answers_make_pointless_are_ignored(browser: Client) -> None:
    """They are hidden then, so that nobody could correct an error in them."""
    stale = {"output_tokens": "-1", "lora_rank": "x", "weight_bits": "3", "totals_gflop": "-5", "totals_kernels": "0"}
    browser.post(DESCRIPTION, description(**stale))
    workload = Study.objects.get().inputs["workload"]
    assert (workload["output_tokens"], workload.get("lora_rank"), workload.get("weight_bits")) == (0, None, None)
    assert "totals" not in workload


def test_a_network_by_its_totals_needs_no_shape(browser: Client) -> None:
    totals = {
        "totals_family": "cnn",
        "totals_parameters_millions": "25.557032",
        "totals_gflop": "8.18",
        "totals_traffic_mb": "190",
        "totals_activation_mb": "95",
        "totals_kernels": "175",
    }
    sent = {"model_kind": "totals", "layers": "0", "title": None, **totals}
    response = browser.post(DESCRIPTION, description(**sent))
    assert errors_of(response.content.decode()) == []
    study = Study.objects.get()
    assert "model" not in study.inputs["workload"]
    assert study.inputs["workload"]["totals"] == {
        "family": "cnn",
        "parameters": 25_557_032,
        "flops_per_sample": 8.18e9,
        "traffic_bytes_per_sample": 1.9e8,
        "activation_bytes_per_sample": 9.5e7,
        "kernels_per_pass": 175,
        "embedding_parameters": 0,
        "embedding_values_per_sample": 0,
    }
    assert study.result["offers"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"layers": None}, "This field is required."),
        ({"model_kind": "totals", "totals_family": "cnn", "totals_kernels": "9"}, "This field is required."),
        ({"experts": "8"}, "A mixture of experts needs their number"),
        ({"experts": "8", "experts_per_token": "9", "expert_ffn": "64"}, "A token cannot use more experts than there"),
        ({"experts": "8", "experts_per_token": "2", "dense_layers": "33"}, "The model does not have so many layers."),
        ({"windowed_layers": "4"}, "Say how many tokens the window has"),
        ({"attention_window": "4"}, "Say how many tokens the window has"),
        ({"query_latent": "512"}, "needs kv_latent"),
        ({"anchor_gpus": "8", "anchor_step_s": "1"}, "Fill in this field too, or empty the whole section."),
        ({"anchor_accelerator": "abacus"}, "Select a valid choice."),
        ({"stack": "abacus"}, "Select a valid choice."),
        ({"input_cpu_ms": "-1"}, "Enter a number from 0 to"),
    ],
)
def test_what_does_not_go_together_is_said_beside_its_field(
    browser: Client, changes: dict[str, Any], sentence: str
) -> None:
    response = browser.post(DESCRIPTION, description(**changes))
    html = response.content.decode()
    assert response.status_code == 422
    assert any(sentence in error for error in errors_of(html))
    assert not Study.objects.exists()
    names = [name for name in changes if changes[name]]
    assert {name: as_sent(html)[name] for name in names if "abacus" not in changes[name]} == {
        name: changes[name] for name in names if "abacus" not in changes[name]
    }


def test_errors_are_summed_up_in_the_order_of_the_page(browser: Client) -> None:
    sent = description(layers="0", anchor_gpus="8", anchor_step_s="0", batch_per_step="", samples="-1")
    html = browser.post(DESCRIPTION, sent).content.decode()
    places = [html.index(f'id="{name}"') for name in re.findall(r'<li><a href="#(\w+)"', html)]
    assert len(places) == 5
    assert places == sorted(places)


def test_adapters_of_a_network_by_its_totals_are_refused(browser: Client) -> None:
    response = browser.post(
        DESCRIPTION,
        {
            **as_sent(browser.get(DESCRIPTION, {"model": "ResNet-50"}).content.decode()),
            "kind": "lora",
            "batch_per_step": "8",
        },
    )
    assert "Adapters are predicted for transformers alone." in errors_of(response.content.decode())[0]


def test_a_section_with_a_value_or_an_error_is_unfolded(browser: Client) -> None:
    def unfolded(html: str) -> list[str]:
        return re.findall(r'<details class="fold" open>\s*<summary>(.*?)</summary>', html)

    assert unfolded(browser.get(DESCRIPTION).content.decode()) == []
    assert unfolded(browser.get(DESCRIPTION, {"model": "Qwen3-235B-A22B"}).content.decode())[0] == "Mixture of experts"
    refused = browser.post(DESCRIPTION, description(input_cpu_ms="-1")).content.decode()
    assert unfolded(refused) == ["Input: what a sample costs the CPU and the storage"]


def test_hostile_title_stays_text(browser: Client) -> None:
    study = browser.post(DESCRIPTION, description(title="</title><script>alert(1)</script>\u202e"), follow=True)
    html = study.content.decode()
    assert "<script>alert" not in html
    assert "\u202e" not in html


def test_double_click_makes_one_study_and_a_changed_form_another(browser: Client) -> None:
    sent = description()
    first, second = (browser.post(DESCRIPTION, sent).headers["Location"] for _ in range(2))
    changed = browser.post(DESCRIPTION, {**sent, "batch_per_step": "128"}).headers["Location"]
    assert first == second != changed
    assert Study.objects.count() == 2


def test_same_form_from_two_browsers_makes_two_studies(browser: Client) -> None:
    other = Client(headers={"host": "localhost"})
    addresses = {client.post(DESCRIPTION, description()).headers["Location"] for client in (browser, other)}
    assert len(addresses) == 2


def test_capture_waits_for_a_worker_under_its_file_name(browser: Client) -> None:
    response = browser.post(CAPTURE, capture(("../../<b>rank0.json", b"{}"), batch_per_step="8", precision="fp16"))
    study = Study.objects.get()
    assert response.headers["Location"] == reverse("study", args=[study.pk])
    assert (study.title, study.run.status) == ("<b>rank0.json", "queued")
    assert study.inputs["hints"]["batch_per_step"] == 8
    assert "&lt;b&gt;rank0.json" in browser.get(response.headers["Location"]).content.decode()


def test_gpu_of_the_capture_can_be_named(browser: Client) -> None:
    browser.post(CAPTURE, capture(("rank0.json", b"{}"), accelerator="h100-sxm5-80"))
    assert Study.objects.get().inputs["hints"]["accelerator"] == "h100-sxm5-80"


def test_several_files_are_one_capture(browser: Client) -> None:
    browser.post(CAPTURE, capture(("rank0.json", b"{}"), ("rank1.json", b"[]")))
    assert Trace.objects.get().files.count() == 2


def test_double_click_on_upload_makes_one_study(browser: Client) -> None:
    number = str(uuid.uuid4())
    for _ in range(2):
        browser.post(CAPTURE, capture(("rank0.json", b"{}"), study_id=number))
    assert (Study.objects.count(), Trace.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (lambda: capture(), "Choose at least one file."),
        (lambda: capture(("a.json", b"{}"), ("b.json", b"")), "b.json: Empty file"),
        (lambda: capture(("a.json", b"{}"), ("b.pdf", b"%PDF-1.7\n\0\1\2")), "b.pdf: "),
        (lambda: capture(("a.json", b"{}"), batch_per_step="-1"), "Enter a whole number from 1 to 10,000,000."),
        (lambda: capture(("a.json", b"{}"), layers="12", hidden="768", heads="12", vocabulary="50257"), "Fill in this"),
    ],
    ids=["no file", "empty file", "unreadable file", "negative batch", "half a shape"],
)
def test_wrong_upload_gives_one_sentence_and_stores_nothing(browser: Client, sent: Any, sentence: str) -> None:
    response = browser.post(CAPTURE, sent())
    assert response.status_code == 422
    (error,) = errors_of(response.content.decode())
    assert sentence in error
    assert (Study.objects.count(), Trace.objects.count()) == (0, 0)


def test_upload_over_the_limit_is_413(browser: Client, settings: Any) -> None:
    settings.UPLOAD_MAX_BYTES = 10
    response = browser.post(CAPTURE, capture(("a.json", b"{" + b" " * 20 + b"}")))
    assert response.status_code == 413
    assert "the limit is 10" in errors_of(response.content.decode())[0]


def test_too_many_files_are_refused_in_words(browser: Client) -> None:
    response = browser.post(CAPTURE, capture(*[(f"rank{n}.json", b"{}") for n in range(65)]))
    assert response.status_code in (413, 422)
    assert "65 files were sent; the limit is 64." in response.content.decode()
    assert not Trace.objects.exists()


def test_limits_stand_beside_the_file_field(browser: Client) -> None:
    html = browser.get(CAPTURE).content.decode()
    assert "At most 64 files and 2 GiB together, 16 GiB when unpacked" in html
    assert "export_chrome_trace" in html
    assert all(kind in html for kind in ("Timelines", "Sums and samples", "Facts about job and machine"))
