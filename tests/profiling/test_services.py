"""What is kept of a capture's files, and that none is forgotten on disk."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile

from profiling import services
from profiling.models import Run, RunStatus, TraceFile

pytestmark = pytest.mark.django_db

CAPTURE = b'{"traceEvents": []}'


@pytest.fixture(autouse=True)
def folders(settings: Any, tmp_path: Path) -> Path:
    settings.MEDIA_ROOT = tmp_path / "uploads"
    settings.FILE_UPLOAD_TEMP_DIR = tmp_path / "incoming"
    settings.FILE_UPLOAD_TEMP_DIR.mkdir()
    return tmp_path


def stored() -> list[str]:
    return services._stored_names()


def keep(run: Run) -> TraceFile:
    with services.kept_files([SimpleUploadedFile("../trace.json", CAPTURE)]) as kept:
        services.record_capture(owner="test", kept=kept, run=run)
    return TraceFile.objects.get()


def test_files_have_random_names_and_show_the_last_part_of_their_own() -> None:
    row = keep(Run.objects.create(task="advisor.study"))

    assert row.name == "trace.json"
    assert len(Path(row.file.name).name) == 32


def test_nothing_is_kept_when_the_block_fails() -> None:
    with pytest.raises(ZeroDivisionError), services.kept_files([SimpleUploadedFile("a.json", CAPTURE)]):
        raise ZeroDivisionError

    assert stored() == []


def test_files_of_a_finished_run_are_deleted_and_those_of_a_waiting_one_are_not() -> None:
    run = Run.objects.create(task="advisor.study")
    row = keep(run)

    assert services.delete_read_captures() == 0
    Run.objects.update(status=RunStatus.DONE)
    assert services.delete_read_captures() == 1
    row.refresh_from_db()
    assert (row.file.name, stored()) == ("", [])


def test_files_that_no_row_names_are_deleted_once_they_are_old(folders: Path) -> None:
    known = keep(Run.objects.create(task="advisor.study"))
    lost = default_storage.save("traces/lost", SimpleUploadedFile("x", CAPTURE))
    (folders / "incoming" / "cut.upload").write_bytes(CAPTURE)
    (folders / "incoming" / "worker" / "0").mkdir(parents=True)
    (folders / "incoming" / "worker" / "0" / "events-0").write_bytes(CAPTURE)
    now = datetime.now(tz=UTC)

    assert services.delete_lost_files(now=now) == 0
    assert services.delete_lost_files(now=now + timedelta(hours=2)) == 3
    assert stored() == [known.file.name]
    assert not os.listdir(folders / "incoming")
    assert not default_storage.exists(lost)
