"""Chrome traces in which the name of a process is all that tells device work: Ascend and rocprof."""

import json
from pathlib import Path
from typing import Any

import pytest

from profiling.breakdown import breakdowns
from profiling.formats.capture import Format
from profiling.formats.registry import read
from profiling.notes import Refusal, RefusalCode
from profiling.timeline import Timeline
from tests.paths import SHARED


def _named(pid: Any, name: str, tid: Any = 0, what: str = "process_name") -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _row(name: str, pid: Any, tid: Any, start: str, length: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": start, "dur": length, "args": args}


def _line(folder: Path, document: Any) -> Timeline:
    path = folder / "trace_view.json"
    path.write_text(json.dumps(document))
    capture = read(path)
    assert capture.format == Format.CHROME_TRACE
    (line,) = capture.timelines
    return line


ASCEND = [
    _row("MatMulV2", 5, 2, "1730943468310000.220", 100, **{"Task Type": "AI_CORE"}),
    _row("Add", 5, 2, "1730943468310150.220", 50, **{"Task Type": "MIX_AIV"}),
    _row("EVENT_WAIT", 5, 2, "1730943468310200.220", 5000, **{"Task Type": "EVENT_WAIT"}),
    _row("NOTIFY_WAIT", 5, 3, "1730943468310200.220", 5000),
    _row("MEMCPY_ASYNC", 5, 3, "1730943468310200.220", 20, **{"Task Type": "PCIE_DMA_SQE"}),
    _row("Reduce_1_0", 5, 70001, "1730943468310000.220", 9000),
    _row("hcom_allReduce__661_0_1", 6, 0, "1730943468310120.220", 60),
    _row("Notify_Wait", 6, 1, "1730943468310120.220", 60),
    _row("Computing", 9, 2, "1730943468310000.220", 9000),
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": "1730943468310000.000", "dur": 9},
    _named(5, "Ascend Hardware"),
    _named(5, "Stream 2", 2, "thread_name"),
    _named(5, "Stream 3", 3, "thread_name"),
    _named(5, "Step Trace(Model ID:1)", 70001, "thread_name"),
    _named(6, "HCCL"),
    _named(6, "Group 0 Communication", 0, "thread_name"),
    _named(6, "Plane 0", 1, "thread_name"),
    _named(9, "Overlap Analysis"),
]


@pytest.mark.parametrize("reverse", [False, True])
def test_ascend_work_is_told_by_task_and_waits_are_not_busy(tmp_path: Path, reverse: bool) -> None:
    line = _line(tmp_path, ASCEND[::-1] if reverse else ASCEND)
    (part,) = breakdowns(line)
    assert line.vendor == "Huawei"
    assert line.epoch_ns == 0
    assert line.start_ns[0] == 1_730_943_468_310_000_220
    assert part.compute_ns == 150_000
    assert part.comm_ns == 60_000
    assert part.exposed_comm_ns == 30_000
    assert part.copy_ns == 20_000
    assert part.kernels == 3
    assert line.host.operators == 1


def _rocprof(begin: int, end: int, device: int = 4) -> dict[str, str]:
    return {"BeginNs": str(begin), "EndNs": str(end), "dev-id": str(device), "queue-id": "0", "stream-id": "1"}


ROCPROF = {
    "traceEvents": [
        {},
        _named(2, "CPU HIP API"),
        _named(1, "COPY"),
        _named(6, "GPU0"),
        _named(10, "GPU4"),
        _row("hipMalloc", "2", "19", "1", 9000),
        _row("CopyHostToDevice", "1", "0", "1000", 1, **_rocprof(1_000_251, 1_002_251)),
        _row("vector_add(float*)", "10", "1", "2000", 3, **_rocprof(2_000_840, 2_004_251)),
        _row("vector_add(float*)", "6", "1", "3000", 3, **_rocprof(3_000_000, 3_000_007, 0)),
    ],
    "otherData": "{'CMD': 'secret'}",
}


def test_rocprof_rows_have_times_in_nanoseconds(tmp_path: Path) -> None:
    line = _line(tmp_path, ROCPROF)
    assert (line.vendor, line.devices) == ("AMD", (0, 4))
    assert line.start_ns.tolist() == [1_000_251, 2_000_840, 3_000_000]
    assert line.duration_ns.tolist() == [2000, 3411, 7]
    assert [part.copy_ns for part in breakdowns(line)] == [0, 2000]


def test_rows_without_a_usable_time_are_dropped(tmp_path: Path) -> None:
    odd = [_row("k", 5, 2, start, length) for start, length in (("soon", 1), ("5", -1), ("9" * 50, 1))]
    line = _line(tmp_path, [*odd, _row("k", 5, 2, "7.5", 1), _named(5, "Ascend Hardware")])
    assert line.start_ns.tolist() == [7500]


def test_a_process_that_is_no_device_is_none(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([_row("k", 5, 2, "1", 1), _named(5, "GPU0")]))
    with pytest.raises(Refusal) as caught:
        read(path)
    assert caught.value.code == RefusalCode.NOT_A_GPU_TRACE


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
def test_a_real_capture_of_rocprof() -> None:
    assert SHARED is not None
    (line,) = read(SHARED / "traces" / "files" / "rocprofv1-hip" / "results.json").timelines
    (part,) = breakdowns(line)
    assert part.device_index == 4
    assert (part.kernels, part.compute_ns) == (1, 3_431_611)
    assert part.copy_ns == 92_212_447 + 88_505_203 + 885_689_740
