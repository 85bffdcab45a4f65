"""What comes on top of a server's price."""

from hashlib import sha256

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from simple_history.models import HistoricalRecords

from catalog import validation
from catalog.models.base import NOT_IN_HISTORY, SourcedRow, confidence_column, one_of
from catalog.models.server import Provider, Server
from catalog.specs import Confidence


class CostKind(models.TextChoices):
    STORAGE = "storage", _("storage")
    EGRESS = "egress", _("outgoing traffic")
    IP = "ip", _("public address")
    SUPPORT = "support", _("support")
    POWER = "power", _("power of a colocated server")
    MINIMUM_TERM = "minimum_term", _("shortest rent")
    ROUNDING = "rounding", _("time is rounded up to")


class CostUnit(models.TextChoices):
    GB_MONTH = "gb_month", _("per GB and month")
    GB = "gb", _("per GB")
    HOUR = "hour", _("per hour")
    MONTH = "month", _("per month")
    PERCENT = "percent", _("percent of the bill")
    KW_MONTH = "kw_month", _("per kW and month")
    HOURS = "hours", _("hours")
    SECONDS = "seconds", _("seconds")


UNITS_OF = {
    CostKind.STORAGE: (CostUnit.GB_MONTH,),
    CostKind.EGRESS: (CostUnit.GB,),
    CostKind.IP: (CostUnit.HOUR, CostUnit.MONTH),
    CostKind.SUPPORT: (CostUnit.PERCENT, CostUnit.MONTH),
    CostKind.POWER: (CostUnit.KW_MONTH,),
    CostKind.MINIMUM_TERM: (CostUnit.HOURS,),
    CostKind.ROUNDING: (CostUnit.SECONDS,),
}
WITHOUT_MONEY = (CostUnit.HOURS, CostUnit.SECONDS, CostUnit.PERCENT)


def _unit_fits() -> models.Q:
    found = models.Q()
    for kind, units in UNITS_OF.items():
        found |= models.Q(kind=kind.value, unit__in=[unit.value for unit in units])
    return found


class CostLine(SourcedRow):
    """One line of the bill besides the server: of a provider, or of one server of it; anywhere, or in one region."""

    key = models.CharField(_("key"), max_length=16, unique=True, editable=False)
    provider = models.ForeignKey(
        Provider, verbose_name=_("provider"), on_delete=models.PROTECT, related_name="cost_lines"
    )
    server = models.ForeignKey(
        Server,
        verbose_name=_("server"),
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="cost_lines",
        help_text=_("Empty where it counts for every server of the provider."),
    )
    region = models.CharField(
        _("region"),
        max_length=60,
        blank=True,
        help_text=_("The provider's name of it; empty where it counts anywhere."),
    )
    kind = models.CharField(_("what for"), max_length=12, choices=CostKind.choices)
    amount = models.DecimalField(_("amount"), max_digits=14, decimal_places=6, validators=[MinValueValidator(0)])
    currency = models.CharField(
        _("currency"),
        max_length=3,
        blank=True,
        validators=[RegexValidator(r"^[A-Z]{3}$", _("Three capital letters, as in USD (ISO 4217)."))],
        help_text=_("Empty for times and percentages."),
    )
    unit = models.CharField(_("unit"), max_length=8, choices=CostUnit.choices)
    free_allowance = models.DecimalField(
        _("free allowance"),
        max_digits=14,
        decimal_places=3,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("In the unit's amount per month: so many GB cost nothing."),
    )
    observed_on = models.DateField(_("observed on"))
    confidence = confidence_column()

    history = HistoricalRecords(excluded_fields=NOT_IN_HISTORY)

    class Meta:
        verbose_name = _("cost line")
        verbose_name_plural = _("cost lines")
        ordering = ["provider__key", "server__sku", "kind", "region"]
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "region", "kind", "unit"],
                condition=models.Q(server__isnull=True),
                name="cost_line_of_provider_unique",
            ),
            models.UniqueConstraint(
                fields=["server", "region", "kind", "unit"],
                condition=models.Q(server__isnull=False),
                name="cost_line_of_server_unique",
            ),
            models.CheckConstraint(condition=models.Q(amount__gte=0), name="cost_line_amount_not_negative"),
            one_of("cost_line", "kind", CostKind.values),
            one_of("cost_line", "confidence", [c.value for c in Confidence]),
            models.CheckConstraint(
                condition=_unit_fits(),
                name="cost_line_unit_fits_kind",
                violation_error_message=_("This unit does not fit: storage is per GB and month, traffic per GB."),
            ),
            models.CheckConstraint(
                condition=models.Q(unit__in=[u.value for u in WITHOUT_MONEY], currency="")
                | (~models.Q(unit__in=[u.value for u in WITHOUT_MONEY]) & models.Q(currency__regex=r"^[A-Z]{3}$")),
                name="cost_line_currency_fits_unit",
                violation_error_message=_("Money needs a currency; times and percentages have none."),
            ),
        ]

    def __str__(self) -> str:
        of = self.server or self.provider.key
        return f"{of} {self.region} {self.get_kind_display()}".replace("  ", " ")

    def clean(self) -> None:
        super().clean()
        validation.raise_if_any(validation.cost_line_problems(self.currency))

    def save(self, *args: object, **kwargs: object) -> None:
        self.complete()
        super().save(*args, **kwargs)

    def complete(self) -> None:
        """Fill in what follows from the other columns; for writes that do not go through ``save``."""
        self.key = self.key or self.natural_key()

    def natural_key(self) -> str:
        return cost_line_key(
            provider=self.provider.key,
            sku=self.server.sku if self.server else "",
            region=self.region,
            kind=self.kind,
            unit=self.unit,
        )


def cost_line_key(*, provider: str, sku: str, region: str, kind: str, unit: str) -> str:
    """A short stable name of a cost line, the same in every database."""
    return sha256("\x1f".join((provider, sku, region, kind, unit)).encode()).hexdigest()[:16]
