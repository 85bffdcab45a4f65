"""What bounds a step: how much faster it gets when one resource does, and how fast it could get at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from advisor.engine.candidates import Candidates, Parts, Speed
from advisor.engine.collectives import Floats
from advisor.engine.step import Job, step_parts

RESOURCES = ("compute", "memory", "communication", "host", "input")
BALANCED = "balanced"
BALANCED_LEAD = 0.1

_FASTER = 1.1
_WITHOUT_END = 1e12
"""Stands for an infinitely fast resource: of an hour it leaves nanoseconds, and no exchange becomes one of no time,
which would look as if nobody waited in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """For ``RESOURCES``, ``[row, 5]``.

    ``sensitivities``: S_r = -d ln(step) / d ln(speed of r), each 10 % faster, the rest as is. Communication that
    computing hides has S = 0, however long it takes. ``limits_s``: seconds of the step if the resource took no time,
    the least that buying more of it could give. Start-up times of links go with their bandwidth, launching of kernels
    stays with the host, and a kernel's own start on the GPU (``hardware.launch_s``) with neither.
    """

    sensitivities: Floats
    limits_s: Floats

    def label_of(self, row: int) -> str:
        return label(self.sensitivities[row])

    def sensitivities_of(self, row: int) -> Mapping[str, float]:
        return _by_name(self.sensitivities[row])

    def limits_of(self, row: int) -> Mapping[str, float]:
        return _by_name(self.limits_s[row])


def bounds(job: Job, candidates: Candidates, parts: Parts) -> Bounds:
    """What bounds the step of each candidate, whose ``parts`` are those of ``step_parts``.

    A limit is never above the step as it is or with 10 % more speed. That needs saying: exchanges of several kinds are
    each let hide under the same computing (``described.py``), so that in corners less computing shows more of them.
    """
    step_s, sensitivities, limits_s = parts.step_s, [], []
    for name in RESOURCES:
        if name == "input" and not parts.input_s.any():
            faster_s = least_s = step_s
        else:
            faster_s, least_s = (_step_s(job, candidates, name, factor) for factor in (_FASTER, _WITHOUT_END))
        sensitivities.append(np.log(step_s / faster_s) / np.log(_FASTER))
        limits_s.append(np.minimum.reduce([step_s, faster_s, least_s]))
    return Bounds(sensitivities=np.clip(np.stack(sensitivities, axis=1), 0.0, 1.0), limits_s=np.stack(limits_s, axis=1))


def _step_s(job: Job, candidates: Candidates, name: str, factor: float) -> Floats:
    return step_parts(job, candidates, Speed(**{name: factor})).step_s


def label(row: Floats) -> str:
    """The resource with the largest sensitivity; ``balanced`` where it leads by less than 0.1."""
    order = np.argsort(-row, kind="stable")
    return BALANCED if row[order[0]] - row[order[1]] < BALANCED_LEAD else RESOURCES[order[0]]


def _by_name(row: Floats) -> Mapping[str, float]:
    return MappingProxyType({name: float(value) for name, value in zip(RESOURCES, row, strict=True)})
