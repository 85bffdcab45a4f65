"""The buyer's way through the pages, in Chromium."""

import json
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, expect

from advisor import services
from advisor.models import Study
from advisor.sample import ensure_sample_study
from profiling import parts, runs
from tests.advisor.page_support import reading_study
from tests.profiling.hf_configs import LLAMA3_8B
from tests.workers import answer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def assert_usable(page: Page) -> None:
    """No finding of axe, nothing wider than the screen."""
    found = Axe().run(page).response["violations"]
    assert [f"{one['id']}: {one['nodes'][0]['html']}" for one in found] == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def unfold(page: Page) -> None:
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")


def assert_drawn(page: Page) -> None:
    """Every chart is there."""
    for image in page.locator("figure img").all():
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("complete", True)
        assert image.evaluate("image => image.naturalWidth") > 200


@pytest.mark.parametrize(
    "address",
    ["/", "/studies/", "/studies/new/capture/", "/studies/new/description/", "/docs/problems/"],
)
def test_page_is_usable(page: Page, address: str) -> None:
    page.goto(address)
    assert_usable(page)


def test_described_job_gets_its_answer(page: Page, catalog: None) -> None:
    page.goto("/")
    page.locator("main").get_by_role("link", name="Describe a job").click()
    page.get_by_label("a typical job").select_option("finetune-8b")
    page.get_by_role("button", name="Fill in this job").click()
    expect(page.get_by_role("status")).to_contain_text("The form is filled in")
    expect(page.get_by_label("Batch per step (samples)")).to_have_value("128")
    assert_usable(page)
    page.get_by_role("button", name="Find servers").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Fine-tuning all of an 8B language model")
    expect(page.locator(".verdict-sentence")).to_contain_text("NVLink")
    unfold(page)
    assert_drawn(page)
    assert_usable(page)


def test_ways_to_divide_a_job_stand_side_by_side(page: Page, catalog: None) -> None:
    page.goto("/studies/new/description/?preset=finetune-8b")
    page.get_by_label("Number of GPUs").select_option("8")
    page.get_by_role("button", name="Find servers").click()
    methods = page.get_by_role("region", name="Ways to divide the job")
    table = methods.get_by_role("table").first
    for name in ("ZeRO-3 or FSDP", "tensor parallel", "pipeline parallel"):
        expect(table.get_by_role("rowheader", name=name).first).to_be_visible()
    expect(table).to_contain_text("short on each GPU")
    unfold(page)
    assert methods.locator("figure img").count() >= 2
    assert_drawn(page)
    assert_usable(page)


def test_fields_follow_the_kind_of_job_and_of_model(page: Page) -> None:
    """In CSS alone: nothing is hidden from a browser without it, and nothing that counts is hidden."""
    page.goto("/studies/new/description/")
    kind, answer = page.get_by_label("The job is"), page.get_by_label("Tokens of an answer")
    rank, bits = page.get_by_label("Rank of the adapters"), page.get_by_label("Weights are stored in")
    shown = {"training": (0, 0, 0), "qlora": (0, 1, 1), "inference": (1, 0, 1), "full": (0, 0, 0)}
    for name, visible in shown.items():
        kind.select_option(name)
        for field, is_shown in zip((answer, rank, bits), visible, strict=True):
            expect(field).to_be_visible(visible=bool(is_shown))
    kind.select_option("inference")
    page.get_by_label("another network").check()
    for label, is_shown in (("Layers", False), ("Kernels of a forward pass", True), ("Tokens of an answer", False)):
        expect(page.get_by_label(label, exact=False).first).to_be_visible(visible=is_shown)
    unfold(page)
    assert_usable(page)


def test_a_public_model_is_served_with_answers(page: Page, catalog: None) -> None:
    page.goto("/studies/new/description/")
    page.get_by_label("a public model").select_option("Qwen3-30B-A3B")
    page.get_by_role("button", name="Fill in this model").click()
    expect(page.get_by_label("Experts in a layer")).to_have_value("128")
    page.get_by_label("The job is").select_option("inference")
    page.get_by_label("Batch per step (samples)").fill("32")
    page.get_by_label("Tokens of an answer").fill("256")
    page.get_by_label("Precision").select_option("fp8")
    page.get_by_role("button", name="Find servers").click()
    expect(page.get_by_role("table", name="Ranked offers")).to_contain_text("first token")
    assert_usable(page)


def test_a_config_fills_in_the_shape(page: Page, catalog: None, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA3_8B))
    page.goto("/studies/new/description/")
    page.get_by_text("or a model's config.json").click()
    assert_usable(page)
    page.get_by_label("or the file").set_input_files(config)
    page.get_by_role("button", name="Fill in this shape").click()
    expect(page.get_by_role("status")).to_contain_text("filled in from config.json")
    expect(page.locator("#id_layers")).to_have_value("32")
    page.get_by_label("Batch per step (samples)").fill("64")
    page.get_by_role("button", name="Find servers").click()
    expect(page.locator(".verdict-sentence")).to_contain_text("NVLink")


def test_a_config_that_cannot_be_read_is_said_beside_its_field(plain_page: Page) -> None:
    plain_page.goto("/studies/new/description/")
    plain_page.get_by_text("or a model's config.json").click()
    plain_page.get_by_label("Its text").fill('{"model_type": "mamba"}')
    plain_page.get_by_role("button", name="Fill in this shape").click()
    expect(plain_page.locator("#error_1_id_config_text")).to_contain_text("state space")
    expect(plain_page.get_by_label("Its text")).to_have_value('{"model_type": "mamba"}')


def test_a_network_that_is_no_transformer_is_answered(page: Page, catalog: None) -> None:
    page.goto("/studies/new/description/?preset=resnet50-augmented")
    expect(page.get_by_label("Kind of model")).to_have_value("cnn")
    expect(page.get_by_label("Time of one CPU core for a sample (ms)")).to_be_visible()
    page.get_by_role("button", name="Find servers").click()
    expect(page.get_by_role("heading", name="Where a step's time goes")).to_be_visible()
    assert_usable(page)


def test_wrong_value_moves_the_focus_to_the_summary(plain_page: Page, catalog: None) -> None:
    plain_page.goto("/studies/new/description/?preset=pretrain-bert-large")
    plain_page.get_by_label("Attention heads").fill("15")
    plain_page.get_by_role("button", name="Find servers").click()
    summary = plain_page.locator(".error-summary")
    expect(summary).to_be_focused()
    expect(summary).to_contain_text("The hidden size must be a multiple")
    expect(plain_page.get_by_label("Attention heads")).to_have_value("15")


def test_upload_is_followed_to_its_end(page: Page, catalog: None, tmp_path: Path) -> None:
    """The worker is played here, so that each state is seen: waiting, at work, ended."""
    trace = tmp_path / "rank0.json"
    trace.write_text('{"schemaVersion": 1, "traceEvents": []}')
    page.goto("/studies/new/capture/")
    page.get_by_label("Capture files").set_input_files(trace)
    page.get_by_role("button", name="Upload and find servers").click()
    status = page.get_by_role("status")
    expect(status).to_contain_text("Waiting for the worker")
    assert_usable(page)
    study = Study.objects.get()
    part = runs.claim(study.run.parts.get().pk)
    assert part is not None
    part.begin("read")
    expect(status).to_contain_text("Step 1 of 4: Reading the capture")
    parts.read_part(part)
    claimed = runs.claim(study.run_id)
    assert claimed is not None
    services.answer_capture_study(claimed)
    expect(page.get_by_role("alert")).to_contain_text("There is no answer")
    expect(page.locator("main")).to_contain_text("No events recorded")
    assert_usable(page)


def test_sample_study_is_usable(page: Page, catalog: None) -> None:
    study = ensure_sample_study(today=timezone.now().date())
    answer(study.run)
    page.goto("/")
    page.get_by_role("link", name="Look at the sample study").click()
    expect(page.locator(".verdict-sentence")).to_contain_text("NVLink")
    unfold(page)
    assert_usable(page)
    expect(page.get_by_text("Delete this study")).to_have_count(0)


def test_reading_of_many_files_is_usable_and_followed(page: Page, client: Client) -> None:
    study = reading_study(client, *["done"] * 22, "failed", *["running"] * 4, *["queued"] * 37)
    page.goto("/")
    page.context.add_cookies([{"name": "sessionid", "value": client.session.session_key, "url": page.url}])
    page.goto(study.get_absolute_url())
    table = page.get_by_role("table", name="23 of 64 files read")
    expect(table.get_by_role("row")).to_have_count(65)
    assert_usable(page)
    study.run.parts.filter(status="running").update(status="done")
    expect(page.get_by_role("table", name="27 of 64 files read")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("Step 1 of 4: Reading the capture")


def test_files_without_a_timeline_lead_to_the_recipes(page: Page, catalog: None, tmp_path: Path) -> None:
    topology = tmp_path / "topology.txt"
    topology.write_text("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-31\nGPU1\tNV12\t X \t0-31\n")
    page.goto("/studies/new/capture/")
    page.get_by_label("Capture files").set_input_files(topology)
    page.get_by_role("button", name="Upload and find servers").click()
    page.wait_for_url("**/studies/*-*/")
    answer(Study.objects.get().run)
    expect(page.locator(".verdict-sentence")).to_contain_text("nothing can be predicted")
    expect(page.get_by_role("heading", name="What the files tell")).to_be_visible()
    assert_usable(page)
    page.get_by_role("link", name="How to capture, and upload again").click()
    expect(page.get_by_role("heading", name="How to capture")).to_be_in_viewport()
    page.get_by_text("Nsight Systems", exact=True).click()
    expect(page.get_by_text("nsys export --type=sqlite")).to_be_visible()
    assert_usable(page)


def test_everything_works_without_javascript(plain_page: Page, catalog: None) -> None:
    plain_page.goto("/studies/new/description/")
    plain_page.get_by_label("a typical job").select_option("finetune-8b")
    plain_page.get_by_role("button", name="Fill in this job").click()
    plain_page.get_by_role("button", name="Find servers").click()
    expect(plain_page.locator(".verdict-sentence")).to_contain_text("NVLink")
    plain_page.get_by_text("Delete this study").click()
    plain_page.get_by_role("button", name="Delete for good").click()
    expect(plain_page.get_by_role("status")).to_contain_text("deleted")


def test_language_is_switched_in_the_footer(page: Page) -> None:
    page.goto("/docs/problems/")
    page.get_by_role("button", name="繁體中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-hant")
    assert page.url.endswith("/docs/problems/")
