"""Labels of real captures against those of an expert; ``labels_report`` prints them row by row."""

import pytest

from profiling.bottleneck import COMMUNICATION, COMPUTE, HOST, LABELS, MEMORY, Bottleneck
from profiling.notes import BottleneckCode, Note
from tests.profiling.labels_report import (
    ABSTAINS,
    HOST_IDLE,
    NONE,
    RANKS_OF_ONE_JOB,
    Row,
    answer,
    is_right,
    is_surely_wrong,
    rows,
    said,
)

HIGH, MEDIUM, LOW = 0.90, 0.85, 0.80
needs_traces = pytest.mark.skipif(not rows(), reason="the reference captures are not beside the checkout")


def _right(confidence: str) -> float:
    judged = [is_right(row, said(row)) for row in rows(confidence)]
    assert judged
    return sum(judged) / len(judged)


@needs_traces
def test_where_an_expert_is_certain_the_label_is_right_in_nine_of_ten() -> None:
    assert _right("high") >= HIGH


@needs_traces
def test_where_an_expert_is_fairly_certain_one_of_two_labels_is_given_mostly() -> None:
    assert _right("medium") >= MEDIUM


@needs_traces
def test_where_an_expert_doubts_the_spread_matches() -> None:
    assert _right("low") >= LOW


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)
def test_nothing_is_surely_wrong(row: Row) -> None:
    assert not is_surely_wrong(row, said(row)), said(row)


@pytest.mark.parametrize("row", rows("high"), ids=lambda row: row.id)
def test_certain_rows_are_right_or_left_open(row: Row) -> None:
    """Whatever the bar leaves room for is an answer that says why it cannot tell, never another label.

    A made-up file that looks like a job is one as far as we can see: then the label is at least not sure.
    """
    ours = said(row)
    if row.first == NONE:
        assert ours.label == NONE or not ours.sure, ours
    else:
        assert ours.label in (row.first, ABSTAINS), ours


@needs_traces
def test_ranks_of_one_job_wait_rather_than_transfer() -> None:
    row = next(row for row in rows() if RANKS_OF_ONE_JOB in row.path)
    assert len(row.together) == 8
    ours = said(row)
    assert ours.label == HOST_IDLE, ours


def _found(label: str | None, code: BottleneckCode, *, sure: bool = False, **probabilities: float) -> Bottleneck:
    shares = {name: probabilities.get(name, 0.0) for name in LABELS}
    return Bottleneck(
        label=label, sure=sure, probabilities=shares, host_bound=label == HOST, evidence=(Note(code),), warnings=()
    )


def _row(first: str, second: str | None, confidence: str) -> Row:
    return Row(path="a", first=first, second=second, confidence=confidence, judgement="", together=("a",))


@pytest.mark.parametrize(
    ("first", "second", "confidence", "label", "right"),
    [
        ("compute", "memory", "high", COMPUTE, True),
        ("compute", "memory", "high", MEMORY, False),
        ("compute", "memory", "high", None, False),
        ("compute", "memory", "medium", MEMORY, True),
        ("compute", "memory", "medium", COMMUNICATION, False),
        ("compute", "memory", "medium", None, False),
        ("compute", "memory", "low", None, True),
        ("compute", None, "low", MEMORY, True),
        ("communication", None, "low", MEMORY, False),
        ("host_idle", None, "high", HOST, True),
    ],
)
def test_what_counts_as_right(first: str, second: str | None, confidence: str, label: str | None, right: bool) -> None:
    found = _found(label, BottleneckCode.NO_CLEAR_LEAD, memory=0.6, compute=0.3, communication=0.1)
    assert is_right(_row(first, second, confidence), answer(found)) is right


def test_what_counts_as_surely_wrong() -> None:
    row = _row("compute", "memory", "medium")
    for sure, probability, expected in ((True, 0.6, True), (False, 0.95, True), (False, 0.8, False)):
        found = _found(COMMUNICATION, BottleneckCode.COMMUNICATION_LEADS, sure=sure, communication=probability)
        assert is_surely_wrong(row, answer(found)) is expected
    assert not is_surely_wrong(row, answer(_found(MEMORY, BottleneckCode.MEMORY_LEADS, sure=True, memory=1.0)))


def test_too_little_to_judge_by_is_no_label() -> None:
    assert answer(_found(None, BottleneckCode.TOO_FEW_KERNELS)).label == NONE
    assert answer(_found(None, BottleneckCode.NO_CLEAR_LEAD)).label == ABSTAINS
    assert answer(_found(None, BottleneckCode.WAITING_LEADS)).label == HOST_IDLE
