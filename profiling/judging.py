"""Probabilities of the labels from features, by the model's numbers: for every way to fill what a capture lacks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiling.bottleneck import WORK_LABELS
from profiling.estimates import Filled, Rows, filled, host_rows, spent, work_rows, works
from profiling.features import Features
from profiling.stored_model import Model, sharpened, softmax


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """``every``: probabilities of ``LABELS`` for every way to fill what the capture lacks, ``(way, 4)``; ``work``: of
    ``WORK_LABELS`` for the GPUs' own work, ``(way, 3)``. The answer is their mean, sharpened by the model.
    """

    ways: Filled
    every: Rows
    work: Rows
    sharpness: float

    @property
    def probabilities(self) -> Rows:
        """Of ``LABELS``, shape ``(4,)``."""
        return sharpened(self.every.mean(axis=0), self.sharpness)

    @property
    def of_work(self) -> Rows:
        """Of ``WORK_LABELS``, shape ``(3,)``."""
        return sharpened(self.work.mean(axis=0), self.sharpness)


def judge(features: Features, model: Model) -> Judged:
    """Where the GPUs do nothing at all, nothing is likelier than the rest to bound what they do."""
    ways = filled(features, model.stand_ins)
    shares = spent(features, ways)
    work = np.where(works(shares)[:, None], softmax(model.work.logits(work_rows(shares))), 1 / len(WORK_LABELS))
    host = softmax(model.host.logits(host_rows(shares)))[:, 1:]
    every = np.concatenate([work * (1 - host), host], axis=1)
    return Judged(ways=ways, every=every, work=work, sharpness=model.sharpness)


def probabilities(features: Sequence[Features], model: Model) -> Rows:
    """Of ``LABELS``, one row per element of ``features``."""
    return np.stack([judge(one, model).probabilities for one in features])
