"""What servers talk to each other over: the NICs of a server, shared by its GPUs.

Inside one server, or one NVL72 rack, `fabric.route` says how GPUs reach each other. Groups that are larger cross the
network. Nothing is assumed of a network that nobody states: `network_is_known` says whether a count can be predicted.
"""

from dataclasses import dataclass

from advisor.engine.calibrated import NetworkLaw, constant, network_laws
from advisor.engine.system import System
from catalog.specs import TopologyClass

ONE_DOMAIN = 2**40
"""Size of a domain that is never left."""

_JOINS_SERVERS = {TopologyClass.NVL72: 72, TopologyClass.ICI_TORUS: 256}


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """``bytes_per_s``: what one GPU's share of its server's NICs achieves; ``law``: its latency and range."""

    bytes_per_s: float
    law: NetworkLaw


def domain_gpus(system: System) -> int:
    """GPUs that reach each other without a NIC: those of one server, or of all servers that scale-up links join."""
    if not system.node_gpus:
        return ONE_DOMAIN
    joined = _JOINS_SERVERS.get(system.fabric.topology)
    return max(system.node_gpus, system.fabric.domain_gpus or joined) if joined else system.node_gpus


def network_of(system: System) -> Network | None:
    """The network of this server, None where nobody states its rate."""
    rate = system.fabric.network_bandwidth_bytes_per_s
    if not rate or not system.node_gpus:
        return None
    law = network_laws()[{True: "rdma", False: "tcp", None: "unstated"}[system.fabric.rdma]]
    achieved = 1 / (1 / (rate * law.efficiency) + 1 / law.host_bytes_per_s)
    return Network(bytes_per_s=achieved / system.node_gpus, law=law)


def network_is_known(system: System, gpus: int) -> bool:
    """Whether so many GPUs can be predicted: they lie in one domain, or the network between is stated."""
    return gpus <= domain_gpus(system) or network_of(system) is not None


def tree_inside(system: System) -> float:
    """Time that an all-reduce takes inside the servers if it is a tree, over that of a ring.

    Switches of NVLink 4 and later reduce by themselves. Two DGX A100 reach 192 GB/s by ring or tree alike
    (NVIDIA/nccl#1576), which is 1.25; two servers of H100 and B200 reach what one does (coreweave/nccl-tests#92).
    """
    rate = system.fabric.bandwidth_bytes_per_s or system.accelerator.scaleup_bandwidth_bytes_per_s or 0.0
    switched = system.fabric.topology in (TopologyClass.NVSWITCH_FULL, TopologyClass.NVL72)
    return 1.0 if switched and rate >= _REDUCING_SWITCH else constant("tree_inside")


_REDUCING_SWITCH = 400e9
