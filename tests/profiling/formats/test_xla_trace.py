"""trace.json of JAX and TensorFlow: rows are told apart by the names of their process and thread."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiling.analysis import analyse
from profiling.document import analysis_document
from profiling.formats import xla_trace
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits
from profiling.formats.registry import read
from profiling.formats.source import Head
from profiling.notes import NoteCode, Outcome, Refusal, RefusalCode
from profiling.timeline import UNKNOWN, WorkKind
from tests.profiling.expected import FIELDS, Row, agrees, rows

EXPECTED = rows("xla-trace")
Events = list[dict[str, Any]]


def process(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}


def thread(pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}


def work(pid: int, tid: int, name: str, ts: float | str, dur: float | str, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur, "args": args}


NAMES = [process(1, "/device:GPU:0 H100"), process(9, "/host:CPU"), thread(1, 14, "Stream #14(Compute)")]


def saved(tmp_path: Path, events: Events, name: str = "host.trace.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": [*events, {}]}), encoding="utf-8")
    return path


def captured(tmp_path: Path, events: Events) -> Capture:
    return read(saved(tmp_path, events))


@pytest.mark.skipif(not EXPECTED, reason="the reference captures are not beside the checkout")
@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row.id)
def test_every_fact_of_the_table(row: Row) -> None:
    analysis = analyse([row.path])
    assert analysis.format == Format.XLA_TRACE
    assert analysis.outcome == row.outcome
    document = analysis_document(analysis)["ranks"][0]
    for key, fact in row.facts.items():
        assert key in (*FIELDS, "steps", "step_time_us"), f"nobody looks at {key}"
        assert agrees(document[key], fact), (key, document[key], fact)


def test_names_may_stand_behind_all_events(tmp_path: Path) -> None:
    """Far behind what is looked at to tell the format."""
    found = captured(tmp_path, [*(work(1, 14, "gemm", 10 * at, 5) for at in range(2000)), *NAMES])
    assert found.format == Format.XLA_TRACE
    assert found.timelines[0].duration_ns.tolist() == [5_000] * 2000


def test_derived_rows_are_not_counted(tmp_path: Path) -> None:
    events = [
        *NAMES,
        thread(1, 1, "XLA Modules"),
        thread(1, 2, "XLA Ops"),
        thread(1, 3, "Framework Name Scope"),
        work(1, 14, "gemm", 0, 10),
        *(work(1, tid, "jit_step", 0, 100) for tid in (1, 2, 3)),
    ]
    (line,) = captured(tmp_path, events).timelines
    assert line.duration_ns.tolist() == [10_000]
    assert dict(line.device_names) == {0: "H100"}


def test_times_may_be_text(tmp_path: Path) -> None:
    (line,) = captured(tmp_path, [*NAMES, work(1, 14, "gemm", "1700000000000000.125", "2.001")]).timelines
    assert (line.start_ns.tolist(), line.duration_ns.tolist()) == ([1_700_000_000_000_000_125], [2001])


def test_names_that_come_late_count_as_well(tmp_path: Path) -> None:
    rest = [work(9, 1, f"call {at}", at, 1) for at in range(40_000)]
    kernel = work(1, 14, "gemm", 0, 10, hlo_op="dot.1")
    (line,) = captured(tmp_path, [kernel, *rest, *NAMES, work(1, 14, "gemm", 20, 10)]).timelines
    assert line.start_ns.tolist() == [0, 20_000]


def test_several_devices_are_kept_apart(tmp_path: Path) -> None:
    events = [
        process(1, "/device:GPU:0"),
        process(2, "/device:GPU:3 (pid 2)"),
        thread(1, 5, "Stream #5"),
        thread(2, 5, "Stream #5"),
        work(1, 5, "gemm", 0, 1),
        work(2, 5, "gemm", 0, 1),
    ]
    (line,) = captured(tmp_path, events).timelines
    assert line.devices == (0, 3)
    assert dict(line.device_names) == {0: "", 3: ""}
    assert len(set(line.stream.tolist())) == 2


def test_the_same_device_of_two_hosts_is_two_devices(tmp_path: Path) -> None:
    events = [
        *(process(pid, f"worker{pid} /device:GPU:0") for pid in (1, 2)),
        *(thread(pid, 5, "Stream #5") for pid in (1, 2)),
        *(work(pid, 5, "gemm", 0, 1) for pid in (1, 2)),
    ]
    assert captured(tmp_path, events).timelines[0].devices == (0, 1)


def test_launches_steps_and_copies(tmp_path: Path) -> None:
    events = [
        *NAMES,
        *(work(9, 1, "train", 100 * at, 60, step_num=str(at)) for at in range(3)),
        *(work(9, 2, "cuLaunchKernel", 100 * at + 5, 1, correlation_id=at + 1) for at in range(3)),
        work(9, 3, "cuStreamSynchronize", 300, 50),
        *(work(1, 14, "gemm", 400 + 200 * at, 50, correlation_id=str(at + 1)) for at in range(3)),
        work(1, 14, "MemcpyD2H", 900, 5, memcpy_details="kind_src:device size:64 dest:0"),
    ]
    path = saved(tmp_path, events)
    (line,) = read(path).timelines
    assert line.launched_ns.tolist() == [5_000, 105_000, 205_000, UNKNOWN]
    assert line.bytes.tolist() == [UNKNOWN, UNKNOWN, UNKNOWN, 64]
    assert line.kind.tolist()[-1] == WorkKind.COPY
    assert line.host.waits.length == 50_000
    (rank,) = analyse([path]).ranks
    assert rank.steps.observed == 3
    assert rank.steps.typical.high_ns - rank.steps.typical.low_ns == 200_000


def test_a_file_as_long_as_exporters_write_at_most_is_a_cut_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xla_trace, "_CAPS", (50,))
    capture = captured(tmp_path, [*NAMES, *(work(1, 14, "gemm", 9 * at, 5) for at in range(50))])
    assert [(note.code, note.params) for note in capture.notes] == [(NoteCode.EVENTS_CAPPED, {"limit": 50})]
    assert capture.timelines[0].incomplete


def test_a_cut_file_is_read_to_its_cut(tmp_path: Path) -> None:
    text = gzip.compress(
        json.dumps({"traceEvents": [*NAMES, *(work(1, 14, "g", at, 1) for at in range(999))]}).encode()
    )
    path = tmp_path / "cut.trace.json.gz"
    path.write_bytes(text[: len(text) // 2])
    analysis = analyse([path])
    assert analysis.outcome is Outcome.SALVAGE
    assert 0 < sum(device.whole.kernels for device in analysis.ranks[0].devices) < 999


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([process(9, "/host:CPU"), work(9, 1, "call", 0, 1)], RefusalCode.NO_STREAM_ROWS),
        ([process(1, "/device:TPU:0"), thread(1, 2, "XLA Ops"), work(1, 2, "dot", 0, 1)], RefusalCode.TPU_PROFILE),
    ],
)
def test_no_gpu_work_is_refused_with_its_reason(tmp_path: Path, events: Events, code: RefusalCode) -> None:
    with pytest.raises(Refusal) as caught:
        captured(tmp_path, events)
    assert caught.value.code is code


@pytest.mark.parametrize(
    "text",
    [
        '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "/device:GPU:0"}]}',
        '{"traceEvents": [{"ph": "M", "name": "process_name", "args": {"name": "python"}}]}',
        '{"nodes": [{"name": "/host:CPU"}]}',
        "name, /host:CPU",
    ],
)
def test_other_traces_are_left_to_their_readers(text: str) -> None:
    assert not xla_trace.recognises(Head(text.encode(), "host.trace.json.gz"))


def test_limits_hold(tmp_path: Path) -> None:
    path = saved(tmp_path, [*NAMES, *(work(1, 14, f"kernel {at}", at, 1) for at in range(50))])
    for limits, code in (
        (Limits(events=40), RefusalCode.TOO_MANY_EVENTS),
        (Limits(names=40), RefusalCode.TOO_MANY_NAMES),
    ):
        with pytest.raises(Refusal) as caught:
            read(path, limits)
        assert caught.value.code is code


def test_many_devices_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, [process(pid, f"/device:GPU:{pid}") for pid in range(9)])
    with pytest.raises(Refusal) as caught:
        read(path, Limits(devices=8))
    assert caught.value.code is RefusalCode.TOO_MANY_DEVICES


ODD = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers(), max_size=2)
)


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.sampled_from(["ph", "pid", "tid", "ts", "dur", "name", "args"]), ODD, st.integers(0, 5)),
        max_size=6,
    )
)
def test_values_of_any_type_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, Any, int]]
) -> None:
    events = [*NAMES, work(1, 14, "gemm", 0, 1), work(9, 1, "cuLaunchKernel", 0, 1, correlation_id=1), {}]
    for key, value, at in changes:
        events[at] = {**events[at], key: value}
    path = tmp_path_factory.getbasetemp() / "odd.trace.json"
    path.write_text(re.sub(r"\bInfinity\b", "1e999", json.dumps({"traceEvents": events})), encoding="utf-8")
    try:
        capture = read(path)
    except Refusal:
        return
    assert (capture.timelines[0].duration_ns >= 0).all()


@pytest.mark.parametrize(("ts", "dur"), [("1e400", "5"), ("5", "1e400"), ("-1e400", 5), ("later", 5)])
def test_a_time_that_is_none_is_left_out_and_told(tmp_path: Path, ts: str, dur: float | str) -> None:
    capture = captured(tmp_path, [*NAMES, work(1, 14, "gemm", ts, dur), work(1, 14, "gemm", 10, 5)])
    assert capture.timelines[0].start_ns.tolist() == [10_000]
    assert {note.code: note.params["count"] for note in capture.notes if "count" in note.params} == {
        NoteCode.BAD_TIMES: 1
    }
