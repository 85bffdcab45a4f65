"""What a speed-up is made of: compute, memory and link, by Shapley values.

Buying NVLink buys a faster chip as well, so the speed-up is split into the mean of ln(speed-up) over all orders of
swapping the three: the factors multiply to the whole.
"""

from collections.abc import Mapping, Sequence
from itertools import permutations
from math import exp, log
from statistics import fmean

import numpy as np

from advisor.engine.plans import legal_plans
from advisor.engine.search import Rows, best_rows, checked, plainly, worth_timing
from advisor.engine.stacks import hardware_of
from advisor.engine.step import Job, samples_per_step, step_parts
from advisor.engine.system import System

PLAYERS = ("compute", "memory", "link")
_SWAPS = tuple(tuple(bool(mask >> bit & 1) for bit in range(len(PLAYERS))) for mask in range(2 ** len(PLAYERS)))


def speedup_shares(
    job: Job, systems: Sequence[System], pairs: Sequence[tuple[int, int, int]]
) -> list[Mapping[str, float]]:
    """Factors of the speed-up for each (NVLink place, PCIe place, GPUs): one batch of eight mixtures a pair."""
    if not pairs:
        return []
    rows = [tuple(nvlink if swap else pcie for swap in swaps) for nvlink, pcie, _ in pairs for swaps in _SWAPS]
    compute, memory, link = (np.array(column) for column in zip(*rows, strict=True))
    mixed = hardware_of(job.workload, systems).mixed(compute, memory, link)
    plans = {gpus: legal_plans(job.workload, gpus) for gpus in {gpus for _, _, gpus in pairs}}
    wanted = [(place, plans[pairs[place // len(_SWAPS)][2]]) for place in range(len(rows))]
    timed = worth_timing(checked(job, mixed, Rows.of(wanted)))
    candidates = timed.rows.on(mixed)
    pace = step_parts(job, candidates).step_s / samples_per_step(job, candidates)
    rows = best_rows(timed.rows.group, timed.fits, timed.need, pace * plainly(candidates))
    best = pace[rows].reshape(len(pairs), len(_SWAPS))
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
