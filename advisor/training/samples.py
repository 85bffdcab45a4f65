"""Training samples: features as a capture of the step would show them, and the label by its definition."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from advisor.engine.system import System
from advisor.training.jobs import PARTS, Family, Job, draw_job
from advisor.training.plans import chosen_candidates
from advisor.training.seen import observed, shown
from advisor.training.servers import gpu_counts, training_servers
from advisor.training.steps import RESOURCES, draw_odds, sensitivities, spent
from profiling.bottleneck import WORK_LABELS
from profiling.features import Features
from profiling.workload import Mode

_LEAST_SENSITIVITY = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """``features`` with nothing missing; ``seen`` with what captures lack missing.

    ``bound``: S_r of ``RESOURCES``; ``label``: the largest; ``lead``: how far it is ahead of the next (below 0.1 the
    step is balanced); ``work_label``: the largest with the host left out.
    """

    family: Family
    server: str
    features: Features
    seen: Features
    bound: tuple[float, ...]
    label: str
    lead: float
    work_label: str


def make_samples(count: int, generator: Generator) -> list[Sample]:
    """``count`` samples, families by ``PARTS``; the same generator state gives the same samples, in random order."""
    systems = list(zip(training_servers(), gpu_counts(), strict=True))
    one_part = -(-count // sum(PARTS.values()))
    found = [sample for family in Family for sample in _of_family(family, PARTS[family] * one_part, systems, generator)]
    return [found[place] for place in generator.permutation(len(found))[:count]]


def _of_family(family: Family, quota: int, systems: list[tuple[System, int]], generator: Generator) -> list[Sample]:
    found: list[Sample] = []
    while len(found) < quota:
        found.extend(_of_job(draw_job(family, generator), systems, generator))
    return found[:quota]


def _of_job(job: Job, systems: list[tuple[System, int]], generator: Generator) -> Iterator[Sample]:
    traced = systems[int(generator.integers(len(systems)))][0][0]
    chosen = chosen_candidates(job, traced, systems, generator)
    if chosen is None:
        return
    candidates, names = chosen
    odds = draw_odds(len(candidates), generator)
    bound = sensitivities(job, traced, candidates, odds)
    training = job.workload.mode is Mode.TRAINING
    seen = shown(spent(job, traced, candidates, odds), odds, training, generator)
    for row, (complete, gapped) in enumerate(observed(seen, candidates.gpus, generator)):
        order = np.argsort(-bound[row], kind="stable")
        work = np.argsort(-bound[row, : len(WORK_LABELS)], kind="stable")
        if bound[row, work[0]] < _LEAST_SENSITIVITY:
            continue
        yield Sample(
            family=job.family,
            server=names[row],
            features=complete,
            seen=gapped,
            bound=tuple(bound[row].tolist()),
            label=RESOURCES[order[0]],
            lead=float(bound[row, order[0]] - bound[row, order[1]]),
            work_label=WORK_LABELS[work[0]],
        )
