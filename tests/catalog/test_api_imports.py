"""Imports and printed names over REST: for keys with the scope, from upload to rollback."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from catalog.importers import jobs
from catalog.importers.names import normalised
from catalog.models import ImportJob, Offer, PrintedName, Server
from tests.catalog.api_support import CACHE, OFFER, caller, few_rows, pointers

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.catalog.urls"), pytest.mark.usefixtures("rows")]

IMPORTS = "/api/v1/imports/"
NAMES = "/api/v1/printed-names/"


@pytest.fixture
def rows(settings, tmp_path, monkeypatch):
    settings.CACHES = CACHE
    settings.MEDIA_ROOT = tmp_path
    monkeypatch.setattr(jobs, "send", lambda job_id: None)
    few_rows()


@pytest.fixture
def editor():
    return caller("catalog:write")


def offers_file(editor, price):
    """The offers as the catalog gives them, with another price."""
    text = editor.get("/api/v1/offers/", {"format": "csv"}).getvalue().decode()
    assert "16" in text
    return text.replace("16.000000", price).replace(",16,", f",{price},").encode()


def upload(client, content, **fields):
    said = {"list_format": "own", "table": "offers", "observed_on": "2026-07-21", **fields}
    return client.post(IMPORTS, {"file": SimpleUploadedFile("offers.csv", content), **said}, format="multipart")


def work_on(job_id):
    """What a worker does with the job."""
    jobs.execute(jobs.claim(job_id))


def test_a_list_is_compared_approved_and_taken_back(editor):
    accepted = upload(editor, offers_file(editor, "17.000000"))
    assert accepted.status_code == 202, accepted.content
    url = accepted["Location"]
    assert url == accepted.json()["status_url"]
    assert (accepted.json()["status"], accepted.json()["report"]) == ("queued", None)

    job_id = accepted.json()["id"]
    work_on(job_id)
    seen = editor.get(url).json()
    assert (seen["status"], seen["problem"]) == ("waiting", None), seen
    assert seen["report"]["counts"]
    assert Offer.objects.get().price_per_hour == 16

    assert editor.post(f"{url}approve/").status_code == 202
    again = editor.post(f"{url}approve/")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    work_on(job_id)
    assert editor.get(url).json()["status"] == "applied"
    assert Offer.objects.filter(price_per_hour=17).exists()

    assert editor.post(f"{url}roll-back/").json()["status"] == "rolled_back"
    assert Offer.objects.get().price_per_hour == 16


def test_a_list_is_rejected(editor):
    url = upload(editor, offers_file(editor, "17.000000"))["Location"]
    assert editor.post(f"{url}reject/").status_code == 409
    work_on(ImportJob.objects.get().pk)
    assert editor.post(f"{url}reject/").json()["status"] == "rejected"
    assert [row["status"] for row in editor.get(IMPORTS).json()["results"]] == ["rejected"]
    assert "report" not in editor.get(IMPORTS).json()["results"][0]


def test_what_an_upload_lacks_is_said_at_its_field(editor, settings):
    cases = [
        ({}, b"", "file"),
        ({"list_format": "xml"}, b"a", "list_format"),
        ({"table": "prices"}, b"a", "table"),
        ({"observed_on": "yesterday"}, b"a", "observed_on"),
        ({"observed_on": "2999-01-01"}, b"a", "observed_on"),
        ({"list_format": "skypilot", "source": "a", "source_licence": "MIT"}, b"a", "provider"),
        ({"list_format": "gpuhunt", "table": "offers"}, b"a", "source"),
        ({"provider": "nobody"}, b"a", "provider"),
        ({"source": "a\x00b"}, b"a", "source"),
        ({"source": "a\u202eb", "source_licence": "MIT"}, b"a", "source"),
        ({"colour": "red"}, b"a", "colour"),
    ]
    for fields, content, at in cases:
        answer = upload(editor, content, **fields)
        assert answer.status_code in (400, 422), (fields, answer.content)
        assert f"#/{at}" in pointers(answer), (fields, answer.content)
    assert editor.post(IMPORTS, {"list_format": "own"}, format="json").status_code == 415
    settings.IMPORT_MAX_BYTES = 1
    assert upload(editor, b"ab").status_code == 413
    announced = {"Content-Length": str(2**31 - 1)}
    unread = editor.generic("POST", IMPORTS, b"", "multipart/form-data; boundary=x", headers=announced)
    assert unread.status_code == 413
    assert not ImportJob.objects.exists()


def test_a_file_that_cannot_be_read_fails_with_a_sentence(editor):
    url = upload(editor, b"this is no table\n1,2\n")["Location"]
    work_on(ImportJob.objects.get().pk)
    seen = editor.get(url).json()
    assert seen["status"] == "failed"
    assert seen["problem"]["code"] and seen["problem"]["detail"]


@pytest.fixture
def name():
    Server.objects.update(accelerator=None, accelerator_printed="X1")
    known = normalised("X1")
    return PrintedName.objects.create(provider="acme", name="X1", normalised=known, suggestions=["x1-sxm-80"], rows=3)


def test_a_printed_name_is_decided_on(editor, name):
    (listed,) = editor.get(NAMES, {"state": "open"}).json()["results"]
    assert (listed["name"], listed["suggestions"], listed["accelerator"]) == ("X1", ["x1-sxm-80"], None)

    url = f"{NAMES}{name.pk}/"
    answer = editor.post(f"{url}decide/", {"accelerator": "x1-sxm-80"}, format="json")
    assert answer.status_code == 200, answer.content
    assert (answer.json()["state"], answer.json()["servers"]) == ("mapped", 1)
    assert Server.objects.get().accelerator.key == "x1-sxm-80"
    assert editor.post(f"{url}decide/", {"accelerator": None}, format="json").status_code == 409
    assert editor.get(url).json()["accelerator"] == "x1-sxm-80"


def test_a_printed_name_is_none(editor, name):
    answer = editor.post(f"{NAMES}{name.pk}/decide/", {"accelerator": None}, format="json")
    assert (answer.json()["state"], answer.json()["servers"]) == ("rejected", 0)


def test_a_decision_that_is_none_is_refused(editor, name):
    for body, at in [
        ({}, "accelerator"),
        ({"accelerator": 5}, "accelerator"),
        ({"accelerator": "h900"}, "accelerator"),
    ]:
        answer = editor.post(f"{NAMES}{name.pk}/decide/", body, format="json")
        assert answer.status_code in (400, 422)
        assert pointers(answer) == [f"#/{at}"]
    assert editor.post(f"{NAMES}{name.pk}/decide/", {"acc": None}, format="json").status_code == 400
    assert editor.post(f"{NAMES}999/decide/", {"accelerator": None}, format="json").status_code == 404


def test_readers_see_none_of_this(name):
    reader = caller()
    for path in (IMPORTS, NAMES, f"{NAMES}{name.pk}/", f"{IMPORTS}00000000-0000-0000-0000-000000000000/"):
        assert reader.get(path).status_code == 403
    assert upload(reader, b"a").status_code == 403
    assert reader.post(f"{NAMES}{name.pk}/decide/", {"accelerator": None}, format="json").status_code == 403
    assert OFFER["region"] == Offer.objects.get().region
