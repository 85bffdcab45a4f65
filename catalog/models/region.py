"""Where a provider has its machines."""

from django.db import models
from django.utils.translation import gettext_lazy as _
from simple_history.models import HistoricalRecords

from catalog.models.base import NOT_IN_HISTORY, SourcedRow, iso_country
from catalog.models.server import COUNTRY, Provider


class Region(SourcedRow):
    """What a provider calls a region, and the country that it lies in. Offers name it by the provider's own name."""

    provider = models.ForeignKey(Provider, verbose_name=_("provider"), on_delete=models.PROTECT, related_name="regions")
    name = models.CharField(_("name"), max_length=60, help_text=_("As the provider prints it, as in eu-central-1."))
    country = models.CharField(
        _("country"), max_length=2, blank=True, validators=[COUNTRY], help_text=_("Empty where it is not certain.")
    )
    place = models.CharField(_("place"), max_length=80, blank=True, help_text=_("City or area."))

    history = HistoricalRecords(excluded_fields=NOT_IN_HISTORY)

    class Meta:
        verbose_name = _("region")
        verbose_name_plural = _("regions")
        ordering = ["provider__key", "name"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "name"], name="region_provider_name_unique"),
            iso_country("region"),
        ]

    def __str__(self) -> str:
        return f"{self.provider.key}/{self.name}"
