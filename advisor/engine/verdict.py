"""Is NVLink worth its price for this job?

Two sides of one silicon family, the same number of GPUs, each with its own best plan. The break-even premium is the
ratio of their step times; the market's premium comes from offers. Buying NVLink buys a faster chip as well, so the
speed-up is split into compute, memory and link by Shapley values: the mean of ln(speed-up) over all orders of swapping
them, so that the three factors multiply to the whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import exp, log
from statistics import fmean

import numpy as np

from advisor.engine.cost import Goal
from advisor.engine.explain import VerdictCode
from advisor.engine.fabric import silicon_family
from advisor.engine.hardware import hardware
from advisor.engine.market import MarketPremium, market_premium, offers_of
from advisor.engine.memory import fit, need_bytes
from advisor.engine.plans import GPU_COUNTS, legal_plans
from advisor.engine.prediction import Outcome, Prediction, System, best_rows, candidates_on
from advisor.engine.ranking import paired_range
from advisor.engine.step import Job, samples_per_step, step_parts
from catalog.specs import OfferSpec

PLAYERS = ("compute", "memory", "link")
_SWAPS = tuple(tuple(bool(mask >> bit & 1) for bit in range(len(PLAYERS))) for mask in range(2 ** len(PLAYERS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """NVLink against PCIe of one family at one GPU count.

    ``break_even``: T_pcie / T_nvlink - 1, the premium per GPU-hour at which both cost the same, with its 80 % range.
    ``shares``: factors of the speed-up by compute, memory and link; their product is ``break_even + 1``.
    """

    family: str
    gpus: int
    nvlink: Prediction
    pcie: Prediction
    nvlink_system: System
    pcie_system: System
    break_even: float
    low: float
    high: float
    shares: Mapping[str, float]
    market: MarketPremium | None
    code: VerdictCode

    @property
    def outcome(self) -> str:
        """``worth_it``, ``not_worth_it``, ``no_clear_winner`` or ``unknown``."""
        return _OUTCOMES[self.code]


_OUTCOMES = {
    VerdictCode.WORTH_IT: "worth_it",
    VerdictCode.NOT_WORTH_IT: "not_worth_it",
    VerdictCode.NO_GAIN: "not_worth_it",
    VerdictCode.NO_CLEAR_WINNER: "no_clear_winner",
    VerdictCode.NO_MARKET: "unknown",
    VerdictCode.NO_PAIR: "unknown",
}


def compare_families(
    job: Job,
    systems: Sequence[System],
    predictions: Sequence[Mapping[int, Outcome]],
    offers: Sequence[OfferSpec],
    goal: Goal,
) -> tuple[Comparison, ...]:
    """Every family and GPU count (2 and up) for which both sides are predicted, by family and count."""
    sides = [_pair(systems, predictions, family, gpus) for family in _families(systems) for gpus in GPU_COUNTS[1:]]
    pairs = [(nvlink, pcie) for nvlink, pcie in (pair for pair in sides if pair is not None)]
    found = [(predictions[nvlink[0]][nvlink[1]], predictions[pcie[0]][pcie[1]]) for nvlink, pcie in pairs]
    shares = _shares(job, systems, [(nvlink[0], pcie[0], nvlink[1]) for nvlink, pcie in pairs])
    return tuple(
        _comparison(systems[nvlink[0]], systems[pcie[0]], fast, slow, share, offers, goal)
        for (nvlink, pcie), (fast, slow), share in zip(pairs, found, shares, strict=True)
        if isinstance(fast, Prediction) and isinstance(slow, Prediction)
    )


def _families(systems: Sequence[System]) -> list[str]:
    return sorted({silicon_family(accelerator.key) for accelerator, _ in systems})


Place = tuple[int, int]


def _pair(
    systems: Sequence[System], predictions: Sequence[Mapping[int, Outcome]], family: str, gpus: int
) -> tuple[Place, Place] | None:
    """Places (system, GPUs) of the fastest server on each side."""
    own = [place for place, (accelerator, _) in enumerate(systems) if silicon_family(accelerator.key) == family]
    ready = [place for place in own if isinstance(predictions[place].get(gpus), Prediction)]
    nvlink = [place for place in ready if systems[place][1].topology.is_nvlink]
    pcie = [place for place in ready if systems[place][1].topology.is_pcie]
    if not nvlink or not pcie:
        return None

    def pace(place: int) -> tuple[float, str]:
        outcome = predictions[place][gpus]
        rate = outcome.samples_per_s if isinstance(outcome, Prediction) else 0.0
        return -rate, systems[place][0].key

    return (min(nvlink, key=pace), gpus), (min(pcie, key=pace), gpus)


def _comparison(
    nvlink_system: System,
    pcie_system: System,
    nvlink: Prediction,
    pcie: Prediction,
    shares: Mapping[str, float],
    offers: Sequence[OfferSpec],
    goal: Goal,
) -> Comparison:
    ratio = nvlink.samples_per_s / pcie.samples_per_s
    low, high = (ratio * factor for factor in paired_range(nvlink, pcie))
    market = market_premium(
        offers_of(offers, nvlink_system[0].key, nvlink=True),
        offers_of(offers, pcie_system[0].key, nvlink=False),
        goal.currency,
    )
    return Comparison(
        family=silicon_family(nvlink_system[0].key),
        gpus=nvlink.gpus,
        nvlink=nvlink,
        pcie=pcie,
        nvlink_system=nvlink_system,
        pcie_system=pcie_system,
        break_even=ratio - 1,
        low=low - 1,
        high=high - 1,
        shares=shares,
        market=market,
        code=_code(ratio - 1, low - 1, high - 1, market),
    )


def _code(break_even: float, low: float, high: float, market: MarketPremium | None) -> VerdictCode:
    if market is not None and low > market.premium:
        return VerdictCode.WORTH_IT
    if break_even < _NOTHING:
        return VerdictCode.NO_GAIN
    if market is None:
        return VerdictCode.NO_MARKET
    return VerdictCode.NOT_WORTH_IT if high < market.premium else VerdictCode.NO_CLEAR_WINNER


_NOTHING = 0.005
"""A premium that rounds to 0 %."""


def _shares(job: Job, systems: Sequence[System], pairs: Sequence[tuple[int, int, int]]) -> list[Mapping[str, float]]:
    """Factors of the speed-up for each (NVLink place, PCIe place, GPUs): one batch of eight mixtures a pair."""
    if not pairs:
        return []
    rows = [tuple(nvlink if swap else pcie for swap in swaps) for nvlink, pcie, _ in pairs for swaps in _SWAPS]
    compute, memory, link = (np.array(column) for column in zip(*rows, strict=True))
    mixed = hardware(systems, job.workload.precision).mixed(compute, memory, link)
    wanted = [
        (place, legal_plans(job.workload, gpus))
        for place, gpus in enumerate(gpus for _, _, gpus in pairs for _ in _SWAPS)
    ]
    candidates = candidates_on(mixed, wanted)
    group = np.repeat(np.arange(len(wanted)), [len(plans) for _, plans in wanted])
    need = need_bytes(job.workload, candidates)
    source = None if job.traced is None else float(job.traced.memory_bytes)
    fits = fit(job.workload, need, candidates.hardware.memory.capacity_bytes, source)
    pace = step_parts(job, candidates).step_s / samples_per_step(job, candidates)
    best = pace[best_rows(group, fits, need, pace)].reshape(len(pairs), len(_SWAPS))
    return [_shapley(dict(zip(_SWAPS, row, strict=True))) for row in best]


def _shapley(times: Mapping[tuple[bool, ...], float]) -> Mapping[str, float]:
    """Mean ln(speed-up) of turning each player on, over all orders; as factors."""
    gains: dict[int, list[float]] = {player: [] for player in range(len(PLAYERS))}
    for order in permutations(range(len(PLAYERS))):
        state = [False] * len(PLAYERS)
        for player in order:
            before = times[tuple(state)]
            state[player] = True
            gains[player].append(log(before / times[tuple(state)]))
    return {name: exp(fmean(gains[player])) for player, name in enumerate(PLAYERS)}


def headline(
    comparisons: Sequence[Comparison], job: Job, goal: Goal, families_by_rank: Sequence[str]
) -> Comparison | None:
    """The family the buyer came with, else the best ranked one that has both sides; at the count asked for."""
    order = ([silicon_family(job.traced.key)] if job.traced else []) + list(families_by_rank)
    known = {comparison.family for comparison in comparisons}
    family = next((name for name in order if name in known), None)
    if family is None:
        return None
    own = [comparison for comparison in comparisons if comparison.family == family]
    captured = job.workload.measured.gpu_count if job.workload.measured else None
    for gpus in (goal.gpus, captured):
        for comparison in own:
            if comparison.gpus == gpus:
                return comparison
    return max(own, key=lambda comparison: comparison.gpus)
