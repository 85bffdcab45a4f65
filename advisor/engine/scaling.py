"""Throughput over GPU counts, in one server and over several, and where more GPUs stop paying.

Strong scaling: the batch of the whole job stays, and more GPUs share it. Weak scaling: the batch of each GPU stays, and
a step works through more samples. Both start at the smallest count that fits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate

from advisor.engine.network import network_is_known
from advisor.engine.prediction import Outcome, Prediction
from advisor.engine.step import Job
from advisor.engine.system import System
from advisor.engine.table import counts_of, found_on

MOST_GPUS = 64
"""Several servers are looked at up to this many GPUs."""

PAYS_SHARE = 0.5
"""More GPUs pay while at least this share of them arrives as throughput."""

Machine = tuple[str, System]
"""What is drawn: its role (``nvlink``, ``pcie`` or ``top_offer``) and the server."""


class Scaling(StrEnum):
    STRONG = "strong"
    WEAK = "weak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """``efficiency``: throughput per GPU over the best up to this count, so never above 1.

    The smallest count that fits is no base: short of memory, it recomputes or divides the model and is slow for that.
    """

    prediction: Prediction
    servers: int
    efficiency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """``pays_until``: the last count that pays, None = none fits."""

    role: str
    kind: Scaling
    accelerator_key: str
    accelerator_name: str
    topology: str
    points: tuple[Point, ...]
    pays_until: int | None


def curves(job: Job, machines: Sequence[Machine]) -> tuple[Curve, ...]:
    """Strong and weak scaling of a described job on each machine, in order.

    A traced job keeps what each of its GPUs did, so of it there is the weak curve alone.
    """
    systems = list(dict.fromkeys(system for _, system in machines))
    strong = found_on(job, systems, [drawn_counts(system) for system in systems])
    if job.workload.measured is not None:
        found = {Scaling.WEAK: strong}
    else:
        found = {Scaling.STRONG: strong, Scaling.WEAK: _growing(job, systems, strong)}
    return tuple(
        curve(role, kind, system, outcomes[systems.index(system)])
        for role, system in machines
        for kind, outcomes in found.items()
    )


def drawn_counts(system: System) -> tuple[int, ...]:
    """Those inside one server, then 2, 4, 8 and so on of these servers, as far as their network is stated."""
    inside = counts_of(system)
    servers = (2**power for power in range(1, MOST_GPUS.bit_length()))
    several = (count * system.node_gpus for count in servers if count * system.node_gpus <= MOST_GPUS)
    return (*inside, *(count for count in several if network_is_known(system, count)))


def _growing(job: Job, systems: Sequence[System], strong: Sequence[Mapping[int, Outcome]]) -> list[dict[int, Outcome]]:
    """Each count with the samples per GPU of the smallest that fits."""
    found: list[dict[int, Outcome]] = [{} for _ in systems]
    bases = [min((count for count, one in own.items() if isinstance(one, Prediction)), default=None) for own in strong]
    wanted: dict[float, dict[int, int]] = {}
    for place, (base, own) in enumerate(zip(bases, strong, strict=True)):
        if base is not None:
            found[place][base] = own[base]
            for count in drawn_counts(systems[place]):
                if count > base:
                    wanted.setdefault(count / base, {})[place] = count
    for factor, counts in wanted.items():
        own = [systems[place] for place in counts]
        ready = found_on(_larger(job, factor), own, [[count] for count in counts.values()])
        for place, outcomes in zip(counts, ready, strict=True):
            found[place].update(outcomes)
    return found


def _larger(job: Job, factor: float) -> Job:
    return replace(job, workload=replace(job.workload, batch_per_step=job.workload.batch_per_step * factor))


def curve(role: str, kind: Scaling, system: System, outcomes: Mapping[int, Outcome]) -> Curve:
    """The predicted counts of one machine, ascending; counts at which nothing fits are missing."""
    known = [outcomes[count] for count in sorted(outcomes)]
    ready = [outcome for outcome in known if isinstance(outcome, Prediction)]
    rates = [one.samples_per_s / one.gpus for one in ready]
    best = accumulate(rates, max)
    points = tuple(
        Point(prediction=one, servers=system.servers(one.gpus), efficiency=rate / most)
        for one, rate, most in zip(ready, rates, best, strict=True)
    )
    return Curve(
        role=role,
        kind=kind,
        accelerator_key=system.accelerator.key,
        accelerator_name=system.accelerator.name,
        topology=system.fabric.topology.value,
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
