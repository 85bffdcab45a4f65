"""Imports of price lists and tables: jobs, and feeds that make one on a schedule."""

import uuid

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from catalog.models.base import one_of
from catalog.models.offer import ObservedPrecision
from catalog.models.server import Provider


class ListFormat(models.TextChoices):
    OWN = "own", _("our own table (CSV or XLSX)")
    SKYPILOT = "skypilot", _("SkyPilot catalog (vms.csv)")
    GPUHUNT = "gpuhunt", _("gpuhunt catalog (zip or CSV)")


class ImportStatus(models.TextChoices):
    QUEUED = "queued", _("waits for a worker")
    CHECKING = "checking", _("is being compared with the catalog")
    WAITING = "waiting", _("compared; waits for approval")
    APPROVED = "approved", _("approved; waits for a worker")
    APPLYING = "applying", _("is being written")
    APPLIED = "applied", _("in the catalog")
    UNCHANGED = "unchanged", _("nothing new in it")
    REJECTED = "rejected", _("rejected")
    FAILED = "failed", _("failed")
    ROLLED_BACK = "rolled_back", _("rolled back")


class SourceOfList(models.Model):
    """What is said of every row of a price list that does not say it itself."""

    list_format = models.CharField(_("format"), max_length=10, choices=ListFormat.choices)
    table = models.CharField(
        _("table"), max_length=20, blank=True, help_text=_("Of our own tables: which one. Price lists hold offers.")
    )
    provider = models.ForeignKey(
        Provider,
        verbose_name=_("provider"),
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text=_("Whose prices a SkyPilot file holds; other lists name it themselves."),
    )
    source = models.CharField(_("source"), max_length=400, blank=True)
    source_licence = models.CharField(_("licence of the source"), max_length=80, blank=True)

    class Meta:
        abstract = True


class Feed(SourceOfList):
    """A price list at an address that is fetched every so many hours."""

    name = models.CharField(_("name"), max_length=80, unique=True)
    url = models.URLField(_("address"), max_length=400, help_text=_("https only, on the public internet."))
    every_hours = models.PositiveSmallIntegerField(
        _("every so many hours"), default=24, validators=[MinValueValidator(1), MaxValueValidator(24 * 31)]
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    apply_alone = models.BooleanField(
        _("apply without asking"),
        default=False,
        help_text=_("Only where nothing is held back and few prices move; otherwise somebody is asked."),
    )
    next_at = models.DateTimeField(_("next fetch"), null=True, blank=True, editable=False)
    fetched_at = models.DateTimeField(_("last fetch"), null=True, editable=False)
    etag = models.CharField(max_length=200, blank=True, editable=False)
    sha256 = models.CharField(max_length=64, blank=True, editable=False)
    last_problem = models.CharField(_("last problem"), max_length=300, blank=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("feed")
        verbose_name_plural = _("feeds")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=models.Q(every_hours__gte=1), name="feed_every_hours_positive"),
            models.CheckConstraint(condition=models.Q(url__startswith="https://"), name="feed_url_https"),
            one_of("feed", "list_format", ListFormat.values),
        ]

    def __str__(self) -> str:
        return self.name


class ImportJob(SourceOfList):
    """One file on its way into the catalog. This row is the truth; the queue is only a hint."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    feed = models.ForeignKey(
        Feed, verbose_name=_("feed"), null=True, blank=True, on_delete=models.SET_NULL, related_name="jobs"
    )
    file = models.FileField(_("file"), upload_to="imports/", max_length=200)
    file_name = models.CharField(_("name of the file"), max_length=200)
    file_sha256 = models.CharField(_("fingerprint of the file"), max_length=64)
    observed_on = models.DateField(_("date of the prices"), help_text=_("Of the prices, not of our copy."))
    observed_precision = models.CharField(
        _("precision of the date"), max_length=4, choices=ObservedPrecision.choices, default=ObservedPrecision.DAY
    )
    status = models.CharField(_("status"), max_length=11, choices=ImportStatus.choices, default=ImportStatus.QUEUED)
    progress = models.FloatField(_("progress"), default=0.0)
    report = models.JSONField(_("report"), null=True, encoder=DjangoJSONEncoder, editable=False)
    base_revision = models.PositiveIntegerField(_("compared with catalog revision"), null=True, editable=False)
    revision = models.PositiveIntegerField(_("catalog revision made"), null=True, editable=False)
    undo = models.BinaryField(null=True, editable=False)
    error_code = models.CharField(max_length=40, blank=True, editable=False)
    error_params = models.JSONField(default=dict, blank=True, editable=False)
    error_detail = models.TextField(blank=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("uploaded by"), null=True, on_delete=models.SET_NULL, related_name="+"
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("decided by"), null=True, on_delete=models.SET_NULL, related_name="+"
    )
    decided_at = models.DateTimeField(_("decided"), null=True, editable=False)
    created_at = models.DateTimeField(_("uploaded"), auto_now_add=True)
    finished_at = models.DateTimeField(_("finished"), null=True, editable=False)
    token = models.UUIDField(null=True, editable=False)
    attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    enqueued_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")
        ordering = ["-created_at"]
        constraints = [
            one_of("import_job", "list_format", ListFormat.values),
            one_of("import_job", "status", ImportStatus.values),
        ]
        indexes = [models.Index(fields=["status", "lease_until"], name="import_job_unfinished")]

    def __str__(self) -> str:
        return f"{self.file_name} ({self.get_status_display()})"
