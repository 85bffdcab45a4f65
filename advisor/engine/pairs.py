"""Which server with NVLink is held against which on PCIe."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log

from advisor.engine.fabric import silicon_family
from advisor.engine.market import Sizes, sizes_sold, smallest_sold
from advisor.engine.prediction import Outcome, Prediction
from advisor.engine.system import System
from catalog.specs import OfferSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One kind of server of a comparison, taken ``servers`` times.

    ``place``: among the systems; ``paid``: GPUs of these servers, or of the smallest one that is sold.
    """

    place: int
    system: System
    prediction: Prediction
    servers: int
    paid: int

    @property
    def rate(self) -> float:
        return self.prediction.samples_per_s


Pair = tuple[Side, Side]


def pairs_of(
    systems: Sequence[System], predictions: Sequence[Mapping[int, Outcome]], offers: Sequence[OfferSpec]
) -> list[Pair]:
    """(NVLink, PCIe) of every family and GPU count (2 and up) that is predicted on both sides, in that order."""
    sizes = sizes_sold(offers)
    sides: dict[tuple[str, int], list[Side]] = defaultdict(list)
    for place, (system, own) in enumerate(zip(systems, predictions, strict=True)):
        for gpus, outcome in own.items():
            if gpus > 1 and isinstance(outcome, Prediction) and _is_linked(system):
                family = silicon_family(system.accelerator.key)
                sides[family, gpus].append(_side(place, system, outcome, sizes))
    found = (_best(sides[key]) for key in sorted(sides))
    return [pair for pair in found if pair is not None]


def _is_linked(system: System) -> bool:
    return system.fabric.topology.is_nvlink or system.fabric.topology.is_pcie


def _side(place: int, system: System, prediction: Prediction, sizes: Sizes) -> Side:
    gpus = prediction.gpus
    servers = system.servers(gpus)
    paid = gpus if servers > 1 else smallest_sold(sizes, system, gpus) or gpus
    return Side(place=place, system=system, prediction=prediction, servers=servers, paid=paid)


def _best(sides: Iterable[Side]) -> Pair | None:
    """The pair nearest in memory, then in as many servers, then that is sold so, then fastest on each side."""
    own = list(sides)
    nvlink = [side for side in own if side.system.fabric.topology.is_nvlink]
    pcie = [side for side in own if side.system.fabric.topology.is_pcie]
    return min(product(_distinct(nvlink), _distinct(pcie)), key=_order, default=None)


def _distinct(sides: Iterable[Side]) -> list[Side]:
    """Of servers that do not differ for this job and count the one with the most GPUs."""
    found: dict[tuple[int, int], Side] = {}
    for side in sides:
        key = id(side.prediction), side.servers
        known = found.get(key)
        if known is None or side.system.node_gpus > known.system.node_gpus:
            found[key] = side
    return list(found.values())


def _order(pair: Pair) -> tuple[float | int | str, ...]:
    nvlink, pcie = pair
    larger = sum(side.paid > side.prediction.gpus for side in pair)
    keys = nvlink.system.accelerator.key, pcie.system.accelerator.key
    unlike = nvlink.servers != pcie.servers
    return memory_apart(nvlink.system, pcie.system), unlike, larger, -nvlink.rate, -pcie.rate, *keys


def memory_apart(one: System, other: System) -> float:
    """How unlike the memory sizes are: |ln(ratio)| in tenths, so that 80 GB by two vendors' counts is alike."""
    return round(abs(log(one[0].memory_bytes / other[0].memory_bytes)), 1)
