"""Where a study's run stands, as the waiting page shows it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

from django.utils import timezone

from advisor.pipeline import STUDY_STEPS
from profiling.models import Run, RunStatus
from profiling.runs import steps_done
from profiling.standing import FileStanding, Standing

PATIENCE = timedelta(seconds=15)


class Stage(StrEnum):
    """What stands between the user and the answer."""

    WAITING = "waiting"
    BUSY = "busy"
    SILENT = "silent"
    RUNNING = "running"
    LOST = "lost"
    FAILED = "failed"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """One named step; ``percent`` only for the one that works now."""

    title: str
    is_done: bool
    is_current: bool
    percent: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """``current``: 1 for the first step, 0 before it. ``files``: while several are read, what each is at.

    ``files_read``: how many of them are done with, read or refused.
    """

    stage: Stage
    current: int
    steps: tuple[ShownStep, ...]
    files: tuple[FileStanding, ...]
    files_read: int

    @property
    def is_final(self) -> bool:
        return self.stage in (Stage.FAILED, Stage.DONE)

    @property
    def title(self) -> str:
        """Of the current step; empty before the first one."""
        return self.steps[self.current - 1].title if self.current else ""

    @property
    def mark(self) -> str:
        """Changes whenever there is something new to say aloud."""
        return f"{self.stage}-{self.current}"

    @classmethod
    def of(cls, run: Run) -> Self:
        now = timezone.now()
        standing = Standing.of(run, now)
        done = steps_done(standing.status, standing.step, [step.name for step in STUDY_STEPS])
        stage = _stage(run, standing, now)
        works = stage in (Stage.RUNNING, Stage.LOST)
        steps = tuple(
            ShownStep(
                title=str(step.title),
                is_done=place < done,
                is_current=works and place == done,
                percent=round(100 * standing.progress) if works and place == done else None,
            )
            for place, step in enumerate(STUDY_STEPS)
        )
        files = standing.files if works and done == 0 and len(standing.files) > 1 else ()
        return cls(
            stage=stage, current=done + 1 if works else 0, steps=steps, files=files, files_read=standing.files_done
        )


def _stage(run: Run, standing: Standing, now: datetime) -> Stage:
    if standing.status in (RunStatus.FAILED, RunStatus.DONE):
        return Stage(standing.status)
    if standing.status == RunStatus.RUNNING:
        return Stage.LOST if standing.lost else Stage.RUNNING
    if now - run.created_at < PATIENCE:
        return Stage.WAITING
    busy = Run.objects.filter(status=RunStatus.RUNNING, lease_until__gt=now).exists()
    return Stage.BUSY if busy else Stage.SILENT
