"""The Celery application; imported when Django starts, so that `.delay()` works from pages and commands."""

import os

from celery import Celery
from celery.signals import worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "advisor.settings")

app = Celery("advisor")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["advisor", "catalog", "profiling"])


@worker_ready.connect
def _sweep_when_ready(**_: object) -> None:
    """A worker that starts takes up what a dead one left behind."""
    app.send_task("profiling.sweep")
    app.send_task("catalog.sweep")
