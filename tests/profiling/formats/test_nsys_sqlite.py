"""Nsight Systems exports: what any version of the schema says, and what it must not tell."""

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from profiling.breakdown import Breakdown, breakdown
from profiling.evidence import DeviceLoads
from profiling.formats import registry
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits
from profiling.notes import NoteCode, Refusal, RefusalCode, outcome_of
from profiling.timeline import UNKNOWN, StepSource, Timeline, WorkKind
from tests.paths import SHARED
from tests.profiling.expected import FIELDS, Row, agrees, rows
from tests.profiling.formats.nsys_export import COPY, KERNEL, RUNTIME, call, kernel, marked, process, texts, write

FAULTS = rows("nsys-sqlite")
REFERENCE = SHARED / "traces" / "reference" / "sqlite_plain_sql.json" if SHARED else None
needs_captures = pytest.mark.skipif(not FAULTS, reason="the reference captures are not beside the checkout")


def _one(tmp_path: Path, **tables: Any) -> Timeline:
    (line,) = registry.read(write(tmp_path / "a.sqlite", tables)).timelines
    return line


def _codes(capture: Capture) -> set[str]:
    return {note.code for note in capture.notes}


def _refusal(path: Path, limits: Limits | None = None) -> RefusalCode:
    with pytest.raises(Refusal) as caught:
        registry.read(path, limits)
    return caught.value.code


def _facts(capture: Capture, row: Row) -> dict[str, float | str | None]:
    (line,) = capture.timelines
    whole = breakdown(line, line.devices[0])
    kernels = line.kind == WorkKind.KERNEL
    known: dict[str, Any] = {key: getattr(whole, key.removesuffix("_us") + "_ns", 0) / 1000 for key in FIELDS}
    known |= {
        "kernels": int(kernels.sum()),
        "kernel_time_sum_us": int(line.duration_ns[kernels].sum()) / 1000,
        "gpu": whole.device_name,
    }
    return {key: known[key] for key in row.facts if key != "must_not_appear"}


@needs_captures
@pytest.mark.parametrize("row", [row for row in FAULTS if row.outcome != "error"], ids=lambda row: row.id)
def test_every_figure_of_the_fault_files_is_exact(row: Row) -> None:
    capture = registry.read(row.path)
    for key, value in _facts(capture, row).items():
        fact = row.facts[key]
        assert value == fact if isinstance(value, str) else agrees(value, fact), key
    assert outcome_of(capture.notes) == row.outcome
    if "must_not_appear" in row.facts:
        assert row.facts["must_not_appear"] not in repr(capture)


@needs_captures
@pytest.mark.parametrize("row", [row for row in FAULTS if row.outcome == "error"], ids=lambda row: row.id)
def test_an_export_without_kernels_is_refused(row: Row) -> None:
    assert _refusal(row.path) == RefusalCode.CUDA_NOT_TRACED


def _percent(whole: Breakdown) -> dict[str, float]:
    parts = {"busy": whole.gpu_busy_ns, "comm": whole.comm_ns, "compute": whole.compute_ns, "idle": whole.idle_ns}
    return {f"{name}_pct": 100 * part / whole.window_ns for name, part in parts.items()}


@needs_captures
def test_real_exports_agree_with_plain_sql() -> None:
    assert SHARED and REFERENCE
    reference = json.loads(REFERENCE.read_text(encoding="utf-8"))
    compared = 0
    for name, wanted in reference.items():
        if wanted["kind"] != "nsys_sqlite" or not wanted.get("devices"):
            continue
        lines = registry.read(SHARED / "traces" / name).timelines
        found = {str(device): breakdown(line, device) for line in lines for device in line.devices}
        assert found.keys() == wanted["devices"].keys(), name
        for device, figures in wanted["devices"].items():
            assert found[device].window_ns / 1e6 == pytest.approx(figures["span_ms"], abs=0.001), name
            for key, value in _percent(found[device]).items():
                assert value == pytest.approx(figures[key], abs=0.1), (name, device, key)
            compared += 1
    assert compared >= 10


@pytest.mark.parametrize("suffix", ["", "_V2", "_V3", "_v10"])
def test_tables_are_found_under_any_version(tmp_path: Path, suffix: str) -> None:
    line = _one(tmp_path, **{KERNEL + suffix: [kernel(0, 10)], "StringIds": texts("gemm")})
    assert (line.names, line.duration_ns.tolist(), line.host.launches) == (("gemm",), [10], None)
    assert line.vendor == "NVIDIA"


def test_of_several_versions_of_a_table_the_newest_with_rows_counts(tmp_path: Path) -> None:
    old, new = [kernel(0, 10)], [kernel(5, 30)]
    line = _one(tmp_path, **{KERNEL: old, f"{KERNEL}_V2": new, f"{KERNEL}_V3": [], "StringIds": texts("gemm")})
    assert line.duration_ns.tolist() == [25]


def test_copies_between_devices_are_communication_and_graphs_are_whole(tmp_path: Path) -> None:
    copies = [
        kernel(0, 10, bytes=4, copyKind=1, srcDeviceId=None, dstDeviceId=None),
        kernel(10, 20, bytes=5, copyKind=10, srcDeviceId=0, dstDeviceId=1),
        kernel(20, 30, bytes=6, copyKind=10, srcDeviceId=0, dstDeviceId=0),
        kernel(30, 40, bytes=7, copyKind=8, srcDeviceId=0, dstDeviceId=1),
        kernel(40, 50, bytes=8, copyKind=8, srcDeviceId=0, dstDeviceId=0),
    ]
    path = write(
        tmp_path / "a.sqlite",
        {
            COPY: copies,
            "CUPTI_ACTIVITY_KIND_MEMSET": [kernel(50, 60, bytes=9)],
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [kernel(60, 70)],
            "META_DATA_EXPORT": [],
        },
    )
    capture = registry.read(path)
    (line,) = capture.timelines
    kinds = [WorkKind.COPY, WorkKind.PEER_COPY, WorkKind.COPY, WorkKind.PEER_COPY, WorkKind.COPY]
    assert line.kind.tolist() == [*kinds, WorkKind.FILL, WorkKind.GRAPH]
    assert line.bytes.tolist() == [4, 5, 6, 7, 8, 9, UNKNOWN]
    assert NoteCode.GRAPHS_WHOLE in _codes(capture)


@pytest.mark.parametrize(("launches", "told"), [(1, False), (4, True)])
def test_graph_launches_without_work_are_told(tmp_path: Path, launches: int, *, told: bool) -> None:
    tables = {
        KERNEL: [kernel(10, 20, correlationId=1), kernel(20, 30, correlationId=1)],
        RUNTIME: [call(number, number + 1, number, 2) for number in range(1, launches + 1)],
        "StringIds": texts("gemm", "cudaGraphLaunch_v10000"),
    }
    capture = registry.read(write(tmp_path / "a.sqlite", tables))
    assert capture.timelines[0].host.graph_launches == launches
    assert capture.timelines[0].idle_known is not told
    found = [note.params for note in capture.notes if note.code == NoteCode.GRAPHS_UNDER_RECORDED]
    assert found == ([{"count": 4, "seen": 1}] if told else [])


def test_processes_of_one_file_are_ranks_and_their_devices_physical(tmp_path: Path) -> None:
    tables = {
        KERNEL: [
            kernel(0, 10, globalPid=process(1), correlationId=1),
            kernel(5, 25, globalPid=process(2), correlationId=1),
        ],
        RUNTIME: [
            call(0, 1, 1, 2, pid=1),
            call(2, 3, 1, 2, pid=2),
            call(3, 9, 7, 3, pid=2),
            call(0, 99, 1, 3, pid=9),
        ],
        "StringIds": texts("gemm", "cudaLaunchKernel_v7000", "cudaStreamSynchronize_v3020"),
        "TARGET_INFO_CUDA_DEVICE": [{"gpuId": 4, "cudaId": 0, "pid": 1}, {"gpuId": 6, "cudaId": 0, "pid": 2}],
        "TARGET_INFO_GPU": [{"id": number, "name": f"NVIDIA H{number}00", "cuDevice": 0} for number in (4, 6)],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_700_000_000_000_000_000}],
    }
    first, second = registry.read(write(tmp_path / "a.sqlite", tables)).timelines
    assert (first.devices, second.devices) == ((4,), (6,))
    assert (first.device_names[4], second.device_names[6]) == ("NVIDIA H400", "NVIDIA H600")
    assert (first.launched_ns.tolist(), second.launched_ns.tolist()) == ([0], [2])
    assert (first.host.launches, second.host.launches) == (1, 1)
    assert (first.host.waits.length, second.host.waits.length) == (0, 6)
    assert second.epoch_ns == 1_700_000_000_000_000_000


def test_processes_that_share_a_device_are_one_timeline(tmp_path: Path) -> None:
    shared = [kernel(0, 10, globalPid=process(1)), kernel(5, 25, globalPid=process(2))]
    alone = [kernel(0, 7, deviceId=3, globalPid=process(3)), kernel(7, 9, deviceId=2, globalPid=process(3))]
    lines = registry.read(write(tmp_path / "a.sqlite", {KERNEL: shared + alone, "StringIds": texts("a")})).timelines
    assert [line.devices for line in lines] == [(0,), (2, 3)]
    assert breakdown(lines[0], 0).gpu_busy_ns == 25
    assert len(set(lines[0].stream.tolist())) == 2


def test_steps_and_input_come_from_ranges(tmp_path: Path) -> None:
    ranges = [marked(number * 100, number * 100 + 90, f"step {number}") for number in range(4)]
    ranges += [marked(5, 15, "dataloader"), marked(10, 20, "next_batch"), marked(20, 20, "mark", kind=34)]
    ranges += [marked(0, 500, "step 0", pid=77)]
    path = write(tmp_path / "a.sqlite", {KERNEL: [kernel(0, 390)], "NVTX_EVENTS": ranges, "StringIds": texts("a")})
    capture = registry.read(path)
    (line,) = capture.timelines
    assert [(step.number, step.start_ns) for step in line.steps] == [(0, 0), (1, 100), (2, 200), (3, 300)]
    assert line.steps_from == StepSource.RANGES
    assert line.host.input.length == 15
    assert NoteCode.STEPS_FROM_RANGES in _codes(capture)


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("Some CUDA kernel events were dropped: the buffer was full", True),
        ("6000000 events dropped", True),
        ("Not all CUDA events might have been collected.", True),
        ("CUPTI buffers: 49 of 50. Some CUPTI events might be missing.", True),
        ("Number of dropped events: 0", False),
        ("No events were dropped.", False),
        ("Not all NVTX events might have been collected.", False),
        ("No NVTX events collected. Does the process use NVTX?", False),
        ("Number of CUDA events collected: \t4639.", False),
    ],
)
def test_lost_events_make_a_capture_incomplete(tmp_path: Path, text: str, *, lost: bool) -> None:
    tables = {KERNEL: [kernel(0, 10)], "DIAGNOSTIC_EVENT": [{"severity": 2, "text": text}], "StringIds": texts("a")}
    capture = registry.read(write(tmp_path / "a.sqlite", tables))
    assert capture.timelines[0].incomplete is lost
    assert (NoteCode.EVENTS_DROPPED in _codes(capture)) is lost


def test_environment_and_command_line_stay_unread(tmp_path: Path) -> None:
    secret = "FAKE-SECRET"
    tables = {
        KERNEL: [kernel(0, 10)],
        "StringIds": texts("a", secret),
        "META_DATA_CAPTURE": [
            {"name": "PROCESS_0:COMMAND", "value": f"train --key {secret}"},
            {"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": f"KEY={secret}"},
        ],
        "TARGET_INFO_SYSTEM_ENV": [{"name": "Hostname", "value": secret}],
        "PROCESSES": [{"name": secret}],
    }
    capture = registry.read(write(tmp_path / "a.sqlite", tables))
    assert secret not in repr(capture)
    assert NoteCode.ENVIRONMENT_NOT_READ in _codes(capture)


def test_rows_without_a_time_are_counted(tmp_path: Path) -> None:
    bad = [kernel(0, 0), kernel(20, 0), kernel(5, "later"), kernel(None, 5), kernel(0.5, 9), kernel(1 << 62, 1 << 62)]
    path = write(tmp_path / "a.sqlite", {KERNEL: [kernel(10, 20), *bad], "StringIds": texts("a")})
    capture = registry.read(path)
    assert capture.timelines[0].start_ns.tolist() == [10]
    counts = {note.code: note.params["count"] for note in capture.notes}
    assert counts == {NoteCode.BAD_TIMES: 5, NoteCode.NEGATIVE_DURATIONS: 1}


def test_metrics_are_means_of_each_gpu(tmp_path: Path) -> None:
    names = ["SMs Active [Throughput %]", "DRAM Read Bandwidth [Throughput %]", "GPC Clock Frequency [MHz]"]
    known = [
        {"typeId": 256 + gpu, "metricId": place, "metricName": name}
        for gpu in (0, 1)
        for place, name in enumerate(names)
    ]
    samples = [(0, 0, 20), (0, 0, 40), (0, 1, 10), (1, 0, 90), (1, 2, 99), (1, 0, 1000), (1, 0, None)]
    tables = {
        KERNEL: [kernel(0, 10)],
        "StringIds": texts("a"),
        "TARGET_INFO_GPU_METRICS": known,
        "GPU_METRICS": [
            {"timestamp": -5, "typeId": 256 + gpu, "metricId": metric, "value": value} for gpu, metric, value in samples
        ],
    }
    (loads,) = registry.read(write(tmp_path / "a.sqlite", tables)).evidence
    assert isinstance(loads, DeviceLoads)
    found = [(one.entity, one.sm_active, one.dram_active, one.samples) for one in loads.devices]
    assert found == [("GPU 0", pytest.approx(0.3), pytest.approx(0.1), 2), ("GPU 1", pytest.approx(0.9), None, 1)]


def test_an_export_may_be_compressed(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.sqlite", {KERNEL: [kernel(0, 10)], "StringIds": texts("a")})
    packed = tmp_path / "a.sqlite.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert registry.read(packed).format == Format.NSYS_SQLITE


def test_other_databases_and_cut_ones_are_refused(tmp_path: Path) -> None:
    other = write(tmp_path / "other.sqlite", {"people": [{"name": "Ada"}]})
    assert _refusal(other) == RefusalCode.NOT_READ_YET
    whole = write(tmp_path / "a.sqlite", {KERNEL: [kernel(n, n + 1) for n in range(5000)], "StringIds": texts("a")})
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(whole.read_bytes()[:20_000])
    assert _refusal(cut) == RefusalCode.DATABASE_DAMAGED


def test_a_view_is_no_table(tmp_path: Path) -> None:
    path = write(tmp_path / "a.sqlite", {"META_DATA_EXPORT": [], "seed": [{"n": n} for n in range(100)]})
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE VIEW {KERNEL} AS SELECT a.n AS start, b.n AS [end] FROM seed a, seed b, seed c, seed d")
    connection.commit()
    connection.close()
    assert _refusal(path) == RefusalCode.CUDA_NOT_TRACED


def test_reading_stops_at_the_limits(tmp_path: Path) -> None:
    path = write(tmp_path / "a.sqlite", {KERNEL: [kernel(n, n + 1) for n in range(50)], "StringIds": texts("a")})
    assert _refusal(path, Limits(events=49)) == RefusalCode.TOO_MANY_EVENTS
    assert registry.read(path, Limits(events=50)).timelines[0].start_ns.size == 50
    ticks = iter(range(10_000))
    with pytest.raises(Refusal) as caught:
        registry.read(path, Limits(seconds=2), clock=lambda: float(next(ticks)))
    assert caught.value.code == RefusalCode.TOO_SLOW
