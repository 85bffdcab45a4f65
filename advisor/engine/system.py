"""What a job is predicted on: an accelerator, how its servers are joined inside and outside, what the host has."""

from math import ceil
from typing import NamedTuple

from catalog.specs import AcceleratorSpec, FabricSpec, ServerSpec


class System(NamedTuple):
    """``node_gpus``: GPUs of one server; counts above it take several servers over their network, 0 = never more
    than one server. ``cpu_cores``: of one server, None where not known.
    """

    accelerator: AcceleratorSpec
    fabric: FabricSpec
    node_gpus: int = 0
    cpu_cores: int | None = None

    @classmethod
    def of(cls, server: ServerSpec) -> "System":
        return cls(server.accelerator, server.fabric, server.gpu_count, server.cpu_cores)

    def servers(self, gpus: int) -> int:
        """Servers that so many GPUs take."""
        return ceil(gpus / self.node_gpus) if self.node_gpus else 1
