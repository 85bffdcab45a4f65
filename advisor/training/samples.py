"""Training samples: features as a capture of the step would show them, and the label by its definition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from advisor.engine.calibrated import constant
from advisor.engine.collectives import Floats, Ints
from advisor.engine.system import System
from advisor.training.jobs import PARTS, Family, Job, draw_job
from advisor.training.plans import chosen_candidates
from advisor.training.servers import gpu_counts, training_servers
from advisor.training.steps import RESOURCES, Odds, Spent, draw_odds, lasting_s, sensitivities, spent
from profiling.features import SHORT_KERNEL_NS, Features

_LEAST_SENSITIVITY = 0.002
_BLUR = 0.03
_GAPS: Mapping[tuple[str, ...], float] = {
    ("waiting_share",): 0.5,
    ("host_gap_share",): 0.15,
    ("mean_kernel_s", "short_kernel_share", "kernels_per_s"): 0.1,
    ("unclassified_share",): 0.1,
}
"""What captures lack, and how often: one rank in two hides waiting, sums alone have no kernel statistics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """``features`` with nothing missing; ``seen`` with what captures lack missing.

    ``label`` is one of ``RESOURCES``; ``lead``: how far it is ahead of the next, as a share of the three together.
    ``host_leads``: whether the host's sensitivity is larger still.
    """

    family: Family
    server: str
    features: Features
    seen: Features
    label: str
    lead: float
    host_leads: bool


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
    rows = _observed(spent(job, traced, candidates, odds), odds, candidates.gpus, generator)
    for row, (features, seen) in enumerate(rows):
        three = bound[row, : len(RESOURCES)]
        order = np.argsort(-three, kind="stable")
        if three[order[0]] < _LEAST_SENSITIVITY:
            continue
        yield Sample(
            family=job.family,
            server=names[row],
            features=features,
            seen=seen,
            label=RESOURCES[order[0]],
            lead=float((three[order[0]] - three[order[1]]) / three.sum()),
            host_leads=bool(bound[row, -1] > three[order[0]]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What a profiler's capture of some steps would show; one row per candidate.

    ``shares``: matmul, attention, memory, other, copies, exposed communication, idle, shape ``[7, row]``.
    """

    shares: Floats
    hidden: Floats
    waiting: Floats
    host_gap: Floats
    unnamed: Floats
    short: Floats
    mean_kernel_s: Floats
    kernels: Floats
    step_s: Floats


def _see(base: Spent, odds: Odds, generator: Generator) -> _Seen:
    rows = len(base.matmul_s)
    step_s = base.step_s + lasting_s(base, odds)
    unnamed = _unnamed_shares(rows, generator)
    classes = np.stack([base.matmul_s, base.attention_s, base.memory_s])
    other_s = base.other_s + unnamed * classes.sum(axis=0)
    copy_s = base.copy_s + odds.extra_copy * base.step_s
    idle_s = base.host_s + odds.extra_idle * base.step_s
    exposed_s = base.exposed_s * (1 + odds.waiting)
    blurred = generator.lognormal(0.0, _BLUR, (7, rows))
    shares = blurred * np.stack([*(classes * (1 - unnamed)), other_s, copy_s, exposed_s, idle_s])
    shares = shares / shares.sum(axis=0)
    counts = np.stack([base.matmul_kernels, base.attention_kernels, base.memory_kernels, base.other_kernels])
    times = np.stack([*classes, base.other_s])
    return _Seen(
        shares=shares,
        hidden=base.hidden_s / step_s,
        waiting=shares[5] * odds.waiting / (1 + odds.waiting),
        host_gap=shares[6] * generator.beta(8, 1, rows),
        unnamed=unnamed,
        short=(_short_share(times, counts) * counts).sum(axis=0) / counts.sum(axis=0),
        mean_kernel_s=times.sum(axis=0) / counts.sum(axis=0),
        kernels=counts.sum(axis=0),
        step_s=step_s,
    )


def _unnamed_shares(rows: int, generator: Generator) -> Floats:
    """Part of the kernel time whose kernels no name rule knows: mostly none, now and then much."""
    kind = generator.random(rows)
    little, much = generator.beta(1, 60, rows), generator.beta(1, 3, rows)
    return np.select([kind < 0.1, kind < 0.4], [much, little], 0.0)


def _observed(base: Spent, odds: Odds, gpus: Ints, generator: Generator) -> Iterator[tuple[Features, Features]]:
    """Features of each row, complete and with the gaps that captures have."""
    seen = _see(base, odds, generator)
    lacks = generator.random((len(_GAPS), len(gpus))) < np.array(list(_GAPS.values()))[:, None]
    for row in range(len(gpus)):
        complete = _features(seen, row, int(gpus[row]))
        missing = [name for place, names in enumerate(_GAPS) if lacks[place, row] for name in names]
        yield complete, replace(complete, **dict.fromkeys(missing))


def _features(seen: _Seen, row: int, gpus: int) -> Features:
    matmul, attention, memory, other, copies, exposed, idle = (float(share) for share in seen.shares[:, row])
    hidden = float(seen.hidden[row])
    communicates = exposed + hidden > 0
    return Features(
        matmul_share=matmul,
        attention_share=attention,
        memory_kernel_share=memory,
        other_kernel_share=other,
        copy_share=copies,
        exposed_communication_share=exposed,
        hidden_communication_share=hidden,
        idle_share=idle,
        host_gap_share=float(seen.host_gap[row]),
        waiting_share=float(seen.waiting[row]) if communicates else None,
        overlap_ratio=hidden / (exposed + hidden) if communicates else None,
        short_kernel_share=float(seen.short[row]),
        mean_kernel_s=float(seen.mean_kernel_s[row]),
        kernels_per_s=float(seen.kernels[row] / seen.step_s[row]),
        unclassified_share=float(seen.unnamed[row]),
        streaming_share=None,
        narrow_share=None,
        mean_matmul_s=None,
        host_copy_share=None,
        uneven_share=None,
        late_share=None,
        input_share=None,
        kernels=int(seen.kernels[row]),
        steps=1,
        gpus=gpus,
    )


def _short_share(times: Floats, counts: Floats) -> Floats:
    """Share of kernels under 10 us per class, where durations are log-normal around the mean."""
    mean_s = np.maximum(times / np.maximum(counts, 1e-9), constant("kernel_launch_floor_s"))
    sigma = np.array([[0.7], [0.5], [1.1], [1.1]])
    distance = (np.log(SHORT_KERNEL_NS / 1e9) - np.log(mean_s) + sigma**2 / 2) / sigma
    return 1 / (1 + np.exp(-1.702 * distance))
