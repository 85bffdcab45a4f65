"""The buyer's way through the pages, in Chromium."""

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
from tests.workers import answer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def assert_usable(page: Page) -> None:
    """No serious finding of axe, nothing wider than the screen."""
    found = Axe().run(page).response["violations"]
    serious = [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in ("serious", "critical")]
    assert serious == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


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
    page.get_by_role("link", name="Fine-tuning Llama 3.1 8B").click()
    page.get_by_role("button", name="Find servers").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Fine-tuning Llama 3.1 8B")
    expect(page.locator(".verdict-sentence")).to_contain_text("NVLink")
    page.get_by_text("The figures of this chart").first.click()
    for image in page.locator("figure img").all():
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("complete", True)
        assert image.evaluate("image => image.naturalWidth") > 200
    assert_usable(page)


def test_wrong_value_moves_the_focus_to_the_summary(chromium: object, plain_page: Page, catalog: None) -> None:
    plain_page.goto("/studies/new/description/?example=bert-large")
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
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
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
    plain_page.goto("/studies/new/description/?example=llama-3.1-8b")
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
