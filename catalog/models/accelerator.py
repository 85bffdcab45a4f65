"""Accelerator models: what one device can do."""

from django.db import models
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from simple_history.models import HistoricalRecords

from catalog import validation
from catalog.models.base import NOT_IN_HISTORY, SourcedRow, confidence_column, one_of, positive
from catalog.specs import Confidence

DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")


def _dense(dtype: str) -> models.FloatField:
    return models.FloatField(
        format_lazy(_("dense {dtype} peak"), dtype=dtype),
        null=True,
        blank=True,
        help_text=_("Operations per second without sparsity; empty where unsupported or unknown."),
    )


class ScaleupKind(models.TextChoices):
    NONE = "none", _("none")
    NVLINK = "nvlink", "NVLink"
    XGMI = "xgmi", "xGMI / Infinity Fabric"
    ROCE = "roce", "RoCE"
    ICI = "ici", "ICI"


class Accelerator(SourcedRow):
    """One accelerator model, by form factor: an SXM board and a PCIe card are two rows."""

    key = models.SlugField(_("key"), max_length=40, unique=True, help_text=_("Stable short name, as in h100-sxm5-80."))
    name = models.CharField(_("name"), max_length=80)
    vendor = models.CharField(_("vendor"), max_length=40)
    architecture = models.CharField(_("architecture"), max_length=40)
    form_factor = models.CharField(_("form factor"), max_length=40)
    memory_type = models.CharField(_("memory type"), max_length=20, blank=True)
    memory_bytes = models.PositiveBigIntegerField(
        _("memory"), help_text=_("Bytes of one device: what the driver reports where seen, else the marketing figure.")
    )
    memory_is_reported = models.BooleanField(
        _("memory as the driver reports it"), default=False, help_text=_("Off: only the marketing figure is known.")
    )
    memory_marketing_bytes = models.PositiveBigIntegerField(
        _("memory as sold"),
        null=True,
        blank=True,
        help_text=_("Bytes; a printed GB counts as 10^9. What is usable stands under memory."),
    )
    memory_bandwidth_bytes_per_s = models.FloatField(_("memory bandwidth"), help_text=_("Bytes per second, peak."))
    compute_units = models.PositiveIntegerField(
        _("compute units"), null=True, blank=True, help_text=_("SMs, CUs, TPCs or tensor cores of one device.")
    )
    boost_clock_hz = models.FloatField(
        _("boost clock"), null=True, blank=True, help_text=_("Hz; the clock at which the tensor peak holds.")
    )
    dense_fp64_flops_per_s = _dense("fp64")
    dense_fp32_flops_per_s = _dense("fp32")
    dense_tf32_flops_per_s = _dense("tf32")
    dense_fp16_flops_per_s = _dense("fp16")
    dense_bf16_flops_per_s = _dense("bf16")
    dense_fp8_flops_per_s = _dense("fp8")
    dense_fp4_flops_per_s = _dense("fp4")
    dense_int8_flops_per_s = _dense("int8")
    scaleup_kind = models.CharField(
        _("scale-up link"), max_length=10, choices=ScaleupKind.choices, default=ScaleupKind.NONE
    )
    scaleup_generation = models.PositiveSmallIntegerField(_("scale-up generation"), null=True, blank=True)
    scaleup_links = models.PositiveSmallIntegerField(
        _("scale-up links"), null=True, blank=True, help_text=_("Links of one device.")
    )
    scaleup_bandwidth_bytes_per_s = models.FloatField(
        _("scale-up bandwidth"),
        null=True,
        blank=True,
        help_text=_("Bytes per second of one device over all its links, in one direction (half the advertised total)."),
    )
    scaleup_peer_bandwidth_bytes_per_s = models.FloatField(
        _("scale-up bandwidth to one peer"),
        null=True,
        blank=True,
        help_text=_("Bytes per second from one device to one other, in one direction."),
    )
    pcie_generation = models.PositiveSmallIntegerField(_("PCIe generation"), null=True, blank=True)
    pcie_lanes = models.PositiveSmallIntegerField(
        _("PCIe lanes"), null=True, blank=True, help_text=_("Lanes of one device, not of a board of several.")
    )
    peer_to_peer_over_pcie = models.BooleanField(
        _("peer to peer over PCIe"), null=True, blank=True, help_text=_("Whether the driver allows direct copies.")
    )
    tdp_w = models.FloatField(_("power"), null=True, blank=True, help_text=_("Watts, thermal design power."))
    launch_year = models.PositiveSmallIntegerField(_("launch year"), null=True, blank=True)
    confidence = confidence_column()

    history = HistoricalRecords(excluded_fields=NOT_IN_HISTORY)

    class Meta:
        verbose_name = _("accelerator")
        verbose_name_plural = _("accelerators")
        ordering = ["key"]
        constraints = [
            *(
                positive("accelerator", field)
                for field in (
                    "memory_bytes",
                    "memory_marketing_bytes",
                    "memory_bandwidth_bytes_per_s",
                    *(f"dense_{dtype}_flops_per_s" for dtype in DTYPES),
                    "compute_units",
                    "boost_clock_hz",
                    "scaleup_bandwidth_bytes_per_s",
                    "scaleup_peer_bandwidth_bytes_per_s",
                    "pcie_lanes",
                    "tdp_w",
                )
            ),
            one_of("accelerator", "confidence", [c.value for c in Confidence]),
            one_of("accelerator", "scaleup_kind", ScaleupKind.values),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        super().clean()
        validation.raise_if_any(validation.accelerator_problems(self))
