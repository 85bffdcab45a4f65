"""Changes that are not published yet. Nobody but editors sees them."""

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.utils.translation import gettext_lazy as _


class Draft(models.Model):
    """What one row shall become: of a table and a natural key there is at most one draft."""

    table = models.CharField(_("table"), max_length=20)
    key = models.CharField(_("key"), max_length=400)
    values = models.JSONField(
        _("values"),
        encoder=DjangoJSONEncoder,
        help_text=_("Column -> new value; references by natural key. Columns that are not named stay."),
    )
    base_version = models.PositiveIntegerField(
        _("version it began from"), help_text=_("Of the published row; 0 where there is none yet.")
    )
    version = models.PositiveIntegerField(_("version of the draft"), default=1, editable=False)
    reason = models.CharField(_("reason"), max_length=200, blank=True, help_text=_("Kept in the history."))
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("last edited by"),
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    created_at = models.DateTimeField(_("begun"), auto_now_add=True)
    updated_at = models.DateTimeField(_("last edited"), auto_now=True)

    class Meta:
        verbose_name = _("draft")
        verbose_name_plural = _("drafts")
        ordering = ["-updated_at"]
        constraints = [models.UniqueConstraint(fields=["table", "key"], name="draft_one_of_each_row")]
        permissions = [("publish_catalog", _("Can publish changes of the catalog"))]

    def __str__(self) -> str:
        return f"{self.table} {self.key}"
