"""The life of an import: uploaded, compared, decided on, written, perhaps rolled back.

The row is the truth; the queue is only a hint. A worker owns a job while its lease lasts, and every write names the
token of the claim, so that a worker that lost its lease can neither overwrite nor double what another one does.
"""

import hashlib
import logging
import time
import traceback
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import IO, TYPE_CHECKING

from celery import current_app
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.core.files.base import File
from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Value, When
from django.db.models.functions import Now
from django.utils import timezone
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from catalog import price_checks
from catalog.importers import work
from catalog.importers.errors import ImportRefused, sentence_of
from catalog.importers.printed import ListUnreadable
from catalog.models import Feed, ImportJob, Provider
from catalog.models.imports import ImportStatus, ListFormat
from catalog.models.offer import ObservedPrecision
from catalog.tables import TABLES

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

log = logging.getLogger(__name__)

TASK = "catalog.import"
PROGRESS_INTERVAL_S = 0.5
CHUNK_BYTES = 1 << 16
MAX_DETAIL = 5000
MAX_ATTEMPTS = 3
LOST_AFTER = timedelta(hours=1)
CHECKED = (ImportStatus.QUEUED, ImportStatus.CHECKING)
AT_WORK = (ImportStatus.CHECKING, ImportStatus.APPLYING)
WAITS = (ImportStatus.QUEUED, ImportStatus.APPROVED)


class LeaseLost(Exception):
    """Another worker has taken this job; whatever was done here is thrown away."""


def start_import(
    *,
    file: IO[bytes],
    file_name: str,
    list_format: str,
    table: str = "",
    provider: Provider | None = None,
    source: str = "",
    source_licence: str = "",
    observed_on: date,
    observed_precision: str = ObservedPrecision.DAY,
    user: "AbstractBaseUser | None" = None,
    feed: Feed | None = None,
) -> ImportJob:
    """Keep the file and let a worker compare it with the catalog. Raises ImportRefused.

    Also bytes that were imported before: lists since then, people's changes and names decided on may have made them
    news again.
    """
    job = ImportJob(
        list_format=list_format,
        table=table,
        provider=provider,
        source=source.strip(),
        source_licence=source_licence.strip(),
        file_name=_shown_name(file_name),
        observed_on=observed_on,
        observed_precision=observed_precision,
        created_by=user,
        feed=feed,
    )
    _refuse_incomplete(job)
    job.file_sha256 = _fingerprint(file)
    job.file.save(uuid.uuid4().hex, File(file), save=False)
    try:
        job.save()
    except BaseException:
        job.file.storage.delete(job.file.name)
        raise
    transaction.on_commit(lambda: send(job.pk))
    return job


def problem_of(job: ImportJob) -> str:
    """One sentence on why the import failed, "" where it did not."""
    return sentence_of(job.error_code, job.error_params)


def approve(job: ImportJob, user: "AbstractBaseUser | None") -> None:
    """Let a worker write what was compared. Raises ImportRefused unless the job waits for a decision."""
    _decide(job, user, status=ImportStatus.APPROVED, attempts=0, enqueued_at=None, progress=0.0)
    transaction.on_commit(lambda: send(job.pk))


def reject(job: ImportJob, user: "AbstractBaseUser | None") -> None:
    """Leave the catalog as it is. Raises ImportRefused unless the job waits for a decision."""
    _decide(job, user, status=ImportStatus.REJECTED, finished_at=Now())


def roll_back(job: ImportJob, user: "AbstractBaseUser | None") -> int:
    """Take an applied import back; how many rows stay because a person has changed them since.

    Raises ImportRefused unless it is the newest of its source that is in the catalog.
    """
    from catalog.importers import rollback  # it needs this module's neighbours

    return rollback.roll_back(job, user)


@dataclass(slots=True)
class Claim:
    """The right to work on a job, and the only way to write to it. ``status``: what is being done."""

    job_id: uuid.UUID
    token: uuid.UUID
    _started_at: float = field(default_factory=time.monotonic)
    _written_at: float = 0.0

    def progress(self, fraction: float) -> None:
        """Say how far the work is (0 to 1) and renew the lease, at most twice a second.

        Raises LeaseLost, and ImportRefused when the work takes too long.
        """
        now = time.monotonic()
        if now - self._started_at > settings.IMPORT_MAX_SECONDS:
            raise ImportRefused("too-slow", limit=settings.IMPORT_MAX_SECONDS)
        if now - self._written_at >= PROGRESS_INTERVAL_S:
            self._written_at = now
            self._update(progress=min(max(fraction, 0.0), 1.0))

    def hold(self) -> None:
        """Lock the job for the rest of the transaction: nobody can claim it before that ends. Raises LeaseLost."""
        self._update()

    def close(self, status: ImportStatus, **values: object) -> None:
        """Give the job away in this state. Raises LeaseLost."""
        self._update(status=status, lease_until=None, **values)

    def fail(self, code: str, params: dict[str, object] | None = None, detail: str = "") -> None:
        self.close(
            ImportStatus.FAILED,
            error_code=code,
            error_params=params or {},
            error_detail=detail.replace("\x00", "")[-MAX_DETAIL:],
            finished_at=Now(),
        )

    def _update(self, **values: object) -> None:
        values.setdefault("lease_until", _lease())
        if not self._mine().update(**values):
            raise LeaseLost

    def _mine(self) -> QuerySet[ImportJob]:
        return ImportJob.objects.filter(pk=self.job_id, token=self.token, status__in=AT_WORK)


def claim(job_id: str | uuid.UUID) -> Claim | None:
    """Take the job, or None when there is nothing to do, it is in other hands, or out of attempts.

    One UPDATE with the database's clock decides, so two workers can never both hold it.
    """
    token = uuid.uuid4()
    free = Q(status__in=WAITS) | Q(status__in=AT_WORK, lease_until__lt=Now())
    next_status = Case(
        When(status__in=CHECKED, then=Value(ImportStatus.CHECKING)), default=Value(ImportStatus.APPLYING)
    )
    taken = ImportJob.objects.filter(free, pk=job_id, attempts__lt=MAX_ATTEMPTS).update(
        status=next_status, token=token, lease_until=_lease(), attempts=F("attempts") + 1
    )
    return Claim(uuid.UUID(str(job_id)), token) if taken else None


def execute(claimed: Claim) -> None:
    """Compare or write. The job ends in a state that waits for nobody's worker, short of losing the process."""
    try:
        _execute(claimed)
    except LeaseLost:
        log.warning("import %s: lost to another worker or deleted, work thrown away", claimed.job_id)


def _execute(claimed: Claim) -> None:
    try:
        job = ImportJob.objects.select_related("provider", "feed").filter(pk=claimed.job_id).first()
        if job is None:
            raise LeaseLost
        if job.status == ImportStatus.CHECKING:
            work.check(job, claimed)
            if ImportJob.objects.filter(pk=job.pk, status=ImportStatus.APPROVED).exists():
                send(job.pk)
        else:
            work.apply(job, claimed)
    except LeaseLost:
        raise
    except (ImportRefused, ListUnreadable) as refusal:
        claimed.fail(str(refusal.code), dict(refusal.params))
    except SoftTimeLimitExceeded:
        claimed.fail("too-slow", {"limit": settings.CELERY_TASK_SOFT_TIME_LIMIT})
    except MemoryError:
        claimed.fail("memory")
    except Exception:
        claimed.fail("internal", detail=traceback.format_exc())
        log.exception("import %s failed", claimed.job_id)


def sweep() -> int:
    """Send again what waits too long or lost its worker; fail what is out of attempts. How many were sent."""
    dead = Q(status__in=AT_WORK, lease_until__lt=Now())
    ImportJob.objects.filter(dead, attempts__gte=MAX_ATTEMPTS).update(
        status=ImportStatus.FAILED,
        error_code="worker-lost",
        error_params={"attempts": MAX_ATTEMPTS},
        finished_at=Now(),
        lease_until=None,
    )
    long_ago = Now() - timedelta(seconds=2 * settings.RUN_SWEEP_S)
    waiting = Q(status__in=WAITS) & (Q(enqueued_at__isnull=True) | Q(enqueued_at__lt=long_ago))
    stale = list(ImportJob.objects.filter(dead | waiting).values_list("pk", flat=True))
    for job_id in stale:
        send(job_id)
    return len(stale)


def delete_lost_files() -> int:
    """Delete files that no job names: a process was killed between keeping the file and keeping the job."""
    storage, folder = ImportJob.file.field.storage, ImportJob.file.field.upload_to
    try:
        stored = {f"{folder}{name}" for name in storage.listdir(folder)[1]}
    except FileNotFoundError:
        return 0
    oldest = timezone.now() - LOST_AFTER
    old = {name for name in stored if storage.get_modified_time(name) < oldest}
    lost = old - set(ImportJob.objects.filter(file__in=old).values_list("file", flat=True))
    for name in lost:
        storage.delete(name)
    return len(lost)


def send(job_id: uuid.UUID) -> None:
    """Hint to the workers; where the queue does not answer, the sweeper sends it later."""
    try:
        current_app.send_task(TASK, args=[str(job_id)])
    except (OperationalError, RedisError, OSError):
        log.warning("import %s: the queue does not answer; the sweeper will send it", job_id)
        return
    ImportJob.objects.filter(pk=job_id).update(enqueued_at=Now())


def _decide(job: ImportJob, user: "AbstractBaseUser | None", **values: object) -> None:
    decided = {"decided_by": user, "decided_at": Now(), **values}
    if not ImportJob.objects.filter(pk=job.pk, status=ImportStatus.WAITING).update(**decided):
        job.refresh_from_db()
        raise ImportRefused("not-waiting", status=job.get_status_display())
    job.refresh_from_db()


def _refuse_incomplete(job: ImportJob) -> None:
    is_own = job.list_format == ListFormat.OWN
    if is_own and job.table not in TABLES:
        raise ImportRefused("table-unknown", table=job.table[:40], tables=", ".join(TABLES))
    if not is_own and not job.source:
        raise ImportRefused("source-missing")
    if not is_own and not job.source_licence:
        raise ImportRefused("licence-missing")
    if job.list_format == ListFormat.SKYPILOT and job.provider is None:
        raise ImportRefused("provider-missing")
    if price_checks.date_problem(job.observed_on, timezone.now().date()):
        raise ImportRefused("date-in-future", date=job.observed_on.isoformat())


def _fingerprint(file: IO[bytes]) -> str:
    """SHA-256 of the bytes, which are left at their beginning. Raises ImportRefused."""
    with suppress(AttributeError):
        if file.size > settings.IMPORT_MAX_BYTES:
            raise ImportRefused("file-too-large", limit=settings.IMPORT_MAX_BYTES)
    digest, size = hashlib.sha256(), 0
    file.seek(0)
    while chunk := file.read(CHUNK_BYTES):
        size += len(chunk)
        if size > settings.IMPORT_MAX_BYTES:
            raise ImportRefused("file-too-large", limit=settings.IMPORT_MAX_BYTES)
        digest.update(chunk)
    if not size:
        raise ImportRefused("empty-file")
    file.seek(0)
    return digest.hexdigest()


def _shown_name(file_name: str) -> str:
    """What people see of the name: its last part, printable, short. It is never a path on our side."""
    last = file_name.replace("\\", "/").rpartition("/")[2]
    return "".join(c if c.isprintable() else "?" for c in last)[-200:] or "-"


def _lease() -> object:
    return Now() + timedelta(seconds=settings.RUN_LEASE_S)
