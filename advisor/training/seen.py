"""What a profiler's capture would show of a step: its features, with the errors and gaps that captures have."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from advisor.engine.calibrated import constant
from advisor.engine.collectives import Floats, Ints
from advisor.training.steps import Odds, Spent, copied_s, waiting_s
from profiling.features import SHORT_KERNEL_NS, Features

_STEP_VARIATION = 0.1
"""Spread (ln) of a share from step to step; a capture of n steps shows the mean."""
_MOST_STEPS = 20
_TRANSFER_SPREAD = (0.05, 0.25)
"""Spread (ln) of the same transfer from call to call, lowest and highest."""
_BACKWARD_TOLD = 0.9
"""Captures of training in which operators or names of kernels tell of the backward pass."""
_LATE_ALIKE = 0.25
"""Jobs in which the same rank is late in every call, by about the same time."""
_QUICK = -1.28
"""The quick tenth of a normal distribution."""

GAPS: Mapping[str, tuple[tuple[str, ...], float]] = {
    "other ranks": (("waiting_share", "late_share"), 0.5),
    "shapes": (("streaming_share",), 0.5),
    "tiles in kernel names": (("narrow_share",), 0.25),
    "sizes of exchanges": (("uneven_share",), 0.4),
    "launches": (("host_gap_share", "input_share"), 0.15),
    "kernel statistics": (("mean_kernel_s", "short_kernel_share", "kernels_per_s", "mean_matmul_s"), 0.1),
    "names": (("unclassified_share",), 0.1),
    "directions of copies": (("host_copy_share",), 0.2),
}
"""What captures lack, the features that go with it, and how often: one rank of a job hides waiting, many captures are
made without shapes, sums alone have no kernel statistics. Stated judgement, after the public captures that were read.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One row per candidate. ``shares``: matmul, attention, memory, other, copies, exposed communication, idle,
    shape ``[7, row]``; the rest as in :class:`~profiling.features.Features`.
    """

    shares: Floats
    hidden: Floats
    waiting: Floats
    late: Floats
    host_gap: Floats
    input: Floats
    host_copies: Floats
    unnamed: Floats
    streaming: Floats
    narrow: Floats
    cached: Floats
    uneven: Floats
    short: Floats
    mean_kernel_s: Floats
    mean_matmul_s: Floats
    trains: NDArray[np.bool_]
    kernels: Floats
    step_s: Floats
    steps: Ints


def shown(base: Spent, odds: Odds, training: bool, generator: Generator) -> Shown:
    """The capture of some steps on each candidate.

    A pipeline stage without work waits inside the kernels that receive from its neighbour.
    """
    rows = len(base.matmul_s)
    steps = np.ceil(_MOST_STEPS ** generator.random(rows)).astype(np.int64)
    classes = np.stack([base.matmul_s, base.attention_s, base.memory_s])
    unnamed = _unnamed_shares(classes, generator)
    unnamed_s = (unnamed * classes).sum(axis=0)
    waited, copies, extra_idle = waiting_s(base, odds), copied_s(base, odds), odds.extra_idle * base.step_s
    step_s = base.step_s - base.copy_s + waited + copies + extra_idle
    other_s, idle_s = base.other_s + unnamed_s, base.host_s + extra_idle
    exposed_s = base.exposed_s + waited + base.bubble_s
    lengths = np.stack([*(classes * (1 - unnamed)), other_s, copies, exposed_s, idle_s])
    shares = lengths * generator.lognormal(0.0, 1.0, lengths.shape) ** (_STEP_VARIATION / np.sqrt(steps))
    shares = shares / shares.sum(axis=0)
    counts = np.stack([base.matmul_kernels, base.attention_kernels, base.memory_kernels, base.other_kernels])
    times = np.stack([*classes, base.other_s])
    waiting = (waited + base.bubble_s) / np.maximum(exposed_s, 1e-12)
    late = odds.late * waited / np.maximum(waited + base.bubble_s, 1e-12)
    return Shown(
        shares=shares,
        hidden=base.hidden_s / step_s,
        waiting=shares[5] * waiting,
        late=shares[5] * waiting * _clipped(late + generator.normal(0.0, 0.1, rows)),
        host_gap=shares[6] * generator.beta(8, 1, rows),
        input=shares[6] * np.where(generator.random(rows) < 0.2, generator.beta(2, 1, rows), 0.0),
        host_copies=shares[4] * (1 - odds.device_copies),
        unnamed=unnamed_s / np.maximum(base.kernels_s, 1e-12),
        streaming=_streaming(base, generator),
        narrow=_narrow(base, generator),
        cached=_cached(base, generator),
        uneven=_uneven(waiting, generator),
        short=(_short_share(times, counts) * counts).sum(axis=0) / np.maximum(counts.sum(axis=0), 1.0),
        mean_kernel_s=times.sum(axis=0) / np.maximum(counts.sum(axis=0), 1.0),
        mean_matmul_s=base.matmul_s / np.maximum(base.matmul_kernels, 1.0),
        trains=training & (generator.random(rows) < _BACKWARD_TOLD),
        kernels=counts.sum(axis=0) * steps,
        step_s=step_s,
        steps=steps,
    )


def _clipped(shares: Floats) -> Floats:
    return np.clip(shares, 0.0, 1.0)


def _streaming(base: Spent, generator: Generator) -> Floats:
    """As shapes tell it: near the ridge they are wrong by some, and now and then by much."""
    rows = len(base.matmul_s)
    true = base.streaming_s / np.maximum(base.matmul_s, 1e-12)
    error = np.where(generator.random(rows) < 0.1, 0.25, 0.06) * generator.normal(0.0, 1.0, rows)
    return _clipped(true + error)


def _narrow(base: Spent, generator: Generator) -> Floats:
    """By the rows of the products where the job tells them, else some of those that stream."""
    rows = len(base.matmul_s)
    whole = np.maximum(base.matmul_s, 1e-12)
    mean = np.where(np.isnan(base.narrow_s), base.streaming_s * generator.random(rows), base.narrow_s) / whole
    mean = np.clip(mean, 0.01, 0.99)
    return generator.beta(12 * mean, 12 * (1 - mean))


def _cached(base: Spent, generator: Generator) -> Floats:
    """Kernels that read a cache are named so more often than not; some serve prompts and answers alike."""
    rows = len(base.attention_s)
    named = np.where(generator.random(rows) < 0.7, generator.beta(12, 1, rows), generator.beta(1, 12, rows))
    share = base.cached_s / np.maximum(base.attention_s, 1e-12)
    return np.where(share > 0, np.where(share > 0.5, named, share * named), 0.0)


def _uneven(waiting: Floats, generator: Generator) -> Floats:
    """How much longer calls take than the quick ones of their kind; ``waiting``: part of the time that they wait.

    Waits of single calls follow a gamma distribution: nearly all alike where one rank is late in every call, or a few
    long ones. Transfers alone differ as well.
    """
    rows = len(waiting)
    alike = generator.random(rows) < _LATE_ALIKE
    shape = np.where(alike, 50.0, generator.lognormal(0.0, 1.0, rows))
    quick_wait = _quick_of_gamma(shape)
    spread = generator.uniform(*_TRANSFER_SPREAD, rows)
    return _clipped(waiting * (1 - quick_wait) + (1 - waiting) * (1 - np.exp(_QUICK * spread)))


def _quick_of_gamma(shape: Floats) -> Floats:
    """The quick tenth of a gamma distribution over its mean (Wilson and Hilferty, 1931)."""
    ninth = 1 / (9 * shape)
    return np.maximum(1 - ninth + _QUICK * np.sqrt(ninth), 0.0) ** 3


def _unnamed_shares(classes: Floats, generator: Generator) -> Floats:
    """Part of each class whose kernels no name rule knows, shape of ``classes``.

    Products come from libraries, whose names are known. Other kernels are written for one program now and then, and in
    programs without products nearly always.
    """
    rows = classes.shape[1]
    some = generator.random(classes.shape) < np.array([[0.03], [0.08], [0.12]])
    little = generator.random(classes.shape) < np.array([[0.0], [0.0], [0.3]])
    much = np.where(some, generator.beta(1.0, 2.0, classes.shape), 0.0)
    found = np.where(little & ~some, generator.beta(1.0, 60.0, classes.shape), much)
    own = (classes[:2].sum(axis=0) < 0.05 * classes.sum(axis=0)) & (generator.random(rows) < 0.7)
    return np.where(own, generator.beta(8.0, 1.0, classes.shape), found)


def _short_share(times: Floats, counts: Floats) -> Floats:
    """Share of kernels under 10 us per class, where durations are log-normal around the mean."""
    mean_s = np.maximum(times / np.maximum(counts, 1e-9), constant("kernel_launch_floor_s"))
    sigma = np.array([[0.7], [0.5], [1.1], [1.1]])
    distance = (np.log(SHORT_KERNEL_NS / 1e9) - np.log(mean_s) + sigma**2 / 2) / sigma
    return 1 / (1 + np.exp(-1.702 * distance))


def observed(seen: Shown, gpus: Ints, generator: Generator) -> Iterator[tuple[Features, Features]]:
    """Features of each row, complete and with the gaps that captures have."""
    lacks = generator.random((len(GAPS), len(gpus))) < np.array([often for _, often in GAPS.values()])[:, None]
    for row in range(len(gpus)):
        complete = _features(seen, row, int(gpus[row]))
        missing = [name for place, (names, _) in enumerate(GAPS.values()) if lacks[place, row] for name in names]
        yield complete, replace(complete, **dict.fromkeys(missing))


def _features(seen: Shown, row: int, gpus: int) -> Features:
    matmul, attention, memory, other, copies, exposed, idle = (float(share) for share in seen.shares[:, row])
    hidden = float(seen.hidden[row])
    communicates, multiplies = exposed + hidden > 0, matmul > 0
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
        kernels_per_s=float(seen.kernels[row] / seen.steps[row] / seen.step_s[row]),
        unclassified_share=float(seen.unnamed[row]),
        streaming_share=float(seen.streaming[row]) if multiplies else None,
        narrow_share=float(seen.narrow[row]) if multiplies else None,
        cached_attention_share=float(seen.cached[row]) if attention > 0 else None,
        mean_matmul_s=float(seen.mean_matmul_s[row]) if multiplies else None,
        host_copy_share=float(seen.host_copies[row]),
        uneven_share=float(seen.uneven[row]) if communicates else None,
        late_share=float(seen.late[row]) if communicates else None,
        input_share=float(min(seen.input[row], seen.host_gap[row])),
        trains=bool(seen.trains[row]),
        kernels=int(seen.kernels[row]),
        steps=int(seen.steps[row]),
        gpus=gpus,
    )
