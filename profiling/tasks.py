"""Background tasks of this room; each takes at most an id."""

from celery import shared_task
from django.utils import timezone

from profiling import runs, services


@shared_task(name="profiling.sweep")
def sweep() -> None:
    """Every few seconds: take up lost runs, delete captures that nobody reads any more."""
    runs.sweep()
    services.delete_read_captures()
    services.delete_lost_files(now=timezone.now())
