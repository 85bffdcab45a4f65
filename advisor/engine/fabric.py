"""Which links a group of ranks really uses.

The same eight GPUs reach each other at 450 GB/s or at 1.4 GB/s; the label on the box does not say which. What decides
is the topology class, the size of the group, and whether GPUs may copy to each other over PCIe. Bandwidths are bytes/s
in one direction.
"""

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import log, sqrt

from advisor.engine.calibrated import Box, PathLaw, boxes, has_curve, path_law
from catalog.specs import AcceleratorSpec, FabricSpec, TopologyClass

GROUPS = (2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128)
"""Sizes of the groups that have a curve of their own; sizes between are read between two of them."""

USUAL_SERVER_GPUS = 8
"""A capture on more GPUs than this is taken to have crossed a network, which it does not name."""

UNKNOWN = "unknown"
BEYOND_PAIRS = "beyond-pairs"
LIKELY_PEER_COPIES, UNKNOWN_PEER_COPIES = "pcie-likely-p2p", "pcie-unknown"
"""Nobody says whether the server lets GPUs copy to each other: of cards whose driver would, and of any other."""

_PAYLOAD_PER_LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
_UNKNOWN_HALFWIDTH = 0.2
_FOUR_WAY_BRIDGE = 450e9
_SWITCHED = {TopologyClass.NVSWITCH_FULL, TopologyClass.NVL72}
_ALL_TO_ALL = {TopologyClass.XGMI_ALL_TO_ALL: "xgmi", TopologyClass.ROCE_ALL_TO_ALL: "roce"}
_TORUS_LINKS = 4
_BRIDGES = {TopologyClass.NVLINK_BRIDGE_PAIRS: 2, TopologyClass.NVLINK_BRIDGE_QUADS: 4}
_UNDER_ONE_ROOT = {
    TopologyClass.PCIE_SWITCH,
    TopologyClass.PCIE_SWITCH_FABRIC,
    TopologyClass.PCIE_SINGLE_ROOT,
}
_ACROSS_ROOTS = {TopologyClass.PCIE_ROOT, TopologyClass.PCIE_DUAL_ROOT}
_NVLINK_BY_FORM = {"sxm2": TopologyClass.NVLINK_HYBRID_CUBE_MESH, "superchip": TopologyClass.NVL72}
_USUAL_BY_KIND = {
    "xgmi": TopologyClass.XGMI_ALL_TO_ALL,
    "roce": TopologyClass.ROCE_ALL_TO_ALL,
    "ici": TopologyClass.ICI_TORUS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What one group of ranks talks over.

    ``link_bytes_per_s``: nominal rate per GPU into the group; ``bus_bytes_per_s``: typical all-reduce bus bandwidth
    on it; ``log_slower``, ``log_faster``: 80 % range of its time (ln); ``shared``: groups that talk at the same time
    share the link; ``box``: measured server of this kind.
    """

    path: str
    link_bytes_per_s: float
    bus_bytes_per_s: float
    latency_s: float
    log_slower: float
    log_faster: float
    shared: bool = False
    box: Box | None = None


@cache
def silicon_family(accelerator_key: str) -> str:
    """The chip behind an accelerator's key, without form factor and memory size: ``a100-sxm4-80`` -> ``a100``."""
    kept = [part for part in accelerator_key.split("-") if not re.fullmatch(r"sxm\d*|pcie|nvl|\d{1,3}", part)]
    return "-".join(kept) or accelerator_key


def is_card(accelerator: AcceleratorSpec) -> bool:
    """Whether it sits in a PCIe slot, rather than on a board that joins it to others."""
    return accelerator.form_factor.upper().startswith("PCIE") or not accelerator.scaleup_bandwidth_bytes_per_s


def usual_fabric(accelerator: AcceleratorSpec) -> FabricSpec:
    """How servers with this accelerator are usually joined, for a capture, which does not say.

    Modules and boards sit on their own links; cards sit on PCIe, as bridges are an option that few take.
    """
    if is_card(accelerator):
        return FabricSpec(topology=TopologyClass.PCIE_ROOT)
    if accelerator.scaleup_kind == "nvlink":
        topology = _NVLINK_BY_FORM.get(accelerator.form_factor.lower(), TopologyClass.NVSWITCH_FULL)
        return FabricSpec(topology=topology)
    return FabricSpec(topology=_USUAL_BY_KIND.get(accelerator.scaleup_kind, TopologyClass.PCIE_ROOT))


def host_link_bytes_per_s(accelerator: AcceleratorSpec, fabric: FabricSpec) -> float | None:
    """One GPU's host link, payload rate in one direction; None where neither fabric nor accelerator says."""
    if fabric.pcie_bandwidth_bytes_per_s is not None:
        return fabric.pcie_bandwidth_bytes_per_s
    per_lane = _PAYLOAD_PER_LANE.get(fabric.pcie_generation or accelerator.pcie_generation or 0)
    if per_lane is None:
        return None
    return per_lane * (fabric.pcie_lanes or accelerator.pcie_lanes or 16)


@lru_cache(maxsize=8192)
def route(accelerator: AcceleratorSpec, fabric: FabricSpec, group: int) -> Route:
    """The links that ``group`` neighbouring GPUs of one server use together."""
    scale_up = fabric.bandwidth_bytes_per_s or accelerator.scaleup_bandwidth_bytes_per_s
    found = scale_up and _scale_up_route(accelerator, fabric, group, scale_up)
    return found or _host_route(accelerator, fabric, group)


def _scale_up_route(accelerator: AcceleratorSpec, fabric: FabricSpec, group: int, scale_up: float) -> Route | None:
    topology, domain = fabric.topology, fabric.domain_gpus
    if topology in _SWITCHED:
        return _by_law(accelerator, "nvswitch", group, scale_up)
    if topology is TopologyClass.NVLINK_HYBRID_CUBE_MESH:
        return _by_law(accelerator, "cube-mesh", group, scale_up)
    if topology in _BRIDGES:
        bridged = domain or _BRIDGES[topology]
        link = _meshed(fabric, group, bridged, scale_up)
        return _by_law(accelerator, "bridge", group, link) if group <= bridged else None
    if topology is TopologyClass.NVLINK_DIRECT:
        joined = domain or 4
        link = _meshed(fabric, group, joined, scale_up)
        return _by_law(accelerator, "nvlink-direct", group, link) if group <= joined else None
    if topology in _ALL_TO_ALL:
        return _by_law(accelerator, _ALL_TO_ALL[topology], group, _meshed(fabric, group, domain or 8, scale_up))
    if topology is TopologyClass.ICI_TORUS:
        return _by_law(accelerator, "ici", group, _meshed(fabric, group, _TORUS_LINKS + 1, scale_up))
    return None


def _meshed(fabric: FabricSpec, group: int, domain: int, scale_up: float) -> float:
    """Links are tied to peers: a group uses only those between its members."""
    peer = fabric.peer_bandwidth_bytes_per_s or scale_up / max(domain - 1, 1)
    return min(peer * (group - 1), scale_up)


def _host_route(accelerator: AcceleratorSpec, fabric: FabricSpec, group: int) -> Route:
    link = host_link_bytes_per_s(accelerator, fabric) or _PAYLOAD_PER_LANE[3] * 16
    allowed = _peer_to_peer(accelerator, fabric)
    if fabric.topology not in (*_UNDER_ONE_ROOT, *_ACROSS_ROOTS, *_BRIDGES, TopologyClass.NVLINK_DIRECT):
        if not is_card(accelerator):
            return _module_route(accelerator, fabric, group)
        if group <= _bridged_at_most(accelerator):
            return _unknown_route(accelerator, group, link)
    path = _host_path(accelerator, fabric, group, allowed)
    found = _by_law(accelerator, path, group, link, shared=True)
    if path not in (LIKELY_PEER_COPIES, UNKNOWN_PEER_COPIES):
        return found
    measured = boxes().get((_with_peer_copies(fabric), silicon_family(accelerator.key)))
    # what this silicon was seen to do with peer copies is the best that it can be hoped to do here
    return replace(found, box=measured) if measured and has_curve(measured, group) else found


def _host_path(accelerator: AcceleratorSpec, fabric: FabricSpec, group: int, allowed: bool | None) -> str:
    """Kind of PCIe path. Servers with bridged pairs were measured beyond the pair as well, some chips of them."""
    if allowed is False:
        return "pcie-no-p2p"
    beyond = boxes().get((BEYOND_PAIRS, silicon_family(accelerator.key)))
    if fabric.topology in _BRIDGES and beyond and has_curve(beyond, group):
        return BEYOND_PAIRS
    if allowed:
        return _with_peer_copies(fabric)
    return LIKELY_PEER_COPIES if accelerator.peer_to_peer_over_pcie else UNKNOWN_PEER_COPIES


def _with_peer_copies(fabric: FabricSpec) -> str:
    return "pcie-switch" if fabric.topology in _UNDER_ONE_ROOT else "pcie-root"


def _peer_to_peer(accelerator: AcceleratorSpec, fabric: FabricSpec) -> bool | None:
    """The server's word; an accelerator that cannot do it settles the matter, one that can does not."""
    if fabric.peer_to_peer is None and accelerator.peer_to_peer_over_pcie is False:
        return False
    return fabric.peer_to_peer


def _by_law(accelerator: AcceleratorSpec, path: str, group: int, link: float, shared: bool = False) -> Route:
    law = path_law(path, group)
    box = boxes().get((path, silicon_family(accelerator.key)))
    measured = box if box and has_curve(box, group) else None
    return Route(
        path=path,
        link_bytes_per_s=link,
        bus_bytes_per_s=link * law.efficiency,
        latency_s=law.latency_s,
        log_slower=measured.log_halfwidth if measured else law.log_slower,
        log_faster=measured.log_halfwidth if measured else law.log_faster,
        shared=shared,
        box=measured,
    )


def _module_route(accelerator: AcceleratorSpec, fabric: FabricSpec, group: int) -> Route:
    """A module, of which nobody says how it is joined: modules are built for boards that join them by their own links.

    A virtual machine with part of a board has these links only where its host set up a partition (NVIDIA Fabric
    Manager guide), hence the slow side.
    """
    usual = usual_fabric(accelerator)
    likely = _scale_up_route(accelerator, usual, group, accelerator.scaleup_bandwidth_bytes_per_s or 0.0)
    if likely is None:
        return _host_route(accelerator, replace(fabric, topology=TopologyClass.PCIE_ROOT), group)
    law = path_law("module-unknown", group)
    return replace(likely, path=UNKNOWN, log_slower=law.log_slower, log_faster=law.log_faster)


def _bridged_at_most(accelerator: AcceleratorSpec) -> int:
    """Cards that a bridge may join: pairs, or four of those with all 18 links of a module; 1 without such links."""
    rate = accelerator.scaleup_bandwidth_bytes_per_s or 0.0
    return (4 if rate >= _FOUR_WAY_BRIDGE else 2) if rate else 1


def _unknown_route(accelerator: AcceleratorSpec, group: int, link: float) -> Route:
    """Cards that may have a bridge: anything between PCIe without peer copies and that bridge."""
    worst, best = path_law("pcie-no-p2p", group), path_law("bridge", group)
    scale_up = accelerator.scaleup_bandwidth_bytes_per_s or link
    low, high = sorted((link * worst.efficiency, scale_up * best.efficiency))
    halfwidth = log(high / low) / 2 + _UNKNOWN_HALFWIDTH
    return Route(
        path=UNKNOWN,
        link_bytes_per_s=sqrt(link * scale_up),
        bus_bytes_per_s=sqrt(low * high),
        latency_s=_mean_latency(worst, best),
        log_slower=halfwidth,
        log_faster=halfwidth,
    )


def _mean_latency(one: PathLaw, other: PathLaw) -> float:
    return sqrt(one.latency_s * other.latency_s)
