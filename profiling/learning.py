"""Making the classifier's model from samples. What it learns from is made elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from profiling.bottleneck import HOST, LABELS, WORK_LABELS
from profiling.estimates import (
    ANY,
    STREAMING,
    UNKNOWN_KERNELS,
    WAITING,
    Rows,
    complete,
    host_rows,
    kind_of,
    spent,
    streaming_beside_narrow,
    work_rows,
)
from profiling.features import Features
from profiling.judging import probabilities
from profiling.stored_model import HOST_LABELS, OTHER, Linear, Model, sharpened

_REGULARISATION = 0.3
_STAND_INS, _STAND_INS_OF_OTHERS = {STREAMING: 5, WAITING: 8}, 3
"""More of what decides labels; all combinations are asked for each capture."""
_SHARPENED_ON = 2_000
_POWERS = np.linspace(0.8, 2.0, 25).round(2)
_FEW = 30
"""A kind of capture seen less often than this has no stand-ins of its own."""
_UNKNOWN_COMPUTES = (0.0, 0.0, 0.0, 1.0)
"""Kernels of unknown purpose mostly do what such kernels did in the samples; in one case of four they all compute, as
nobody knows: so no label is sure where they lead."""


def model_of(
    features: Sequence[Features], seen: Sequence[Features], work_labels: Sequence[str], labels: Sequence[str]
) -> Model:
    """The model fitted to ``features`` with nothing missing; ``seen``: the same as captures show them.

    ``labels`` of the step, ``work_labels`` with the host left out.
    """
    work, host = inputs_of(features)
    leads = [HOST if label == HOST else OTHER for label in labels]
    model = Model(
        work=_linear(_fitted(work, work_labels, WORK_LABELS)),
        host=_linear(_fitted(host, leads, HOST_LABELS)),
        stand_ins=stand_ins_from(features),
    )
    return replace(model, sharpness=_sharpness(model, seen[:_SHARPENED_ON], labels[:_SHARPENED_ON]))


def _sharpness(model: Model, seen: Sequence[Features], labels: Sequence[str]) -> float:
    """The power under which the right labels are likeliest."""
    found, truth = probabilities(seen, model), [LABELS.index(label) for label in labels]
    places = np.arange(len(truth)), truth
    losses = [-np.log(np.maximum(sharpened(found, power)[places], 1e-12)).mean() for power in _POWERS]
    return float(_POWERS[int(np.argmin(losses))])


def inputs_of(features: Sequence[Features]) -> tuple[Rows, Rows]:
    """(``WORK_INPUTS``, ``HOST_INPUTS``), one row per element of ``features``, which lack nothing."""
    shares = [spent(one, complete(one)) for one in features]
    return np.concatenate([work_rows(one) for one in shares]), np.concatenate([host_rows(one) for one in shares])


def _fitted(inputs: Rows, labels: Sequence[str], names: Sequence[str]) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=_REGULARISATION, max_iter=3000))
    return model.fit(inputs, np.array([names.index(label) for label in labels]))


def _linear(pipeline: Any) -> Linear:
    """Scaling and regression in one; of two labels the first has logit 0."""
    scaler, regression = pipeline.steps[0][1], pipeline.steps[1][1]
    weights = regression.coef_.T / scaler.scale_[:, None]
    offsets = regression.intercept_ - scaler.mean_ @ weights
    if weights.shape[1] == 1:
        weights, offsets = np.hstack([np.zeros_like(weights), weights]), np.append(0.0, offsets)
    return Linear(weights=weights, offsets=offsets)


def stand_ins_from(features: Sequence[Features]) -> dict[str, dict[str, list[float]]]:
    """For each piece that captures may lack: what it was, in equal parts of the samples that look alike otherwise."""
    known: Mapping[str, Callable[[Features], float | None]] = {
        STREAMING: streaming_beside_narrow,
        WAITING: lambda one: _ratio(one.waiting_share, one.exposed_communication_share),
        "late": lambda one: _ratio(one.late_share, one.waiting_share),
        "mean_kernel_s": lambda one: one.mean_kernel_s,
        "host_copies": lambda one: _ratio(one.host_copy_share, one.copy_share),
    }
    found = {piece: _by_kind(features, piece, value) for piece, value in known.items()}
    return {**found, UNKNOWN_KERNELS: {ANY: list(_UNKNOWN_COMPUTES)}}


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _by_kind(
    features: Sequence[Features], piece: str, value: Callable[[Features], float | None]
) -> dict[str, list[float]]:
    """Captures that lack more look less alike, so that each sample counts under every kind that it may show as."""
    values: dict[str, list[float]] = {}
    for one in features:
        for seen in _less_and_less(one):
            known = value(seen)
            if known is not None:
                values.setdefault(kind_of(seen, piece), []).append(known)
    enough = {kind: some for kind, some in values.items() if len(some) >= _FEW}
    number = _STAND_INS.get(piece, _STAND_INS_OF_OTHERS)
    parts = (np.arange(number) + 0.5) / number
    return {kind: np.quantile(some, parts).round(6).tolist() for kind, some in sorted(enough.items())}


def _less_and_less(features: Features) -> tuple[Features, ...]:
    nameless = replace(features, narrow_share=None)
    return (
        features,
        nameless,
        replace(nameless, mean_matmul_s=None, uneven_share=None, cached_attention_share=None),
    )


def sklearn_version() -> str:
    import sklearn

    return sklearn.__version__
