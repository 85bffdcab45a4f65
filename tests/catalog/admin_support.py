"""A small part of the shipped catalog, people who work on it, and forms as a browser sends them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.forms import CheckboxInput
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from catalog import columns
from catalog.groups import ensure_groups
from catalog.loading import load_catalog
from tests.catalog.conftest import write

SERVERS = {
    ("aws", "p4d.24xlarge"),
    ("aws", "p6-b200.48xlarge"),
    ("aws", "g5.12xlarge"),
    ("gcp", "ct5lp-hightpu-8t (v5e)"),
    ("hyperstack", "n3-H100x8-NVLink"),
    ("azure", "Standard_ND96isr_MI300X_v5"),
    ("reference", "Intel HLS-Gaudi2"),
    ("reference", "Dell PowerEdge XE8640"),
    ("reference", "Dell PowerEdge XE9680 H100"),
    ("reference", "Dell PowerEdge XE8545"),
}


@pytest.fixture(scope="module")
def few(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Ten servers with all that belongs to them, for one module; the folder of files that they are from."""
    directory = tmp_path_factory.mktemp("few")
    for name in ("providers", "accelerators", "regions", "servers", "fabrics", "cost_lines", "offers"):
        path = columns.DATA / f"{name}.csv"
        kept = [row for row in columns.cells(path) if _kept(name, row)]
        write(directory / path.name, kept)
    with django_db_blocker.unblock(), transaction.atomic():
        ensure_groups()
        load_catalog(directory)
        yield directory
        transaction.set_rollback(True)


def _kept(name: str, row: dict[str, str]) -> bool:
    if name in ("providers", "accelerators"):
        return True
    if name in ("regions", "cost_lines"):
        return row["provider"] == "aws" and not row.get("sku")
    return (row["provider"], row["sku"]) in SERVERS


def person(group: str, name: str = "") -> User:
    """A member of staff in one of the catalog's groups."""
    user = User.objects.create_user(name or group.split()[-1], is_staff=True)
    user.groups.add(Group.objects.get(name=group))
    return user


def signed_in(group: str, name: str = "") -> Client:
    client = Client()
    client.force_login(person(group, name))
    return client


def page(row: Any, action: str = "change") -> str:
    return reverse(f"admin:catalog_{row._meta.model_name}_{action}", args=[row.pk])


def add_page(model: Any) -> str:
    return reverse(f"admin:catalog_{model._meta.model_name}_add")


def filled(client: Client, url: str, **changes: Any) -> dict[str, Any]:
    """The data that a browser would send back from a form page, with some fields typed over."""
    return sent_back(client.get(url), **changes)


def sent_back(response: HttpResponse, **changes: Any) -> dict[str, Any]:
    """The same from a page that is already there."""
    context = response.context
    forms = [context["adminform"].form]
    for inline in context["inline_admin_formsets"]:
        forms += [inline.formset.management_form, *inline.formset.forms]
    fields = [field for form in forms for field in form]
    assert changes.keys() <= {field.html_name for field in fields}
    data: dict[str, Any] = {"as_shown": context["page"].sent}
    for field in fields:
        value = field.value()
        if value is False and isinstance(field.field.widget, CheckboxInput):
            continue
        data[field.html_name] = "" if value is None else value
    return data | changes


def save(client: Client, url: str, **changes: Any) -> HttpResponse:
    """Open a form, type, and save a draft."""
    return client.post(url, filled(client, url, **changes) | {"_save": "x"})


def sentences(response: HttpResponse) -> str:
    """What the forms of a page complain of."""
    context = response.context
    errors = [context["adminform"].form.errors, *(inline.formset.errors for inline in context["inline_admin_formsets"])]
    return " ".join(str(error) for error in errors)
