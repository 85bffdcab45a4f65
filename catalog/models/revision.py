"""The catalog's version number."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class RevisionOrigin(models.TextChoices):
    FILES = "files", _("shipped files loaded")
    ADMIN = "admin", _("published in the admin")
    API = "api", _("written over REST")
    IMPORT = "import", _("price list imported")
    ROLLBACK = "rollback", _("import rolled back")


class CatalogRevision(models.Model):
    """One change of the catalog as a whole; a study keeps the number it was computed with."""

    number = models.PositiveIntegerField(_("number"), primary_key=True)
    recorded_at = models.DateTimeField(_("recorded at"), auto_now_add=True)
    origin = models.CharField(_("origin"), max_length=8, choices=RevisionOrigin.choices)
    summary = models.CharField(_("summary"), max_length=200)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("user"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )

    class Meta:
        verbose_name = _("catalog revision")
        verbose_name_plural = _("catalog revisions")
        ordering = ["-number"]

    def __str__(self) -> str:
        return f"{self.number}: {self.summary}"
