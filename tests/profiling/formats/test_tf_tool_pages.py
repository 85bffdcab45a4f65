"""Pages of the TensorFlow profiler: what they tell of a step, what bounds it, and that damage is refused or read."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.evidence_tables import tables
from profiling.bottleneck import COMPUTE, HOST, Bottleneck
from profiling.coarse import coarse_bottleneck
from profiling.evidence import OpShare, StepSummary
from profiling.evidence_document import evidence_document
from profiling.formats.capture import Format
from profiling.formats.limits import Limits
from profiling.formats.registry import read
from profiling.messages import sentence
from profiling.notes import BottleneckCode, Note, NoteCode, Refusal, RefusalCode
from tests.paths import SHARED
from tests.profiling.formats.wire import Plane, message, space

TYPE = "type.googleapis.com/tensorflow.profiler."
FOLDER = SHARED / "traces/files/tf-profiler-tools" if SHARED else None
needs_traces = pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")


def any_of(kind: str, content: bytes) -> bytes:
    return message((1, TYPE + kind), (2, content))


def step(number: int, total: float, **parts: float) -> bytes:
    numbers = {"unknown": 3, "output": 5, "compute": 6, "between": 7, "host": 8, "launch": 9, "compile": 10}
    numbers |= {"input": 11, "sending": 12, "collectives": 13}
    times = [(numbers[name], value) for name, value in parts.items()]
    return any_of("PerGenericStepDetails", message((1, number), (2, total), *times))


def input_page(*steps: bytes, hardware: str = "GPU") -> bytes:
    """InputPipelineAnalysisResult."""
    return message((2, message((1, 10.0), (3, 9.0), (4, 11.0))), *((4, one) for one in steps), (9, hardware))


def overview(*ops: tuple[str, float], steps: tuple[bytes, ...] = (), devices: int = 4) -> bytes:
    """OverviewPage."""
    rows = [(4, message((1, f"model/{name}"), (2, name), (3, share))) for name, share in ops]
    analysis = message(*rows, (9, 75.0), (10, 25.0))
    return message((2, input_page(*steps)), (3, analysis), (6, message((1, 1), (4, "GPU"), (5, devices))))


def operations(*rows: tuple[str, str, float], table: int = 4) -> bytes:
    """TfStatsDatabase; microseconds."""
    records = [
        message((1, rank), (2, side), (3, kind), (4, f"{kind}_{rank}"), (5, 2), (8, time))
        for rank, (side, kind, time) in enumerate(rows, 1)
    ]
    return message((table, message(*((1, record) for record in records))))


def page(folder: Path, content: bytes, limits: Limits | None = None) -> StepSummary:
    path = folder / "host.input_pipeline.pb"
    path.write_bytes(content)
    capture = read(path, limits)
    assert capture.format is Format.TF_PROFILER_PAGE
    assert [note.code for note in capture.notes] == [NoteCode.SUMMED_PAGE]
    (found,) = capture.evidence
    assert isinstance(found, StepSummary)
    return found


def judged(*pages: StepSummary) -> Bottleneck:
    found = coarse_bottleneck(pages)
    assert found is not None
    assert all(sentence(note) for note in (*found.evidence, *found.warnings))
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert max(found.probabilities.values()) <= 0.8 + 1e-9
    return found


def test_steps_are_means_in_seconds(tmp_path: Path) -> None:
    found = page(tmp_path, input_page(step(0, 10.0, compute=4.0, input=6.0), step(1, 20.0, compute=20.0)))
    assert (found.tool, found.device_type, found.steps) == ("input_pipeline", "GPU", 2)
    assert found.step_s == pytest.approx(0.015)
    assert found.device_compute_s == pytest.approx(0.012)
    assert found.input_s == pytest.approx(0.003)
    assert found.launch_s == 0
    assert (found.idle_share, found.half_share, found.ops) == (None, None, ())


def test_an_overview_adds_up_operations_by_type(tmp_path: Path) -> None:
    ops = (("Conv2D", 0.5), ("Relu", 0.1), ("Conv2D", 0.2))
    found = page(tmp_path, overview(*ops, steps=(step(0, 10.0, compute=9.0, launch=1.0),)))
    assert (found.tool, found.devices, found.half_share) == ("overview_page", 4, 0.75)
    assert {one.name: one.share for one in found.ops} == pytest.approx({"Conv2D": 0.7, "Relu": 0.1})


def test_operations_tell_of_idle_time(tmp_path: Path) -> None:
    rows = (
        ("Device", "IDLE", 30.0),
        ("Device", "MatMul", 60.0),
        ("Device", "MatMul", 10.0),
        ("Host", "Dataset", 900.0),
    )
    found = page(tmp_path, operations(*rows))
    assert found.idle_share == pytest.approx(0.3)
    assert found.ops == (OpShare(name="MatMul", share=1.0, calls=4),)
    assert page(tmp_path, operations(*rows[1:], table=5)).idle_share is None


def test_waiting_for_input_is_told(tmp_path: Path) -> None:
    found = judged(page(tmp_path, input_page(step(0, 10.0, compute=2.0, input=7.0, sending=1.0))))
    assert (found.label, found.host_bound, found.statement.code) == (HOST, True, BottleneckCode.INPUT_LEADS)
    assert found.statement.params == {"percent": 80.0}
    assert BottleneckCode.INPUT_BOUND in [note.code for note in found.warnings]


def test_launching_too_slowly_is_told(tmp_path: Path) -> None:
    found = judged(page(tmp_path, input_page(step(0, 10.0, compute=3.0, launch=6.0, input=1.0))))
    assert (found.label, found.statement.code) == (HOST, BottleneckCode.HOST_LEADS)


def test_a_step_of_which_nothing_is_told_has_no_label(tmp_path: Path) -> None:
    found = judged(page(tmp_path, input_page(step(0, 10.0, unknown=10.0))))
    assert (found.label, found.statement.code) == (None, BottleneckCode.NO_CLEAR_LEAD)
    assert BottleneckCode.STEP_NOT_TOLD in [note.code for note in found.warnings]


def test_loading_leads_only_where_it_is_longer_than_the_work(tmp_path: Path) -> None:
    found = judged(page(tmp_path, input_page(step(0, 10.0, compute=4.0, input=3.5, launch=2.5))))
    assert found.label == HOST
    assert found.statement == Note(BottleneckCode.LOST_LEADS, {"percent": 60.0})


def test_operations_tell_compute_from_memory(tmp_path: Path) -> None:
    busy = (step(0, 10.0, compute=9.8, launch=0.2),)
    assert judged(page(tmp_path, overview(("Conv2D", 0.9), steps=busy))).label == COMPUTE
    assert judged(page(tmp_path, overview(("FusedBatchNormGradV3", 0.5), ("Relu", 0.4), steps=busy))).label == "memory"
    assert judged(page(tmp_path, overview(("NcclAllReduce", 0.9), steps=busy))).label == "communication"


def test_work_of_which_nothing_is_told_has_no_label(tmp_path: Path) -> None:
    found = judged(page(tmp_path, input_page(step(0, 10.0, compute=9.5, launch=0.5))))
    assert (found.label, found.host_bound) == (None, False)
    assert found.statement.code == BottleneckCode.DEVICE_WORK_LEADS


def test_pages_of_one_run_belong_together(tmp_path: Path) -> None:
    steps = page(tmp_path, input_page(step(0, 10.0, compute=9.8, launch=0.2)))
    ops = page(tmp_path, operations(("Device", "MatMul", 95.0), ("Device", "Relu", 5.0), table=5))
    assert judged(ops).host_bound is None
    assert judged(steps, ops).label == judged(ops, steps).label == COMPUTE


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (message((1, message((3, TYPE + "X")))), RefusalCode.TOOL_SUMMARY),
        (input_page(any_of("PerTpuStepDetails", b"")), RefusalCode.TPU_PROFILE),
        (input_page(step(0, 1.0), hardware="CPU_ONLY"), RefusalCode.NO_STREAM_ROWS),
        (input_page(any_of("Unheard", b"")), RefusalCode.NO_ROWS),
        (operations(("Host", "Dataset", 5.0)), RefusalCode.NO_STREAM_ROWS),
        (input_page(step(0, 10.0))[:-4], RefusalCode.PROTOBUF_DAMAGED),
    ],
)
def test_what_tells_nothing_is_refused_with_its_reason(tmp_path: Path, content: bytes, code: RefusalCode) -> None:
    with pytest.raises(Refusal) as caught:
        page(tmp_path, content)
    assert caught.value.code is code


def test_a_trace_is_no_page(tmp_path: Path) -> None:
    path = tmp_path / "host.xplane.pb"
    plane = Plane("/device:GPU:0")
    path.write_bytes(space(plane.line("Stream #1", [plane.event("kernel", 0, 1)])))
    assert read(path).format is Format.XPLANE


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, 1e300])
def test_steps_with_impossible_times_are_left_out(tmp_path: Path, bad: float) -> None:
    found = page(tmp_path, input_page(step(0, 10.0, compute=10.0), step(1, 10.0, compute=bad)))
    assert (found.steps, found.device_compute_s) == (1, pytest.approx(0.01))


def test_limits_hold(tmp_path: Path) -> None:
    many = input_page(*(step(at, 1.0) for at in range(50)))
    rows = operations(*[("Device", "MatMul", 1.0)] * 50)
    for content in (many, rows):
        with pytest.raises(Refusal) as caught:
            page(tmp_path, content, Limits(rows=40))
        assert caught.value.code is RefusalCode.TOO_MANY_ROWS


def test_names_are_short_and_kinds_few(tmp_path: Path) -> None:
    found = page(tmp_path, operations(*(("Device", f"{at}" + "x" * 5000, 1.0) for at in range(1000))))
    assert len(found.ops) <= 200
    assert max(len(one.name) for one in found.ops) <= 100


SEEDS = (
    overview(("Conv2D", 0.5), steps=(step(0, 10.0, compute=9.0), step(1, 12.0, input=4.0))),
    operations(("Device", "IDLE", 30.0), ("Device", "MatMul", 60.0), ("Host", "Dataset", 900.0)),
)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damage_is_refused_or_read_never_a_failure(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    damaged = bytearray(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.overview_page.pb"
    path.write_bytes(bytes(damaged[: data.draw(st.integers(20, len(damaged)))]))
    try:
        (found,) = read(path).evidence
    except Refusal:
        return
    assert isinstance(found, StepSummary)
    assert sum(one.share for one in found.ops) <= 1 + 1e-9
    judged(found)
    json.dumps(evidence_document("damaged", found), allow_nan=False)


def test_the_page_shows_what_is_known(tmp_path: Path) -> None:
    found = page(tmp_path, overview(("Conv2D", 0.5), steps=(step(0, 10.0, compute=4.0, input=6.0),)))
    with override_settings(LANGUAGE_CODE="en"):
        (table,) = tables([evidence_document("host.overview_page.pb", found)])
    facts = dict(table.facts)
    assert facts["Mean step"] == "10 ms"
    assert facts["Waiting for input"] == "6 ms"
    assert [cell for cell, _ in table.rows[0]] == ["Conv2D", "50%"]


@needs_traces
def test_real_pages_say_what_their_tool_says() -> None:
    """Percent of the step that waits for input, as written in the page's own recommendation: 81.4 and 0.0."""
    assert FOLDER is not None
    found: dict[str, Any] = {path.name: read(path).evidence[0] for path in FOLDER.iterdir()}
    assert len(found) == 5
    for name, one in found.items():
        if one.step_s is None:
            continue
        waiting = 81.4 if "input-bound" in name else 0.0
        assert round(100 * one.input_s / one.step_s, 1) == waiting
        assert one.steps == 11
    stats = next(one for name, one in found.items() if name.endswith("tensorflow_stats.pb"))
    assert stats.idle_share == pytest.approx(0.8390, abs=1e-4)
    assert judged(*(one for name, one in found.items() if "input-bound" in name)).label == HOST
