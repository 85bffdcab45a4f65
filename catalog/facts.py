"""Physical facts that a typed value is held against; no row of the catalog is used to judge another.

Bandwidths are bytes per second in one direction.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NvlinkGeneration:
    """The largest device of a generation: how many links it has and what one link carries in one direction."""

    links: int
    link_bytes_per_s: float

    @property
    def device_bytes_per_s(self) -> float:
        return self.links * self.link_bytes_per_s


NVLINK = {
    1: NvlinkGeneration(links=4, link_bytes_per_s=20e9),
    2: NvlinkGeneration(links=6, link_bytes_per_s=25e9),
    3: NvlinkGeneration(links=12, link_bytes_per_s=25e9),
    4: NvlinkGeneration(links=18, link_bytes_per_s=25e9),
    5: NvlinkGeneration(links=18, link_bytes_per_s=50e9),
    6: NvlinkGeneration(links=36, link_bytes_per_s=50e9),
}
"""NVIDIA's sheets, as collected in stas00/ml-engineering network/README.md and in ai-dynamo/aiconfigurator."""

PCIE_X16_PAYLOAD = {1: 3.94e9, 2: 7.88e9, 3: 15.75e9, 4: 31.5e9, 5: 63e9, 6: 121e9}
"""Payload of sixteen lanes after line coding (PCI-SIG base specifications)."""

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
