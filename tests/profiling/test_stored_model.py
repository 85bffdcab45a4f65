"""The classifier's file: readable numbers, refused where they do not belong to this code."""

import json
from pathlib import Path

import numpy as np
import pytest

import profiling
from advisor.checks import classifier_belongs_to_engine
from advisor.engine.version import ENGINE_VERSION
from profiling import stored_model
from profiling.bottleneck import WORK_LABELS
from profiling.estimates import WORK_INPUTS, product_names, with_products
from profiling.stored_model import (
    MODEL_FILE,
    Linear,
    ModelRefused,
    description,
    fingerprint,
    loaded_model,
    model_sha256,
    read_model,
    softmax,
)

STORED = Path(profiling.__file__).parent / "model" / MODEL_FILE


def document() -> dict:
    return json.loads(STORED.read_text(encoding="utf-8"))


def content(changed: dict) -> bytes:
    return json.dumps({**changed, "sha256": fingerprint(changed)}).encode("utf-8")


def test_the_stored_file_is_the_one_that_is_used():
    assert model_sha256() == fingerprint(document()) == document()["sha256"]


def test_it_learned_from_the_engine_of_this_program():
    assert description()["training"]["engine"] == ENGINE_VERSION
    assert classifier_belongs_to_engine() == []


def test_a_model_of_another_engine_fails_the_check(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("advisor.checks.ENGINE_VERSION", "0.0")
    (error,) = classifier_belongs_to_engine()
    assert error.id == "advisor.E002"
    assert "train_classifier" in error.hint


def test_a_missing_file_fails_the_check(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stored_model, "MODEL_FILE", "no.json")
    stored_model._stored.cache_clear()
    try:
        (error,) = classifier_belongs_to_engine()
    finally:
        stored_model._stored.cache_clear()
    assert error.id == "advisor.E001"
    assert "no.json is missing" in error.msg


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b"null", b'"text"', b"{}", b"\xff\xfe", b"1e999"])
def test_what_is_no_model_is_refused(damaged: bytes):
    with pytest.raises(ModelRefused, match="train_classifier"):
        read_model(damaged)


def test_changed_numbers_are_refused():
    changed = document()
    changed["work"]["offsets"]["compute"] += 0.001
    with pytest.raises(ModelRefused, match="SHA-256"):
        read_model(json.dumps(changed).encode("utf-8"))


def test_an_older_version_is_refused():
    with pytest.raises(ModelRefused, match="version 1"):
        read_model(content({**document(), "version": 1}))


@pytest.mark.parametrize("part", ["work", "host"])
@pytest.mark.parametrize("piece", ["weights", "offsets"])
def test_other_inputs_or_labels_are_refused(part: str, piece: str):
    changed = document()
    changed[part][piece]["another"] = changed[part][piece].popitem()[1]
    with pytest.raises(ModelRefused, match="other inputs or labels"):
        read_model(content(changed))


def test_logits_are_weights_times_inputs_and_their_products():
    rows = np.array([[0.5, -1.0, 0.0, 0.2, 1.0, 0.3]])
    expanded = with_products(rows)
    names = product_names(WORK_INPUTS)
    assert expanded.shape == (1, len(names))
    assert expanded[0, names.index(f"{WORK_INPUTS[0]} * {WORK_INPUTS[4]}")] == pytest.approx(0.5)
    model = loaded_model().work
    assert model.weights.shape == (len(names), len(WORK_LABELS))
    assert softmax(model.logits(expanded)).sum() == pytest.approx(1.0)


def test_softmax_of_large_logits_is_finite():
    linear = Linear(weights=np.full((1, 2), 1e6), offsets=np.array([0.0, 1.0]))
    assert np.isfinite(softmax(linear.logits(np.array([[1.0]])))).all()
