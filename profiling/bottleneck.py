"""What bounds a job, in what words: the statement that leads, the evidence for it, and what to be careful about."""

from collections.abc import Mapping
from dataclasses import dataclass

from profiling.features import Features
from profiling.notes import BottleneckCode, Note

COMPUTE, MEMORY, COMMUNICATION = "compute", "memory", "communication"
LABELS = (COMPUTE, MEMORY, COMMUNICATION)

LEAST_KERNELS = 10
CLEAR_LEAD = 0.1
MANY_UNCLASSIFIED = 0.2
"""Share of the kernel time in kernels of unknown purpose above which the user is told."""
_WORTH_SAYING = 0.05
_IDLE = 0.1
_SHORT_KERNEL_S = 5e-5
_LABEL_LEADS = {
    COMPUTE: BottleneckCode.COMPUTE_LEADS,
    MEMORY: BottleneckCode.MEMORY_LEADS,
    COMMUNICATION: BottleneckCode.COMMUNICATION_LEADS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """The resource whose speed-up would shorten the step most.

    ``label``: one of ``LABELS``; None = cannot tell. ``probabilities`` of the three add up to 1; empty where there is
    nothing to judge by. ``evidence`` opens with the statement that leads. ``host_bound``: the GPU idles, copies or
    waits for a late rank longer than any resource works, so that this comes first; the label then says what bounds
    the work that is left. None where the capture does not show the host.
    """

    label: str | None
    probabilities: Mapping[str, float]
    host_bound: bool | None
    evidence: tuple[Note, ...]
    warnings: tuple[Note, ...]

    @property
    def statement(self) -> Note:
        return self.evidence[0]


def transfer_share(features: Features) -> float:
    """Exposed communication without the waiting that is known of."""
    return max(features.exposed_communication_share - (features.waiting_share or 0.0), 0.0)


def judge(features: Features, probabilities: Mapping[str, float]) -> Bottleneck:
    """Label, statement, evidence and warnings; ``probabilities`` is empty where too few kernels were seen."""
    label = clear_label(probabilities)
    lost = _lost(features)
    most = max(
        features.matmul_share + features.attention_share,
        features.memory_kernel_share,
        features.other_kernel_share,
        transfer_share(features),
    )
    host_bound = sum(lost.values()) > most
    if not probabilities:
        params = {"count": features.kernels, "least": LEAST_KERNELS}
        statement = Note(BottleneckCode.TOO_FEW_KERNELS, params)
    elif host_bound:
        statement = _lost_statement(lost, most)
    elif label == COMMUNICATION and features.waiting_share is None:
        statement = percent_note(BottleneckCode.COMMUNICATION_OR_WAITING, probabilities[label])
    else:
        statement = label_statement(label, probabilities)
    return Bottleneck(
        label=label,
        probabilities=probabilities,
        host_bound=host_bound,
        evidence=(statement, *_evidence(features)),
        warnings=tuple(_warnings(features, label)),
    )


def _lost_statement(lost: Mapping[BottleneckCode, float], most: float) -> Note:
    """The largest loss where it alone is longer than any resource works, else all of them together."""
    code = max(lost, key=lost.__getitem__)
    if lost[code] > most:
        return percent_note(code, lost[code])
    return percent_note(BottleneckCode.LOST_LEADS, min(sum(lost.values()), 1.0))


def _lost(features: Features) -> dict[BottleneckCode, float]:
    """Shares of the time that no faster GPU or link would shorten, by cause."""
    late = (features.host_gap_share or 0.0) > features.idle_share / 2
    return {
        BottleneckCode.HOST_LEADS if late else BottleneckCode.IDLE_LEADS: features.idle_share,
        BottleneckCode.COPIES_LEAD: features.copy_share,
        BottleneckCode.WAITING_LEADS: features.waiting_share or 0.0,
    }


def clear_label(probabilities: Mapping[str, float]) -> str | None:
    """The likeliest label where it leads by ``CLEAR_LEAD``; None where none does."""
    if not probabilities:
        return None
    first, second, *_ = sorted(probabilities, key=lambda name: -probabilities[name])
    return first if probabilities[first] - probabilities[second] >= CLEAR_LEAD else None


def label_statement(label: str | None, probabilities: Mapping[str, float]) -> Note:
    """What leads, or that nothing does."""
    if label is not None:
        return percent_note(_LABEL_LEADS[label], probabilities[label])
    return Note(BottleneckCode.NO_CLEAR_LEAD, {name: round(100 * value) for name, value in probabilities.items()})


def percent_note(code: BottleneckCode, share: float) -> Note:
    """A sentence about a share from 0 to 1."""
    return Note(code, {"percent": round(100 * share, 1)})


def _evidence(features: Features) -> list[Note]:
    """Where the time went, the largest share first, then what kernels are like."""
    shares = {
        BottleneckCode.MATMUL_SHARE: features.matmul_share,
        BottleneckCode.ATTENTION_SHARE: features.attention_share,
        BottleneckCode.MEMORY_KERNEL_SHARE: features.memory_kernel_share,
        BottleneckCode.OTHER_KERNEL_SHARE: features.other_kernel_share,
        BottleneckCode.COPY_SHARE: features.copy_share,
        BottleneckCode.EXPOSED_COMMUNICATION: features.exposed_communication_share,
        BottleneckCode.IDLE_SHARE: features.idle_share,
    }
    said = sorted((code for code in shares if shares[code] >= _WORTH_SAYING), key=lambda code: -shares[code])
    found = [percent_note(code, shares[code]) for code in said]
    communication = features.exposed_communication_share + features.hidden_communication_share
    if features.overlap_ratio is not None and communication >= _WORTH_SAYING:
        found.append(percent_note(BottleneckCode.HIDDEN_COMMUNICATION, features.overlap_ratio))
    if features.mean_kernel_s is not None and features.short_kernel_share is not None:
        params = {
            "microseconds": round(1e6 * features.mean_kernel_s, 1),
            "short": round(100 * features.short_kernel_share, 1),
        }
        found.append(Note(BottleneckCode.MEAN_KERNEL, params))
    return found


def _warnings(features: Features, label: str | None) -> list[Note]:
    found = [*_idle_warnings(features), *_communication_warnings(features)]
    unclassified = features.unclassified_share or 0.0
    if unclassified > MANY_UNCLASSIFIED:
        found.append(percent_note(BottleneckCode.MANY_UNCLASSIFIED, unclassified))
    matmul_leads = features.matmul_share > max(features.memory_kernel_share, transfer_share(features))
    short = features.mean_kernel_s is not None and features.mean_kernel_s < _SHORT_KERNEL_S
    if label is not None and matmul_leads and short:
        found.append(Note(BottleneckCode.SHORT_MATMULS))
    return found


def _idle_warnings(features: Features) -> list[Note]:
    idle, late = features.idle_share, features.host_gap_share
    if idle <= _IDLE:
        return []
    if late is None:
        return [percent_note(BottleneckCode.HOST_BOUND_UNVERIFIED, idle)]
    if late > idle / 2:
        return [percent_note(BottleneckCode.HOST_BOUND, late)]
    return [percent_note(BottleneckCode.IDLE_THOUGH_LAUNCHED, idle)]


def _communication_warnings(features: Features) -> list[Note]:
    exposed, waiting = features.exposed_communication_share, features.waiting_share
    if exposed <= _WORTH_SAYING:
        return []
    if waiting is None:
        return [percent_note(BottleneckCode.COMMUNICATION_UNVERIFIED, exposed)]
    if waiting > exposed / 2:
        return [percent_note(BottleneckCode.MOSTLY_WAITING, min(waiting / exposed, 1.0))]
    return []
