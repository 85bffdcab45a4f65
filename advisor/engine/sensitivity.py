"""What bounds a step: how much faster it gets when one resource does."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from advisor.engine.candidates import Candidates, Speed
from advisor.engine.collectives import Floats
from advisor.engine.step import Job, step_parts

RESOURCES = ("compute", "memory", "communication", "host", "input")
BALANCED = "balanced"
BALANCED_LEAD = 0.1

_FASTER = 1.1


def sensitivities(job: Job, candidates: Candidates, step_s: Floats) -> Floats:
    """S_r = -d ln(step) / d ln(speed of r) for ``RESOURCES``, shape ``[row, 5]``: each 10 % faster, the rest as is.

    Communication that computing hides has S = 0, however long it takes.
    """
    found = [
        np.log(step_s / step_parts(job, candidates, Speed(**{name: _FASTER})).step_s) / np.log(_FASTER)
        for name in RESOURCES
    ]
    return np.clip(np.stack(found, axis=1), 0.0, 1.0)


def label(row: Floats) -> str:
    """The resource with the largest sensitivity; ``balanced`` where it leads by less than 0.1."""
    order = np.argsort(-row, kind="stable")
    return BALANCED if row[order[0]] - row[order[1]] < BALANCED_LEAD else RESOURCES[order[0]]


def by_name(row: Floats) -> Mapping[str, float]:
    return MappingProxyType({name: float(value) for name, value in zip(RESOURCES, row, strict=True)})
