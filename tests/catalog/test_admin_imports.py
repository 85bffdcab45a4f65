"""Imports in the admin: upload, look, approve, roll back; who may do what."""

import csv
import io
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from catalog.groups import EDITOR, PUBLISHER, VIEWER
from catalog.importers import jobs
from catalog.models import CatalogRevision, Feed, ImportJob, Offer, PrintedName, Provider, Server
from catalog.models.imports import ImportStatus
from catalog.models.offer import OfferStatus
from tests.catalog.import_support import (
    HELD_BACK,
    HOSTILE,
    LIST,
    decide,
    form,
    job_page,
    of_group,
    text,
    upload,
    with_one_held_back,
)
from tests.catalog.lists import SOURCE, imported, row, sky, start, work

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.urls("tests.catalog.urls"),
    pytest.mark.usefixtures("shipped", "uploads"),
]

GETS = {
    "imports": LIST,
    "held back": HELD_BACK,
    "tables": "admin:catalog_tables",
    "names": "admin:catalog_printedname_changelist",
    "feeds": "admin:catalog_feed_changelist",
}


def test_a_list_is_uploaded_compared_approved_and_rolled_back(publisher):
    answer = upload(publisher, sky(row(price="5.6"), row(sku="p99.metal", card="QUANTUM X9", region="zz-new-1")))
    job = ImportJob.objects.get()
    assert answer.url == job_page(job)
    assert "waits for a worker" in text(publisher.get(answer.url))

    work(job)
    shown = text(publisher.get(job_page(job)))
    assert "2 rows were read" in shown
    assert "The catalog has no prices of this source yet." in shown
    assert "QUANTUM X9, form factor unknown" in shown
    assert "aws/zz-new-1" in shown
    assert not Offer.objects.filter(source=SOURCE).exists()

    assert "Approved: fits" in text(decide(publisher, job, "approve", "fits"))
    work(job)
    shown = text(publisher.get(job_page(job)))
    assert f"The catalog became revision {CatalogRevision.objects.latest('number').number}" in shown
    assert "2 offers came from it" in shown
    made = publisher.get(reverse("admin:catalog_offer_changelist"), {"import_job__id__exact": str(job.pk)})
    assert made.context["cl"].result_count == 2

    assert "Rolled back: wrong list" in text(decide(publisher, job, "roll_back", "wrong list"))
    assert not Offer.objects.filter(source=SOURCE).exists()
    assert "Rolled back: wrong list" in text(publisher.get(job_page(job, "history")))


def test_changes_are_shown_with_their_share(publisher):
    imported(sky(row(price="5.6")))
    job = work(start(sky(row(price="7.0")), "2026-11-08"))
    shown = text(publisher.get(job_page(job)))
    assert "5.60 USD 7.00 USD +25.0 %" in shown


def test_a_rejected_import_leaves_the_catalog_and_needs_a_reason(publisher):
    job = work(start(sky(row())))
    decide(publisher, job, "reject", "  ")
    job.refresh_from_db()
    assert job.status == ImportStatus.WAITING
    decide(publisher, job, "reject", "not ours")
    job.refresh_from_db()
    assert job.status == ImportStatus.REJECTED
    assert "does not wait for a decision" in text(decide(publisher, job, "approve"))
    assert not Offer.objects.filter(source=SOURCE).exists()


def test_a_failed_import_says_what_to_do(publisher):
    job = work(start(b"no,price,list\n1,2,3\n"))
    assert job.status == ImportStatus.FAILED
    assert jobs.problem_of(job) in publisher.get(job_page(job)).context["problem"]


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"list_format": ""}, "list_format"),
        ({"provider": ""}, "provider"),
        ({"source": " "}, "source"),
        ({"source_licence": ""}, "source_licence"),
        ({"list_format": "own"}, "table"),
        ({"list_format": "own", "table": "secrets"}, "table"),
        ({"observed_on": str(timezone.now().date() + timedelta(days=2))}, "observed_on"),
        ({"file": SimpleUploadedFile("a.csv", b"")}, "file"),
        ({"file": SimpleUploadedFile("a.csv", b"x" * 2000)}, "file"),
    ],
)
def test_each_mistake_stands_beside_its_field(editor, settings, typed, field):
    settings.IMPORT_MAX_BYTES = 1000
    answer = upload(editor, sky(row()), **typed)
    assert list(answer.context["form"].errors) == [field]
    assert not ImportJob.objects.exists()


def test_a_newer_copy_begins_with_what_was_typed_before(editor):
    job = start(sky(row()))
    again = editor.get(reverse("admin:catalog_importjob_add"), {"like": str(job.pk)}).context["form"]
    assert again["source"].value() == SOURCE
    assert again["provider"].value() == Provider.objects.get(key="aws").pk
    assert editor.get(reverse("admin:catalog_importjob_add"), {"like": "x"}).status_code == 200


def test_the_page_asks_for_itself_until_the_worker_is_done(editor):
    job = start(sky(row()))
    assert editor.get(job_page(job, "progress")).url == job_page(job)
    piece = editor.get(job_page(job, "progress"), headers={"HX-Request": "true"}).content.decode()
    assert f'hx-get="{job_page(job, "progress")}"' in piece
    assert 'http-equiv="refresh"' in editor.get(job_page(job)).content.decode()
    work(job)
    assert editor.get(job_page(job, "progress"), headers={"HX-Request": "true"})["HX-Refresh"] == "true"


def test_a_worker_that_does_not_come_is_said(editor):
    job = start(sky(row()))
    ImportJob.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    assert "No worker has taken this import yet." in text(editor.get(job_page(job)))


def test_a_table_goes_out_is_edited_and_comes_back(publisher):
    answer = publisher.get(reverse("admin:catalog_table_file", args=["servers", "csv"]))
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
    edited = next(one for one in rows if one["sku"] == "g5.12xlarge")
    edited["rack_units"] = "3"
    file = io.StringIO()
    writer = csv.DictWriter(file, edited)
    writer.writeheader()
    writer.writerow(edited)

    upload(publisher, file.getvalue().encode(), list_format="own", table="servers", provider="", source="")
    job = work(ImportJob.objects.get())
    assert "Rack units: not known → 3" in text(publisher.get(job_page(job)))
    decide(publisher, job, "approve", "measured")
    work(job)
    assert Server.objects.get(sku="g5.12xlarge").rack_units == 3


def test_tables_go_out_as_workbooks_too(editor):
    answer = editor.get(reverse("admin:catalog_table_file", args=["providers", "xlsx"]))
    assert b"".join(answer.streaming_content)[:2] == b"PK"
    assert editor.get(reverse("admin:catalog_table_file", args=["users", "csv"])).status_code == 404
    assert "Accelerators" in text(editor.get(reverse("admin:catalog_tables")))


def test_rows_that_cannot_be_right_are_told_line_by_line(publisher):
    content = b"provider,sku,accelerator,gpu_count,source,source_licence\naws,g5.12xlarge,a10g,0,x,facts-only\n"
    job = work(start(content, list_format="own", table="servers", provider=None, source=""))
    answer = publisher.get(job_page(job))
    assert "gpu_count: This number must be above zero" in text(answer)
    assert 'value="approve"' not in answer.content.decode()


def test_only_who_may_sees_and_decides():
    job = work(start(sky(row())))
    name = PrintedName.objects.create(name="N", normalised="N")
    feed = Feed.objects.create(name="f", url="https://lists.example.com/", list_format="gpuhunt")
    posts = [
        ("upload", reverse("admin:catalog_importjob_add"), {}),
        ("fetch", reverse("admin:catalog_feed_fetch", args=[feed.pk]), {}),
        ("name", reverse("admin:catalog_printedname_decide", args=[name.pk]), {"none": "1"}),
        ("release", reverse(HELD_BACK), {"decision": "release", "reason": "x"}),
        ("reject", job_page(job, "decide"), {"decision": "reject", "reason": "x"}),
    ]
    outsider = Client()
    outsider.force_login(User.objects.create_user("outsider", is_staff=True))
    clients = {"outsider": outsider, **{group: of_group(group) for group in (VIEWER, EDITOR, PUBLISHER)}}
    pages = [reverse(page) for page in GETS.values()] + [job_page(job), job_page(job, "progress")]
    for who, client in clients.items():
        seen = {client.get(page).status_code == 403 for page in pages}
        assert seen == {who == "outsider"}, who
        done = {what for what, address, data in posts if client.post(address, data).status_code != 403}
        assert (
            done
            == {
                "outsider": set(),
                VIEWER: set(),
                EDITOR: {"upload"},
                PUBLISHER: {"upload", "fetch", "name", "release", "reject"},
            }[who]
        )


def test_nobody_decides_by_following_a_link_or_from_another_site(publisher, settings):
    settings.CSRF_FAILURE_VIEW = "django.views.csrf.csrf_failure"
    job = work(start(sky(row())))
    assert publisher.get(job_page(job, "decide"), {"decision": "approve"}).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get(username="catalog-publisher"))
    assert strict.post(job_page(job, "decide"), {"decision": "approve"}).status_code == 403
    assert publisher.post(job_page(job, "decide"), {"decision": "delete"}).status_code == 404
    job.refresh_from_db()
    assert job.status == ImportStatus.WAITING


def test_hostile_names_are_text(publisher):
    file = SimpleUploadedFile("x.csv", sky(row(sku=HOSTILE, card=HOSTILE, region=HOSTILE), row(count="x", sku=HOSTILE)))
    file.name = f"../..\\{HOSTILE}\u202e.csv"
    publisher.post(reverse("admin:catalog_importjob_add"), form(file=file))
    job = work(ImportJob.objects.get())
    decide(publisher, job, "approve", HOSTILE)
    work(job)
    name = PrintedName.objects.get()
    Offer.objects.filter(import_job=job).update(
        status=OfferStatus.QUARANTINED, quarantine_reason=HOSTILE, printed={HOSTILE: HOSTILE}
    )
    pages = [reverse(page) for page in GETS.values()]
    pages += [job_page(job), job_page(job, "history"), reverse("admin:catalog_printedname_change", args=[name.pk])]
    for page in pages:
        html = publisher.get(page).content.decode()
        assert HOSTILE not in html, page
        assert "<script>" not in html, page
        assert " style=" not in html, page
    assert "/" not in job.file_name
    assert "\u202e" not in job.file_name
    assert Path(job.file.path).is_relative_to(Path(job.file.storage.location) / "imports")


def test_lists_take_few_queries_however_long_they_are(publisher, django_assert_max_num_queries):
    with_one_held_back()
    for number in range(12):
        start(sky(row(price=f"5.{number:02}1")), "2026-11-15")
        PrintedName.objects.create(name=f"N{number}", normalised=f"N{number}")
    for page in GETS.values():
        with django_assert_max_num_queries(25):
            assert publisher.get(reverse(page)).status_code == 200
