"""The servers that training jobs run on: a fixed table, so that an edited catalog does not change the classifier."""

import csv
from collections.abc import Mapping
from importlib.resources import files

from advisor.engine.system import System
from catalog.specs import AcceleratorSpec, FabricSpec, TopologyClass

_DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8")


def training_servers() -> tuple[System, ...]:
    """Accelerators and fabrics in the order of ``servers.csv``, PCIe and NVLink of several generations."""
    text = files("advisor.training").joinpath("servers.csv").read_text(encoding="utf-8")
    return tuple(System(_accelerator(row), _fabric(row)) for row in csv.DictReader(text.splitlines()))


def gpu_counts() -> tuple[int, ...]:
    """GPUs of each server, in the same order."""
    text = files("advisor.training").joinpath("servers.csv").read_text(encoding="utf-8")
    return tuple(int(row["gpus"]) for row in csv.DictReader(text.splitlines()))


def server_name(system: System) -> str:
    accelerator, fabric = system[:2]
    return f"{accelerator.key} {fabric.topology}"


def _accelerator(row: Mapping[str, str]) -> AcceleratorSpec:
    rates = {dtype: row[f"{dtype}_tflop_per_s"] for dtype in _DTYPES}
    return AcceleratorSpec(
        key=row["accelerator"],
        name=row["accelerator"],
        vendor="",
        architecture="",
        form_factor=row["form_factor"],
        memory_bytes=round(float(row["memory_gb"]) * 1e9),
        memory_bandwidth_bytes_per_s=float(row["memory_gb_per_s"]) * 1e9,
        dense_flops_per_s={dtype: float(rate) * 1e12 for dtype, rate in rates.items() if rate},
        pcie_generation=int(row["pcie_generation"]),
        pcie_lanes=int(row["pcie_lanes"]),
    )


def _fabric(row: Mapping[str, str]) -> FabricSpec:
    return FabricSpec(
        topology=TopologyClass(row["topology"]),
        domain_gpus=int(row["domain_gpus"]) if row["domain_gpus"] else None,
        bandwidth_bytes_per_s=_giga(row["scaleup_gb_per_s"]),
        peer_bandwidth_bytes_per_s=_giga(row["peer_gb_per_s"]),
        peer_to_peer={"yes": True, "no": False, "": None}[row["peer_to_peer"]],
    )


def _giga(cell: str) -> float | None:
    return float(cell) * 1e9 if cell else None
