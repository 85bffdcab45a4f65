"""What holds for every test."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.utils import translation
from hypothesis import settings as laws
from playwright.sync_api import sync_playwright

from tests.browser.chromium import ARGUMENTS, CHROMIUM

laws.register_profile("untimed", deadline=None)
laws.load_profile("untimed")


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Each test starts in English: a request leaves its language active in the thread that served it."""
    with translation.override(settings.LANGUAGE_CODE):
        yield


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
