"""Imports in the admin: upload, look, approve, roll back; unknown names; held-back prices; feeds; who may do what."""

import csv
import io
import re
import socket
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from catalog.groups import EDITOR, PUBLISHER, VIEWER, ensure_groups
from catalog.importers import jobs
from catalog.models import Accelerator, CatalogRevision, Feed, ImportJob, Offer, PrintedName, Provider, Server
from catalog.models.imports import ImportStatus
from catalog.models.offer import OfferStatus
from catalog.models.printed_name import NameState
from tests.catalog.lists import SOURCE, imported, row, sky, start, work

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.catalog.urls"), pytest.mark.usefixtures("shipped")]

LIST = "admin:catalog_importjob_changelist"
HELD_BACK = "admin:catalog_heldback"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def uploads(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "uploads"


def of_group(name: str) -> Client:
    ensure_groups()
    user = User.objects.create_user(name.replace(" ", "-").lower(), is_staff=True)
    user.groups.add(Group.objects.get(name=name))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def publisher() -> Client:
    return of_group(PUBLISHER)


@pytest.fixture
def editor() -> Client:
    return of_group(EDITOR)


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


def test_a_suggestion_settles_a_name_and_its_servers(publisher):
    imported(sky(row(sku="p9.x", card="RTX6000", count="1", price="3")))
    name = PrintedName.objects.get()
    assert name.suggestions == ["rtx-6000-ada"]
    listed = publisher.get(reverse("admin:catalog_printedname_changelist")).content.decode()
    address = reverse("admin:catalog_printedname_decide", args=[name.pk])
    assert f'formaction="{address}"' in listed
    page = text(publisher.get(reverse("admin:catalog_printedname_change", args=[name.pk])))
    assert "1 server with 1 offers stands in the catalog under this name." in page

    said = text(publisher.post(address, {"accelerator": "rtx-6000-ada"}, follow=True))
    assert "1 server now has it" in said
    assert Server.objects.get(sku="p9.x").accelerator.key == "rtx-6000-ada"
    assert "Somebody has already decided" in text(publisher.post(address, {"none": "1"}, follow=True))
    publisher.post(address, {"reopen": "1"})
    name.refresh_from_db()
    assert name.state == NameState.OPEN


def test_another_accelerator_can_be_chosen_and_nonsense_is_refused(publisher):
    name = PrintedName.objects.create(provider="aws", name="A100 SXM", normalised="A100")
    address = reverse("admin:catalog_printedname_decide", args=[name.pk])
    for nonsense in ({}, {"accelerator": "no-such"}, {"other": "999999"}, {"other": "x"}):
        assert "Nothing was changed." in text(publisher.post(address, nonsense, follow=True))
    accelerator = Accelerator.objects.get(key="a100-sxm4-40")
    publisher.post(address, {"other": str(accelerator.pk)})
    name.refresh_from_db()
    assert (name.state, name.accelerator, name.decided_by.username) == ("mapped", accelerator, "catalog-publisher")


def test_names_are_rejected_together_and_open_ones_stand_first(publisher):
    names = [PrintedName.objects.create(name=f"N{n}", normalised=f"N{n}", rows=n) for n in range(3)]
    where = reverse("admin:catalog_printedname_changelist")
    publisher.post(where, {"action": "reject_marked", "_selected_action": [names[1].pk, names[2].pk]})
    shown = [(one.name, one.state) for one in publisher.get(where).context["cl"].result_list]
    assert shown == [("N0", "open"), ("N2", "rejected"), ("N1", "rejected")]


def test_a_held_back_price_stands_beside_the_one_that_counts(publisher):
    with_one_held_back()
    shown = text(publisher.get(reverse(HELD_BACK)))
    assert "11.30 USD 2.825 each 5.60 +101.8 %" in shown
    assert "The price went from 5.60 to 11.30 in one step" in shown


@pytest.mark.parametrize(("decision", "status"), [("release", OfferStatus.LIVE), ("refuse", OfferStatus.RETIRED)])
@pytest.mark.parametrize("alone", [True, False])
def test_held_back_prices_are_decided_on_with_a_reason(publisher, decision, status, alone):
    with_one_held_back()
    offer = Offer.objects.get(status=OfferStatus.QUARANTINED)
    pressed = {f"{decision}_one": offer.pk} if alone else {"decision": decision, "offer": [offer.pk, "x"]}
    publisher.post(reverse(HELD_BACK), {**pressed, "reason": ""})
    assert Offer.objects.get(pk=offer.pk).status == OfferStatus.QUARANTINED

    said = text(publisher.post(reverse(HELD_BACK), {**pressed, "reason": "asked\x00\nthem"}, follow=True))
    assert f"1 price {'released' if decision == 'release' else 'refused'}." in said
    offer.refresh_from_db()
    assert offer.status == status
    assert offer.history.latest().history_change_reason == "asked them"
    assert "Nothing is held back." in said
    again = publisher.post(reverse(HELD_BACK), {**pressed, "reason": "again"}, follow=True)
    assert "already decided" in text(again)


def test_a_price_that_cannot_be_right_is_refused_and_never_released(publisher):
    imported(sky(row(price="5.6")))
    imported(sky(row(price="22.4")), "2026-11-08")
    Offer.objects.filter(source=SOURCE, status=OfferStatus.LIVE).update(source="another list")
    offer = Offer.objects.get(status=OfferStatus.QUARANTINED)
    said = text(publisher.post(reverse(HELD_BACK), {"release_one": offer.pk, "reason": "x"}, follow=True))
    assert "Nothing was changed." in said
    assert "This looks multiplied twice" in said
    assert "1 price refused." in text(
        publisher.post(reverse(HELD_BACK), {"refuse_one": offer.pk, "reason": "x"}, follow=True)
    )


def test_held_back_prices_can_be_narrowed_down(publisher):
    job = with_one_held_back()
    assert len(publisher.get(reverse(HELD_BACK), {"import": str(job.pk), "provider": "aws"}).context["rows"]) == 1
    assert publisher.get(reverse(HELD_BACK), {"provider": "nobody"}).context["rows"] == []
    assert publisher.get(reverse(HELD_BACK), {"import": "x", "p": "x"}).status_code == 200


def feed_form(**typed: object) -> dict[str, object]:
    same = {"provider": Provider.objects.get(key="aws").pk, "source": "", "source_licence": "facts-only", "table": ""}
    given = {"name": "AWS", "url": "https://lists.example.com/vms.csv", "list_format": "skypilot", "every_hours": "24"}
    return {**same, **given, "enabled": "on"} | typed


@pytest.fixture
def resolves(monkeypatch):
    """What names lead to, told by the test."""

    def to(address: str) -> None:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: found)

    return to


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://lists.example.com/vms.csv", "10.0.0.7"),
        ("http://lists.example.com/vms.csv", "8.8.8.8"),
        ("https://127.0.0.1/vms.csv", "8.8.8.8"),
        ("https://user:secret@lists.example.com/", "8.8.8.8"),
    ],
)
def test_a_feed_inside_a_network_is_refused_at_once(publisher, resolves, url, address):
    resolves(address)
    answer = publisher.post(reverse("admin:catalog_feed_add"), feed_form(url=url))
    assert list(answer.context["adminform"].form.errors) == ["url"]
    assert not Feed.objects.exists()


def test_a_feed_is_kept_edited_and_fetched_on_request(publisher, resolves):
    resolves("8.8.8.8")
    publisher.post(reverse("admin:catalog_feed_add"), feed_form())
    feed = Feed.objects.get()
    later = timezone.now() + timedelta(hours=5)
    Feed.objects.update(next_at=later, etag='"1"', sha256="0" * 64, last_problem="It did not answer.")
    start(sky(row()), feed=feed)
    assert publisher.get(reverse("admin:catalog_feed_change", args=["x"])).status_code == 302
    page = reverse("admin:catalog_feed_change", args=[feed.pk])
    assert "It did not answer." in text(publisher.get(page))
    assert "vms.csv" in text(publisher.get(page))

    publisher.post(reverse("admin:catalog_feed_fetch", args=[feed.pk]))
    feed.refresh_from_db()
    assert (feed.next_at, feed.etag) == (None, '"1"')
    publisher.post(page, feed_form(url="https://lists.example.com/other.csv"))
    feed.refresh_from_db()
    assert (feed.etag, feed.sha256) == ("", "")


def test_who_may_change_feeds_but_not_publish_cannot_turn_a_publishing_one_elsewhere(editor, resolves):
    resolves("8.8.8.8")
    group = Group.objects.get(name=EDITOR)
    group.permissions.add(*Group.objects.get(name=PUBLISHER).permissions.filter(codename__endswith="_feed"))
    editor.post(reverse("admin:catalog_feed_add"), feed_form(apply_alone="on"))
    feed = Feed.objects.get()
    assert not feed.apply_alone
    Feed.objects.update(apply_alone=True)
    page = reverse("admin:catalog_feed_change", args=[feed.pk])
    assert editor.get(page).status_code == 200
    assert editor.post(page, feed_form(url="https://elsewhere.example.com/")).status_code == 403
    assert editor.post(reverse("admin:catalog_feed_fetch", args=[feed.pk])).status_code == 403


GETS = {
    "imports": LIST,
    "held back": HELD_BACK,
    "tables": "admin:catalog_tables",
    "names": "admin:catalog_printedname_changelist",
    "feeds": "admin:catalog_feed_changelist",
}


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
