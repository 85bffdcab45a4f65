"""What bounds a captured step, by the definition: its own graph replayed with one resource faster at a time.

No accelerator has to be known: the durations are those of the capture. ``sensitivity.py`` asks the same of a
prediction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from advisor.engine.collectives import Floats
from advisor.engine.readings import exposed_communication_s, returns_step
from advisor.engine.replay import CLASSES, Durations, Replayed, replay
from advisor.engine.sensitivity import BALANCED, label
from profiling.bottleneck import COMMUNICATION, COMPUTE, HOST, LEAST_KERNELS, MEMORY, Bottleneck
from profiling.features import Features
from profiling.step_graph import NONE, StepGraph
from profiling.workload import KernelClass, MeasuredStep

OWN_RESOURCES = (COMPUTE, MEMORY, COMMUNICATION, HOST)
"""The first of ``sensitivity.RESOURCES``: loading of input shows in a capture as a host that is late."""

_FASTER = 1.1
_WITHOUT_END = 1e12
_MATMUL, _ATTENTION, _COPY = (
    CLASSES.index(name) for name in (KernelClass.MATMUL, KernelClass.ATTENTION, KernelClass.COPY)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBound:
    """For ``OWN_RESOURCES``, on the machine that the step was captured on.

    ``sensitivities``: S_r = -d ln(step) / d ln(speed of r), each 10 % faster, the rest as is, 0 to 1. ``label``: the
    largest, ``balanced`` where it leads by less than 0.1. ``limits_s``: seconds of the step if the resource took no
    time, the least that buying more of it could give. ``step_s``: as captured. ``transfer_unverified``: how much of
    the communication was waiting is not known, so that all of it counts as transfer.
    """

    step_s: float
    sensitivities: Mapping[str, float]
    label: str
    limits_s: Mapping[str, float]
    transfer_unverified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Speeds:
    """How many times as fast each resource is, ``[row]``."""

    compute: Floats
    memory: Floats
    communication: Floats
    host: Floats


def own_bound(step: MeasuredStep, streaming: float, cached_attention: float = 0.0) -> OwnBound | None:
    """None without a graph, and where a replay of it does not return the step.

    ``streaming``: part (0 to 1) of the products that memory bounds rather than arithmetic; the attention around them
    reads its cache then, and so does the part of it in kernels for that, ``cached_attention``.
    """
    if step.graph is None or step.step_s <= 0:
        return None
    speeds = _speeds()
    found = replay(step.graph, _durations(step, step.graph, speeds, streaming, cached_attention))
    if not returns_step(step, found):
        return None
    step_s = _whole_s(step, found, speeds)
    faster_s, least_s = step_s[1:].reshape(2, len(OWN_RESOURCES))
    sensitivities = np.clip(np.log(step.step_s / faster_s) / np.log(_FASTER), 0.0, 1.0)
    return OwnBound(
        step_s=step.step_s,
        sensitivities=_by_name(sensitivities),
        label=label(np.append(sensitivities, 0.0)),
        limits_s=_by_name(np.minimum(least_s, np.minimum(faster_s, step.step_s))),
        transfer_unverified=bool(step.collectives) and step.waiting_s is None,
    )


def bound_of(features: Features | None, step: MeasuredStep | None) -> OwnBound | None:
    """The same of a capture: None too where it has no step, or too few kernels to judge by."""
    if features is None or step is None or features.kernels < LEAST_KERNELS:
        return None
    return own_bound(step, streaming_of(features), features.cached_attention_share or 0.0)


def streaming_of(features: Features) -> float:
    """Part of the products that memory bounds: by their shapes, else by their tiles, else taken to be none."""
    known = (features.streaming_share, features.narrow_share, 0.0)
    return next(share for share in known if share is not None)


def agrees(bound: OwnBound, found: Bottleneck) -> bool | None:
    """Whether the classifier says the same; a balanced step may be called by either of its two largest resources.

    None where the classifier cannot tell.
    """
    if found.label is None:
        return None
    if bound.label != BALANCED:
        return bound.label == found.label
    return found.label in sorted(OWN_RESOURCES, key=lambda name: -bound.sensitivities[name])[:2]


def _speeds() -> _Speeds:
    """As captured; then each resource 10 % faster; then each infinitely fast."""
    count = len(OWN_RESOURCES)
    rows = np.ones((1 + 2 * count, count))
    rows[1 : 1 + count][np.eye(count, dtype=bool)] = _FASTER
    rows[1 + count :][np.eye(count, dtype=bool)] = _WITHOUT_END
    return _Speeds(**dict(zip(OWN_RESOURCES, rows.T, strict=True)))


def _durations(
    step: MeasuredStep, graph: StepGraph, speeds: _Speeds, streaming: float, cached_attention: float
) -> Durations:
    """Kernels of unknown purpose and copies inside the device go with memory, copies to and from the host with it."""
    factors = np.repeat(1 / speeds.memory[None, :], len(CLASSES), axis=0)
    factors[_MATMUL] = _mixed(streaming, speeds)
    factors[_ATTENTION] = _mixed(1 - (1 - streaming) * (1 - cached_attention), speeds)
    host_part = (graph.host_copy_s / np.maximum(graph.work_s[:, _COPY], 1e-12))[:, None]
    copy_factors = host_part / speeds.host + (1 - host_part) * factors[_COPY]
    own_s = graph.work_s.copy()
    own_s[:, _COPY] = 0.0
    work_s = own_s @ factors + graph.work_s[:, [_COPY]] * copy_factors
    transfer_s = _transfers_s(step, graph, speeds, work_s)
    tail_class = graph.tail_class[:, None]
    tail_s = graph.tail_s[:, None] * np.where(tail_class == _COPY, copy_factors, factors[graph.tail_class])
    tail_s = np.where(tail_class == NONE, transfer_s, tail_s)
    return Durations(work_s=work_s, transfer_s=transfer_s, tail_s=tail_s, host=speeds.host)


def _mixed(streaming: float, speeds: _Speeds) -> Floats:
    return (1 - streaming) / speeds.compute + streaming / speeds.memory


def _transfers_s(step: MeasuredStep, graph: StepGraph, speeds: _Speeds, work_s: Floats) -> Floats:
    """Collectives ``[node, row]``; of each the same part was waiting, as in all that showed.

    Faster links do not shorten that: waiting for hosts that were late goes with the host, for ranks that had more to
    do with what this one does; where the cause is open with nothing.
    """
    exposed_s = exposed_communication_s(step)
    waiting_s = min(step.waiting_s or 0.0, exposed_s)
    waiting = waiting_s / exposed_s if exposed_s > 0 else 0.0
    factor = (1 - waiting) / speeds.communication
    if step.late_launch_s is None:
        factor = factor + waiting
    elif waiting > 0:
        late = min(step.late_launch_s, waiting_s) / exposed_s
        computing_s = work_s.sum(axis=0)
        others = computing_s / computing_s[0] if computing_s[0] > 0 else np.ones_like(factor)
        factor = factor + late / speeds.host + (waiting - late) * others
    return np.where(graph.collective == NONE, 0.0, graph.busy_s)[:, None] * factor


def _whole_s(step: MeasuredStep, found: Replayed, speeds: _Speeds) -> Floats:
    """With what the graph lacks of the step as time of the host; what it has too much taken off everywhere alike."""
    own_s = float(found.step_s[0])
    return found.step_s * min(step.step_s / own_s, 1.0) + max(step.step_s - own_s, 0.0) / speeds.host


def _by_name(row: Floats) -> Mapping[str, float]:
    return MappingProxyType({name: float(value) for name, value in zip(OWN_RESOURCES, row, strict=True)})
