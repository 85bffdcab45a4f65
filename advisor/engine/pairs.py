"""Which server with NVLink is held against which on PCIe."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import log

from advisor.engine.fabric import silicon_family
from advisor.engine.market import smallest_sold
from advisor.engine.plans import GPU_COUNTS
from advisor.engine.prediction import Outcome, Prediction
from advisor.engine.system import System
from catalog.specs import OfferSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One server of a comparison. ``place``: among the systems; ``paid``: GPUs of the smallest one that is sold."""

    place: int
    system: System
    prediction: Prediction
    paid: int

    @property
    def rate(self) -> float:
        return self.prediction.samples_per_s


Pair = tuple[Side, Side]


def pairs_of(
    systems: Sequence[System], predictions: Sequence[Mapping[int, Outcome]], offers: Sequence[OfferSpec]
) -> list[Pair]:
    """(NVLink, PCIe) of every family and GPU count (2 and up) that is predicted on both sides, in that order."""
    families: dict[str, list[int]] = {}
    for place, (accelerator, *_) in enumerate(systems):
        families.setdefault(silicon_family(accelerator.key), []).append(place)
    found = (
        _best([_side(place, systems, predictions, offers, gpus) for place in families[family]])
        for family, gpus in product(sorted(families), GPU_COUNTS[1:])
    )
    return [pair for pair in found if pair is not None]


def _side(
    place: int,
    systems: Sequence[System],
    predictions: Sequence[Mapping[int, Outcome]],
    offers: Sequence[OfferSpec],
    gpus: int,
) -> Side | None:
    outcome, topology = predictions[place].get(gpus), systems[place][1].topology
    if not isinstance(outcome, Prediction) or not (topology.is_nvlink or topology.is_pcie):
        return None
    paid = smallest_sold(offers, systems[place], gpus) or gpus
    return Side(place=place, system=systems[place], prediction=outcome, paid=paid)


def _best(sides: Iterable[Side | None]) -> Pair | None:
    """The pair nearest in memory, then that is sold with this number of GPUs, then fastest on each side."""
    ready = [side for side in sides if side is not None]
    nvlink = [side for side in ready if side.system[1].topology.is_nvlink]
    pcie = [side for side in ready if side.system[1].topology.is_pcie]
    return min(product(nvlink, pcie), key=_order, default=None)


def _order(pair: Pair) -> tuple[float | int | str, ...]:
    nvlink, pcie = pair
    larger = sum(side.paid > side.prediction.gpus for side in pair)
    keys = nvlink.system[0].key, pcie.system[0].key
    return memory_apart(nvlink.system, pcie.system), larger, -nvlink.rate, -pcie.rate, *keys


def memory_apart(one: System, other: System) -> float:
    """How unlike the memory sizes are: |ln(ratio)| in tenths, so that 80 GB by two vendors' counts is alike."""
    return round(abs(log(one[0].memory_bytes / other[0].memory_bytes)), 1)
