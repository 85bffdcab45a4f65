"""Which resource bounds a job, from its features: compute, memory or communication, with probabilities.

Together with ``profiling.learning`` the only module that knows scikit-learn, and only inside its functions: importing
it costs the web process nothing. The label is defined by the engine (which resource, made 10 % faster, shortens the
step most); the model learned it from the engine's steps, see ``model/MODEL_CARD.md``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from profiling.bottleneck import LABELS, LEAST_KERNELS, Bottleneck, judge
from profiling.features import Features

__all__ = ["INPUTS", "Bottleneck", "ModelRefused", "classify", "model_sha256"]

INPUTS = (
    "log_arithmetic_over_memory",
    "log_transfer_over_kernels",
    "log_hidden_over_kernels",
    "attention_of_arithmetic",
    "other_of_kernels",
    "copies_of_kernels",
    "log_mean_kernel",
)
"""Columns of the model, all relative to the time in which the GPU works: idle time changes none of them."""

MODEL_FILE, DESCRIPTION_FILE = "classifier.skops", "model.json"
WAITING_GUESSES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Where nobody knows how much of the communication was waiting: equally likely parts of it.

With one part in five all waiting, a single rank never makes communication surer than 80 %.
"""

UNKNOWN_IS_ARITHMETIC = (False, False, False, True, True)
"""Kernels of unknown purpose stream memory more often than not, but nobody knows: no label is sure where they lead."""

_LITTLE = 0.01
_MOST = np.array([np.log(32), *[np.inf] * (len(INPUTS) - 1)])
"""Of arithmetic over memory work: few captures that the model was made with have more, and its squares bend over beyond
them; a loop of large products alone would be called bound by memory."""

_TYPICAL_KERNEL_S, _SHORTEST_S, _LONGEST_S = 2e-5, 2e-6, 1e-2

Rows = NDArray[np.float64]
KernelGuesses = Sequence[float]
"""Mean kernel durations in seconds that stand in, equally likely, where a capture lacks them."""


class Model(Protocol):
    def predict_proba(self, inputs: Rows) -> Rows: ...


class ModelRefused(Exception):
    """The stored model is not the one that this code was made for; the message says what to run."""


def classify(features: Features) -> Bottleneck:
    """What bounds the job. Raises :class:`ModelRefused` where the stored model does not belong to this code."""
    if features.kernels < LEAST_KERNELS:
        return judge(features, {})
    found = probabilities(loaded_model(), kernel_guesses(), _unknown_kernels(features)).mean(axis=0)
    return judge(features, {name: float(value) for name, value in zip(LABELS, found, strict=True)})


def _unknown_kernels(features: Features) -> list[Features]:
    """What the kernels without a known purpose may be, equally likely: as the model takes them, or arithmetic."""
    computing = features.matmul_share + features.attention_share + features.memory_kernel_share
    unknown = (features.unclassified_share or 0.0) * (computing + features.other_kernel_share)
    moved = min(unknown, features.other_kernel_share)
    if not moved:
        return [features]
    arithmetic = replace(
        features,
        matmul_share=features.matmul_share + moved,
        other_kernel_share=features.other_kernel_share - moved,
    )
    return [arithmetic if guess else features for guess in UNKNOWN_IS_ARITHMETIC]


def probabilities(model: Model, guesses: KernelGuesses, features: Sequence[Features]) -> Rows:
    """Probabilities of ``LABELS``, one row per element of ``features``.

    What a capture lacks is not filled in: every stand-in is tried, and the answer is the mean.
    """
    blocks = [input_rows(one, guesses) for one in features]
    found = model.predict_proba(np.minimum(np.concatenate(blocks), _MOST))
    borders = np.cumsum([len(block) for block in blocks])[:-1]
    return np.stack([part.mean(axis=0) for part in np.split(found, borders)])


def input_rows(features: Features, guesses: KernelGuesses) -> Rows:
    """The model's inputs, shape ``(guesses, len(INPUTS))``: one row where nothing is missing."""
    exposed, hidden = features.exposed_communication_share, features.hidden_communication_share
    if features.waiting_share is not None:
        transfers = [(max(exposed - features.waiting_share, 0.0), hidden)]
    else:
        parts = WAITING_GUESSES if exposed + hidden > 0 else (0.0,)
        transfers = [(exposed * (1 - part), hidden * (1 - part)) for part in parts]
    means_s = guesses if features.mean_kernel_s is None else (features.mean_kernel_s,)
    return np.array([_row(features, *transfer, mean_s) for transfer in transfers for mean_s in means_s])


def _row(features: Features, transfer: float, hidden: float, mean_kernel_s: float) -> list[float]:
    busy = max(1.0 - features.idle_share, 1e-9)
    arithmetic = (features.matmul_share + features.attention_share) / busy
    memory, other, copies = (
        share / busy for share in (features.memory_kernel_share, features.other_kernel_share, features.copy_share)
    )
    kernels = arithmetic + memory + other + copies + _LITTLE
    return [
        float(np.log((arithmetic + _LITTLE) / (memory + _LITTLE))),
        float(np.log((transfer / busy + _LITTLE) / kernels)),
        float(np.log((hidden / busy + _LITTLE) / kernels)),
        features.attention_share / busy / (arithmetic + _LITTLE),
        other / kernels,
        copies / kernels,
        float(np.log(min(max(mean_kernel_s, _SHORTEST_S), _LONGEST_S) / _TYPICAL_KERNEL_S)),
    ]


def model_sha256() -> str:
    """SHA-256 of the stored model, as its description gives it; the file is checked against it when loaded."""
    return str(description()["sha256"])


def kernel_guesses() -> KernelGuesses:
    return [float(mean_s) for mean_s in description()["kernel_guesses"]]


@cache
def description() -> Mapping[str, Any]:
    """``model.json``: version, hash, inputs and labels, and what the model was made with."""
    return json.loads(_stored(DESCRIPTION_FILE).decode("utf-8"))


@cache
def loaded_model() -> Model:
    """The stored model, read once per process."""
    import sklearn

    return load(_stored(MODEL_FILE), description(), sklearn.__version__)


def load(content: bytes, described: Mapping[str, Any], version: str) -> Model:
    """A model from the bytes of its file. Raises :class:`ModelRefused` for bytes, inputs or versions that differ."""
    from skops.io import loads
    from skops.io.exceptions import UntrustedTypesFoundException

    if sha256(content).hexdigest() != described["sha256"]:
        raise _refused("its SHA-256 is not the one in model.json")
    if tuple(described["inputs"]) != INPUTS or tuple(described["labels"]) != LABELS:
        raise _refused("it was trained on other inputs or labels")
    if _minor(described["sklearn"]) != _minor(version):
        raise _refused(f"it was made with scikit-learn {described['sklearn']}, this is {version}")
    try:
        return loads(content, trusted=[])
    except UntrustedTypesFoundException as error:
        raise _refused("it holds types that are not trusted") from error


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _refused(reason: str) -> ModelRefused:
    return ModelRefused(
        f"The stored classifier cannot be used: {reason}. "
        "Restore profiling/model/ from the repository, or make it anew with: python manage.py train_classifier"
    )


def _stored(name: str) -> bytes:
    try:
        return files("profiling").joinpath("model", name).read_bytes()
    except FileNotFoundError:
        raise _refused(f"{name} is missing") from None
