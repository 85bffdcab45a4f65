"""The servers that training jobs run on: a fixed table, so that an edited catalog does not change the classifier.

``servers.csv``: figures of data sheets with their source (``source`` for the accelerator, ``server`` for the rest);
rates in one direction. ``gpus`` of one server, ``most_gpus`` that a job takes of them, over their network where
there is one. Accelerators that come on a board of links have ``scaleup_kind``; empty cells are not known.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files

from advisor.engine.system import System
from catalog.specs import AcceleratorSpec, FabricSpec, TopologyClass

_DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
_SAID = {"yes": True, "no": False, "": None}


def training_servers() -> tuple[System, ...]:
    """Accelerators and fabrics in the order of ``servers.csv``, PCIe and NVLink of several generations."""
    return tuple(System(_accelerator(row), _fabric(row), int(row["gpus"])) for row in _rows())


def gpu_counts() -> tuple[int, ...]:
    """Most GPUs that a job takes of each kind of server, in the same order: of one, or of several where a network
    joins them."""
    return tuple(int(row["most_gpus"]) for row in _rows())


def server_name(system: System) -> str:
    """Accelerator, topology and network; different for each kind of server."""
    rate = system.fabric.network_bandwidth_bytes_per_s
    network = f" {rate * 8 / 1e9:g}G {'rdma' if system.fabric.rdma else 'tcp'}" if rate else ""
    return f"{system.accelerator.key} {system.fabric.topology}{network}"


def _rows() -> Iterator[Mapping[str, str]]:
    text = files("advisor.training").joinpath("servers.csv").read_text(encoding="utf-8")
    return iter(csv.DictReader(text.splitlines()))


def _accelerator(row: Mapping[str, str]) -> AcceleratorSpec:
    rates = {dtype: row[f"{dtype}_tflop_per_s"] for dtype in _DTYPES}
    plain = AcceleratorSpec(
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
    if not row["scaleup_kind"]:
        return plain
    return replace(
        plain, scaleup_kind=row["scaleup_kind"], scaleup_bandwidth_bytes_per_s=_giga(row["scaleup_gb_per_s"])
    )


def _fabric(row: Mapping[str, str]) -> FabricSpec:
    bits = _giga(row["network_gbit_per_s"])
    return FabricSpec(
        topology=TopologyClass(row["topology"]),
        domain_gpus=int(row["domain_gpus"]) if row["domain_gpus"] else None,
        bandwidth_bytes_per_s=_giga(row["scaleup_gb_per_s"]),
        peer_bandwidth_bytes_per_s=_giga(row["peer_gb_per_s"]),
        peer_to_peer=_SAID[row["peer_to_peer"]],
        network_bandwidth_bytes_per_s=bits / 8 if bits else None,
        rdma=_SAID[row["rdma"]],
    )


def _giga(cell: str) -> float | None:
    return float(cell) * 1e9 if cell else None
