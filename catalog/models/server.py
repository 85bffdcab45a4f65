"""Providers and their servers (SKUs)."""

from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _
from simple_history.models import HistoricalRecords

from catalog.models.accelerator import Accelerator
from catalog.models.base import NOT_IN_HISTORY, SourcedRow, confidence_column, iso_country, one_of, positive
from catalog.specs import Confidence


class ProviderKind(models.TextChoices):
    CLOUD = "cloud", _("cloud")
    MARKETPLACE = "marketplace", _("marketplace of other people's machines")
    REFERENCE = "reference", _("reference designs, not for rent")


class Deployment(models.TextChoices):
    UNKNOWN = "", _("not known")
    BARE_METAL = "bare_metal", _("bare metal")
    VM = "vm", _("virtual machine")
    VGPU = "vgpu", _("virtual GPU")
    CONTAINER = "container", _("container")
    MIXED = "mixed", _("more than one of these")


class Hire(models.TextChoices):
    RENTAL = "rental", _("rented")
    COLOCATION = "colocation", _("colocation: own server in another's rack")


COUNTRY = RegexValidator(r"^[A-Z]{2}$", _("Two capital letters, as in DE (ISO 3166-1)."))


class Provider(SourcedRow):
    """Who rents servers out, or the collection of reference designs."""

    key = models.SlugField(_("key"), max_length=40, unique=True)
    name = models.CharField(_("name"), max_length=80)
    kind = models.CharField(_("kind"), max_length=12, choices=ProviderKind.choices, default=ProviderKind.CLOUD)
    country = models.CharField(
        _("country"), max_length=2, blank=True, validators=[COUNTRY], help_text=_("Of the company's seat.")
    )

    history = HistoricalRecords(excluded_fields=NOT_IN_HISTORY)

    class Meta:
        verbose_name = _("provider")
        verbose_name_plural = _("providers")
        ordering = ["key"]
        constraints = [one_of("provider", "kind", ProviderKind.values), iso_country("provider")]

    def __str__(self) -> str:
        return self.name


class Server(SourcedRow):
    """One rentable server: a SKU of a provider with whole accelerators of one model."""

    provider = models.ForeignKey(Provider, verbose_name=_("provider"), on_delete=models.PROTECT, related_name="servers")
    sku = models.CharField(
        _("SKU"),
        max_length=80,
        validators=[RegexValidator(r"^[^/]+$", _("A SKU may not hold a slash: it is part of web addresses."))],
        help_text=_("The provider's own name of the server."),
    )
    accelerator = models.ForeignKey(
        Accelerator,
        verbose_name=_("accelerator"),
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="servers",
        help_text=_("Empty where the price list does not say which form factor it is; then nothing is predicted."),
    )
    accelerator_printed = models.CharField(
        _("accelerator as printed"),
        max_length=80,
        blank=True,
        help_text=_("What the price list calls it, while the accelerator is not known."),
    )
    gpu_count = models.PositiveSmallIntegerField(_("accelerators"), help_text=_("Whole devices in the server."))
    sockets = models.PositiveSmallIntegerField(_("CPU sockets"), null=True, blank=True)
    cpu_model = models.CharField(_("CPU"), max_length=80, blank=True)
    cpu_cores = models.PositiveIntegerField(
        _("CPU cores"), null=True, blank=True, help_text=_("Cores of bare metal, virtual CPUs of a virtual machine.")
    )
    memory_bytes = models.PositiveBigIntegerField(
        _("main memory"), null=True, blank=True, help_text=_("Bytes of the host; a printed GB counts as 10^9.")
    )
    local_storage_bytes = models.PositiveBigIntegerField(
        _("local storage"), null=True, blank=True, help_text=_("Bytes of local drives; empty where not known.")
    )
    local_drives = models.PositiveSmallIntegerField(_("local drives"), null=True, blank=True)
    deployment = models.CharField(
        _("deployment"), max_length=12, choices=Deployment.choices, blank=True, default=Deployment.UNKNOWN
    )
    hire = models.CharField(_("hire"), max_length=10, choices=Hire.choices, default=Hire.RENTAL)
    exposes_topology = models.BooleanField(
        _("shows the real PCIe layout"), null=True, blank=True, help_text=_("Virtual machines often hide it.")
    )
    exposes_nvlink = models.BooleanField(
        _("passes NVLink on"),
        null=True,
        blank=True,
        help_text=_("Whether accelerators of the rented machine reach each other over NVLink as the board could."),
    )
    exposure_notes = models.CharField(_("what the mode exposes"), max_length=200, blank=True)
    rack_units = models.PositiveSmallIntegerField(_("rack units"), null=True, blank=True)
    power_w = models.FloatField(_("power"), null=True, blank=True, help_text=_("Watts of the whole server at most."))
    confidence = confidence_column()

    history = HistoricalRecords(excluded_fields=NOT_IN_HISTORY)

    class Meta:
        verbose_name = _("server")
        verbose_name_plural = _("servers")
        ordering = ["provider__key", "sku"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "sku"], name="server_provider_sku_unique"),
            positive("server", "gpu_count"),
            positive("server", "sockets"),
            positive("server", "cpu_cores"),
            positive("server", "memory_bytes"),
            positive("server", "local_drives"),
            positive("server", "rack_units"),
            positive("server", "power_w"),
            one_of("server", "hire", Hire.values),
            models.CheckConstraint(
                condition=models.Q(accelerator__isnull=False) | ~models.Q(accelerator_printed=""),
                name="server_accelerator_known_or_printed",
                violation_error_message=_("Choose the accelerator, or enter the name that the price list prints."),
            ),
            one_of("server", "confidence", [c.value for c in Confidence]),
            one_of("server", "deployment", Deployment.values),
        ]
        indexes = [models.Index(fields=["accelerator", "gpu_count"], name="server_by_accelerator_count")]

    def __str__(self) -> str:
        return f"{self.provider.key}/{self.sku}"

    @property
    def key(self) -> str:
        """``provider/sku``, the natural key used by the engine, the API and the files."""
        return f"{self.provider.key}/{self.sku}"
