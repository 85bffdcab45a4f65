"""Predictions of the distinct servers among the offers: many offers are the same machine at another price."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from advisor.engine.calibrated import constant
from advisor.engine.memory import Fit
from advisor.engine.plans import GPU_COUNTS, Plan
from advisor.engine.prediction import MemoryFit, Outcome, Prediction, Shortage, predict_all
from advisor.engine.shapes import bytes_per_value, parameter_count
from advisor.engine.step import Job
from advisor.engine.system import System
from catalog.specs import FabricSpec, OfferSpec
from profiling.workload import CollectiveKind, Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``outcomes`` by GPU count, for each of ``systems``; ``place``: where an accelerator and its fabric are."""

    systems: tuple[System, ...]
    place: Mapping[tuple[str, FabricSpec], int]
    outcomes: Sequence[Mapping[int, Outcome]]

    @classmethod
    def of(cls, job: Job, offers: Iterable[OfferSpec]) -> Self:
        systems: dict[tuple[str, FabricSpec], System] = {}
        largest: Counter[tuple[str, FabricSpec]] = Counter()
        for offer in sorted(offers, key=lambda offer: offer.key):
            server = offer.server
            key = server.accelerator.key, server.fabric
            systems.setdefault(key, System(server.accelerator, server.fabric))
            largest[key] = max(largest[key], server.gpu_count)
        counts = [[count for count in GPU_COUNTS if count <= largest[key]] for key in systems]
        found = [
            {count: _if_its_states_fit(job, outcome) for count, outcome in own.items()}
            for own in predict_all(job, tuple(systems.values()), counts)
        ]
        return cls(systems=tuple(systems.values()), place={key: i for i, key in enumerate(systems)}, outcomes=found)

    def of_system(self, system: System) -> Mapping[int, Outcome]:
        return self.outcomes[self.place[system[0].key, system[1]]]

    def of_offer(self, offer: OfferSpec) -> Mapping[int, Outcome]:
        """Only counts that the offered server has."""
        found = self.of_system((offer.server.accelerator, offer.server.fabric))
        return {count: outcome for count, outcome in found.items() if count <= offer.server.gpu_count}


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
