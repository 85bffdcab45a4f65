"""The life of an import: who may work on it, what ends it, and that nothing is done twice."""

import io
import os
from datetime import date, timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from catalog.importers import jobs
from catalog.importers.errors import IMPORT_ERRORS, ImportRefused
from catalog.loading import load_catalog
from catalog.models import ImportJob, Offer, Server
from catalog.selectors import current_revision
from tests.catalog.lists import imported, prices, row, sky, start, work

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def catalog(small: Path) -> None:
    load_catalog(small)


def expire(job: ImportJob) -> None:
    ImportJob.objects.filter(pk=job.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_a_list_is_compared_decided_on_and_written() -> None:
    job = start(sky(row(spot="2.1")))
    assert job.status == "queued"

    work(job)
    assert (job.status, job.report["counts"]["new"], Offer.objects.filter(import_job=job).count()) == ("waiting", 2, 0)
    before = current_revision()
    jobs.approve(job, None)
    work(job)

    assert (job.status, job.revision, job.progress) == ("applied", before + 1, 1.0)
    assert Offer.objects.filter(import_job=job, status="live").count() == 2


def test_what_is_rejected_leaves_no_trace_in_the_catalog() -> None:
    before = (Offer.objects.count(), current_revision())
    job = work(start(sky(row())))

    jobs.reject(job, None)

    assert job.status == "rejected"
    assert (Offer.objects.count(), current_revision()) == before
    assert jobs.claim(job.pk) is None
    with pytest.raises(ImportRefused, match="rejected"):
        jobs.approve(job, None)


def test_the_same_file_is_not_imported_twice() -> None:
    imported(sky(row()))
    before = current_revision()

    again = work(start(sky(row())))

    assert (again.status, current_revision()) == ("unchanged", before)


def test_a_file_that_another_has_replaced_since_is_news_again() -> None:
    imported(sky(row()))
    imported(sky(row(price="6")))

    again = imported(sky(row()))

    assert again.report["counts"]["changed"] == 1
    assert prices() == [("live", "2026-11-01", "", "5.60")]


def test_other_bytes_with_the_same_prices_change_nothing() -> None:
    imported(sky(row(), row(region="eu-west-1")))
    before = current_revision()

    again = work(start(sky(row(region="eu-west-1"), row())))

    assert (again.status, current_revision()) == ("unchanged", before)


def test_one_job_is_claimed_once_and_a_lost_one_by_the_next() -> None:
    job = start(sky(row()))
    first = jobs.claim(job.pk)
    assert first is not None
    assert jobs.claim(job.pk) is None
    expire(job)

    second = jobs.claim(job.pk)

    assert second is not None
    with pytest.raises(jobs.LeaseLost):
        first.hold()
    jobs.execute(first)
    job.refresh_from_db()
    assert job.status == "checking"
    jobs.execute(second)
    job.refresh_from_db()
    assert job.status == "waiting"


def test_the_sweeper_sends_what_was_lost_and_gives_up_after_three_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    job, sent = start(sky(row())), []
    monkeypatch.setattr(jobs, "send", sent.append)
    ImportJob.objects.update(enqueued_at=timezone.now())
    assert jobs.sweep() == 0
    for _ in range(jobs.MAX_ATTEMPTS):
        assert jobs.claim(job.pk) is not None
        expire(job)

    jobs.sweep()

    job.refresh_from_db()
    assert (job.status, job.error_code, sent) == ("failed", "worker-lost", [])
    assert "3 times" in jobs.problem_of(job)


def test_a_broker_that_is_away_does_not_hurt(settings: object, django_capture_on_commit_callbacks: object) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        job = start(sky(row()))

    job.refresh_from_db()
    assert (job.status, job.enqueued_at) == ("queued", None)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\xff\xfe\x00", "encoding"),
        (b"a,b\n1,2\n", "bad-header"),
        (sky(row()) + b'"' + b"\n" * 60, "csv-syntax"),
    ],
    ids=["encoding", "header", "syntax"],
)
def test_a_file_that_is_no_list_fails_with_a_sentence(content: bytes, code: str) -> None:
    job = work(start(content))

    assert (job.status, job.error_code) == ("failed", code)
    assert jobs.problem_of(job)


def test_a_bug_fails_the_job_and_keeps_the_details(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catalog.importers.work.check", lambda job, claim: 1 / 0)

    job = work(start(sky(row())))

    assert (job.status, job.error_code) == ("failed", "internal")
    assert "ZeroDivisionError" in job.error_detail


def test_limits_on_rows_and_time(settings: object) -> None:
    settings.IMPORT_MAX_ROWS = 1
    assert work(start(sky(row(), row(region="r2")))).error_code == "too-many-rows"
    settings.IMPORT_MAX_SECONDS = -1
    assert work(start(sky(row()))).error_code == "too-slow"


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"file": io.BytesIO(b"")}, "empty-file"),
        ({"file": io.BytesIO(b"x" * 101)}, "file-too-large"),
        ({"source": " "}, "source-missing"),
        ({"source_licence": ""}, "licence-missing"),
        ({"provider": None}, "provider-missing"),
        ({"observed_on": date(2999, 1, 1)}, "date-in-future"),
        ({"list_format": "own", "table": "prices"}, "table-unknown"),
    ],
)
def test_what_is_refused_before_anything_is_kept(values: dict[str, object], code: str, settings: object) -> None:
    settings.IMPORT_MAX_BYTES = 100

    with pytest.raises(ImportRefused) as refused:
        start(b"x", **values)

    assert refused.value.code == code
    assert str(refused.value)
    assert not ImportJob.objects.exists()


def test_the_name_of_the_file_is_only_shown() -> None:
    job = start(sky(row()), file_name="..\\..\\/etc/vms\x00\n.csv")

    assert job.file_name == "vms??.csv"
    assert "vms" not in job.file.name


def test_a_file_that_is_gone_is_said() -> None:
    job = start(sky(row()))
    job.file.storage.delete(job.file.name)

    assert work(job).error_code == "file-missing"


def test_files_that_no_job_names_are_deleted_after_an_hour(settings: object) -> None:
    job = start(sky(row()))
    storage, folder = job.file.storage, Path(settings.MEDIA_ROOT) / "imports"
    storage.save("imports/lost", io.BytesIO(b"x"))
    storage.save("imports/fresh", io.BytesIO(b"x"))
    for name in ("lost", Path(job.file.name).name):
        os.utime(folder / name, (0, 0))

    jobs.delete_lost_files()

    assert storage.exists(job.file.name)
    assert storage.exists("imports/fresh")
    assert not storage.exists("imports/lost")


def test_progress_rises_while_a_list_is_compared_and_while_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    renew = jobs.Claim.progress

    def progress(claim: jobs.Claim, share: float) -> None:
        seen.append(share)
        renew(claim, share)

    monkeypatch.setattr(jobs.Claim, "progress", progress)
    imported(sky(*(row(region=f"r{number}") for number in range(1000))))

    half = len(seen) // 2
    for part in (seen[:half], seen[half:]):
        assert part == sorted(part)
        assert len(set(part)) == half > 8


def test_what_was_approved_is_not_written_when_it_would_do_something_else() -> None:
    job = work(start(sky(row())))
    jobs.approve(job, None)
    Server.objects.filter(sku="g5.12xlarge").update(gpu_count=8)

    work(job)

    assert (job.status, job.report["note"], job.report["counts"]["held_back"]) == ("waiting", "catalog-moved", 1)


def test_a_change_elsewhere_in_the_catalog_does_not_stop_what_was_approved(small: Path) -> None:
    job = work(start(sky(row())))
    imported(sky(row(region="r9")), source="another list")
    jobs.approve(job, None)

    assert work(job).status == "applied"


def test_every_error_has_a_sentence_that_needs_only_its_figures() -> None:
    figures = dict.fromkeys(("limit", "table", "tables", "date", "newest", "attempts", "status", "count"), "7")
    figures |= dict.fromkeys(("missing", "seen", "column", "line", "name"), "7")

    assert all((sentence % figures).endswith(".") for sentence in map(str, IMPORT_ERRORS.values()))
