"""From weights of the resources, where there is no timeline, to an answer: equal shares are mixed in."""

from collections.abc import Mapping, Sequence

from profiling.bottleneck import (
    HOST,
    WORK_LABELS,
    Bottleneck,
    clear_label,
    label_statement,
)
from profiling.notes import BottleneckCode, Note

IDLE_IS_USUAL, IDLE_LEADS = 0.1, 0.65
"""Idle part of the time up to which every job has some, and from which nothing else can lead; in between a ramp that
makes the host the label from a half on, where it is longer than anything else can take."""
MOST_SURE = 0.8
OTHER_IS_MEMORY = 0.6
"""Kernels of unknown purpose stream memory more often than not: outside its tensor cores a GPU needs some 20 FLOP per
byte to be bound by arithmetic, and few kernels besides matrix products have that many."""


def mixed(weights: Mapping[str, float], sure: float) -> dict[str, float]:
    """Probabilities of ``WORK_LABELS``: the weights as shares, mixed with equal ones."""
    total = sum(weights.values())
    sure = sure if total > 0 else 0.0
    equal = (1 - sure) / len(WORK_LABELS)
    return {label: equal + (sure * weights.get(label, 0.0) / total if sure else 0.0) for label in WORK_LABELS}


def with_host(work: Mapping[str, float], idle: float) -> dict[str, float]:
    """Probabilities of all labels from those of the devices' own work and the part of the time they are idle."""
    ramp = (idle - IDLE_IS_USUAL) / (IDLE_LEADS - IDLE_IS_USUAL)
    host = MOST_SURE * min(max(ramp, 0.0), 1.0)
    return {**{label: (1 - host) * part for label, part in work.items()}, HOST: host}


def then_bound_by(label: str | None, work_label: str | None) -> list[Note]:
    """What bounds the devices' own work, where the host leads."""
    told = label == HOST and work_label is not None
    return [Note(BottleneckCode.THEN_BOUND_BY, {"resource": work_label or ""})] if told else []


def without_host(work: Mapping[str, float], evidence: Sequence[Note], doubts: Sequence[Note] = ()) -> Bottleneck:
    """The answer where nobody sees idle time, from probabilities of the devices' own work."""
    label = clear_label(work)
    return Bottleneck(
        label=label,
        work_label=label,
        probabilities=work,
        host_bound=None,
        evidence=(label_statement(label, work), *evidence),
        warnings=(*doubts, Note(BottleneckCode.HOST_NOT_TOLD)),
    )
