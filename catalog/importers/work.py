"""What a worker does with a job that it has claimed: compare, or write what somebody has approved."""

import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from catalog.importers import apply as applying
from catalog.importers import check as checking
from catalog.importers import own_table
from catalog.importers.errors import ImportRefused
from catalog.importers.listing import Progress
from catalog.models import ImportJob
from catalog.models.imports import ImportStatus, ListFormat
from catalog.selectors import current_revision
from catalog.services import lock_catalog

MOST_ROUNDS = 3
PLANNED = 0.9
OUTCOME = ("counts", "reasons", "servers", "regions", "providers")
"""The parts of a report that say what would be written."""
CATALOG_MOVED = "catalog-moved"
"""Note of a report that differs from the one that was approved, see ``reasons.NOTES``."""


class Claimed(Protocol):
    """What is needed of a claim, see ``jobs.Claim``."""

    def progress(self, fraction: float) -> None: ...

    def hold(self) -> None: ...

    def close(self, status: ImportStatus, **values: object) -> None: ...


class _Moved(Exception):
    """The catalog has another number than when the plan was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """``write``: makes it part of the catalog, in a transaction; the revision, and what takes it back."""

    report: dict[str, Any]
    is_empty: bool
    write: Callable[[], tuple[int | None, dict[str, Any]]]


def _plan(job: ImportJob, progress: Progress) -> _Planned:
    if job.list_format == ListFormat.OWN:
        table = own_table.compare(job, progress, try_out=job.status == ImportStatus.CHECKING)
        return _Planned(report=table.report(), is_empty=table.is_empty, write=lambda: own_table.write(job, table))
    plan = checking.plan(job, progress)
    return _Planned(report=plan.report.as_json(), is_empty=plan.is_empty, write=lambda: applying.write(job, plan))


def check(job: ImportJob, claim: Claimed) -> None:
    """Compare the file with the catalog; then it waits for somebody, unless its feed may do without."""
    base = current_revision()
    planned = _plan(job, claim.progress)
    report = planned.report
    told = {"report": report, "base_revision": base, "progress": 1.0, "attempts": 0, "enqueued_at": None}
    if report["counts"].get("refused"):
        told |= {"error_code": "rows-refused", "error_params": {"count": report["counts"]["refused"]}}
        claim.close(ImportStatus.FAILED, finished_at=Now(), **told)
    elif planned.is_empty:
        claim.close(ImportStatus.UNCHANGED, finished_at=Now(), **told)
    elif _may_go_in_alone(job, report):
        claim.close(ImportStatus.APPROVED, decided_at=Now(), **told)
    else:
        claim.close(ImportStatus.WAITING, **told)


def _may_go_in_alone(job: ImportJob, report: dict[str, Any]) -> bool:
    """Nothing measures whether a table of our own looks wrong, so somebody always looks at it."""
    is_allowed = job.feed is not None and job.feed.apply_alone and job.list_format != ListFormat.OWN
    return is_allowed and not report["asks_for_a_person"]


def apply(job: ImportJob, claim: Claimed) -> None:
    """Write what was approved. Where it would no longer be the same, the job goes back to wait, with a note."""
    for _round in range(MOST_ROUNDS):
        base = current_revision()
        planned = _plan(job, lambda share: claim.progress(PLANNED * share))
        if not same_outcome(planned.report, job.report):
            report = planned.report | {"note": CATALOG_MOVED}
            again = {"report": report, "base_revision": base, "attempts": 0, "enqueued_at": None}
            claim.close(ImportStatus.WAITING, progress=1.0, **again)
            return
        with suppress(_Moved):
            _write(planned, base, claim)
            return
    raise ImportRefused("catalog-busy")


def _write(planned: _Planned, base: int, claim: Claimed) -> None:
    with transaction.atomic():
        claim.hold()
        lock_catalog()
        if current_revision() != base:
            raise _Moved
        revision, undo = planned.write()
        # by the clock of the history, so that what people change from now on is later
        made = {"revision": revision, "undo": packed(undo), "finished_at": timezone.now()}
        claim.close(ImportStatus.APPLIED, report=planned.report, progress=1.0, **made)


def same_outcome(report: dict, seen: dict | None) -> bool:
    """Whether the catalog would change as in the report that somebody has approved."""
    return seen is not None and all(report.get(part) == seen.get(part) for part in OUTCOME)


def packed(undo: dict) -> bytes:
    return zlib.compress(json.dumps(undo, cls=DjangoJSONEncoder, separators=(",", ":")).encode())


def unpacked(undo: bytes) -> dict:
    """Of what ``packed`` made."""
    return json.loads(zlib.decompress(undo))
