"""xplane.pb of JAX and TensorFlow: device work of the streams only, linked to its launches; nothing else is read."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiling.analysis import analyse
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits
from profiling.formats.registry import read
from profiling.intervals import union
from profiling.notes import NoteCode, Outcome, Refusal, RefusalCode
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN, WorkKind
from profiling.workload import CollectiveKind
from tests.paths import SHARED
from tests.profiling.formats.wire import Plane, field, message, space

TRACES = SHARED / "traces" if SHARED else Path("absent")
needs_traces = pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")


def gpu(number: int = 0, **facts: object) -> Plane:
    return Plane(f"/device:GPU:{number}", **facts)


def one_kernel(plane: Plane, start_us: float = 0.0) -> Plane:
    return plane.line("Stream #7(Compute)", [plane.event("gemm_fusion", start_us, 10.0)])


def saved(tmp_path: Path, *planes: Plane) -> Path:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space(*planes))
    return path


def captured(tmp_path: Path, *planes: Plane) -> Capture:
    return read(saved(tmp_path, *planes))


def test_only_rows_of_streams_are_device_work(tmp_path: Path) -> None:
    plane = gpu(device_vendor="Nvidia")
    plane.line("XLA Modules", [plane.event("jit_step(1)", 0, 900)])
    plane.line("XLA Ops", [plane.event("fusion.1", 0, 800)])
    plane.line("Stream #3(Compute,MemcpyD2H)", [plane.event("gemm", 1, 5), plane.event("MemcpyD2H", 7, 2)])
    plane.line("Stream #4(MemcpyP2P,Memset)", [plane.event("MemcpyP2P", 2, 3), plane.event("Memset", 9, 1)])
    capture = captured(tmp_path, plane)
    (line,) = capture.timelines
    assert capture.format is Format.XPLANE
    assert line.kind.tolist() == [WorkKind.KERNEL, WorkKind.PEER_COPY, WorkKind.COPY, WorkKind.FILL]
    assert line.start_ns.tolist() == [1000, 2000, 7000, 9000]
    assert line.duration_ns.tolist() == [5000, 3000, 2000, 1000]
    assert line.vendor == "NVIDIA"
    assert len(np.unique(line.stream)) == 2


def test_times_are_exact_far_from_the_origin(tmp_path: Path) -> None:
    plane = gpu()
    origin = 1_771_595_650_217_823_548
    events = [message((1, 1), (2, 1_000_499), (3, 2_000_002)), message((1, 1), (2, 3_000_501), (3, 1_500))]
    plane.line("Stream #1", events, timestamp_ns=origin)
    (line,) = captured(tmp_path, plane).timelines
    assert (line.start_ns - origin).tolist() == [1000, 3001]
    assert (line.end_ns - origin).tolist() == [3001, 3002]


def test_devices_are_told_apart_and_unused_ones_are_listed(tmp_path: Path) -> None:
    (line,) = captured(tmp_path, gpu(0), one_kernel(gpu(1)), one_kernel(gpu(2))).timelines
    assert line.devices == (1, 2)
    assert dict(line.device_names) == {0: "", 1: "", 2: ""}


def test_launches_waits_and_input_come_from_the_host(tmp_path: Path) -> None:
    device, host = gpu(), Plane("/host:CPU")
    device.line("Stream #1", [device.event("gemm", 20, 5, correlation_id=8), device.event("relu", 30, 5)])
    calls = [host.event("cuLaunchKernel", 3, 1, correlation_id=8), host.event("cuStreamSynchronize", 5, 40)]
    host.line("Host Threads/1", calls)
    host.line("tf_data", [host.event("IteratorGetNextOp::DoCompute", 50, 7), host.event("$builtins hash", 60, 1)])
    (line,) = captured(tmp_path, device, host).timelines
    assert line.launched_ns.tolist() == [3000, UNKNOWN]
    assert line.host.launches == 1
    assert line.host.waits.length == 40_000
    assert line.host.input.length == 7_000


def test_without_launches_they_are_unknown(tmp_path: Path) -> None:
    (line,) = captured(tmp_path, one_kernel(gpu())).timelines
    assert line.host.launches is None
    assert line.host.operators is None


def test_sizes_of_copies_are_read_and_zero_is_unknown(tmp_path: Path) -> None:
    plane = gpu()
    plane.line(
        "Stream #1",
        [
            plane.event("MemcpyH2D", 0, 1, memcpy_details="kind_src:pageable kind_dst:device size:4096 dest:0 async:1"),
            plane.event("MemcpyH2D", 2, 1, memcpy_details="kind:Unknown size:0 dest:512 async:1"),
            plane.event("MemcpyH2D", 4, 1),
        ],
    )
    (line,) = captured(tmp_path, plane).timelines
    assert line.bytes.tolist() == [4096, UNKNOWN, UNKNOWN]


def test_an_operation_tells_what_a_communication_kernel_does(tmp_path: Path) -> None:
    plane = gpu()
    kernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
    plane.line(
        "Stream #1",
        [
            plane.event(kernel, 0, 1, hlo_op="all-to-all.4"),
            plane.event(kernel, 2, 1, hlo_op="collective-permute-start.1"),
            plane.event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 4, 1),
        ],
    )
    (line,) = captured(tmp_path, plane).timelines
    kinds = [COLLECTIVE_KINDS[kind] for kind in line.collectives.kind]
    assert kinds == [CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND_RECV, CollectiveKind.ALL_REDUCE]


def test_steps_of_the_device_are_its_rows(tmp_path: Path) -> None:
    plane = gpu()
    plane.line("Stream #1", [plane.event("gemm", 1000 * at, 600) for at in range(3)])
    plane.line("Steps", [plane.event(str(at), 1000 * at, 700) for at in range(3)])
    (rank,) = analyse([saved(tmp_path, plane)]).ranks
    assert rank.steps.observed == 3
    assert rank.steps.typical.high_ns - rank.steps.typical.low_ns == 1_000_000


def test_steps_that_the_host_marks_hold_the_work_launched_in_them(tmp_path: Path) -> None:
    device, host = gpu(), Plane("/host:CPU")
    launches = [host.event("cuLaunchKernel", 100 * at + 10, 1, correlation_id=at + 1) for at in range(4)]
    host.line("python", [host.event("train", 100 * at, 60, step_num=at) for at in range(4)])
    host.line("Host Threads/1", launches)
    device.line("Stream #1", [device.event("gemm", 500 + 200 * at, 50, correlation_id=at + 1) for at in range(4)])
    (rank,) = analyse([saved(tmp_path, device, host)]).ranks
    assert rank.steps.observed == 4
    assert rank.steps.typical.high_ns - rank.steps.typical.low_ns == 200_000


def test_rows_of_steps_start_with_the_launch_of_their_work(tmp_path: Path) -> None:
    device, host = gpu(), Plane("/host:CPU")
    launches = [host.event("cuLaunchKernel", 20 * at, 1, correlation_id=at + 1) for at in range(4)]
    host.line("Host Threads/1", launches)
    device.line("Stream #1", [device.event("gemm", 500 + 200 * at, 50, correlation_id=at + 1) for at in range(4)])
    device.line("Steps", [device.event(str(at), 500 + 200 * at, 50) for at in range(4)])
    (rank,) = analyse([saved(tmp_path, device, host)]).ranks
    assert rank.steps.observed == 4
    assert rank.steps.typical.high_ns - rank.steps.typical.low_ns == 200_000


def test_command_buffers_are_told(tmp_path: Path) -> None:
    device, host = gpu(), Plane("/host:CPU")
    device.line("Stream #1", [device.event("gemm", 9, 5, correlation_id=8)])
    host.line("Host Threads/1", [host.event("cuGraphLaunch", 3, 1, correlation_id=8)])
    capture = captured(tmp_path, device, host)
    assert [(note.code, note.params["count"]) for note in capture.notes] == [(NoteCode.COMMAND_BUFFERS, 1)]
    assert capture.timelines[0].host.graph_launches == 1


def test_a_graph_recorded_as_a_whole_is_busy_and_unknown_inside(tmp_path: Path) -> None:
    device = gpu()
    device.line("Stream #1", [device.event("CudaGraphExec:2", 0, 100)])
    capture = captured(tmp_path, device)
    assert capture.timelines[0].kind.tolist() == [WorkKind.GRAPH]
    assert [note.code for note in capture.notes] == [NoteCode.COMMAND_BUFFERS_WHOLE]


def test_times_that_cannot_be_are_dropped_and_told(tmp_path: Path) -> None:
    plane = gpu()
    plane.line("Stream #1", [plane.event("gemm", 0, 5), plane.event("gemm", 9, -4), plane.event("gemm", 1e13, 4)])
    capture = captured(tmp_path, plane)
    assert capture.timelines[0].start_ns.size == 1
    assert {note.code for note in capture.notes} == {NoteCode.NEGATIVE_DURATIONS, NoteCode.BAD_TIMES}


def test_sums_over_many_occurrences_are_no_times(tmp_path: Path) -> None:
    plane = one_kernel(gpu())
    plane.line("Stream #8", [message((1, 1), (5, 40), (3, 9_000_000))])
    assert captured(tmp_path, plane).timelines[0].start_ns.size == 1


def test_warnings_of_the_profiler_are_told(tmp_path: Path) -> None:
    path = saved(tmp_path, one_kernel(gpu()))
    path.write_bytes(path.read_bytes() + field(3, "1034 events were dropped"))
    codes = [note.code for note in read(path).notes]
    assert codes == [NoteCode.PROFILER_WARNINGS, NoteCode.EVENTS_DROPPED]


def test_unix_time_of_the_first_work_is_known(tmp_path: Path) -> None:
    environment = Plane("Task Environment", profile_start_time=1_700_000_000_000_000_000)
    (rank,) = analyse([saved(tmp_path, one_kernel(gpu(), 5.0), environment)]).ranks
    assert rank.first_unix_ns == 1_700_000_000_000_005_000


def test_a_cut_file_gives_its_whole_planes(tmp_path: Path) -> None:
    host = Plane("/host:CPU")
    host.line("python", [host.event("call", at, 1) for at in range(100)])
    path = saved(tmp_path, one_kernel(gpu()), host)
    path.write_bytes(path.read_bytes()[:-200])
    analysis = analyse([path])
    assert analysis.outcome is Outcome.SALVAGE
    assert NoteCode.FILE_TRUNCATED in [note.code for note in analysis.notes]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (space(Plane("/host:CPU")), RefusalCode.NO_STREAM_ROWS),
        (space(Plane("/device:TPU:0").line("XLA Ops", [])), RefusalCode.TPU_PROFILE),
        (space(one_kernel(gpu()))[:60], RefusalCode.FILE_TRUNCATED),
        (space(Plane("/host:CPU")) + b"\x0a\x03\xff\xff\xff", RefusalCode.PROTOBUF_DAMAGED),
        (space(Plane("/device:GPU:0 \ufffd\ufffd").line("a", [])) + b"\x0b", RefusalCode.BINARY_AS_TEXT),
    ],
)
def test_what_is_no_gpu_profile_is_refused_with_its_reason(tmp_path: Path, data: bytes, code: RefusalCode) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(data)
    with pytest.raises(Refusal) as caught:
        read(path)
    assert caught.value.code is code


def test_limits_hold(tmp_path: Path) -> None:
    plane = gpu()
    plane.line("Stream #1", [plane.event(f"kernel {at}", at, 1) for at in range(50)])
    path = saved(tmp_path, plane)
    for limits, code in (
        (Limits(events=40), RefusalCode.TOO_MANY_EVENTS),
        (Limits(names=40), RefusalCode.TOO_MANY_NAMES),
        (Limits(rows=40), RefusalCode.TOO_MANY_ROWS),
    ):
        with pytest.raises(Refusal) as caught:
            read(path, limits)
        assert caught.value.code is code


def test_many_devices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        read(saved(tmp_path, *(gpu(number) for number in range(9))), Limits(devices=8))
    assert caught.value.code is RefusalCode.TOO_MANY_DEVICES


def test_names_of_the_host_that_mean_nothing_are_not_kept(tmp_path: Path) -> None:
    host = Plane("/host:CPU")
    host.line("python", [host.event(f"$module.py:{at} call", at, 1) for at in range(100)])
    host.line("tf_data", [host.event("IteratorGetNextOp::DoCompute", 50, 7)])
    (line,) = read(saved(tmp_path, one_kernel(gpu()), host), Limits(rows=40)).timelines
    assert line.host.input.length == 7_000


SEED = space(
    one_kernel(gpu(device_vendor="AMD")),
    Plane("/host:CPU").line("python", [message((1, 1), (2, 5), (3, 9), (4, message((1, 1), (3, 7))))]),
)


@settings(max_examples=300)
@given(st.data())
def test_damage_is_refused_or_read_never_a_failure(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    damaged = bytearray(SEED)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(20, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.xplane.pb"
    path.write_bytes(bytes(damaged[: data.draw(st.integers(30, len(damaged)))]))
    try:
        capture = read(path)
    except Refusal:
        return
    assert (capture.timelines[0].duration_ns >= 0).all()


@needs_traces
@pytest.mark.parametrize("slug", ["xplane-jax-amd", "xplane-tf-gpu-multiworker"])
def test_busy_time_is_that_of_another_decoder(slug: str) -> None:
    """Copies that run as kernels count there as computing, and its window is that of one device."""
    published = json.loads((TRACES / "reference/xplane_own_decoder.json").read_text(encoding="utf-8"))
    files = {name: facts for name, facts in published.items() if facts["slug"] == slug}
    assert files
    for name, facts in files.items():
        (line,) = read(TRACES / name).timelines
        for plane in facts["planes"]:
            if "gpu" not in plane:
                continue
            mine = line.device == int(plane["name"].rpartition(":")[2])
            start, end = line.start_ns[mine], line.end_ns[mine]
            span = int(end.max() - start.min())
            assert int(mine.sum()) == plane["gpu"]["n"]
            assert abs(100 * union(start, end).length / span - plane["gpu"]["busy_pct"]) <= 0.1
            assert abs(span / 1000 - plane["gpu"]["span_us"]) <= 0.1


@needs_traces
def test_facts_of_real_machines() -> None:
    (amd,) = read(TRACES / "files/xplane-jax-amd/jax08_gemm__tw003.xplane.pb").timelines
    assert amd.vendor == "AMD"
    assert amd.host.launches == 54
    assert (amd.launched_ns != UNKNOWN).all()
    (worker,) = read(TRACES / "files/xplane-tf-gpu-multiworker/34.83.195.179_6003.xplane.pb").timelines
    assert worker.host.input.length > 0
    assert (worker.bytes[worker.kind == WorkKind.COPY] > 0).all()


@needs_traces
def test_a_real_file_that_holds_no_gpu_work() -> None:
    """It was stored as text with replaced bytes: either reason is true."""
    (path,) = (TRACES / "files/xplane-tpu").iterdir()
    with pytest.raises(Refusal) as caught:
        read(path)
    assert caught.value.code in (RefusalCode.TPU_PROFILE, RefusalCode.BINARY_AS_TEXT)
