"""Prices of servers, as observed."""

from decimal import Decimal
from hashlib import sha256

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from simple_history.models import HistoricalRecords

from catalog import validation
from catalog.models.base import SourcedRow, one_of, positive
from catalog.models.server import Server
from catalog.specs import PricingModel

PRICING_CHOICES = [
    (PricingModel.ON_DEMAND, _("on demand")),
    (PricingModel.SPOT, _("spot")),
    (PricingModel.RESERVED_1Y, _("reserved 1 year")),
    (PricingModel.RESERVED_3Y, _("reserved 3 years")),
]


class OfferStatus(models.TextChoices):
    LIVE = "live", _("live")
    STALE = "stale", _("stale")
    RETIRED = "retired", _("retired")


class Tenancy(models.TextChoices):
    UNKNOWN = "unknown", _("not known")
    VM = "vm", _("virtual machine")
    CONTAINER = "container", _("container")
    SECURE = "secure", _("provider's own data centres")
    COMMUNITY = "community", _("machines of other people")
    MARKETPLACE = "marketplace", _("marketplace")


class PriceBasis(models.TextChoices):
    PER_SERVER = "per_server", _("printed per server")
    PER_GPU = "per_gpu", _("printed per accelerator")


class ObservedPrecision(models.TextChoices):
    DAY = "day", _("the day is known")
    YEAR = "year", _("only the year is known; the date is its first day")


def offer_key(*parts: str) -> str:
    """A short stable name of an offer from its natural key, the same in every database."""
    return sha256("\x1f".join(parts).encode()).hexdigest()[:16]


class Offer(SourcedRow):
    """What a server costs per hour in a region, under one way of paying, as one source printed it on one day."""

    key = models.CharField(_("key"), max_length=16, unique=True, editable=False)
    server = models.ForeignKey(Server, verbose_name=_("server"), on_delete=models.PROTECT, related_name="offers")
    region = models.CharField(
        _("region"), max_length=60, blank=True, help_text=_("The provider's name of it; empty where not printed.")
    )
    tenancy = models.CharField(_("tenancy"), max_length=12, choices=Tenancy.choices, default=Tenancy.UNKNOWN)
    pricing_model = models.CharField(_("pricing model"), max_length=12, choices=PRICING_CHOICES)
    currency = models.CharField(
        _("currency"),
        max_length=3,
        default="USD",
        validators=[RegexValidator(r"^[A-Z]{3}$", _("Three capital letters, as in USD (ISO 4217)."))],
    )
    price_per_hour = models.DecimalField(
        _("price per hour"),
        max_digits=14,
        decimal_places=6,
        validators=[MinValueValidator(0)],
        help_text=_("Of the whole server with all its accelerators, in the currency given."),
    )
    price_basis = models.CharField(
        _("printed as"), max_length=10, choices=PriceBasis.choices, default=PriceBasis.PER_SERVER
    )
    observed_on = models.DateField(_("observed on"), help_text=_("The date of the price, not of our copy."))
    observed_precision = models.CharField(
        _("precision of the date"), max_length=4, choices=ObservedPrecision.choices, default=ObservedPrecision.DAY
    )
    status = models.CharField(
        _("status"),
        max_length=8,
        choices=OfferStatus.choices,
        default=OfferStatus.LIVE,
        help_text=_(
            "Live: in the newest copy of its source. Stale: too old to rely on. Retired: no longer rented out."
        ),
    )

    history = HistoricalRecords(excluded_fields=["file_hash", "edited"])

    class Meta:
        verbose_name = _("offer")
        verbose_name_plural = _("offers")
        ordering = ["server__provider__key", "server__sku", "region", "pricing_model", "-observed_on"]
        constraints = [
            models.UniqueConstraint(
                fields=["server", "region", "tenancy", "pricing_model", "currency", "source", "observed_on"],
                name="offer_natural_key_unique",
                violation_error_message=_("This source already has a price for the same offer on that day."),
            ),
            positive("offer", "price_per_hour"),
            models.CheckConstraint(condition=models.Q(currency__regex=r"^[A-Z]{3}$"), name="offer_currency_iso4217"),
            one_of("offer", "pricing_model", [p.value for p in PricingModel]),
            one_of("offer", "status", OfferStatus.values),
            one_of("offer", "tenancy", Tenancy.values),
            one_of("offer", "price_basis", PriceBasis.values),
            one_of("offer", "observed_precision", ObservedPrecision.values),
        ]
        indexes = [
            models.Index(fields=["status", "observed_on"], name="offer_live_until"),
            models.Index(fields=["server", "pricing_model"], name="offer_of_server_by_pricing"),
        ]

    def __str__(self) -> str:
        where = self.region or _("no region")
        return f"{self.server} {where} {self.get_pricing_model_display()} {self.price_per_hour} {self.currency}"

    def save(self, *args: object, **kwargs: object) -> None:
        if not self.key:
            self.key = self.natural_key()
        super().save(*args, **kwargs)

    def clean(self) -> None:
        super().clean()
        validation.raise_if_any(validation.offer_problems(self, self._on_demand_price()))

    def _on_demand_price(self) -> Decimal | None:
        """The newest live on-demand price of the same server, region, tenancy and currency, other than this one."""
        if not self.server_id:
            return None
        same = Offer.objects.filter(
            server=self.server_id,
            region=self.region,
            tenancy=self.tenancy,
            currency=self.currency,
            pricing_model=PricingModel.ON_DEMAND,
            status=OfferStatus.LIVE,
        )
        return same.exclude(pk=self.pk).order_by("-observed_on").values_list("price_per_hour", flat=True).first()

    def natural_key(self) -> str:
        return offer_key(
            self.server.key,
            self.region,
            self.tenancy,
            self.pricing_model,
            self.currency,
            self.source,
            self.observed_on.isoformat(),
        )
