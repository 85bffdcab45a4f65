"""Step time over GPU counts on one server, and where more GPUs stop paying."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from advisor.engine.prediction import Outcome, Prediction
from advisor.engine.system import System

PAYS_SHARE = 0.5
"""More GPUs pay while at least this share of them arrives as throughput."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """``efficiency``: throughput per GPU over the best up to this count, so never above 1.

    The smallest count that fits is no base: short of memory, it recomputes or divides the model and is slow for that.
    """

    prediction: Prediction
    efficiency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """``role``: ``nvlink``, ``pcie`` or ``top_offer``; ``pays_until``: the last count that pays, None = none fits."""

    role: str
    accelerator_key: str
    accelerator_name: str
    topology: str
    points: tuple[Point, ...]
    pays_until: int | None


def curve(role: str, system: System, outcomes: Mapping[int, Outcome]) -> Curve:
    """The predicted counts of one server, ascending; counts at which nothing fits are missing."""
    known = [outcomes[count] for count in sorted(outcomes)]
    ready = [outcome for outcome in known if isinstance(outcome, Prediction)]
    rates = [one.samples_per_s / one.gpus for one in ready]
    best = accumulate(rates, max)
    points = tuple(
        Point(prediction=one, efficiency=rate / most) for one, rate, most in zip(ready, rates, best, strict=True)
    )
    accelerator, fabric = system[:2]
    return Curve(
        role=role,
        accelerator_key=accelerator.key,
        accelerator_name=accelerator.name,
        topology=fabric.topology.value,
        points=points,
        pays_until=_pays_until(ready),
    )


def _pays_until(ready: list[Prediction]) -> int | None:
    if not ready:
        return None
    last = ready[0]
    for one in ready[1:]:
        gained = one.samples_per_s / last.samples_per_s - 1
        if gained < PAYS_SHARE * (one.gpus / last.gpus - 1):
            break
        last = one
    return last.gpus
