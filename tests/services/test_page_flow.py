"""A buyer's way through the pages with a real worker behind them: upload, watch, read the verdict."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from profiling.generate import write
from profiling.sample_capture import sample_capture
from tests.browser.chromium import Complaints
from tests.services.stack import Stack, running

pytestmark = [pytest.mark.services, pytest.mark.browser]


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running("sqlite") as started:
        yield started


def test_upload_progress_result(stack: Stack, chromium: Any, tmp_path: Path) -> None:
    files = [tmp_path / f"rank{rank}.json.gz" for rank in range(4)]
    for rank, path in enumerate(files):
        write(sample_capture(rank=rank, world_size=4), path)
    page, complaints = chromium.new_page(), Complaints()
    complaints.watch(page)

    page.goto(f"http://localhost:{stack.port}/studies/new/capture/")
    page.get_by_label("Capture files").set_input_files(files)
    page.get_by_label("Batch per step (samples)").fill("64")
    page.locator("main form button[type=submit]").click()
    expect(page.locator(".verdict-sentence")).to_be_visible(timeout=60_000)

    expect(page.locator(".verdict-sentence")).to_contain_text("NVLink")
    expect(page.get_by_role("heading", name="Offers, best first")).to_be_visible()
    assert (complaints.console, complaints.other_hosts) == ([], [])
