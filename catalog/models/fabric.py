"""How the accelerators of one server are joined."""

from django.db import models
from django.utils.translation import gettext_lazy as _
from simple_history.models import HistoricalRecords

from catalog import validation
from catalog.models.base import NOT_IN_HISTORY, SourcedRow, confidence_column, one_of, positive
from catalog.models.server import Server
from catalog.specs import Confidence, TopologyClass

TOPOLOGY_CHOICES = [
    (TopologyClass.NVSWITCH_FULL, _("NVSwitch, any pair at full rate")),
    (TopologyClass.NVLINK_DIRECT, _("NVLink from each to each, no switch")),
    (TopologyClass.NVLINK_HYBRID_CUBE_MESH, _("NVLink hybrid cube mesh")),
    (TopologyClass.NVLINK_BRIDGE_PAIRS, _("NVLink bridges in pairs")),
    (TopologyClass.NVLINK_BRIDGE_QUADS, _("NVLink bridges in fours")),
    (TopologyClass.NVL72, _("NVLink domain of 72 across a rack")),
    (TopologyClass.C2C, _("chip to chip with the host, one accelerator")),
    (TopologyClass.PCIE_SWITCH, _("PCIe switches")),
    (TopologyClass.PCIE_SINGLE_ROOT, _("PCIe, all under one CPU")),
    (TopologyClass.PCIE_DUAL_ROOT, _("PCIe switches under two CPUs")),
    (TopologyClass.PCIE_ROOT, _("PCIe straight to the CPUs")),
    (TopologyClass.PCIE_SWITCH_FABRIC, _("PCIe fabric of several boxes")),
    (TopologyClass.XGMI_ALL_TO_ALL, _("xGMI from each to each")),
    (TopologyClass.ROCE_ALL_TO_ALL, _("RoCE from each to each")),
    (TopologyClass.ICI_TORUS, _("ICI torus")),
    (TopologyClass.SINGLE, _("one accelerator")),
    (TopologyClass.UNKNOWN, _("not known")),
]


class HostLinkBasis(models.TextChoices):
    MEASURED = "measured", _("read on the machine")
    STATED = "stated", _("stated by the source")
    FAMILY = "family", _("read on a sibling of the same family")
    CARD = "card", _("the card's own limit; the server may be slower")
    C2C = "c2c", _("chip-to-chip link instead of PCIe")
    UNKNOWN = "unknown", _("not known")


class TopologyBasis(models.TextChoices):
    UNKNOWN = "", _("not known")
    SKU = "sku", _("stated for this very server")
    RULE = "rule", _("follows from form factor and count")
    MEASURED = "measured", _("read on the machine")
    CLAIM = "vendor-claim", _("claimed by the vendor, not checked")


class Fabric(SourcedRow):
    """The links between the accelerators of one server, and from them to the host and the network."""

    server = models.OneToOneField(Server, verbose_name=_("server"), on_delete=models.CASCADE, related_name="fabric")
    topology = models.CharField(_("topology"), max_length=24, choices=TOPOLOGY_CHOICES, default=TopologyClass.UNKNOWN)
    topology_basis = models.CharField(
        _("topology known from"),
        max_length=12,
        choices=TopologyBasis.choices,
        blank=True,
        default=TopologyBasis.UNKNOWN,
    )
    domain_gpus = models.PositiveIntegerField(
        _("accelerators in one scale-up domain"),
        null=True,
        blank=True,
        help_text=_("2 for a bridged pair, 72 for NVL72; empty over PCIe."),
    )
    bandwidth_bytes_per_s = models.FloatField(
        _("scale-up bandwidth per accelerator"),
        null=True,
        blank=True,
        help_text=_("Bytes per second of one accelerator into the domain, in one direction."),
    )
    peer_bandwidth_bytes_per_s = models.FloatField(
        _("bandwidth between one pair"),
        null=True,
        blank=True,
        help_text=_("Bytes per second between one joined pair, in one direction."),
    )
    pcie_generation = models.PositiveSmallIntegerField(
        _("PCIe generation"), null=True, blank=True, help_text=_("Of the host link as attached.")
    )
    pcie_lanes = models.PositiveSmallIntegerField(
        _("PCIe lanes"), null=True, blank=True, help_text=_("Of one accelerator's host link as attached.")
    )
    pcie_bandwidth_bytes_per_s = models.FloatField(
        _("host link bandwidth"),
        null=True,
        blank=True,
        help_text=_("Bytes per second of one accelerator's host link, payload, in one direction."),
    )
    host_link_basis = models.CharField(
        _("host link known from"), max_length=10, choices=HostLinkBasis.choices, default=HostLinkBasis.UNKNOWN
    )
    gpus_per_pcie_switch = models.PositiveSmallIntegerField(_("accelerators per PCIe switch"), null=True, blank=True)
    numa_nodes = models.PositiveSmallIntegerField(_("NUMA nodes"), null=True, blank=True)
    peer_to_peer = models.BooleanField(
        _("peer to peer"),
        null=True,
        blank=True,
        help_text=_("Whether accelerators copy to each other over PCIe without the host's memory."),
    )
    network_bandwidth_bytes_per_s = models.FloatField(
        _("network bandwidth"),
        null=True,
        blank=True,
        help_text=_("Bytes per second of all network cards of the server together, in one direction."),
    )
    nic_count = models.PositiveSmallIntegerField(
        _("network cards"), null=True, blank=True, help_text=_("Of the whole server, for traffic between servers.")
    )
    network_description = models.CharField(_("network as printed"), max_length=80, blank=True)
    rdma = models.BooleanField(_("RDMA"), null=True, blank=True)
    measured_curve = models.JSONField(
        _("measured bandwidth"),
        default=list,
        blank=True,
        validators=[validation.measured_curve],
        help_text=_(
            "List of points: collective, gpus, bytes of the message (null for large), bus_bytes_per_s, source. "
            "Bus bandwidth as nccl-tests prints it."
        ),
    )
    confidence = confidence_column()

    history = HistoricalRecords(excluded_fields=NOT_IN_HISTORY)

    class Meta:
        verbose_name = _("fabric")
        verbose_name_plural = _("fabrics")
        ordering = ["server__provider__key", "server__sku"]
        constraints = [
            *(
                positive("fabric", field)
                for field in (
                    "domain_gpus",
                    "bandwidth_bytes_per_s",
                    "peer_bandwidth_bytes_per_s",
                    "pcie_lanes",
                    "pcie_bandwidth_bytes_per_s",
                    "network_bandwidth_bytes_per_s",
                    "gpus_per_pcie_switch",
                    "numa_nodes",
                    "nic_count",
                )
            ),
            one_of("fabric", "topology", [t.value for t in TopologyClass]),
            one_of("fabric", "topology_basis", TopologyBasis.values),
            one_of("fabric", "host_link_basis", HostLinkBasis.values),
            one_of("fabric", "confidence", [c.value for c in Confidence]),
        ]
        indexes = [models.Index(fields=["topology"], name="fabric_by_topology")]

    def __str__(self) -> str:
        return f"{self.server}: {self.get_topology_display()}"

    def clean(self) -> None:
        super().clean()
        validation.raise_if_any(validation.fabric_problems(self))
