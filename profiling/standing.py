"""Where a run stands, the reading of its files counted in."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from profiling.models import Run, RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStanding:
    """One file: what its part is at. ``progress`` from 0 to 1."""

    name: str
    state: str
    progress: float

    @property
    def percent(self) -> int:
        return round(100 * self.progress)

    @property
    def label(self) -> str:
        """The state in words."""
        return str(RunStatus(self.state).label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """``status`` is ``running`` from the first file on; ``step`` is empty before. ``lost``: its worker is gone."""

    status: str
    step: str
    progress: float
    lost: bool
    files: tuple[FileStanding, ...]

    @property
    def files_done(self) -> int:
        return sum(file.state in (RunStatus.DONE, RunStatus.FAILED) for file in self.files)

    @classmethod
    def of(cls, run: Run, now: datetime) -> Self:
        """Two queries."""
        parts = list(run.parts.order_by("files__pk").prefetch_related("files"))
        files = tuple(
            FileStanding(name=file.name, state=part.status, progress=_progress(part))
            for part in dict.fromkeys(parts)
            for file in part.files.all()
        )
        begun = [part for part in parts if part.status != RunStatus.QUEUED]
        if run.status == RunStatus.QUEUED and begun:
            return cls(
                status=RunStatus.RUNNING,
                step="read",
                progress=sum(map(_progress, parts)) / len(parts),
                lost=_all_lost(parts, now),
                files=files,
            )
        return cls(status=run.status, step=run.step, progress=run.progress, lost=_lost(run, now), files=files)


def _progress(part: Run) -> float:
    return 1.0 if part.is_final else part.progress


def _lost(run: Run, now: datetime) -> bool:
    return run.status == RunStatus.RUNNING and not (run.lease_until and run.lease_until > now)


def _all_lost(parts: Sequence[Run], now: datetime) -> bool:
    running = [part for part in parts if part.status == RunStatus.RUNNING]
    return bool(running) and all(_lost(part, now) for part in running)
