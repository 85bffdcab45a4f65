"""On what a row ran: accelerator, links of the server, network of the node.

What a row leaves open is completed with the reference design of that generation.
"""

import re
from dataclasses import replace

from advisor.engine.fabric import usual_fabric
from advisor.evaluation.gpus import accelerator_of
from advisor.evaluation.refusals import Reason, RowRefused
from advisor.evaluation.rows import MeasuredRow
from catalog.specs import AcceleratorSpec, FabricSpec, ServerSpec, TopologyClass

GIGABIT = 1e9 / 8
NVL72_GPUS = 72
_CUBE_MESH_FORM = "sxm2"

_NETWORK_PER_GPU = {
    "Pascal": 50,
    "Volta": 50,
    "Turing": 12.5,
    "Ampere GA100": 200,
    "Ampere": 25,
    "Ada": 50,
    "Hopper": 400,
    "Blackwell GB20": 50,
    "Blackwell Ultra": 800,
    "Blackwell": 400,
    "CDNA": 400,
    "Gaudi": 100,
}
"""Gbit/s of network for each GPU in the maker's reference server, by the beginning of the architecture's name.

DGX-1 and DGX-2: 4 x 100 for 8, 8 x 100 for 16; DGX A100: 8 x 200; DGX H100, B200, GB200 NVL72: 400 a GPU;
DGX B300, GB300 NVL72: 800 a GPU (NVIDIA DGX system user guides). Cards: what a rented server of them usually has.
"""


def server_of(row: MeasuredRow, gpus: int) -> ServerSpec:
    """The server, as large as one scale-up domain of ``gpus`` GPUs needs. Raises RowRefused (``gpu_unknown``)."""
    link = row.intra_class.rstrip("?")
    accelerator = accelerator_of(row.gpu_key or row.gpu, over_pcie=link == "pcie")
    if accelerator is None:
        raise RowRefused(Reason.GPU_UNKNOWN)
    per_server = _gpus_per_server(row, gpus, link)
    fabric = _fabric(row, accelerator, link, per_server)
    if gpus > per_server:
        fabric = replace(fabric, **_network(row, accelerator, per_server))
    key = f"measured/{row.id}"
    return ServerSpec(
        key=key, provider="measured", sku=row.id, accelerator=accelerator, gpu_count=per_server, fabric=fabric
    )


def _gpus_per_server(row: MeasuredRow, gpus: int, link: str) -> int:
    """GPUs that share one scale-up domain: of an NVL72 rack as many as divide the job evenly."""
    if link == "nvl72":
        return next(size for size in range(min(NVL72_GPUS, gpus), 0, -1) if gpus % size == 0)
    own = row.gpus_per_node or (gpus // row.nodes if row.nodes else None) or min(gpus, 8)
    return max(1, min(own, gpus))


def _fabric(row: MeasuredRow, accelerator: AcceleratorSpec, link: str, per_server: int) -> FabricSpec:
    text = row.intra_interconnect.lower()
    if link == "pcie":
        return FabricSpec(topology=_pcie_topology(text), peer_to_peer=_peer_to_peer(text), **_slot(row, accelerator))
    if link == "nvlink-bridge":
        return FabricSpec(topology=TopologyClass.NVLINK_BRIDGE_PAIRS, domain_gpus=2, **_slot(row, accelerator))
    if link == "nvlink-mesh":
        return _mesh(accelerator, per_server)
    named = {"nvswitch": TopologyClass.NVSWITCH_FULL, "nvl72": TopologyClass.NVL72, "c2c": TopologyClass.C2C}
    return FabricSpec(topology=named[link]) if link in named else usual_fabric(accelerator)


def _mesh(accelerator: AcceleratorSpec, per_server: int) -> FabricSpec:
    """Eight V100 or P100 in a hybrid cube mesh; later modules join four, all with all."""
    if accelerator.form_factor.lower() == _CUBE_MESH_FORM:
        return FabricSpec(topology=TopologyClass.NVLINK_HYBRID_CUBE_MESH)
    return FabricSpec(topology=TopologyClass.NVLINK_DIRECT, domain_gpus=max(4, per_server))


def _pcie_topology(text: str) -> TopologyClass:
    return TopologyClass.PCIE_SWITCH if re.search(r"\b(pix|pxb|plx)\b|pcie switch", text) else TopologyClass.PCIE_ROOT


def _peer_to_peer(text: str) -> bool | None:
    if re.search(r"p2p (?:is )?(?:off|disabled|not available)|no p2p|p2p_disable=1|host.staged", text):
        return False
    return True if re.search(r"p2p (?:is )?(?:on|enabled)\b|intra_with_pcie", text) else None


def _slot(row: MeasuredRow, accelerator: AcceleratorSpec) -> dict[str, int]:
    """Generation and lanes of the slot: as told, else the host processor's, never above the accelerator's own."""
    text = row.intra_interconnect.lower()
    told = re.search(r"(?:pcie|gen)[\s-]?(?:gen[\s-]?)?([3-6])\b", text)
    generation = int(told.group(1)) if told else host_generation(f"{row.intra_interconnect} {row.notes}")
    lanes = re.search(r"\bx(4|8|16)\b", text)
    found = {"pcie_lanes": int(lanes.group(1))} if lanes else {}
    if generation:
        found["pcie_generation"] = min(generation, accelerator.pcie_generation or generation)
    return found


def host_generation(text: str) -> int | None:
    """PCIe generation of a host processor that is named; None where none is."""
    for words, generations in _PROCESSORS:
        named = re.search(words, text)
        if named:
            return generations.get(named.group(1))
    return None


_PROCESSORS = (
    (r"EPYC [79]\w\d([1-5])\b", {"1": 3, "2": 4, "3": 4, "4": 5, "5": 5}),
    (r"EPYC.(Rome|Milan|Genoa)", {"Rome": 4, "Milan": 4, "Genoa": 5}),
    (r"Xeon\S* (?:Bronze|Silver|Gold|Platinum) \d(\d)\d\d", {"1": 3, "2": 3, "3": 4, "4": 5, "5": 5}),
    (r"Xeon\S* (?:CPU )?E[57]-\d+ v?(\d)", {"1": 3, "2": 3, "3": 3, "4": 3}),
    (r"Threadripper (?:PRO )?(\d)\d\d\d", {"1": 3, "2": 3, "3": 4, "5": 4, "7": 5, "9": 5}),
)
"""The digit that tells a server processor's generation, and the PCIe of each (AMD's and Intel's product pages)."""


def _network(row: MeasuredRow, accelerator: AcceleratorSpec, per_server: int) -> dict[str, float | bool]:
    """All network ports of one server together, and whether GPUs use them without the host."""
    text = row.inter_interconnect.lower()
    stated = _stated_gigabits(text, per_server)
    gigabits = stated or _reference_gigabits(accelerator) * per_server
    direct = re.search(r"rdma|roce|infiniband|\bib\b|ndr|hdr|edr|slingshot|efa", text) is not None
    off = re.search(r"roce off|ib_disable=1|tcp|ethernet only", text) is not None
    module = accelerator.form_factor.lower()[:3] in ("sxm", "sup", "oam")
    return {
        "network_bandwidth_bytes_per_s": gigabits * GIGABIT,
        "rdma": not off and (direct or module),
    }


def _stated_gigabits(text: str, per_server: int) -> float | None:
    """``8x400 Gb/s NDR``, ``400 Gb/s per GPU``, ``40 Gb/s per node``; None where no rate is stated."""
    rate = re.search(r"(?:(\d+)\s*x\s*(?:[a-z ]*?))?(\d+(?:\.\d+)?)\s*g(?:b(?:it)?/s|bps|b/s)", text)
    if rate is None:
        named = re.search(r"(\d+)\s*x\s*(ndr|hdr|edr|fdr)", text)
        speeds = {"ndr": 400, "hdr": 200, "edr": 100, "fdr": 56}
        return float(named.group(1)) * speeds[named.group(2)] if named else None
    ports = per_server if "per gpu" in text else 1
    return float(rate.group(1) or 1) * float(rate.group(2)) * ports


def _reference_gigabits(accelerator: AcceleratorSpec) -> float:
    name = accelerator.architecture
    return next((rate for start, rate in _NETWORK_PER_GPU.items() if name.startswith(start)), 25.0)
