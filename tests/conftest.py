"""What holds for every test."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.utils import translation


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Each test starts in English: a request leaves its language active in the thread that served it."""
    with translation.override(settings.LANGUAGE_CODE):
        yield
