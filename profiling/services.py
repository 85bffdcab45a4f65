"""Storing captures, and forgetting them."""

import hashlib
import unicodedata
from collections.abc import Sequence

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from profiling.models import Run, RunStatus, Trace, TraceFile
from profiling.notes import Refusal, RefusalCode

MAX_NAME = 120


def store_capture(*, owner: str, files: Sequence[UploadedFile], run: Run) -> Trace:
    """Keep the files of one capture for ``run`` to read; all of them or none.

    Raises Refusal when there is no file, too many, an empty one, or too many bytes.
    """
    _check(files)
    with transaction.atomic():
        trace = Trace.objects.create(owner=owner, run=run)
        kept: list[TraceFile] = []
        try:
            for file in files:
                kept.append(_keep(trace, file))
        except BaseException:
            for row in kept:
                row.file.delete(save=False)
            raise
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


def _check(files: Sequence[UploadedFile]) -> None:
    if not files:
        raise Refusal(RefusalCode.NO_FILE)
    if len(files) > settings.UPLOAD_MAX_FILES:
        raise Refusal(RefusalCode.TOO_MANY_FILES, {"count": len(files), "limit": settings.UPLOAD_MAX_FILES})
    for file in files:
        if not file.size:
            raise Refusal(RefusalCode.EMPTY_FILE, {"name": display_name(file.name or "")})
    total = sum(file.size or 0 for file in files)
    if total > settings.UPLOAD_MAX_BYTES:
        raise Refusal(RefusalCode.UPLOAD_TOO_LARGE, {"bytes": total, "limit": settings.UPLOAD_MAX_BYTES})


def _keep(trace: Trace, file: UploadedFile) -> TraceFile:
    digest = hashlib.sha256()
    for chunk in file.chunks():
        digest.update(chunk)
    file.seek(0)
    row = TraceFile(trace=trace, name=display_name(file.name or ""), size_bytes=file.size, sha256=digest.hexdigest())
    row.file.save(f"{trace.pk}-{digest.hexdigest()[:16]}", file)
    return row
