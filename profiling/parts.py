"""Reading one file of a capture in the background, and taking up what all of them gave."""

import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from profiling import runs
from profiling.analysis import FileReading, read_file
from profiling.configured import limits
from profiling.models import Run, RunStatus, StoredReading
from profiling.notes import Note, Refusal, RefusalCode
from profiling.reading import NamedFile, read_captures
from profiling.runs import Claim, PartFailed, Step
from profiling.services import delete_read_captures
from profiling.stored_reading import dumps, loads


@dataclass(slots=True, kw_only=True)
class ReadContext:
    """What the steps of a part hand on."""

    found: list[FileReading] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def _read(context: ReadContext, claim: Claim) -> None:
    def progress(done: int, total: int) -> None:
        claim.progress(done / total if total else 1.0)

    files = Run.objects.get(pk=claim.run_id).files.order_by("pk")
    context.found, context.notes = read_captures(
        [NamedFile(path=Path(row.file.path), name=row.name) for row in files],
        limits(),
        progress,
        time.monotonic,
        keep=lambda capture: read_file(capture, lambda: claim.progress(1.0)),
        scratch=Path(settings.FILE_UPLOAD_TEMP_DIR),
    )


READ_STEPS: tuple[Step[ReadContext], ...] = (Step("read", _("Reading the capture"), _read),)


def read_part(claim: Claim) -> None:
    """Do the work of a claimed part; afterwards its file is gone."""
    runs.execute(claim, steps=READ_STEPS, context=ReadContext(), save=lambda done: _save(claim, done))
    delete_read_captures()


def _save(claim: Claim, done: ReadContext) -> None:
    data = dumps(done.found, done.notes)
    StoredReading.objects.update_or_create(run_id=claim.run_id, defaults={"data": data})


def found_by_parts(run: Run) -> tuple[list[FileReading], list[Note]]:
    """What the parts of a run read, in order of its files. Raises Refusal where a file was refused, else PartFailed."""
    parts = list(dict.fromkeys(run.parts.order_by("files__pk").select_related("reading")))
    for part in parts:
        if part.status == RunStatus.FAILED:
            raise _failure(part, len(parts))
    try:
        readings = [loads(bytes(part.reading.data)) for part in parts]
    except msgspec.ValidationError as error:
        raise Refusal(RefusalCode.READING_OUTDATED) from error
    return [file for files, _ in readings for file in files], [note for _, notes in readings for note in notes]


def _failure(part: Run, count: int) -> Exception:
    if part.error_code not in set(RefusalCode):
        return PartFailed(part)
    names = {"file": part.files.first().name} if count > 1 else {}
    return Refusal(RefusalCode(part.error_code), {**part.error_params, **names})
