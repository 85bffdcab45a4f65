"""Whom people have been at since an import."""

from hashlib import sha256

from catalog.models import ImportJob
from catalog.models.base import SourcedRow


def tag(job: ImportJob) -> str:
    """Marks what imports of the same list have written into the history."""
    parts = [job.list_format, job.table, str(job.provider_id), job.source]
    return f"[{sha256(chr(31).join(parts).encode()).hexdigest()[:6]}]"


def changed_since(job: ImportJob, model: type[SourcedRow]) -> set[int]:
    """Primary keys of rows that somebody or another list has changed since this import.

    They write history. Imports of price lists do not; later imports of the same table do, but a job is rolled back
    only after those are.
    """
    rows = model.history.filter(history_date__gt=job.finished_at)  # type: ignore[attr-defined]
    return set(rows.exclude(history_change_reason__endswith=tag(job)).values_list("id", flat=True))
