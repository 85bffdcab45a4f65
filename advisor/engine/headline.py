"""Which comparison stands on top, what must be known beside it, and why there is none where there is none."""

from collections.abc import Iterator, Mapping, Sequence

from advisor.engine.cost import Goal
from advisor.engine.explain import EngineCode, VerdictCode
from advisor.engine.fabric import silicon_family
from advisor.engine.market import MarketPremium
from advisor.engine.network import domain_gpus, network_of
from advisor.engine.pairs import memory_apart
from advisor.engine.plans import GPU_COUNTS, is_data_parallel, legal_plans
from advisor.engine.prediction import Outcome, Prediction
from advisor.engine.ranking import Ranked
from advisor.engine.step import Job
from advisor.engine.verdict import Comparison
from profiling.notes import Note
from profiling.workload import Workload


def headline(comparisons: Sequence[Comparison], job: Job, goal: Goal, order: Sequence[Ranked]) -> Comparison | None:
    """At the count asked for, if it is compared: the family the buyer came with; else that of the best offer.

    Where the best offer is a single GPU, which needs no link, it is the family that is fastest with NVLink among those
    with a price on both sides.
    """
    pool = [one for one in comparisons if one.gpus == goal.gpus] or list(comparisons)
    if not pool:
        return None
    own = [one for one in pool if job.traced and one.family == silicon_family(job.traced.key)]
    if own:
        captured = job.workload.measured.gpu_count if job.workload.measured else None
        return max(own, key=lambda one: (one.gpus == captured, one.gpus))
    return _of_the_best_offer(pool, order) or _fastest(pool)


def _of_the_best_offer(pool: Sequence[Comparison], order: Sequence[Ranked]) -> Comparison | None:
    if not order or order[0].priced.prediction.gpus == 1:
        return None
    for prediction in (one.priced.prediction for one in order):
        family = silicon_family(prediction.accelerator_key)
        own = [one for one in pool if one.family == family and prediction.gpus > 1]
        if own:
            return max(own, key=lambda one: (one.gpus == prediction.gpus, one.gpus))
    return None


def _fastest(pool: Sequence[Comparison]) -> Comparison:
    priced = [one for one in pool if one.market is not None] or pool
    return max(priced, key=lambda one: (one.nvlink.samples_per_s, one.gpus, one.family))


def verdict_notes(verdict: Comparison, job: Job, goal: Goal, order: Sequence[Ranked]) -> tuple[Note, ...]:
    """What a reader of the sentence must know, most important first."""
    return tuple(_verdict_notes(verdict, job, goal, order))


def _verdict_notes(verdict: Comparison, job: Job, goal: Goal, order: Sequence[Ranked]) -> Iterator[Note]:
    if goal.gpus not in (None, verdict.gpus):
        yield Note(EngineCode.COUNT_NOT_COMPARED, {"asked": goal.gpus, "gpus": verdict.gpus})
    alone = next((place for place, one in enumerate(order) if one.priced.prediction.gpus > 1), len(order))
    if alone:
        yield Note(EngineCode.FIRST_OFFERS_USE_ONE_GPU, {"count": alone})
    if job.traced and silicon_family(job.traced.key) != verdict.family:
        names = {"captured": job.traced.name, "family": verdict.family.upper()}
        yield Note(EngineCode.CAPTURED_FAMILY_NOT_COMPARED, names)
    if verdict.market is not None:
        yield from _market_notes(verdict.market, verdict.gpus)
    if {verdict.nvlink_paid, verdict.pcie_paid} != {verdict.gpus}:
        sizes = {"nvlink": verdict.nvlink_paid, "pcie": verdict.pcie_paid}
        yield Note(EngineCode.ONLY_LARGER_SERVERS, {"gpus": verdict.gpus, **sizes})
    if _networks_apart(verdict):
        servers = {"nvlink": verdict.nvlink_servers, "pcie": verdict.pcie_servers}
        yield Note(EngineCode.NETWORKS_DIFFER, servers)
    if memory_apart(verdict.nvlink_system, verdict.pcie_system):
        fast, slow = (round(side[0].memory_bytes / 2**30) for side in (verdict.nvlink_system, verdict.pcie_system))
        yield Note(EngineCode.MEMORY_DIFFERS, {"nvlink_gib": fast, "pcie_gib": slow})


def _networks_apart(verdict: Comparison) -> bool:
    """Whether a side crosses a network, and not the same one as the other: by what each GPU has of it."""
    sides = (verdict.nvlink_system, verdict.pcie_system)
    rates = {
        (network.bytes_per_s, network.law) if verdict.gpus > domain_gpus(side) and network else None
        for side, network in zip(sides, map(network_of, sides), strict=True)
    }
    return len(rates) > 1


def _market_notes(market: MarketPremium, gpus: int) -> Iterator[Note]:
    if market.server_gpus == 1 < gpus:
        yield Note(EngineCode.MARKET_OF_ONE_GPU, {"gpus": gpus})
    if market.basis == "same_provider_and_date":
        yield Note(EngineCode.MARKET_OF_OTHER_REGIONS)
    if market.basis == "market_medians":
        yield Note(EngineCode.MARKET_OF_OTHER_PROVIDERS)


def why_no_verdict(job: Job, outcomes: Sequence[Mapping[int, Outcome]]) -> Note:
    """The reason that nothing is compared, and its parameters."""
    if not outcomes:
        return Note(VerdictCode.NO_OFFERS)
    if job.exchange_unknown:
        return Note(VerdictCode.ONE_GPU_CAPTURED)
    if not any(legal_plans(job.workload, gpus) for gpus in GPU_COUNTS[1:]):
        return _undivided(job.workload)
    several = [out for own in outcomes for gpus, out in own.items() if gpus > 1]
    if several and not any(isinstance(out, Prediction) for out in several):
        return Note(VerdictCode.NOTHING_FITS)
    return Note(VerdictCode.NO_PAIR)


def _undivided(workload: Workload) -> Note:
    measured = workload.measured
    if measured is None:
        return Note(VerdictCode.UNDIVIDED)
    if not is_data_parallel(workload, measured):
        return Note(VerdictCode.CAPTURED_COUNT, {"gpus": measured.gpu_count})
    return Note(VerdictCode.ONE_GPU_CAPTURED)
