"""Which resource bounds a job, from its features: compute, memory, communication or the host, with probabilities.

Two logistic regressions, fitted with scikit-learn and stored as numbers (``model/model.json``): whether the host leads,
and what bounds the work that is left. The label is defined by the engine (which resource, made 10 % faster, shortens
the step most); the model learned it from the engine's steps, see ``model/MODEL_CARD.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiling.bottleneck import LEAST_KERNELS, Bottleneck
from profiling.estimates import Filled, Rows, filled, host_rows, spent, work_rows
from profiling.features import Features
from profiling.findings import found, too_few
from profiling.stored_model import Model, loaded_model, softmax


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """``every``: probabilities of ``LABELS`` for every way to fill what the capture lacks, ``(way, 4)``; ``work``: of
    ``WORK_LABELS`` for the GPUs' own work, ``(way, 3)``. The answer is their mean.
    """

    ways: Filled
    every: Rows
    work: Rows


def classify(features: Features, *, idle_known: bool = True) -> Bottleneck:
    """What bounds the job; without idle time only what bounds the GPUs' own work.

    Raises ``ModelRefused`` where the stored model does not belong to this code.
    """
    if features.kernels < LEAST_KERNELS:
        return too_few(features)
    judged = judge(features, loaded_model())
    return found(features, judged.ways, judged.every if idle_known else judged.work, judged.work)


def judge(features: Features, model: Model) -> Judged:
    ways = filled(features, model.stand_ins)
    shares = spent(features, ways)
    work = softmax(model.work.logits(work_rows(shares)))
    host = softmax(model.host.logits(host_rows(shares)))[:, 1:]
    return Judged(ways=ways, every=np.concatenate([work * (1 - host), host], axis=1), work=work)


def probabilities(features: Sequence[Features], model: Model) -> Rows:
    """Of ``LABELS``, one row per element of ``features``."""
    return np.stack([judge(one, model).every.mean(axis=0) for one in features])
