"""Chromium on the pages of a live server, with everything it complains about written down."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, sync_playwright

from catalog.loading import load_catalog
from tests.browser.chromium import ARGUMENTS, CHROMIUM

# Playwright runs an event loop in the test's thread; the ORM is used there between its calls, never inside one.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


@dataclass(slots=True)
class Complaints:
    """What must stay empty: console errors, blocked content, requests to other hosts."""

    console: list[str] = field(default_factory=list)
    other_hosts: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("console", lambda message: self.console.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("request", lambda request: self._request(request.url))

    def _request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "data" and parts.hostname != "localhost":
            self.other_hosts.append(url)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is missing; in CI browser tests are never skipped")
        pytest.skip("Chromium is missing (on Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def catalog(live_server: Any) -> None:
    load_catalog()


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture(params=[1280, 390], ids=["wide", "narrow"])
def page(request: pytest.FixtureRequest, chromium: Any, live_server: Any, complaints: Complaints) -> Iterator[Page]:
    """A fresh profile on a desktop's and on a phone's width."""
    size = {"width": request.param, "height": 900}
    context = chromium.new_context(base_url=live_server.url, viewport=size, locale="en")
    page = context.new_page()
    complaints.watch(page)
    yield page
    context.close()
    assert complaints.console == []
    assert complaints.other_hosts == []


@pytest.fixture
def plain_page(chromium: Any, live_server: Any) -> Iterator[Page]:
    """A browser without JavaScript."""
    context = chromium.new_context(base_url=live_server.url, java_script_enabled=False, locale="en")
    yield context.new_page()
    context.close()
