"""Physical facts that a typed value is held against; no row of the catalog is used to judge another.

Bandwidths are bytes per second in one direction.
"""

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class NvlinkGeneration:
    """The largest device of a generation: how many links it has and what one link carries in one direction."""

    links: int
    link_bytes_per_s: float
    devices: str

    @property
    def device_bytes_per_s(self) -> float:
        return self.links * self.link_bytes_per_s


NVLINK = {
    1: NvlinkGeneration(links=4, link_bytes_per_s=20e9, devices="P100"),
    2: NvlinkGeneration(links=6, link_bytes_per_s=25e9, devices="V100"),
    3: NvlinkGeneration(links=12, link_bytes_per_s=25e9, devices="A100"),
    4: NvlinkGeneration(links=18, link_bytes_per_s=25e9, devices="H100, H200"),
    5: NvlinkGeneration(links=18, link_bytes_per_s=50e9, devices="B200, B300"),
    6: NvlinkGeneration(links=36, link_bytes_per_s=50e9, devices="Rubin"),
}
"""NVIDIA's sheets, as collected in stas00/ml-engineering network/README.md and in ai-dynamo/aiconfigurator."""

NVLINK_OF_ARCHITECTURE = (("Pascal", 1), ("Volta", 2), ("Ampere", 3), ("Hopper", 4), ("Blackwell", 5), ("Rubin", 6))
"""Generation by the beginning of the architecture's name; same source."""

NVLINK_OTHER_RATES = {(3, 4): (56.25e9, 100e9)}
"""(generation, links) -> what devices with so many links have. Bridges of A40, A5000, A6000 and RTX 3090 run their
four links at 14.06 GB/s, those of the A30 at 25."""

NVLINK_CUT = {2: (), 3: (56.25e9, 100e9, 200e9), 4: (200e9, 300e9)}
"""Bridged cards (A40, A30, H100 PCIe and NVL) and export models (A800, H800) below the largest of a generation."""

DATA_OF_RAW_SIGNALLING = 0.941
"""`nvidia-smi nvlink -s` prints 26.5625 GB/s per link for 25, 53.125 for 50 (stas00/ml-engineering)."""

WITHOUT_NVLINK = (
    *("T4", "T4G", "A10", "A10G", "A16", "RTX A4000", "L4", "L40", "L40S", "RTX 4090", "RTX 5090", "RTX 6000 Ada"),
    *("RTX PRO 6000", "RTX PRO 4500", "V100 PCIe", "V100S PCIe"),
)
"""NVIDIA devices that have no NVLink at all (stas00/ml-engineering, NVIDIA's product pages)."""

LINK_OF_VENDOR = {"nvidia": "nvlink", "amd": "xgmi", "intel": "roce", "habana": "roce", "google": "ici"}
"""Scale-up links are each vendor's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointToPoint:
    """A device whose links go straight to its peers. ``all_ports``: what sources print that count ports out of the box.

    Devices without a switch give one peer no more than ``peer_bytes_per_s``.
    """

    kind: str
    device_bytes_per_s: float
    peer_bytes_per_s: float
    all_ports_bytes_per_s: float | None = None


POINT_TO_POINT = (
    ("TPU v4", PointToPoint(kind="ici", device_bytes_per_s=300e9, peer_bytes_per_s=50e9)),
    ("TPU v5e", PointToPoint(kind="ici", device_bytes_per_s=200e9, peer_bytes_per_s=50e9)),
    ("TPU v5p", PointToPoint(kind="ici", device_bytes_per_s=600e9, peer_bytes_per_s=100e9)),
    ("TPU v6e", PointToPoint(kind="ici", device_bytes_per_s=400e9, peer_bytes_per_s=100e9)),
    ("TPU7x", PointToPoint(kind="ici", device_bytes_per_s=600e9, peer_bytes_per_s=100e9)),
    ("MI210", PointToPoint(kind="xgmi", device_bytes_per_s=150e9, peer_bytes_per_s=50e9)),
    ("MI250", PointToPoint(kind="xgmi", device_bytes_per_s=400e9, peer_bytes_per_s=50e9)),
    ("MI300X", PointToPoint(kind="xgmi", device_bytes_per_s=448e9, peer_bytes_per_s=64e9)),
    ("MI325X", PointToPoint(kind="xgmi", device_bytes_per_s=448e9, peer_bytes_per_s=64e9)),
    ("MI350X", PointToPoint(kind="xgmi", device_bytes_per_s=537.5e9, peer_bytes_per_s=76.5e9)),
    ("MI355X", PointToPoint(kind="xgmi", device_bytes_per_s=537.5e9, peer_bytes_per_s=76.5e9)),
    (
        "Gaudi 2",
        PointToPoint(kind="roce", device_bytes_per_s=262.5e9, peer_bytes_per_s=37.5e9, all_ports_bytes_per_s=300e9),
    ),
    (
        "Gaudi 3",
        PointToPoint(kind="roce", device_bytes_per_s=525e9, peer_bytes_per_s=75e9, all_ports_bytes_per_s=600e9),
    ),
)
"""By a part of the device's name. Google Cloud's TPU pages, AMD's and Intel's (docs.habana.ai) network pages,
stas00/ml-engineering network/README.md."""

PCIE_X16_PAYLOAD = {1: 3.94e9, 2: 7.88e9, 3: 15.75e9, 4: 31.5e9, 5: 63e9, 6: 121e9}
"""Payload of sixteen lanes after line coding (PCI-SIG base specifications)."""

EIGHT_LANE_FAMILIES = {"aws": ("g4dn", "g5", "g6", "g6e", "gr6")}
"""Provider -> families of servers whose cards are attached with eight lanes whatever the card's own sixteen.

Link width read on the machines by vantage-sh/ec2instances.info; g7e, p4, p5 and p6 have sixteen."""

TENSOR_FMA_PER_UNIT_AND_CLOCK = (
    ("Volta", 512),
    ("Turing", 512),
    ("Ampere GA100", 1024),
    ("Ampere", 512),
    ("Ada", 512),
    ("Hopper", 2048),
    ("Blackwell GB20", 512),
    ("Blackwell", 4096),
    ("CDNA2", 512),
    ("CDNA3", 1024),
    ("CDNA4", 2048),
)
"""Dense fp16 multiply-adds of one compute unit in one clock; the first matching beginning of the architecture counts.

From the vendors' architecture papers; every accelerator that ships with the catalog reproduces its sheet with these.
"""

DTYPE_RATE = {"tf32": 0.5, "fp16": 1.0, "bf16": 1.0, "fp8": 2.0, "int8": 2.0, "fp4": 6.0}
"""Peak of a dtype against fp16. Four is usual for fp4, Blackwell Ultra does six."""

DEVICE_MEMORY_BYTES = (4e9, 2e12)
DEVICE_MEMORY_BYTES_PER_S = (50e9, 50e12)
"""Smallest and largest of rented accelerators from 2016 to the HBM4 parts that are announced."""

REPORTED_OVER_SOLD = (0.88, 1.09)
"""What drivers report over the marketing figure (10^9 bytes): T4 loses a sixteenth to ECC, B200 shows 183,359 MiB of
"180 GB" (nvidia-smi)."""

USD_PER_GPU_HOUR = (Decimal("0.005"), Decimal(60))
"""Lowest and highest price per accelerator and hour that any list of 2024 to 2026 prints, with room."""

PER_USD = {
    "USD": 1,
    "EUR": 0.9,
    "GBP": 0.8,
    "CHF": 0.9,
    "CAD": 1.4,
    "AUD": 1.5,
    "SGD": 1.3,
    "CNY": 7.2,
    "HKD": 7.8,
    "TWD": 32,
    "INR": 85,
    "JPY": 150,
    "KRW": 1400,
}
"""Units of a currency per dollar, rounded (ECB reference rates of 2025): only to tell a thousand yen from dollars."""

RATE_SLACK = Decimal("1.5")
"""How far a currency may move before the rounded rates mislead."""

_CODES = """
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF
IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD
MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB
RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD
UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG
"""
CURRENCIES = frozenset(_CODES.split())
"""Active codes of ISO 4217."""

NOT_CURRENCIES = {"RMB": "CNY", "CNH": "CNY", "NTD": "TWD", "UKP": "GBP", "STG": "GBP", "YEN": "JPY", "EUS": "EUR"}
"""What people write for an ISO code."""


def pcie_payload_bytes_per_s(generation: int | None, lanes: int | None) -> float | None:
    """Payload of a PCIe link in one direction; None where generation or lanes are not known."""
    x16 = PCIE_X16_PAYLOAD.get(generation or 0)
    return x16 * lanes / 16 if x16 and lanes else None


def dense_peak_flops_per_s(architecture: str, dtype: str, units: int | None, clock_hz: float | None) -> float | None:
    """The most a device of this architecture can do without sparsity; None where it cannot be worked out."""
    rate = DTYPE_RATE.get(dtype)
    fma = next((n for start, n in TENSOR_FMA_PER_UNIT_AND_CLOCK if architecture.startswith(start)), None)
    if not (rate and fma and units and clock_hz):
        return None
    return 2 * fma * units * clock_hz * rate


def point_to_point(name: str) -> PointToPoint | None:
    """What is known of a device whose links go straight to its peers, by its name."""
    return next((known for part, known in POINT_TO_POINT if part.lower() in name.lower()), None)


def has_no_nvlink(name: str) -> bool:
    """Whether an NVIDIA device of this name is known to have no NVLink."""
    words = f" {name} ".lower().replace("geforce ", "").replace("tesla ", "")
    return any(f" {known.lower()} " in words for known in WITHOUT_NVLINK)


def nvlink_generation(architecture: str) -> int | None:
    """The NVLink generation of an NVIDIA architecture."""
    return next((number for start, number in NVLINK_OF_ARCHITECTURE if architecture.startswith(start)), None)


def nvlink_rates(generation: int, links: int | None) -> tuple[float, ...]:
    """Bytes per second that a device of this generation with so many links can have, the usual one first."""
    known = NVLINK[generation]
    if links is None:
        return (known.device_bytes_per_s, *NVLINK_CUT.get(generation, ()))
    return NVLINK_OTHER_RATES.get((generation, links), (links * known.link_bytes_per_s,))
