"""Studies (one question and its answer, frozen) and what API keys may do."""

import uuid

from django.db import models
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from rest_framework_api_key.models import APIKey

from profiling.models import Run, Trace


class Study(models.Model):
    """One question (a job, what the buyer cares about) and its answer.

    ``inputs`` and the four fingerprints below determine ``result`` byte for byte. A described job is answered at
    once; a capture is read by a background ``run``, and ``result`` is null until that is done.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.CharField(_("owner"), max_length=80, help_text=_("key:…, session:… or user:…; nobody else sees it"))
    title = models.CharField(_("title"), max_length=120)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    is_sample = models.BooleanField(_("sample, visible to everybody"), default=False)
    run = models.OneToOneField(Run, null=True, on_delete=models.PROTECT, related_name="study", verbose_name=_("run"))
    trace = models.OneToOneField(
        Trace, null=True, on_delete=models.PROTECT, related_name="study", verbose_name=_("trace")
    )
    inputs = models.JSONField(_("inputs"))
    result = models.JSONField(_("result"), null=True)
    input_sha256 = models.CharField(_("input fingerprint"), max_length=64, blank=True)
    engine_version = models.CharField(_("engine version"), max_length=20, blank=True)
    model_sha256 = models.CharField(_("classifier fingerprint"), max_length=64, blank=True)
    catalog_revision = models.PositiveIntegerField(_("catalog revision"), null=True)

    class Meta:
        verbose_name = _("study")
        verbose_name_plural = _("studies")
        indexes = [models.Index(fields=["owner", "-created_at"], name="study_of_owner")]
        constraints = [
            models.UniqueConstraint(fields=["is_sample"], condition=models.Q(is_sample=True), name="study_one_sample"),
            models.CheckConstraint(
                condition=models.Q(result__isnull=True) | models.Q(catalog_revision__isnull=False),
                name="study_result_has_origin",
            ),
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("study", args=[self.pk])

    @property
    def shown_title(self) -> str:
        """The title as its owner wrote it; the sample's in the reader's language."""
        return gettext(self.title) if self.is_sample else self.title


class KeyScope(models.TextChoices):
    CATALOG_WRITE = "catalog:write", _("change the catalog")


class ApiKeyScope(models.Model):
    """What an API key may do besides reading the catalog and asking studies of its own."""

    key = models.ForeignKey(APIKey, on_delete=models.CASCADE, related_name="scopes", verbose_name=_("API key"))
    scope = models.CharField(_("scope"), max_length=20, choices=KeyScope.choices)

    class Meta:
        verbose_name = _("scope of an API key")
        verbose_name_plural = _("scopes of API keys")
        constraints = [
            models.UniqueConstraint(fields=["key", "scope"], name="api_key_scope_once"),
            models.CheckConstraint(condition=models.Q(scope__in=KeyScope.values), name="api_key_scope_known"),
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.scope}"
