"""Prices of servers, as observed."""

from decimal import Decimal
from hashlib import sha256

from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from simple_history.models import HistoricalRecords

from catalog import validation
from catalog.models.base import NOT_IN_HISTORY, SourcedRow, one_of, positive
from catalog.models.server import Server
from catalog.specs import PricingModel

PRICING_CHOICES = [
    (PricingModel.ON_DEMAND, _("on demand")),
    (PricingModel.SPOT, _("spot")),
    (PricingModel.RESERVED_1Y, _("reserved 1 year")),
    (PricingModel.RESERVED_3Y, _("reserved 3 years")),
    (PricingModel.RESERVED_OTHER, _("reserved, another term")),
    (PricingModel.MONTHLY, _("by the month")),
]


class OfferStatus(models.TextChoices):
    LIVE = "live", _("live")
    STALE = "stale", _("stale")
    RETIRED = "retired", _("retired")
    QUARANTINED = "quarantined", _("held back, somebody has to look")


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


TERM_OF = {PricingModel.RESERVED_1Y: 12, PricingModel.RESERVED_3Y: 36}
UNCOMMITTED = (PricingModel.ON_DEMAND, PricingModel.SPOT)


def offer_key(
    *,
    server: str,
    region: str,
    zone: str,
    tenancy: str,
    pricing_model: str,
    term_months: int,
    currency: str,
    source: str,
    observed_on: str,
) -> str:
    """A short stable name of an offer from its natural key, the same in every database.

    A term that the way of paying already says, and an empty zone, do not count: keys given out earlier stay.
    """
    parts = [server, region, tenancy, pricing_model, currency, source, observed_on]
    if zone:
        parts.append(f"zone {zone}")
    if term_months and term_months != TERM_OF.get(PricingModel(pricing_model)):
        parts.append(f"{term_months} months")
    return sha256("\x1f".join(parts).encode()).hexdigest()[:16]


def gpu_price(price_per_hour: Decimal, gpu_count: int) -> Decimal:
    """The server's price over its accelerators, to a millionth of the currency."""
    return (Decimal(price_per_hour) / gpu_count).quantize(Decimal("0.000001"))


def _term_fits() -> models.Q:
    uncommitted = models.Q(pricing_model__in=[str(p) for p in UNCOMMITTED], term_months=0)
    fixed = models.Q()
    for pricing_model, months in TERM_OF.items():
        fixed |= models.Q(pricing_model=str(pricing_model), term_months=months)
    other = models.Q(pricing_model=str(PricingModel.RESERVED_OTHER), term_months__gt=0)
    monthly = models.Q(pricing_model=str(PricingModel.MONTHLY))
    return uncommitted | fixed | other | monthly


class Offer(SourcedRow):
    """What a server costs per hour in a region, under one way of paying, as one source printed it on one day."""

    key = models.CharField(_("key"), max_length=16, unique=True, editable=False)
    server = models.ForeignKey(Server, verbose_name=_("server"), on_delete=models.PROTECT, related_name="offers")
    region = models.CharField(
        _("region"), max_length=60, blank=True, help_text=_("The provider's name of it; empty where not printed.")
    )
    zone = models.CharField(
        _("zone"), max_length=40, blank=True, help_text=_("Within the region; empty where the price is the region's.")
    )
    tenancy = models.CharField(_("tenancy"), max_length=12, choices=Tenancy.choices, default=Tenancy.UNKNOWN)
    pricing_model = models.CharField(_("pricing model"), max_length=14, choices=PRICING_CHOICES)
    term_months = models.PositiveSmallIntegerField(
        _("term in months"), default=0, blank=True, help_text=_("What one commits to; 0 on demand and on spot.")
    )
    upfront_percent = models.DecimalField(
        _("paid upfront (%)"),
        max_digits=5,
        decimal_places=2,
        null=True,
        blank=True,
        help_text=_("Share of the whole term's price that is due at its start; the price per hour includes it."),
    )
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
    price_per_gpu_hour = models.DecimalField(
        _("price per accelerator and hour"), max_digits=14, decimal_places=6, editable=False
    )
    price_basis = models.CharField(
        _("printed as"), max_length=10, choices=PriceBasis.choices, default=PriceBasis.PER_SERVER
    )
    observed_on = models.DateField(_("observed on"), help_text=_("The date of the price, not of our copy."))
    last_seen_on = models.DateField(
        _("last seen on"), blank=True, help_text=_("The latest day on which the source still printed this price.")
    )
    valid_from = models.DateField(_("valid from"), null=True, blank=True)
    valid_to = models.DateField(
        _("valid to"), null=True, blank=True, help_text=_("The last day; empty while nobody has said that it ended.")
    )
    observed_precision = models.CharField(
        _("precision of the date"), max_length=4, choices=ObservedPrecision.choices, default=ObservedPrecision.DAY
    )
    status = models.CharField(
        _("status"),
        max_length=11,
        choices=OfferStatus.choices,
        default=OfferStatus.LIVE,
        help_text=_(
            "Live: in the newest copy of its source. Stale: too old to rely on. Retired: no longer rented out. "
            "Held back: looks wrong until somebody has approved it."
        ),
    )
    quarantine_reason = models.CharField(_("held back because"), max_length=200, blank=True, editable=False)
    source_url = models.URLField(_("address of the source"), max_length=300, blank=True)
    printed = models.JSONField(_("row as printed"), null=True, blank=True, editable=False)
    import_job = models.ForeignKey(
        "catalog.ImportJob",
        verbose_name=_("import"),
        null=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="offers",
    )

    history = HistoricalRecords(excluded_fields=[*NOT_IN_HISTORY, "price_per_gpu_hour", "printed", "import_job"])

    class Meta:
        verbose_name = _("offer")
        verbose_name_plural = _("offers")
        ordering = ["server__provider__key", "server__sku", "region", "pricing_model", "-observed_on"]
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "server",
                    "region",
                    "zone",
                    "tenancy",
                    "pricing_model",
                    "term_months",
                    "currency",
                    "source",
                    "observed_on",
                ],
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
            models.CheckConstraint(
                condition=_term_fits(),
                name="offer_term_fits_pricing_model",
                violation_error_message=_(
                    "On demand and spot have no term; reserved 1 year is 12 months, reserved 3 years 36; "
                    "another reservation needs its months."
                ),
            ),
            models.CheckConstraint(
                condition=models.Q(upfront_percent__isnull=True) | models.Q(upfront_percent__range=(0, 100)),
                name="offer_upfront_is_percent",
                violation_error_message=_("The share paid upfront is from 0 to 100 percent."),
            ),
            models.CheckConstraint(
                condition=models.Q(last_seen_on__gte=models.F("observed_on")),
                name="offer_last_seen_after_observed",
                violation_error_message=_("A price cannot be seen for the last time before the first."),
            ),
            models.CheckConstraint(
                condition=models.Q(valid_to__isnull=True)
                | models.Q(valid_from__isnull=True)
                | models.Q(valid_to__gte=models.F("valid_from")),
                name="offer_valid_to_after_from",
                violation_error_message=_("A price cannot end before it begins."),
            ),
        ]
        indexes = [
            models.Index(fields=["status", "observed_on"], name="offer_live_until"),
            models.Index(fields=["server", "pricing_model"], name="offer_of_server_by_pricing"),
            models.Index(fields=["price_per_hour", "id"], name="offer_by_price"),
            models.Index(fields=["price_per_gpu_hour", "id"], name="offer_by_gpu_price"),
            models.Index(fields=["source", "status"], name="offer_of_source"),
            models.Index(fields=["observed_on", "id"], name="offer_by_day"),
            # the cheapest that can be rented of each server is found in the index alone
            models.Index(
                fields=[
                    "server",
                    "currency",
                    "status",
                    "price_per_gpu_hour",
                    "valid_to",
                    "pricing_model",
                    "term_months",
                    "region",
                    "last_seen_on",
                ],
                name="offer_from_price",
            ),
        ]

    def __str__(self) -> str:
        where = self.region or _("no region")
        return f"{self.server} {where} {self.get_pricing_model_display()} {self.price_per_hour} {self.currency}"

    def save(self, *args: object, **kwargs: object) -> None:
        self.complete()
        super().save(*args, **kwargs)

    def complete(self) -> None:
        """Fill in what follows from the other columns; for writes that do not go through ``save``."""
        self.price_per_gpu_hour = gpu_price(self.price_per_hour, self.server.gpu_count)
        self.last_seen_on = self.last_seen_on or self.observed_on
        self.key = self.key or self.natural_key()

    def clean(self) -> None:
        super().clean()
        self.last_seen_on = self.last_seen_on or self.observed_on
        if not self.is_set_aside:
            validation.raise_if_any(validation.offer_problems(self, self._on_demand_price()))

    @property
    def is_set_aside(self) -> bool:
        """Held back or refused: a price that never counts may look wrong, else nobody could refuse it."""
        refused = self.status == OfferStatus.RETIRED and self.valid_to is None
        return refused or self.status == OfferStatus.QUARANTINED

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
            server=self.server.key,
            region=self.region,
            zone=self.zone,
            tenancy=self.tenancy,
            pricing_model=self.pricing_model,
            term_months=self.term_months,
            currency=self.currency,
            source=self.source,
            observed_on=self.observed_on.isoformat(),
        )
