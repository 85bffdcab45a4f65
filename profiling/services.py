"""Storing captures, and forgetting them."""

import hashlib
import shutil
import unicodedata
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import UploadedFile

from profiling.formats.registry import refuse_unreadable
from profiling.formats.rocprof_run import run_of
from profiling.models import Run, RunStatus, StoredReading, Trace, TraceFile
from profiling.notes import Refusal, RefusalCode

MAX_NAME = 120
FOLDER = "traces"
READ_TASK = "profiling.read"
"""Name of the background task that reads one file; see profiling.tasks."""


def check_capture(files: Sequence[UploadedFile]) -> None:
    """Raises Refusal when there is no file, too many, an empty one, or too many bytes."""
    if not files:
        raise Refusal(RefusalCode.NO_FILE)
    if len(files) > settings.UPLOAD_MAX_FILES:
        raise Refusal(RefusalCode.TOO_MANY_FILES, {"count": len(files), "limit": settings.UPLOAD_MAX_FILES})
    for file in files:
        if not file.size:
            raise Refusal(RefusalCode.EMPTY_FILE, {"file": display_name(file.name or "")})
    total = sum(file.size or 0 for file in files)
    if total > settings.UPLOAD_MAX_BYTES:
        raise Refusal(RefusalCode.UPLOAD_TOO_LARGE, {"bytes": total, "limit": settings.UPLOAD_MAX_BYTES})


@contextmanager
def kept_files(files: Sequence[UploadedFile]) -> Iterator[list[TraceFile]]:
    """The files in storage, as rows that are not saved yet; deleted again when the block fails.

    Storing comes before any transaction, so that a large upload does not hold the database. Raises Refusal as
    ``check_capture``, and for a file that no reader reads.
    """
    check_capture(files)
    kept: list[TraceFile] = []
    try:
        for file in files:
            kept.append(_keep(file))
            _refuse_unreadable(kept[-1], is_alone=len(files) == 1)
        yield kept
    except BaseException:
        for row in kept:
            default_storage.delete(row.file.name)
        raise


def record_capture(*, owner: str, kept: Sequence[TraceFile], run: Run) -> Trace:
    """Rows for the kept files of one capture: a part of ``run`` will read each, or all files of one run of a tool."""
    trace = Trace.objects.create(owner=owner, run=run)
    parts: dict[str, Run] = {}
    for place, row in enumerate(kept):
        row.trace = trace
        row.run = parts.setdefault(run_of(row.name) or str(place), Run(task=READ_TASK, parent=run))
    Run.objects.bulk_create(parts.values())
    TraceFile.objects.bulk_create(kept)
    return trace


def delete_read_captures() -> int:
    """Delete the files that were read, and what was read once it is joined: captures are confidential.

    Returns how many files were deleted.
    """
    ended = [RunStatus.DONE, RunStatus.FAILED]
    StoredReading.objects.filter(run__parent__status__in=ended).delete()
    rows = list(TraceFile.objects.filter(run__status__in=ended).exclude(file=""))
    for row in rows:
        TraceFile.objects.filter(pk=row.pk).update(file="")
        default_storage.delete(row.file.name)
    return len(rows)


def delete_lost_files(*, now: datetime) -> int:
    """Delete what a killed process left behind, uploads of the web and folders of the workers: old enough, and no row
    names them. Returns how many.
    """
    oldest = now - timedelta(seconds=settings.UPLOAD_MAX_SECONDS)
    incoming = [path for path in Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir() if _is_older(path, oldest)]
    for path in incoming:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    stored = _stored_names()
    lost = set(stored) - set(TraceFile.objects.exclude(file="").values_list("file", flat=True))
    old = [name for name in lost if default_storage.get_modified_time(name) < oldest]
    for name in old:
        default_storage.delete(name)
    return len(incoming) + len(old)


def display_name(name: str) -> str:
    """A file name fit to be shown: last part of the path, without control and direction characters, bounded."""
    return visible(name.replace("\\", "/").rsplit("/", 1)[-1])[:MAX_NAME] or "capture"


def visible(text: str) -> str:
    """The text without characters that cannot be seen: controls, direction marks, surrogates."""
    return "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co")).strip()


def _refuse_unreadable(row: TraceFile, *, is_alone: bool) -> None:
    try:
        refuse_unreadable(Path(row.file.path), name=row.name)
    except Refusal as refusal:
        raise refusal if is_alone else Refusal(refusal.code, {**refusal.params, "file": row.name}) from None


def _stored_names() -> list[str]:
    try:
        return [f"{FOLDER}/{name}" for name in default_storage.listdir(FOLDER)[1]]
    except FileNotFoundError:
        return []


def _is_older(path: Path, than: datetime) -> bool:
    """False also for what its owner has deleted meanwhile."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, tz=UTC) < than
    except FileNotFoundError:
        return False


def _keep(file: UploadedFile) -> TraceFile:
    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    file.seek(0)
    name = default_storage.save(f"{FOLDER}/{uuid.uuid4().hex}", file)
    return TraceFile(
        file=name, name=display_name(file.name or ""), size_bytes=file.size or 0, sha256=digest.hexdigest()
    )
