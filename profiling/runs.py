"""The life of a Run: enqueue, claim, renew, finish, sweep.

A worker owns a run while its lease lasts. Every write names the token of the claim, so that a worker that lost its
lease (stopped, paused, cut off) can neither overwrite nor double the result of the one that took over.
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
from django.db.models import F, Q, QuerySet
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
            error_detail=detail[-MAX_DETAIL:],
            is_bug=is_bug,
        )

    def _close(self, **values: object) -> None:
        self._update(finished_at=Now(), lease_until=None, **values)

    def _update(self, **values: object) -> None:
        values.setdefault("lease_until", _lease())
        if not self._mine().update(**values):
            raise LeaseLost

    def _mine(self) -> QuerySet[Run]:
        return Run.objects.filter(pk=self.run_id, token=self.token, status=RunStatus.RUNNING)


def enqueue(run: Run) -> None:
    """Send the run to a worker once the surrounding transaction is committed."""
    transaction.on_commit(lambda: _send(run.pk, run.task))


def claim(run_id: str | uuid.UUID) -> Claim | None:
    """Take the run, or None when it is finished, in other hands, or out of attempts.

    One UPDATE with the database's clock decides, so two workers can never both hold it.
    """
    token = uuid.uuid4()
    free = Q(status=RunStatus.QUEUED) | Q(status=RunStatus.RUNNING, lease_until__lt=Now())
    taken = Run.objects.filter(free, pk=run_id, attempts__lt=settings.RUN_MAX_ATTEMPTS).update(
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
    stale = list(Run.objects.filter(dead | waiting).values_list("pk", "task"))
    for run_id, task in stale:
        _send(run_id, task)
    return len(stale)


def steps_done(run: Run, names: Sequence[str]) -> int:
    """How many of the named steps are behind the run."""
    if run.status == RunStatus.DONE:
        return len(names)
    return names.index(run.step) if run.step in names else 0


def _send(run_id: uuid.UUID, task: str) -> None:
    try:
        current_app.send_task(task, args=[str(run_id)])
    except (OperationalError, RedisError, OSError):
        log.warning("run %s: the queue does not answer; the sweeper will send it", run_id)
        return
    Run.objects.filter(pk=run_id).update(enqueued_at=Now())


def _lease() -> object:
    return Now() + timedelta(seconds=settings.RUN_LEASE_S)
