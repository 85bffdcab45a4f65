"""The life of a Run: enqueue, claim, renew, finish, sweep.

A worker owns a run while its lease lasts. Every write names the token of the claim, so that a worker that lost its
lease (stopped, paused, cut off) can neither overwrite nor double the result of the one that took over.

A run may have parts: then these are sent to the workers first, and the last one that ends sends the run itself.
"""

import logging
import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Generic, TypeVar

from celery import current_app
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from profiling.models import Run, RunStatus
from profiling.notes import Refusal

log = logging.getLogger(__name__)

Context = TypeVar("Context")

PROGRESS_INTERVAL_S = 0.5
MAX_DETAIL = 5000


class LeaseLost(Exception):
    """Another worker has taken this run; whatever was computed here is thrown away."""


class PartFailed(Exception):
    """A part ended for a reason that is not about its file; the whole run ends for the same."""

    def __init__(self, part: Run) -> None:
        super().__init__(part.error_code)
        self.part = part


@dataclass(frozen=True, slots=True)
class Step(Generic[Context]):
    """One named part of a run: ``title`` is what the user sees while it works."""

    name: str
    title: str
    work: Callable[[Context, "Claim"], None]


@dataclass(slots=True)
class Claim:
    """The right to work on a run, and the only way to write to it."""

    run_id: uuid.UUID
    token: uuid.UUID
    attempt: int
    _step: str = field(default="", init=False)
    _written_at: float = field(default=0.0, init=False)

    def begin(self, step: str) -> None:
        """Say which step works now. Raises LeaseLost."""
        self._step, self._written_at = step, time.monotonic()
        self._update(step=step, progress=0.0)

    def progress(self, fraction: float) -> None:
        """Say how far the step is (0 to 1) and renew the lease, at most twice a second. Raises LeaseLost."""
        if time.monotonic() - self._written_at < PROGRESS_INTERVAL_S:
            return
        self._written_at = time.monotonic()
        self._update(progress=min(max(fraction, 0.0), 1.0))

    def finish(self, save: Callable[[], None]) -> None:
        """Write the result and the final state in one transaction. Raises LeaseLost."""
        with transaction.atomic():
            self._close(status=RunStatus.DONE, progress=1.0)
            save()

    def fail(
        self, *, code: str, params: dict[str, object] | None = None, detail: str = "", is_bug: bool = False
    ) -> None:
        """End the run without a result. Raises LeaseLost."""
        self._close(
            status=RunStatus.FAILED,
            error_code=code,
            error_params=params or {},
            error_detail=detail.replace("\x00", "")[-MAX_DETAIL:],
            is_bug=is_bug,
        )

    def _close(self, **values: object) -> None:
        self._update(finished_at=Now(), lease_until=None, **values)
        transaction.on_commit(lambda: _send_parent(self.run_id))

    def _update(self, **values: object) -> None:
        values.setdefault("lease_until", _lease())
        if not self._mine().update(**values):
            raise LeaseLost

    def _mine(self) -> QuerySet[Run]:
        return Run.objects.filter(pk=self.run_id, token=self.token, status=RunStatus.RUNNING)


UNFINISHED = Run.objects.filter(status__in=[RunStatus.QUEUED, RunStatus.RUNNING])
_WAITS_FOR_PARTS = Exists(UNFINISHED.filter(parent=OuterRef("pk")))


def enqueue(run: Run) -> None:
    """Send the run, or first its parts, to the workers once the surrounding transaction is committed."""
    transaction.on_commit(lambda: _send_all(run))


def claim(run_id: str | uuid.UUID) -> Claim | None:
    """Take the run, or None when it is finished, in other hands, waiting for its parts, or out of attempts.

    One UPDATE with the database's clock decides, so two workers can never both hold it.
    """
    token = uuid.uuid4()
    free = Q(status=RunStatus.QUEUED) | Q(status=RunStatus.RUNNING, lease_until__lt=Now())
    mine = Run.objects.filter(free, ~_WAITS_FOR_PARTS, pk=run_id, attempts__lt=settings.RUN_MAX_ATTEMPTS)
    taken = mine.update(
        status=RunStatus.RUNNING, token=token, lease_until=_lease(), started_at=Now(), attempts=F("attempts") + 1
    )
    if not taken:
        return None
    return Claim(run_id=uuid.UUID(str(run_id)), token=token, attempt=Run.objects.get(pk=run_id).attempts)


def execute(
    claimed: Claim, *, steps: Sequence[Step[Context]], context: Context, save: Callable[[Context], None]
) -> None:
    """Do the steps in order, then save. Ends the run in a final state whatever happens, short of losing the process."""
    try:
        _work(claimed, steps, context, save)
    except LeaseLost:
        log.warning("run %s: lost to another worker or deleted, result thrown away", claimed.run_id)


def _work(claimed: Claim, steps: Sequence[Step[Context]], context: Context, save: Callable[[Context], None]) -> None:
    try:
        for step in steps:
            claimed.begin(step.name)
            step.work(context, claimed)
        claimed.finish(lambda: save(context))
    except LeaseLost:
        raise
    except Refusal as refusal:
        claimed.fail(code=refusal.code, params=dict(refusal.params))
    except PartFailed as failure:
        part = failure.part
        claimed.fail(code=part.error_code, params=part.error_params, detail=part.error_detail, is_bug=part.is_bug)
    except SoftTimeLimitExceeded:
        claimed.fail(code="time_limit", params={"limit": settings.CELERY_TASK_SOFT_TIME_LIMIT})
    except MemoryError:
        claimed.fail(code="memory_limit")
    except Exception:
        claimed.fail(code="internal_error", detail=traceback.format_exc(), is_bug=True)
        log.exception("run %s failed", claimed.run_id)


def sweep() -> int:
    """Send again what waits too long or lost its worker; fail what is out of attempts. Returns how many were sent."""
    dead = Q(status=RunStatus.RUNNING, lease_until__lt=Now())
    Run.objects.filter(dead, attempts__gte=settings.RUN_MAX_ATTEMPTS).update(
        status=RunStatus.FAILED, error_code="worker_lost", is_bug=True, finished_at=Now(), lease_until=None
    )
    waiting = Q(status=RunStatus.QUEUED) & (
        Q(enqueued_at__isnull=True) | Q(enqueued_at__lt=Now() - timedelta(seconds=2 * settings.RUN_SWEEP_S))
    )
    stale = list(Run.objects.filter(dead | waiting).exclude(_WAITS_FOR_PARTS).values_list("pk", "task"))
    for run_id, task in stale:
        _send(run_id, task)
    return len(stale)


def steps_done(status: str, step: str, names: Sequence[str]) -> int:
    """How many of the named steps are behind a run that is at ``step``."""
    if status == RunStatus.DONE:
        return len(names)
    return names.index(step) if step in names else 0


def _send_all(run: Run) -> None:
    for run_id, task in run.parts.values_list("pk", "task") or [(run.pk, run.task)]:
        _send(run_id, task)


def _send_parent(run_id: uuid.UUID) -> None:
    """Send the run that this one is a part of, if it was the last. Two that end together may both send it."""
    parent = Run.objects.filter(~_WAITS_FOR_PARTS, parts=run_id, status=RunStatus.QUEUED).first()
    if parent is not None:
        _send(parent.pk, parent.task)


def _send(run_id: uuid.UUID, task: str) -> None:
    try:
        current_app.send_task(task, args=[str(run_id)])
    except (OperationalError, RedisError, OSError):
        log.warning("run %s: the queue does not answer; the sweeper will send it", run_id)
        return
    Run.objects.filter(pk=run_id).update(enqueued_at=Now())


def _lease() -> object:
    return Now() + timedelta(seconds=settings.RUN_LEASE_S)
