"""The label that an expert would give, how sure it is, and what it does where it cannot know."""

import subprocess
import sys
from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiling.bottleneck import ANSWERED, HOST, LABELS, LEAST_KERNELS, SURE, WORK_LABELS
from profiling.bottleneck_messages import FINDINGS
from profiling.classifier import classify
from profiling.features import Features
from profiling.judging import judge
from profiling.messages import sentence
from profiling.notes import BottleneckCode, Note
from profiling.stored_model import loaded_model
from tests.paths import REPOSITORY

CERTAIN = 0.9


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
        "streaming_share": 0.02,
        "narrow_share": 0.0,
        "cached_attention_share": 0.0,
        "mean_matmul_s": 6e-4,
        "host_copy_share": 0.0,
        "uneven_share": None,
        "late_share": None,
        "input_share": 0.0,
        "trains": True,
        "kernels": 4_000,
        "steps": 10,
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
    assert found.probabilities["compute"] > CERTAIN
    assert found.statement.code == BottleneckCode.COMPUTE_LEADS
    assert not found.host_bound
    assert not found.warnings


def test_kernels_that_stream_memory_are_memory_bound():
    found = classify(features(attention_share=0.02, memory_kernel_share=0.75, mean_kernel_s=5e-5))
    assert found.label == "memory"
    assert found.probabilities["memory"] > CERTAIN


def test_exposed_transfer_is_communication_bound():
    found = classify(features(exposed_communication_share=0.65, waiting_share=0.0, overlap_ratio=0.0, gpus=8))
    assert found.label == "communication"
    assert found.probabilities["communication"] > CERTAIN


def test_hidden_communication_does_not_bind():
    found = classify(
        features(
            exposed_communication_share=0.03, hidden_communication_share=0.84, waiting_share=0.0, overlap_ratio=0.97
        )
    )
    assert found.label == "compute"
    assert BottleneckCode.HIDDEN_COMMUNICATION in codes(found.evidence)


def test_waiting_is_not_transfer():
    shares = {"exposed_communication_share": 0.65, "waiting_share": 0.6, "overlap_ratio": 0.0, "gpus": 8}
    hosts, loads = (classify(features(**shares, late_share=late)) for late in (0.6, 0.0))
    assert BottleneckCode.MOSTLY_WAITING in codes(hosts.warnings)
    assert (hosts.label, hosts.statement.code) == (HOST, BottleneckCode.WAITING_LEADS)
    assert loads.label == "compute"
    assert codes(loads.evidence)[:2] == [BottleneckCode.COMPUTE_LEADS, BottleneckCode.WAITING_LEADS]


@pytest.mark.parametrize("uneven", [None, 0.0, 0.3, 0.9])
def test_one_rank_is_never_sure_of_communication(uneven: float | None):
    found = classify(features(exposed_communication_share=0.65, overlap_ratio=0.0, uneven_share=uneven, gpus=8))
    assert found.label in (None, "communication", HOST, "compute")
    assert not found.sure
    assert found.probabilities["communication"] < CERTAIN
    assert BottleneckCode.COMMUNICATION_UNVERIFIED in codes(found.warnings)
    assert (BottleneckCode.UNEVEN_CALLS in codes(found.warnings)) is (uneven == 0.9)
    if found.label is None:
        assert found.statement.code == BottleneckCode.UNSURE_WAITING
    if found.label == "communication":
        assert found.statement.code == BottleneckCode.COMMUNICATION_OR_WAITING


def test_waiting_for_a_rank_that_has_more_to_do_is_its_work():
    found = classify(features(exposed_communication_share=0.4, waiting_share=0.35, late_share=0.0, gpus=8))
    assert found.label == "compute"


def test_products_that_stream_weights_are_memory_work():
    shapes = classify(features(streaming_share=0.97, trains=False))
    names = classify(features(streaming_share=None, narrow_share=0.95, trains=False))
    assert shapes.label == names.label == "memory"
    assert BottleneckCode.STREAMING_MATMULS in codes(shapes.evidence)
    assert BottleneckCode.NARROW_MATMULS in codes(names.evidence)


def test_serving_without_shapes_or_tiles_is_never_sure():
    found = classify(features(streaming_share=None, narrow_share=None, trains=False, mean_kernel_s=2e-5))
    assert not found.sure
    if found.label is None:
        assert found.statement.code == BottleneckCode.UNSURE_STREAMING


def test_a_loop_of_large_products_is_not_bound_by_memory():
    alone = dict.fromkeys(("attention_share", "memory_kernel_share", "other_kernel_share", "copy_share"), 0.0)
    found = classify(
        features(**alone, matmul_share=1.0, exposed_communication_share=0.0, idle_share=0.0, mean_kernel_s=2e-4)
    )
    assert found.label == "compute"


def test_no_label_is_sure_where_kernels_of_unknown_purpose_lead():
    kernels = {"matmul_share": 0.0, "attention_share": 0.0, "memory_kernel_share": 0.1, "other_kernel_share": 0.8}
    none = {"exposed_communication_share": 0.0, "hidden_communication_share": 0.0, "copy_share": 0.0, "idle_share": 0.1}
    found = classify(features(**kernels, **none, unclassified_share=0.85))
    assert not found.sure
    assert BottleneckCode.MANY_UNCLASSIFIED in codes(found.warnings)


def test_idle_time_does_not_change_what_bounds_the_work():
    busy = features(idle_share=0.0)
    shares = [name for name in Features.__slots__ if name.endswith("_share") and not name.startswith("short")]
    of_the_whole = [name for name in shares if name not in OF_THEIR_OWN]
    scaled = {name: getattr(busy, name) / 4 for name in of_the_whole if getattr(busy, name) is not None}
    idle = replace(busy, **{**scaled, "idle_share": 0.75})
    model = loaded_model()
    assert judge(idle, model).of_work == pytest.approx(judge(busy, model).of_work, abs=0.01)


OF_THEIR_OWN = ("unclassified_share", "streaming_share", "narrow_share", "cached_attention_share", "uneven_share")


def test_where_idle_time_cannot_be_seen_only_the_work_is_judged():
    found = classify(features(idle_share=0.0), idle_known=False)
    assert set(found.probabilities) == set(WORK_LABELS)
    assert found.host_bound is None


def test_copies_that_lead_are_said_first():
    found = classify(features(copy_share=0.6, host_copy_share=0.6))
    assert found.statement.code == BottleneckCode.COPIES_LEAD
    assert found.label == HOST
    assert classify(features(copy_share=0.6, host_copy_share=0.0)).label == "memory"


def test_too_few_kernels_give_no_label():
    found = classify(features(kernels=LEAST_KERNELS - 1))
    assert found.label is None
    assert not found.probabilities
    assert found.statement.code == BottleneckCode.TOO_FEW_KERNELS
    assert classify(features(kernels=LEAST_KERNELS)).label is not None


def test_of_few_kernels_only_an_idle_gpu_can_be_told():
    found = classify(features(kernels=3, idle_share=0.95, host_gap_share=0.95))
    assert found.label == HOST
    assert not found.sure
    assert not found.probabilities


def test_two_labels_close_together_are_no_answer():
    shares = [share / 100 for share in range(10, 80)]
    found = [classify(features(attention_share=0.0, memory_kernel_share=share)) for share in shares]
    labels = [one.label for one in found]
    assert labels[0] == "compute"
    assert labels[-1] == "memory"
    undecided = found[labels.index(None)]
    assert max(undecided.probabilities.values()) < ANSWERED
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
        streaming_share=draw(st.floats(0.0, 1.0)),
        narrow_share=draw(st.floats(0.0, 1.0)),
        cached_attention_share=draw(st.sampled_from((0.0, 0.9))),
        mean_matmul_s=10 ** draw(st.floats(-6.0, -2.0)),
        host_copy_share=copies * draw(st.floats(0.0, 1.0)),
        uneven_share=draw(st.floats(0.0, 1.0)),
        late_share=None,
        input_share=0.0,
        trains=draw(st.booleans()),
        kernels=1_000,
        steps=draw(st.integers(1, 30)),
        gpus=8,
    )


GAPS = (
    ("streaming_share",),
    ("narrow_share",),
    ("waiting_share", "late_share"),
    ("uneven_share",),
    ("mean_kernel_s", "short_kernel_share", "mean_matmul_s"),
    ("host_gap_share", "input_share"),
    ("host_copy_share",),
    ("unclassified_share",),
)
LACKING = tuple(chain.from_iterable(combinations(GAPS, size) for size in range(1, 4)))


def lacking_late(capture: Features, late: float) -> Features:
    return replace(capture, late_share=late * (capture.waiting_share or 0.0))


@settings(max_examples=150)
@given(capture=captures(), late=st.floats(0.0, 1.0), lacking=st.sampled_from(LACKING))
def test_what_is_missing_never_turns_one_sure_label_into_another(
    capture: Features, late: float, lacking: tuple[tuple[str, ...], ...]
):
    whole = classify(lacking_late(capture, late))
    less = classify(replace(lacking_late(capture, late), **dict.fromkeys(chain.from_iterable(lacking))))
    assert sum(less.probabilities.values()) == pytest.approx(1.0)
    if whole.sure and less.sure:
        assert less.label == whole.label


@settings(max_examples=100)
@given(capture=captures(), late=st.floats(0.0, 1.0), steps=st.integers(2, 30))
def test_fewer_steps_are_never_surer(capture: Features, late: float, steps: int):
    """Of a label that is sure; with one step each share may lie further beside what it usually is."""
    many = classify(replace(lacking_late(capture, late), steps=steps))
    one = classify(replace(lacking_late(capture, late), steps=1))
    assert not one.sure
    if many.sure:
        assert one.probabilities[many.label] <= many.probabilities[many.label] + 1e-9


def test_dropping_a_piece_lowers_confidence_on_average():
    """Captures drawn as evenly as the strategy above draws them, by a generator of numbers with a seed."""
    generator = np.random.default_rng(5)
    drawn = [random_capture(generator) for _ in range(150)]
    for gap in (("streaming_share",), ("waiting_share", "late_share"), ("streaming_share", "narrow_share")):
        whole = np.mean([max(classify(one).probabilities.values()) for one in drawn])
        less = np.mean([max(classify(replace(one, **dict.fromkeys(gap))).probabilities.values()) for one in drawn])
        assert less < whole


def random_capture(generator: np.random.Generator) -> Features:
    matmul, attention, memory, exposed, idle = (float(share) for share in generator.dirichlet((2, 0.5, 1, 1.5, 0.5)))
    waiting = exposed * float(generator.beta(0.5, 0.5))
    return features(
        matmul_share=matmul, attention_share=attention, memory_kernel_share=memory, exposed_communication_share=exposed,
        idle_share=idle, host_gap_share=idle, waiting_share=waiting, late_share=waiting / 2, trains=False,
        streaming_share=float(generator.beta(0.5, 0.5)), mean_kernel_s=5e-5, gpus=8,
    )  # fmt: skip


@settings(max_examples=100)
@given(capture=captures())
def test_a_sure_label_is_likely_and_given(capture: Features):
    found = classify(capture)
    if found.sure:
        assert found.label in LABELS
        assert found.probabilities[found.label] >= SURE


@settings(max_examples=40)
@given(capture=captures())
def test_every_finding_has_a_sentence(capture: Features):
    found = classify(capture)
    for note in (*found.evidence, *found.warnings):
        assert "%(" not in sentence(note)


def test_every_code_has_a_sentence():
    assert set(FINDINGS) == set(BottleneckCode)


def test_asking_the_classifier_does_not_import_scikit_learn():
    program = (
        "import sys; from tests.profiling.test_classifier import features; from profiling.classifier import classify; "
        "assert classify(features()).label == 'compute'; sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=False).returncode == 0
