"""A browser, a key of the API, and a loaded catalog that is taken back after each module."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from rest_framework_api_key.models import APIKey

from catalog.loading import load_catalog


@pytest.fixture
def key(db: None) -> dict[str, str]:
    """Headers of a caller of the API."""
    return {"Authorization": f"Api-Key {APIKey.objects.create_key(name='sales')[1]}"}


@pytest.fixture
def browser() -> Client:
    return Client(headers={"host": "localhost"})


@pytest.fixture(scope="module")
def shipped_catalog(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), transaction.atomic():
        load_catalog()
        yield
        transaction.set_rollback(True)
