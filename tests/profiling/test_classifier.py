"""The label that an expert would give, how sure it is, and what it does where it cannot know."""

import csv
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skops.io import dumps

from profiling.analysis import analyse
from profiling.bottleneck import LABELS, LEAST_KERNELS
from profiling.bottleneck_messages import FINDINGS
from profiling.classifier import INPUTS, ModelRefused, classify, description, load, model_sha256
from profiling.features import Features
from profiling.messages import sentence
from profiling.notes import BottleneckCode, Note, Refusal
from tests.paths import REPOSITORY, SHARED

SURE = 0.9
MODEL = REPOSITORY / "profiling" / "model" / "classifier.skops"


def features(**changed: float | None) -> Features:
    """A busy training step on one GPU that matrix kernels lead; ``matmul_share`` takes what the others leave."""
    values: dict[str, float | int | None] = {
        "attention_share": 0.1,
        "memory_kernel_share": 0.1,
        "other_kernel_share": 0.0,
        "copy_share": 0.0,
        "exposed_communication_share": 0.0,
        "hidden_communication_share": 0.0,
        "idle_share": 0.02,
        "host_gap_share": 0.02,
        "waiting_share": None,
        "overlap_ratio": None,
        "short_kernel_share": 0.1,
        "mean_kernel_s": 4e-4,
        "kernels_per_s": 2_000.0,
        "unclassified_share": 0.0,
        "streaming_share": None,
        "narrow_share": None,
        "mean_matmul_s": None,
        "host_copy_share": None,
        "uneven_share": None,
        "late_share": None,
        "input_share": None,
        "kernels": 4_000,
        "steps": 1,
        "gpus": 1,
        **changed,
    }
    parts = ("attention", "memory_kernel", "other_kernel", "copy", "exposed_communication", "idle")
    rest = 1 - sum(float(values[f"{name}_share"] or 0) for name in parts)
    return Features(**{"matmul_share": rest, **values})


def codes(notes: tuple[Note, ...]) -> list[str]:
    return [note.code for note in notes]


def test_long_matrix_kernels_are_compute_bound():
    found = classify(features())
    assert found.label == "compute"
    assert found.probabilities["compute"] > SURE
    assert found.statement.code == BottleneckCode.COMPUTE_LEADS
    assert not found.host_bound
    assert not found.warnings


def test_kernels_that_stream_memory_are_memory_bound():
    found = classify(features(attention_share=0.02, memory_kernel_share=0.75, mean_kernel_s=5e-5))
    assert found.label == "memory"
    assert found.probabilities["memory"] > SURE


def test_exposed_transfer_is_communication_bound():
    found = classify(features(exposed_communication_share=0.65, waiting_share=0.0, overlap_ratio=0.0, gpus=8))
    assert found.label == "communication"
    assert found.probabilities["communication"] > SURE


def test_hidden_communication_does_not_bind():
    found = classify(
        features(
            exposed_communication_share=0.03, hidden_communication_share=0.84, waiting_share=0.0, overlap_ratio=0.97
        )
    )
    assert found.label == "compute"
    assert BottleneckCode.HIDDEN_COMMUNICATION in codes(found.evidence)


def test_waiting_is_not_transfer():
    found = classify(features(exposed_communication_share=0.65, waiting_share=0.6, overlap_ratio=0.0, gpus=8))
    assert found.host_bound
    assert found.statement.code == BottleneckCode.WAITING_LEADS
    assert found.label == "compute"
    assert BottleneckCode.MOSTLY_WAITING in codes(found.warnings)


def test_one_rank_is_never_sure_of_communication():
    found = classify(features(exposed_communication_share=0.65, overlap_ratio=0.0, gpus=8))
    assert found.label == "communication"
    assert found.probabilities["communication"] < 0.85
    assert found.statement.code == BottleneckCode.COMMUNICATION_OR_WAITING
    assert BottleneckCode.COMMUNICATION_UNVERIFIED in codes(found.warnings)


@pytest.mark.parametrize(
    ("gap", "statement", "code"),
    [
        (0.6, BottleneckCode.HOST_LEADS, BottleneckCode.HOST_BOUND),
        (None, BottleneckCode.IDLE_LEADS, BottleneckCode.HOST_BOUND_UNVERIFIED),
        (0.05, BottleneckCode.IDLE_LEADS, BottleneckCode.IDLE_THOUGH_LAUNCHED),
    ],
)
def test_an_idle_gpu_comes_first_and_says_why(gap: float | None, statement: BottleneckCode, code: BottleneckCode):
    found = classify(features(idle_share=0.7, host_gap_share=gap))
    assert found.host_bound
    assert found.statement.code == statement
    assert code in codes(found.warnings)


def test_several_losses_lead_together_where_none_is_longer_than_the_matrix_kernels():
    found = classify(
        features(
            matmul_share=0.37, attention_share=0.0, memory_kernel_share=0.0, other_kernel_share=0.0, copy_share=0.0,
            exposed_communication_share=0.32, waiting_share=0.14, idle_share=0.31, host_gap_share=0.3,
        )
    )  # fmt: skip
    assert found.host_bound
    assert found.statement.code == BottleneckCode.LOST_LEADS
    assert found.statement.params == {"percent": 45.0}


def test_a_loop_of_large_products_is_not_bound_by_memory():
    alone = dict.fromkeys(("attention_share", "memory_kernel_share", "other_kernel_share", "copy_share"), 0.0)
    found = classify(
        features(**alone, matmul_share=1.0, exposed_communication_share=0.0, idle_share=0.0, mean_kernel_s=2e-4)
    )
    assert found.label == "compute"


def test_no_label_is_sure_where_kernels_of_unknown_purpose_lead():
    kernels = {"matmul_share": 0.0, "attention_share": 0.0, "memory_kernel_share": 0.1, "other_kernel_share": 0.8}
    none = {"exposed_communication_share": 0.0, "hidden_communication_share": 0.0, "copy_share": 0.0, "idle_share": 0.1}
    known, unknown = (classify(features(**kernels, **none, unclassified_share=share)) for share in (0.0, 0.85))
    assert max(known.probabilities.values()) > 0.9
    assert max(unknown.probabilities.values()) < 0.7


def test_idle_time_changes_no_probability():
    busy = features(idle_share=0.0)
    shares = [name for name in Features.__slots__ if name.endswith("_share") and not name.startswith("short")]
    scaled = {name: getattr(busy, name) / 4 for name in shares if getattr(busy, name) is not None}
    idle = replace(busy, **{**scaled, "idle_share": 0.75, "unclassified_share": busy.unclassified_share})
    assert classify(idle).probabilities == pytest.approx(classify(busy).probabilities)


def test_copies_that_lead_are_said_first():
    assert classify(features(copy_share=0.6)).statement.code == BottleneckCode.COPIES_LEAD


def test_too_few_kernels_give_no_label():
    found = classify(features(kernels=LEAST_KERNELS - 1))
    assert found.label is None
    assert not found.probabilities
    assert found.statement.code == BottleneckCode.TOO_FEW_KERNELS
    assert classify(features(kernels=LEAST_KERNELS)).label is not None


def test_two_labels_close_together_are_no_answer():
    shares = [share / 100 for share in range(10, 80)]
    found = [classify(features(attention_share=0.0, memory_kernel_share=share)) for share in shares]
    labels = [one.label for one in found]
    assert labels[0] == "compute"
    assert labels[-1] == "memory"
    assert None in labels
    undecided = found[labels.index(None)]
    assert undecided.probabilities
    assert undecided.statement.code == BottleneckCode.NO_CLEAR_LEAD


@st.composite
def captures(draw: st.DrawFn) -> Features:
    weights = [draw(st.floats(0.0, 1.0)) for _ in range(7)]
    total = sum(weights) or 1.0
    matmul, attention, memory, other, copies, exposed, idle = (weight / total for weight in weights)
    return Features(
        matmul_share=matmul,
        attention_share=attention,
        memory_kernel_share=memory,
        other_kernel_share=other,
        copy_share=copies,
        exposed_communication_share=exposed,
        hidden_communication_share=draw(st.floats(0.0, 1.0)) * (matmul + attention + memory + other),
        idle_share=idle,
        host_gap_share=idle / 2,
        waiting_share=draw(st.floats(0.0, 1.0)) * exposed,
        overlap_ratio=0.5,
        short_kernel_share=draw(st.floats(0.0, 1.0)),
        mean_kernel_s=10 ** draw(st.floats(-6.0, -2.0)),
        kernels_per_s=1_000.0,
        unclassified_share=0.0,
        streaming_share=None,
        narrow_share=None,
        mean_matmul_s=None,
        host_copy_share=None,
        uneven_share=None,
        late_share=None,
        input_share=None,
        kernels=1_000,
        steps=1,
        gpus=8,
    )


GAPS = ("waiting_share", "mean_kernel_s", "short_kernel_share", "host_gap_share", "unclassified_share")
LACKING = tuple(chain.from_iterable(combinations(GAPS, size) for size in range(1, len(GAPS) + 1)))


@settings(max_examples=60)
@given(capture=captures(), lacking=st.sampled_from(LACKING))
def test_missing_features_never_turn_one_sure_label_into_another(capture: Features, lacking: tuple[str, ...]):
    whole = classify(capture).probabilities
    less = classify(replace(capture, **dict.fromkeys(lacking))).probabilities
    assert sum(less.values()) == pytest.approx(1.0)
    sure = {name for name in LABELS if whole[name] > SURE or less[name] > SURE}
    assert len(sure) <= 1


@settings(max_examples=40)
@given(capture=captures())
def test_every_finding_has_a_sentence(capture: Features):
    found = classify(capture)
    for note in (*found.evidence, *found.warnings):
        assert "%(" not in sentence(note)


def test_every_code_has_a_sentence():
    assert set(FINDINGS) == set(BottleneckCode)


def test_importing_the_classifier_does_not_import_scikit_learn():
    program = "import sys, profiling.classifier; sys.exit(bool({'sklearn', 'skops'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=False).returncode == 0


def test_the_fingerprint_is_that_of_the_stored_file():
    assert model_sha256() == sha256(MODEL.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"sha256": "0" * 64}, "SHA-256"),
        ({"inputs": list(INPUTS[:-1])}, "other inputs"),
        ({"labels": ["compute", "memory"]}, "other inputs"),
        ({"sklearn": "0.1.0"}, "scikit-learn 0.1.0"),
    ],
)
def test_a_model_that_does_not_belong_is_refused(changed: dict[str, object], reason: str):
    described = {**description(), **changed}
    with pytest.raises(ModelRefused, match=reason) as refused:
        load(MODEL.read_bytes(), described, str(description()["sklearn"]))
    assert "manage.py train_classifier" in str(refused.value)


def test_a_file_with_other_types_is_refused():
    content = dumps(features)
    described = {**description(), "sha256": sha256(content).hexdigest()}
    with pytest.raises(ModelRefused, match="not trusted"):
        load(content, described, str(description()["sklearn"]))


def _high_confidence() -> list[tuple[str, str]]:
    if SHARED is None:
        return []
    with (SHARED / "traces" / "LABELS.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    chosen = (row for row in rows if row["confidence"] == "high" and row["slug"].startswith("kineto"))
    return [(row["path"], row["label"]) for row in chosen]


@pytest.mark.skipif(SHARED is None, reason="no reference captures beside the checkout")
@pytest.mark.parametrize(("path", "expected"), _high_confidence())
def test_an_expert_who_is_sure_is_not_contradicted(path: str, expected: str):
    if SHARED is None:
        return
    try:
        found = classify(analyse([SHARED / "traces" / path]).features)
    except Refusal:
        assert expected == "none"
        return
    if expected == "none":
        assert found.label is None
    elif expected == "host_idle":
        assert found.host_bound
    else:
        assert not found.host_bound
        assert all(share <= SURE for name, share in found.probabilities.items() if name != expected)


@pytest.mark.skipif(SHARED is None, reason="no reference captures beside the checkout")
def test_a_set_of_ranks_that_waits_is_not_communication_bound():
    if SHARED is None:
        return
    found = classify(analyse([SHARED / "traces" / "files" / "kineto-megatron-tp8"]).features)
    assert found.statement.code == BottleneckCode.WAITING_LEADS
    assert found.label != "communication"
