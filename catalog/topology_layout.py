"""What is known of how one server is put together: which accelerators are joined, what hangs under what.

Nothing is guessed: what the catalog does not tell is None here, and is drawn and said as not known.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from catalog.specs import FabricSpec, TopologyClass

MOST_DRAWN = 16
_ALL_TO_ALL = frozenset({TopologyClass.NVLINK_DIRECT, TopologyClass.XGMI_ALL_TO_ALL, TopologyClass.ROCE_ALL_TO_ALL})
_BRIDGED = {TopologyClass.NVLINK_BRIDGE_PAIRS: 2, TopologyClass.NVLINK_BRIDGE_QUADS: 4}
_SWITCHED = frozenset({TopologyClass.NVSWITCH_FULL, TopologyClass.NVL72})
_ALONE = frozenset({TopologyClass.SINGLE, TopologyClass.C2C})
_REACHES_OUT = frozenset({TopologyClass.C2C, TopologyClass.NVL72, TopologyClass.ICI_TORUS})
_UNDER_SWITCHES = frozenset({TopologyClass.PCIE_SWITCH, TopologyClass.PCIE_SINGLE_ROOT, TopologyClass.PCIE_DUAL_ROOT})
# DGX-1V as ``nvidia-smi topo -m`` prints it (NV1 and NV2); with four links a chip, as on P100, each pair has one.
_CUBE_MESH_SINGLE = ((0, 1), (0, 2), (1, 3), (2, 6), (3, 7), (4, 5), (4, 6), (5, 7))
_CUBE_MESH_DOUBLE = ((0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7))
_LINKS_WITH_DOUBLES = 6
# On GB200 and GB300 one Grace CPU serves two GPUs.
_PER_GRACE = 2


@dataclass(frozen=True, slots=True)
class Edge:
    """A direct link between two accelerators; ``links`` lie side by side."""

    first: int
    second: int
    links: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One server as far as its drawing needs it; counts are None where not known."""

    fabric: FabricSpec
    gpu_count: int
    accelerator_name: str
    sockets: int | None = None
    numa_nodes: int | None = None
    gpus_per_pcie_switch: int | None = None

    @property
    def topology(self) -> TopologyClass:
        """Several in a class of one alone are joined in a way that nobody told; one alone has nothing to join."""
        topology = self.fabric.topology
        if self.gpu_count == 1:
            return topology if topology in _REACHES_OUT else TopologyClass.SINGLE
        return TopologyClass.UNKNOWN if topology in _ALONE else topology

    @property
    def is_switched(self) -> bool:
        return self.topology in _SWITCHED

    @property
    def is_torus(self) -> bool:
        return self.topology is TopologyClass.ICI_TORUS

    @property
    def has_unknown_links(self) -> bool:
        """True where accelerators may be joined but how is not known."""
        if self.topology is TopologyClass.NVLINK_HYBRID_CUBE_MESH:
            return self.gpu_count not in (4, 8)
        return self.topology is TopologyClass.UNKNOWN

    @property
    def is_summarised(self) -> bool:
        return self.gpu_count > MOST_DRAWN

    @property
    def elsewhere(self) -> int:
        """Accelerators of the rack's NVLink domain that are in other servers."""
        return max((self.fabric.domain_gpus or 72) - self.gpu_count, 0) if self.topology is TopologyClass.NVL72 else 0

    @property
    def is_chip_to_chip(self) -> bool:
        """True where the accelerator hangs on its CPU by a link of its own instead of PCIe."""
        known_pcie = self.fabric.pcie_generation is not None
        return self.topology in (TopologyClass.C2C, TopologyClass.NVL72) and not known_pcie

    @property
    def expects_switches(self) -> bool:
        """True where the class says that there are PCIe switches."""
        return self.topology in _UNDER_SWITCHES

    def domains(self) -> list[range]:
        """Accelerators of this server that share one NVLink switch."""
        return chunks(self.gpu_count, min(self.fabric.domain_gpus or self.gpu_count, self.gpu_count))

    def edges(self) -> tuple[Edge, ...]:
        """Direct links between accelerators, none where switches or PCIe join them."""
        if self.topology in _ALL_TO_ALL:
            return tuple(_meshes(self.domains()))
        if self.topology in _BRIDGED:
            return tuple(_meshes(chunks(self.gpu_count, self.fabric.domain_gpus or _BRIDGED[self.topology])))
        if self.topology is TopologyClass.NVLINK_HYBRID_CUBE_MESH and not self.has_unknown_links:
            return self._cube_mesh()
        if self.is_torus:
            return tuple(self._torus())
        return ()

    @property
    def torus_columns(self) -> int:
        """A host holds 2 x 2 or 2 x 4 chips of the torus (cloud.google.com/tpu/docs), fewer in one row."""
        return self.gpu_count // 2 if self.gpu_count % 2 == 0 and self.gpu_count > 2 else self.gpu_count

    def switches(self) -> list[range] | None:
        """Accelerators under each PCIe switch, empty for straight to the CPU, None where not known."""
        if self.topology is TopologyClass.PCIE_SWITCH_FABRIC:
            return [range(self.gpu_count)]
        if self.gpus_per_pcie_switch:
            return chunks(self.gpu_count, self.gpus_per_pcie_switch)
        return [] if self.topology is TopologyClass.PCIE_ROOT or self.is_chip_to_chip else None

    @property
    def cpus(self) -> int | None:
        return self.sockets or (2 if self.topology is TopologyClass.PCIE_DUAL_ROOT else None)

    def roots(self) -> list[int] | None:
        """The CPU of each switch (of each accelerator where there are none), None where not known."""
        branches = self.switches()
        count = self.gpu_count if branches == [] else len(branches) if branches else 0
        if self.cpus == 1 or (self.topology is TopologyClass.PCIE_SINGLE_ROOT and self.cpus):
            return [0] * count
        if self.topology is TopologyClass.PCIE_DUAL_ROOT and self.cpus == 2 and count and count % 2 == 0:
            return [0] * (count // 2) + [1] * (count // 2)
        if self.is_chip_to_chip and self.cpus and self.cpus * _PER_GRACE == self.gpu_count:
            return [accelerator // _PER_GRACE for accelerator in range(count)]
        return None

    def _cube_mesh(self) -> tuple[Edge, ...]:
        each, pair = self.fabric.bandwidth_bytes_per_s, self.fabric.peer_bandwidth_bytes_per_s
        double = 2 if each and pair and round(each / pair) >= _LINKS_WITH_DOUBLES else 1
        pairs = [Edge(*pair) for pair in _CUBE_MESH_SINGLE] + [Edge(*pair, double) for pair in _CUBE_MESH_DOUBLE]
        return tuple(edge for edge in pairs if edge.second < self.gpu_count)

    def _torus(self) -> Iterator[Edge]:
        columns = self.torus_columns
        for chip in range(self.gpu_count):
            if (chip + 1) % columns:
                yield Edge(chip, chip + 1)
            if chip + columns < self.gpu_count:
                yield Edge(chip, chip + columns)


def chunks(count: int, size: int) -> list[range]:
    """``count`` neighbours in groups of ``size``, the last one smaller where it does not divide."""
    return [range(part * size, min((part + 1) * size, count)) for part in range(math.ceil(count / size))]


def _meshes(groups: list[range]) -> Iterator[Edge]:
    return (Edge(*pair) for group in groups for pair in combinations(group, 2))
