"""Chromium on the pages of a live server, with everything it complains about written down."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from catalog.loading import load_catalog
from tests.browser.chromium import Complaints

# Playwright runs an event loop in the test's thread; the ORM is used there between its calls, never inside one.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


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
