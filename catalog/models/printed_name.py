"""What price lists call an accelerator: the queue of unknown names, and what editors decided."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from catalog.models.accelerator import Accelerator


class NameState(models.TextChoices):
    OPEN = "open", _("waits for a decision")
    MAPPED = "mapped", _("is an accelerator of the catalog")
    REJECTED = "rejected", _("is none: leave such rows out")


class PrintedName(models.Model):
    """A name as one provider's list prints it; ``provider`` empty: whoever prints it."""

    provider = models.CharField(_("provider"), max_length=40, blank=True)
    name = models.CharField(_("name as printed"), max_length=80)
    normalised = models.CharField(_("name, normalised"), max_length=80, editable=False)
    state = models.CharField(_("state"), max_length=8, choices=NameState.choices, default=NameState.OPEN)
    accelerator = models.ForeignKey(
        Accelerator,
        verbose_name=_("accelerator"),
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="printed_names",
    )
    suggestions = models.JSONField(_("suggestions"), default=list, blank=True, editable=False)
    why_unknown = models.CharField(_("why it is not known"), max_length=200, blank=True, editable=False)
    example = models.CharField(_("example"), max_length=120, blank=True, editable=False)
    rows = models.PositiveIntegerField(_("rows"), default=0, editable=False)
    first_seen_at = models.DateTimeField(_("first seen"), auto_now_add=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("decided by"),
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
    )
    decided_at = models.DateTimeField(_("decided"), null=True, editable=False)

    class Meta:
        verbose_name = _("printed name")
        verbose_name_plural = _("printed names")
        ordering = ["state", "-rows", "name"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "normalised"], name="printed_name_once_per_provider"),
            models.CheckConstraint(
                condition=models.Q(state="mapped", accelerator__isnull=False)
                | (~models.Q(state="mapped") & models.Q(accelerator__isnull=True)),
                name="printed_name_mapped_has_accelerator",
                violation_error_message=_("Choose the accelerator that this name stands for, or reject the name."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.name}".strip()
