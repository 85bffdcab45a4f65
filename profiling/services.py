"""Storing captures, and forgetting them."""

import hashlib
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import UploadedFile

from profiling.analysis import NamedFile
from profiling.formats.registry import refuse_unreadable
from profiling.models import Run, RunStatus, Trace, TraceFile
from profiling.notes import Refusal, RefusalCode

MAX_NAME = 120


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
            refuse_unreadable(Path(kept[-1].file.path), name=kept[-1].name)
        yield kept
    except BaseException:
        for row in kept:
            default_storage.delete(row.file.name)
        raise


def record_capture(*, owner: str, kept: Sequence[TraceFile], run: Run) -> Trace:
    """Rows for the kept files of one capture that ``run`` will read."""
    trace = Trace.objects.create(owner=owner, run=run)
    for row in kept:
        row.trace = trace
    TraceFile.objects.bulk_create(kept)
    return trace


def delete_read_captures() -> int:
    """Delete the files whose run has ended: captures are confidential. Returns how many were deleted."""
    ended = TraceFile.objects.filter(trace__run__status__in=[RunStatus.DONE, RunStatus.FAILED]).exclude(file="")
    rows = list(ended)
    for row in rows:
        row.file.delete(save=True)
    return len(rows)


def display_name(name: str) -> str:
    """A file name fit to be shown: last part of the path, without control and direction characters, bounded."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    shown = "".join(c for c in last if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co"))
    return shown[:MAX_NAME] or "capture"


def _keep(file: UploadedFile) -> TraceFile:
    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    file.seek(0)
    name = default_storage.save("traces/capture", file)
    return TraceFile(
        file=name, name=display_name(file.name or ""), size_bytes=file.size or 0, sha256=digest.hexdigest()
    )


def stored_files(trace: Trace) -> tuple[NamedFile, ...]:
    """The files of a capture: where they lie, and the names that their owner gave them."""
    return tuple(NamedFile(path=Path(row.file.path), name=row.name) for row in trace.files.order_by("pk"))
