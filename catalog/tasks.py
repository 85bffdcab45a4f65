"""Background tasks of this room; each takes at most an id."""

from celery import current_app, shared_task

from catalog.importers import feeds, jobs


@shared_task(name="catalog.sweep")
def sweep() -> None:
    """Every few seconds: take up lost imports, fetch the feeds whose time has come, delete files of no job."""
    jobs.sweep()
    jobs.delete_lost_files()
    for feed_id in feeds.due():
        current_app.send_task("catalog.fetch", args=[feed_id])


@shared_task(name=jobs.TASK)
def import_list(job_id: str) -> None:
    """Compare or write this import, unless another worker has it."""
    claim = jobs.claim(job_id)
    if claim is not None:
        jobs.execute(claim)


@shared_task(name="catalog.fetch")
def fetch(feed_id: int) -> None:
    """Fetch this feed, unless another worker does."""
    feeds.fetch(feed_id)
