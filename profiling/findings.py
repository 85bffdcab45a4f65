"""The answer about a bottleneck in words: the statement that leads, its evidence, and what to be careful about."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from profiling.bottleneck import (
    COMMUNICATION,
    COMPUTE,
    HOST,
    LABELS,
    LEAST_KERNELS,
    MANY_UNCLASSIFIED,
    MEMORY,
    SURE,
    WORK_LABELS,
    WORTH_SAYING,
    Bottleneck,
    clear_label,
    label_statement,
    percent_note,
    told,
)
from profiling.estimates import STREAMING, UNKNOWN_KERNELS, WAITING, Filled, Rows
from profiling.features import Features
from profiling.judging import Judged
from profiling.notes import BottleneckCode, Note

_IDLE = 0.1
ENOUGH_KERNELS = 50
"""The fewest that a label can be sure of."""
_NEARLY_ALL = 0.8
_SHORT_KERNEL_S = 5e-5
_UNEVEN = 0.35
_NARROW = 0.3


def too_few(features: Features) -> Bottleneck:
    """The answer where too few kernels were seen to judge by: only that nearly all of the time is lost can be told."""
    told = features if features.host_gap_share is not None else replace(features, idle_share=0.0)
    lost = sum(_lost(told).values())
    if lost > _NEARLY_ALL:
        label, statement = HOST, _lost_statement(told, 1 - lost)
    else:
        params = {"count": features.kernels, "least": LEAST_KERNELS}
        label, statement = None, Note(BottleneckCode.TOO_FEW_KERNELS, params)
    return Bottleneck(
        label=label,
        probabilities={},
        host_bound=True if label == HOST else None,
        evidence=(statement, *_evidence(features)),
        warnings=tuple(_idle_warnings(features)),
    )


def found(features: Features, judged: Judged, *, idle_known: bool) -> Bottleneck:
    """The answer; where idle time cannot be seen, about the GPUs' own work alone."""
    labels, every = (LABELS, judged.every) if idle_known else (WORK_LABELS, judged.work)
    of_work = dict(zip(WORK_LABELS, judged.of_work.tolist(), strict=True))
    probabilities = dict(zip(LABELS, judged.probabilities.tolist(), strict=True)) if idle_known else of_work
    label, work_label = clear_label(probabilities), clear_label(of_work)
    statement = _statement(features, label, probabilities, _doubt(features, probabilities, judged.ways, every))
    return Bottleneck(
        label=label,
        sure=label is not None and is_sure(features, label, every[:, labels.index(label)]),
        work_label=work_label,
        probabilities=probabilities,
        host_bound=label == HOST if HOST in probabilities else None,
        evidence=(statement, *_second(features, label, work_label), *_evidence(features)),
        warnings=tuple(_warnings(features, label)),
    )


def is_sure(features: Features, label: str, of_label: Rows) -> bool:
    """Whether no way to fill what is missing makes the label doubtful.

    Of one step or few kernels nobody can be sure of the rest, and what may all be waiting is not surely bound by links.
    """
    if features.steps < 2 or features.kernels < ENOUGH_KERNELS:
        return False
    if label == COMMUNICATION and features.waiting_share is None:
        return False
    return bool(of_label.min() >= SURE)


def _statement(features: Features, label: str | None, probabilities: Mapping[str, float], doubt: Note | None) -> Note:
    if label == HOST:
        return _lost_statement(features, _longest_work(features))
    if label is None and _waiting_leads(features):
        return percent_note(BottleneckCode.WAITING_LEADS, features.waiting_share or 0.0)
    if label is None and doubt is not None:
        return doubt
    if label == COMMUNICATION and features.waiting_share is None:
        return percent_note(BottleneckCode.COMMUNICATION_OR_WAITING, probabilities[label])
    return label_statement(label, probabilities)


def _second(features: Features, label: str | None, work_label: str | None) -> list[Note]:
    """What goes right after the statement: what comes next, or what hides the work that bounds the job."""
    if label == HOST:
        unverified = work_label == COMMUNICATION and features.waiting_share is None
        return [Note(BottleneckCode.THEN_BOUND_BY, {"resource": work_label})] if work_label and not unverified else []
    if label is not None and _waiting_leads(features):
        return [percent_note(BottleneckCode.WAITING_LEADS, features.waiting_share or 0.0)]
    return []


def _longest_work(features: Features) -> float:
    """The longest of what GPUs and links do."""
    return max(
        features.matmul_share + features.attention_share,
        features.memory_kernel_share,
        features.other_kernel_share,
        transfer_share(features),
    )


def _waiting_leads(features: Features) -> bool:
    others = max(_longest_work(features), features.idle_share, features.copy_share)
    return (features.waiting_share or 0.0) > others


def transfer_share(features: Features) -> float:
    """Exposed communication without the waiting that is known of."""
    return max(features.exposed_communication_share - (features.waiting_share or 0.0), 0.0)


def _doubt(features: Features, probabilities: Mapping[str, float], ways: Filled, every: Rows) -> Note | None:
    """The missing piece on which it hangs most which of the two likeliest labels it is; None where it hangs on none."""
    spread = {piece: _spread(getattr(ways, piece), every) for piece in ways.pieces}
    piece = max(spread, key=lambda name: spread[name], default=None)
    if piece is None or not spread[piece]:
        return None
    two = set(sorted(probabilities, key=lambda name: -probabilities[name])[:2])
    if piece == STREAMING and two == {COMPUTE, MEMORY}:
        return Note(BottleneckCode.UNSURE_STREAMING)
    if piece == WAITING and COMMUNICATION in two:
        return Note(BottleneckCode.UNSURE_WAITING)
    if piece == UNKNOWN_KERNELS:
        return percent_note(BottleneckCode.UNSURE_KERNELS, features.unclassified_share or 0.0)
    return None


def _spread(values: Rows, every: Rows) -> float:
    """How far probabilities move with one piece, where the likeliest label changes with it; else 0."""
    means = np.stack([every[values == value].mean(axis=0) for value in np.unique(values)])
    return float(np.ptp(means, axis=0).max()) if len(np.unique(means.argmax(axis=1))) > 1 else 0.0


def _lost_statement(features: Features, most: float) -> Note:
    """The largest loss where it alone is longer than any resource works, else all of them together."""
    lost = _lost(features)
    code = max(lost, key=lost.__getitem__)
    share = (features.input_share or 0.0) if code == BottleneckCode.INPUT_LEADS else lost[code]
    if share <= most:
        return percent_note(BottleneckCode.LOST_LEADS, min(sum(lost.values()), 1.0))
    return percent_note(code, (features.waiting_share or 0.0) if code == BottleneckCode.WAITING_LEADS else share)


def _lost(features: Features) -> dict[BottleneckCode, float]:
    """Shares of the time that no faster GPU or link would shorten, by cause; of waiting that for late hosts alone."""
    idle, copies, late = features.idle_share, features.host_copy_share, features.late_share
    if (features.host_gap_share or 0.0) <= idle / 2:
        cause = BottleneckCode.IDLE_LEADS
    else:
        loading = (features.input_share or 0.0) > idle / 2
        cause = BottleneckCode.INPUT_LEADS if loading else BottleneckCode.HOST_LEADS
    return {
        cause: idle,
        BottleneckCode.COPIES_LEAD: features.copy_share if copies is None else copies,
        BottleneckCode.WAITING_LEADS: (features.waiting_share or 0.0) if late is None else late,
    }


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
    notes = told(shares)
    communication = features.exposed_communication_share + features.hidden_communication_share
    if features.overlap_ratio is not None and communication >= WORTH_SAYING:
        notes.append(percent_note(BottleneckCode.HIDDEN_COMMUNICATION, features.overlap_ratio))
    return [*notes, *_kernel_evidence(features)]


def _kernel_evidence(features: Features) -> list[Note]:
    notes = []
    if features.mean_kernel_s is not None and features.short_kernel_share is not None:
        params = {
            "microseconds": round(1e6 * features.mean_kernel_s, 1),
            "short": round(100 * features.short_kernel_share, 1),
        }
        notes.append(Note(BottleneckCode.MEAN_KERNEL, params))
    if features.matmul_share < WORTH_SAYING:
        return notes
    streaming, narrow = features.streaming_share, features.narrow_share
    if streaming is not None and streaming >= WORTH_SAYING:
        notes.append(percent_note(BottleneckCode.STREAMING_MATMULS, streaming))
    elif streaming is None and narrow is not None and narrow >= _NARROW:
        notes.append(percent_note(BottleneckCode.NARROW_MATMULS, narrow))
    return notes


def _warnings(features: Features, label: str | None) -> list[Note]:
    notes = [*_idle_warnings(features), *_communication_warnings(features)]
    unclassified = features.unclassified_share or 0.0
    if unclassified > MANY_UNCLASSIFIED:
        notes.append(percent_note(BottleneckCode.MANY_UNCLASSIFIED, unclassified))
    matmul_leads = features.matmul_share > max(features.memory_kernel_share, transfer_share(features))
    short = features.mean_kernel_s is not None and features.mean_kernel_s < _SHORT_KERNEL_S
    untold = features.streaming_share is None and features.narrow_share is None
    if label is not None and matmul_leads and short and untold:
        notes.append(Note(BottleneckCode.SHORT_MATMULS))
    return notes


def _idle_warnings(features: Features) -> list[Note]:
    idle, gap, loading = features.idle_share, features.host_gap_share, features.input_share or 0.0
    if idle <= _IDLE:
        return []
    if gap is None:
        return [percent_note(BottleneckCode.HOST_BOUND_UNVERIFIED, idle)]
    notes = [percent_note(BottleneckCode.INPUT_BOUND, loading)] if loading >= WORTH_SAYING else []
    if gap - loading > idle / 2:
        return [*notes, percent_note(BottleneckCode.HOST_BOUND, gap - loading)]
    if gap <= idle / 2:
        return [*notes, percent_note(BottleneckCode.IDLE_THOUGH_LAUNCHED, idle)]
    return notes


def _communication_warnings(features: Features) -> list[Note]:
    exposed, waiting, uneven = features.exposed_communication_share, features.waiting_share, features.uneven_share
    if exposed <= WORTH_SAYING:
        return []
    if waiting is None:
        notes = [percent_note(BottleneckCode.COMMUNICATION_UNVERIFIED, exposed)]
        if uneven is not None and uneven >= _UNEVEN:
            notes.append(percent_note(BottleneckCode.UNEVEN_CALLS, uneven))
        return notes
    if waiting > exposed / 2:
        return [percent_note(BottleneckCode.MOSTLY_WAITING, min(waiting / exposed, 1.0))]
    return []
