"""What can be rented, as frozen values that the numeric core works on.

Units: bytes, bytes/s in **one direction**, dense FLOP/s, watts, Decimal money. ``None`` is "not known", never 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import StrEnum


class TopologyClass(StrEnum):
    """How the accelerators of one server reach each other; decides which collective curve applies."""

    NVSWITCH_FULL = "nvswitch-full"
    NVLINK_DIRECT = "nvlink-direct"
    NVLINK_HYBRID_CUBE_MESH = "nvlink-hybrid-cube-mesh"
    NVLINK_BRIDGE_PAIRS = "nvlink-bridge-pairs"
    NVLINK_BRIDGE_QUADS = "nvlink-bridge-quads"
    NVL72 = "nvl72"
    C2C = "c2c"
    PCIE_SWITCH = "pcie-switch"
    PCIE_SINGLE_ROOT = "pcie-single-root"
    PCIE_DUAL_ROOT = "pcie-dual-root"
    PCIE_ROOT = "pcie-root"
    PCIE_SWITCH_FABRIC = "pcie-switch-fabric"
    XGMI_ALL_TO_ALL = "xgmi-all-to-all"
    ROCE_ALL_TO_ALL = "roce-all-to-all"
    ICI_TORUS = "ici-torus"
    SINGLE = "single"
    UNKNOWN = "unknown"

    @property
    def is_nvlink(self) -> bool:
        """True where NVLink joins at least two GPUs of the server."""
        return self in _NVLINK

    @property
    def is_pcie(self) -> bool:
        """True where every pair of GPUs of the server talks over PCIe."""
        return self in _PCIE


_NVLINK = frozenset(
    {
        TopologyClass.NVSWITCH_FULL,
        TopologyClass.NVLINK_DIRECT,
        TopologyClass.NVLINK_HYBRID_CUBE_MESH,
        TopologyClass.NVLINK_BRIDGE_PAIRS,
        TopologyClass.NVLINK_BRIDGE_QUADS,
        TopologyClass.NVL72,
    }
)
_PCIE = frozenset(
    {
        TopologyClass.PCIE_SWITCH,
        TopologyClass.PCIE_SINGLE_ROOT,
        TopologyClass.PCIE_DUAL_ROOT,
        TopologyClass.PCIE_ROOT,
        TopologyClass.PCIE_SWITCH_FABRIC,
    }
)


class Confidence(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class PricingModel(StrEnum):
    """How one pays. The term in months stands beside it: 0 uncommitted, 12 and 36 for the two usual reservations."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED_1Y = "reserved_1y"
    RESERVED_3Y = "reserved_3y"
    RESERVED_OTHER = "reserved_other"
    MONTHLY = "monthly"


class DatePrecision(StrEnum):
    """How exact a date is; of a year alone the date is its first day."""

    DAY = "day"
    YEAR = "year"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorSpec:
    """One accelerator model.

    ``dense_flops_per_s`` maps a dtype (``fp64 fp32 tf32 fp16 bf16 fp8 fp4 int8``) to the peak without sparsity;
    a dtype that is missing is not supported, or its rate is not known.
    ``memory_bytes`` is what the driver reports where that was seen, else the marketing figure.
    """

    key: str
    name: str
    vendor: str
    architecture: str
    form_factor: str
    memory_bytes: int
    memory_bandwidth_bytes_per_s: float
    dense_flops_per_s: Mapping[str, float] = field(default_factory=dict, hash=False)
    scaleup_kind: str = "none"
    scaleup_bandwidth_bytes_per_s: float | None = None
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    peer_to_peer_over_pcie: bool | None = None
    tdp_w: float | None = None
    confidence: Confidence = Confidence.LOW
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricSpec:
    """How the GPUs of one server are joined.

    ``domain_gpus``: GPUs that share one scale-up domain (a pair for a bridge, 72 for NVL72), None over PCIe.
    ``bandwidth_bytes_per_s``: per GPU into the scale-up domain; ``peer_bandwidth_bytes_per_s``: between one pair.
    ``pcie_bandwidth_bytes_per_s``: one GPU's host link as attached (generation, lanes), payload rate.
    ``peer_to_peer``: whether GPUs may copy to each other over PCIe without the host's memory.
    ``network_bandwidth_bytes_per_s``: all NICs of the server together.
    """

    topology: TopologyClass
    domain_gpus: int | None = None
    bandwidth_bytes_per_s: float | None = None
    peer_bandwidth_bytes_per_s: float | None = None
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    pcie_bandwidth_bytes_per_s: float | None = None
    peer_to_peer: bool | None = None
    network_bandwidth_bytes_per_s: float | None = None
    rdma: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """One rentable server (SKU). ``key`` is ``provider/sku``."""

    key: str
    provider: str
    sku: str
    accelerator: AcceleratorSpec
    gpu_count: int
    fabric: FabricSpec
    sockets: int | None = None
    cpu_cores: int | None = None
    memory_bytes: int | None = None
    deployment: str = ""
    confidence: Confidence = Confidence.LOW
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferSpec:
    """A server in a region at a price, on a date, from a source.

    ``price_per_hour`` is for the whole server, all ``server.gpu_count`` GPUs, in ``currency`` (ISO 4217).
    ``observed_on``: the latest day on which the source printed this price.
    ``tenancy``: whose machines and how shared, empty where not told: one provider asks different prices for each.
    """

    key: str
    server: ServerSpec
    region: str
    pricing_model: PricingModel
    price_per_hour: Decimal
    currency: str
    observed_on: date
    term_months: int = 0
    observed_precision: DatePrecision = DatePrecision.DAY
    tenancy: str = ""
    source: str = ""
    source_licence: str = ""

    @property
    def price_per_gpu_hour(self) -> Decimal:
        return self.price_per_hour / self.server.gpu_count
