"""Which resource bounds a job, from its features: compute, memory, communication or the host, with probabilities.

Two logistic regressions, fitted with scikit-learn and stored as numbers (``model/model.json``): whether the host leads,
and what bounds the work that is left. The label is defined by the engine (which resource, made 10 % faster, shortens
the step most); the model learned it from the engine's steps, see ``model/MODEL_CARD.md``.
"""

from profiling.bottleneck import LEAST_KERNELS, Bottleneck
from profiling.features import Features
from profiling.findings import found, too_few
from profiling.judging import judge
from profiling.stored_model import loaded_model


def classify(features: Features, *, idle_known: bool = True) -> Bottleneck:
    """What bounds the job; without idle time only what bounds the GPUs' own work.

    Raises ``ModelRefused`` where the stored model does not belong to this code.
    """
    if features.kernels < LEAST_KERNELS:
        return too_few(features)
    return found(features, judge(features, loaded_model()), idle_known=idle_known)
