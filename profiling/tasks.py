"""Background tasks of this room; each takes at most an id."""

from celery import shared_task
from django.utils import timezone

from profiling import parts, runs, services


@shared_task(name="profiling.sweep")
def sweep() -> None:
    """Every few seconds: take up lost runs, delete captures that nobody reads any more."""
    runs.sweep()
    services.delete_read_captures()
    services.delete_lost_files(now=timezone.now())


@shared_task(name=services.READ_TASK)
def read(run_id: str) -> None:
    """Read the file of this part, unless another worker has it."""
    claim = runs.claim(run_id)
    if claim is not None:
        parts.read_part(claim)
