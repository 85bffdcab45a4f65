"""Captures that were uploaded and the background jobs that work on them."""

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class RunStatus(models.TextChoices):
    QUEUED = "queued", _("waiting")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")


class Run(models.Model):
    """One background job. This row is the truth; a message in the queue is only a hint to look at it.

    A run with ``parts`` (jobs of its own, that may run on many machines) is taken up once all of these have ended.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    parent = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="parts", verbose_name=_("part of")
    )
    task = models.CharField(_("task"), max_length=60)
    status = models.CharField(_("status"), max_length=10, choices=RunStatus, default=RunStatus.QUEUED)
    step = models.CharField(_("step"), max_length=40, blank=True)
    progress = models.FloatField(_("progress of the step, 0 to 1"), default=0)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    token = models.UUIDField(null=True, editable=False)
    lease_until = models.DateTimeField(_("lease until"), null=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    enqueued_at = models.DateTimeField(_("enqueued"), null=True)
    started_at = models.DateTimeField(_("started"), null=True)
    finished_at = models.DateTimeField(_("finished"), null=True)
    error_code = models.CharField(_("error code"), max_length=60, blank=True)
    error_params = models.JSONField(_("error parameters"), default=dict, blank=True)
    error_detail = models.TextField(_("detail for us"), blank=True)
    is_bug = models.BooleanField(_("our bug"), default=False)

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        indexes = [
            # the sweeper's query: what waits or may have lost its worker
            models.Index(fields=["status", "lease_until"], name="run_unfinished"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(attempts__lte=settings.RUN_MAX_ATTEMPTS), name="run_attempts_bounded"
            ),
            models.CheckConstraint(
                condition=~models.Q(status=RunStatus.FAILED) | ~models.Q(error_code=""), name="run_failed_has_code"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task} {self.status}"

    @property
    def is_final(self) -> bool:
        return self.status in (RunStatus.DONE, RunStatus.FAILED)


class Trace(models.Model):
    """One uploaded capture: one file, or one file per rank of a job.

    The files are deleted as soon as the run that reads them has ended; what was learned from them stays.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.CharField(_("owner"), max_length=80, help_text=_("key:…, session:… or user:…; nobody else sees it"))
    run = models.OneToOneField(Run, on_delete=models.PROTECT, related_name="trace")
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    analysis = models.JSONField(_("analysis"), null=True, editable=False)
    workload = models.JSONField(_("workload"), null=True, editable=False)

    class Meta:
        verbose_name = _("trace")
        verbose_name_plural = _("traces")
        indexes = [models.Index(fields=["owner", "-created_at"], name="trace_of_owner")]

    def __str__(self) -> str:
        return str(self.id)


class TraceFile(models.Model):
    """One file of a capture, kept under a random name; ``name`` is only shown. ``run`` is the part that reads it."""

    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="files")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="files")
    file = models.FileField(upload_to="traces/", blank=True)
    name = models.CharField(_("name"), max_length=120)
    size_bytes = models.BigIntegerField(_("size in bytes"))
    sha256 = models.CharField(max_length=64)

    class Meta:
        verbose_name = _("trace file")
        verbose_name_plural = _("trace files")

    def __str__(self) -> str:
        return self.name


class StoredReading(models.Model):
    """What a part found in its files, until the run that joins the parts has ended."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="reading")
    data = models.BinaryField()

    class Meta:
        verbose_name = _("stored reading")
        verbose_name_plural = _("stored readings")

    def __str__(self) -> str:
        return str(self.run_id)
