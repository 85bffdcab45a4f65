"""What tests of the admin's import pages share."""

import re

from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from catalog.groups import ensure_groups
from catalog.models import ImportJob, Provider
from tests.catalog.lists import SOURCE, imported, row, sky

LIST = "admin:catalog_importjob_changelist"
HELD_BACK = "admin:catalog_heldback"
HOSTILE = "<img src=x onerror=alert(1)>"


def of_group(name: str) -> Client:
    ensure_groups()
    user = User.objects.create_user(name.replace(" ", "-").lower(), is_staff=True)
    user.groups.add(Group.objects.get(name=name))
    client = Client()
    client.force_login(user)
    return client


def job_page(job: ImportJob, name: str = "change") -> str:
    return reverse(f"admin:catalog_importjob_{name}", args=[job.pk])


def form(content: bytes = b"", **typed: object) -> dict[str, object]:
    """What the upload form sends."""
    given = {
        "file": SimpleUploadedFile("vms.csv", content),
        "list_format": "skypilot",
        "table": "",
        "provider": Provider.objects.get(key="aws").pk,
        "source": SOURCE,
        "source_licence": "facts-only",
        "observed_on": "2026-11-01",
        "observed_precision": "day",
    }
    return given | typed


def upload(client: Client, content: bytes, **typed: object):
    return client.post(reverse("admin:catalog_importjob_add"), form(content, **typed))


def decide(client: Client, job: ImportJob, decision: str, reason: str = "because"):
    return client.post(job_page(job, "decide"), {"decision": decision, "reason": reason}, follow=True)


def text(response) -> str:
    """What a reader sees, without tags and with single spaces."""
    html = response.content.decode()
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def with_one_held_back() -> ImportJob:
    """The second list doubles the price of g5.12xlarge in one step."""
    imported(sky(row(price="5.6"), row(region="us-west-2", price="5.7")))
    return imported(sky(row(price="11.3"), row(region="us-west-2", price="5.8")), "2026-11-08")
