"""Predictions of the distinct servers among the offers: many offers are the same machine at another price."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from advisor.engine.calibrated import constant
from advisor.engine.memory import Fit
from advisor.engine.network import network_is_known
from advisor.engine.plans import GPU_COUNTS, Plan
from advisor.engine.prediction import MemoryFit, Outcome, Prediction, Shortage, predict_all
from advisor.engine.shapes import bytes_per_value, parameter_count
from advisor.engine.step import Job
from advisor.engine.system import System
from catalog.specs import OfferSpec
from profiling.workload import CollectiveKind, Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``outcomes`` by GPU count, for each of ``systems``; ``place``: where each of them is."""

    systems: tuple[System, ...]
    place: Mapping[System, int]
    outcomes: Sequence[Mapping[int, Outcome]]

    @classmethod
    def of(cls, job: Job, offers: Iterable[OfferSpec], gpus: int | None = None) -> Self:
        """``gpus``: a number that is wanted besides those of one server; then several of a server are taken."""
        ordered = sorted(offers, key=lambda offer: offer.key)
        systems = tuple(dict.fromkeys(System.of(offer.server) for offer in ordered))
        found = found_on(job, systems, [counts_of(system, gpus) for system in systems])
        return cls(systems=systems, place={system: i for i, system in enumerate(systems)}, outcomes=found)

    def of_system(self, system: System) -> Mapping[int, Outcome]:
        return self.outcomes[self.place[system]]

    def of_offer(self, offer: OfferSpec) -> Mapping[int, Outcome]:
        return self.of_system(System.of(offer.server))


def found_on(job: Job, systems: Sequence[System], counts: Sequence[Sequence[int]]) -> list[dict[int, Outcome]]:
    """As ``predict_all``, less what is seen to be too small though its need is not known."""
    return [
        {count: _if_its_states_fit(job, outcome) for count, outcome in own.items()}
        for own in predict_all(job, systems, counts)
    ]


def counts_of(system: System, wanted: int | None = None) -> tuple[int, ...]:
    """GPU counts that are predicted: those inside one server, all of it, and the one wanted of several servers."""
    inside = {count for count in GPU_COUNTS if count <= system.node_gpus} | {system.node_gpus}
    several = {wanted} if wanted and takes_several(system, wanted) and network_is_known(system, wanted) else set()
    return tuple(sorted(inside | several))


def takes_several(system: System, gpus: int) -> bool:
    """Whether so many GPUs are several whole servers."""
    return gpus > system.node_gpus and gpus % system.node_gpus == 0


def _if_its_states_fit(job: Job, outcome: Outcome) -> Outcome:
    """Where the need is unknown, weights and optimizer alone may show that a GPU is too small."""
    if not isinstance(outcome, Prediction) or outcome.memory.verdict is not Fit.UNKNOWN:
        return outcome
    least, capacity = _least_bytes(job, outcome.plan), outcome.memory.capacity_bytes
    if least is None or least <= constant("usable_memory") * capacity:
        return outcome
    memory = MemoryFit(verdict=Fit.DOES_NOT_FIT, need_bytes=least, capacity_bytes=capacity)
    return Shortage(gpus=outcome.gpus, plan=outcome.plan, memory=memory)


def _least_bytes(job: Job, plan: Plan) -> float | None:
    """Bytes of weights (and gradients and optimizer in training) on each GPU; None without a parameter count.

    Divided over all GPUs wherever the job may be sharded, so that this is a lower bound.
    """
    parameters = parameter_count(job.workload)
    if parameters is None:
        return None
    training = job.workload.mode is Mode.TRAINING
    each = constant("state_bytes_per_parameter") if training else bytes_per_value(job.workload.precision)
    return each * parameters / (plan.gpus if _may_be_sharded(job, plan) else 1)


def _may_be_sharded(job: Job, plan: Plan) -> bool:
    measured = job.workload.measured
    kinds = {work.kind for work in measured.collectives} if measured else set()
    return plan.captured or job.workload.model is not None or bool(kinds & _SHARDING)


_SHARDING = frozenset({CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER, CollectiveKind.UNKNOWN})
