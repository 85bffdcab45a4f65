"""The classifier's stored model: numbers in a file that a person can read, checked before they are used."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np

from profiling.bottleneck import HOST, WORK_LABELS
from profiling.estimates import HOST_INPUTS, WORK_INPUTS, Rows, StandIns, product_names

MODEL_FILE = "model.json"
MODEL_VERSION = 2
"""Goes up when an input or a feature changes its meaning, so that models made before are refused."""
OTHER = "other"
HOST_LABELS = (OTHER, HOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """``logits = rows @ weights + offsets``; ``weights`` ``(input, label)``, ``offsets`` ``(label,)``."""

    weights: Rows
    offsets: Rows

    def logits(self, rows: Rows) -> Rows:
        return rows @ self.weights + self.offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """``work``: of ``WORK_LABELS`` on ``WORK_INPUTS`` and their products; ``host``: of ``HOST_LABELS`` likewise.

    ``sharpness``: power of the mean over the stand-ins that makes it as sure as it is right; stand-ins differ more
    from each other than what they stand for (temperature scaling, Guo et al., ICML'17).
    """

    work: Linear
    host: Linear
    stand_ins: StandIns
    sharpness: float = 1.0


class ModelRefused(Exception):
    """The stored model is missing, damaged or not the one that this code was made for; the message says what to run."""


def softmax(logits: Rows) -> Rows:
    """Probabilities from logits, along the last axis."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def sharpened(rows: Rows, power: float) -> Rows:
    """Probabilities with all odds raised to this power, along the last axis."""
    raised = rows**power
    return raised / raised.sum(axis=-1, keepdims=True)


def model_document(model: Model, training: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored: the numbers, what they belong to, and a hash over all of it."""
    document = {
        "version": MODEL_VERSION,
        "work": _linear_document(model.work, product_names(WORK_INPUTS), WORK_LABELS),
        "host": _linear_document(model.host, product_names(HOST_INPUTS), HOST_LABELS),
        "stand_ins": model.stand_ins,
        "sharpness": model.sharpness,
        "training": training,
    }
    return {**document, "sha256": fingerprint(document)}


def _linear_document(linear: Linear, inputs: tuple[str, ...], labels: tuple[str, ...]) -> dict[str, Any]:
    return {
        "labels": labels,
        "offsets": dict(zip(labels, linear.offsets.tolist(), strict=True)),
        "weights": {
            name: dict(zip(labels, row, strict=True)) for name, row in zip(inputs, linear.weights.tolist(), strict=True)
        },
    }


def fingerprint(document: Mapping[str, Any]) -> str:
    """SHA-256 of everything but the hash itself, in one spelling."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    return sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode("utf-8")).hexdigest()


def read_model(content: bytes) -> tuple[Model, Mapping[str, Any]]:
    """The model of a file and its description. Raises :class:`ModelRefused`."""
    try:
        document = json.loads(content)
        hash_is_right = fingerprint(document) == document["sha256"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _refused("it is damaged or no model at all") from None
    if document.get("version") != MODEL_VERSION:
        raise _refused(f"it is of version {document.get('version')}, this program needs {MODEL_VERSION}")
    if not hash_is_right:
        raise _refused("its contents do not match its SHA-256")
    try:
        model = Model(
            work=_linear(document["work"], product_names(WORK_INPUTS), WORK_LABELS),
            host=_linear(document["host"], product_names(HOST_INPUTS), HOST_LABELS),
            stand_ins=document["stand_ins"],
            sharpness=float(document["sharpness"]),
        )
    except (KeyError, TypeError, AttributeError):
        raise _refused("it was trained on other inputs or labels") from None
    return model, document


def _linear(stored: Mapping[str, Any], inputs: tuple[str, ...], labels: tuple[str, ...]) -> Linear:
    if set(stored["weights"]) != set(inputs) or set(stored["offsets"]) != set(labels):
        raise KeyError
    weights = [[float(stored["weights"][name][label]) for label in labels] for name in inputs]
    return Linear(weights=np.array(weights), offsets=np.array([float(stored["offsets"][label]) for label in labels]))


@cache
def _stored() -> tuple[Model, Mapping[str, Any]]:
    try:
        content = files("profiling").joinpath("model", MODEL_FILE).read_bytes()
    except FileNotFoundError:
        raise _refused(f"{MODEL_FILE} is missing") from None
    return read_model(content)


def loaded_model() -> Model:
    """The stored model, read once per process. Raises :class:`ModelRefused`."""
    return _stored()[0]


def description() -> Mapping[str, Any]:
    """All of ``model.json``: what the model was made with. Raises :class:`ModelRefused`."""
    return _stored()[1]


def model_sha256() -> str:
    """SHA-256 of the stored model."""
    return str(description()["sha256"])


def _refused(reason: str) -> ModelRefused:
    return ModelRefused(
        f"The stored classifier cannot be used: {reason}. "
        "Restore profiling/model/ from the repository, or make it anew with: python manage.py train_classifier"
    )
