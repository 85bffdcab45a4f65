"""Background tasks of this room; each takes one id."""

from celery import shared_task

from advisor import services
from profiling import runs


@shared_task(name="advisor.study")
def study(run_id: str) -> None:
    """Answer the study of this run, unless another worker has it."""
    claim = runs.claim(run_id)
    if claim is not None:
        services.answer_capture_study(claim)
