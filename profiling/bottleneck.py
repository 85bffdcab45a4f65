"""What bounds a job: the labels, and what an answer holds."""

from collections.abc import Mapping
from dataclasses import dataclass

from profiling.notes import BottleneckCode, Note

COMPUTE, MEMORY, COMMUNICATION, HOST = "compute", "memory", "communication", "host"
WORK_LABELS = (COMPUTE, MEMORY, COMMUNICATION)
"""What can bound the GPUs' own work."""
LABELS = (*WORK_LABELS, HOST)
"""``HOST``: time that no faster GPU or link shortens: launches, loading, copies to the host, waiting for late hosts."""

LEAST_KERNELS = 10
ANSWERED = 0.59
"""Probability from which a label is given: of the samples that something bounds, fewer than a tenth stay below."""
SURE = 0.9
MANY_UNCLASSIFIED = 0.2
"""Share of the kernel time in kernels of unknown purpose above which the user is told."""
WORTH_SAYING = 0.05
_NEVER_CERTAIN = 0.999
_LABEL_LEADS = {
    COMPUTE: BottleneckCode.COMPUTE_LEADS,
    MEMORY: BottleneckCode.MEMORY_LEADS,
    COMMUNICATION: BottleneckCode.COMMUNICATION_LEADS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """The resource whose speed-up would shorten the step most.

    ``label``: one of ``LABELS``; None = cannot tell. ``sure``: whatever the capture does not tell, the label would be
    the same with a probability of ``SURE``. ``work_label``: what bounds the GPUs' own work, the host left out.
    ``probabilities`` add up to 1: of ``LABELS``, of ``WORK_LABELS`` where idle time cannot be seen; empty where there
    is nothing to judge by. ``host_bound``: whether the label is the host; None where that cannot be seen. ``evidence``
    opens with the statement that leads.
    """

    label: str | None
    sure: bool = False
    work_label: str | None = None
    probabilities: Mapping[str, float]
    host_bound: bool | None
    evidence: tuple[Note, ...]
    warnings: tuple[Note, ...]

    @property
    def statement(self) -> Note:
        return self.evidence[0]


def clear_label(probabilities: Mapping[str, float]) -> str | None:
    """The likeliest label where it is likely enough to be given."""
    likeliest = max(probabilities, key=lambda name: probabilities[name], default=None)
    return likeliest if likeliest is not None and probabilities[likeliest] >= ANSWERED else None


def label_statement(label: str | None, probabilities: Mapping[str, float]) -> Note:
    """What bounds the GPUs' work, or that nothing leads."""
    if label is not None:
        return percent_note(_LABEL_LEADS[label], min(probabilities[label], _NEVER_CERTAIN))
    shares = {name: round(100 * share) for name, share in probabilities.items()}
    seen = HOST in probabilities
    return Note(BottleneckCode.NO_CLEAR_LEAD if seen else BottleneckCode.NO_CLEAR_LEAD_OF_WORK, shares)


def percent_note(code: BottleneckCode, share: float) -> Note:
    """A sentence about a share from 0 to 1."""
    return Note(code, {"percent": round(100 * share, 1)})


def told(shares: Mapping[BottleneckCode, float]) -> list[Note]:
    """Sentences about the shares worth saying, the largest first."""
    codes = sorted((code for code in shares if shares[code] >= WORTH_SAYING), key=lambda code: -shares[code])
    return [percent_note(code, shares[code]) for code in codes]
