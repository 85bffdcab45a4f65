"""What Kineto traces tell besides the figures of the device: host, machine, clock, process groups, work."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiling.analysis import analyse
from profiling.breakdown import whole_window
from profiling.document import analysis_document
from profiling.formats.capture import Capture
from profiling.formats.registry import read
from profiling.idle import idle_by_cause
from profiling.intervals import Intervals
from profiling.label import bottleneck_of
from profiling.notes import BottleneckCode, NoteCode
from profiling.rank import read_rank
from profiling.timeline import UNKNOWN, Timeline

NCCL = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"
GEMM = "ampere_sgemm_128x64_tn"


def _event(cat: str | None, name: str, start: float, length: float = 10, pid: int = 1, **args: Any) -> dict[str, Any]:
    event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": 7, "ts": start, "dur": length, "args": args}
    return {key: value for key, value in event.items() if value is not None}


def _kernel(start: float, name: str = GEMM, *, pid: int = 0, **args: Any) -> dict[str, Any]:
    return _event("kernel", name, start, pid=pid, device=0, stream=7, **args)


def _launch(start: float, correlation: int, name: str = "cudaLaunchKernel", pid: int = 1) -> dict[str, Any]:
    return _event("cuda_runtime", name, start, 2, pid=pid, correlation=correlation)


def _read(folder: Path, events: list[dict[str, Any]], **keys: Any) -> Capture:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, **keys, "traceEvents": events}))
    return read(path)


def _line(folder: Path, events: list[dict[str, Any]], **keys: Any) -> Timeline:
    (line,) = _read(folder, events, **keys).timelines
    return line


def _pairs(intervals: Intervals) -> list[tuple[int, int]]:
    return list(zip(intervals.start.tolist(), intervals.end.tolist(), strict=True))


def _codes(capture: Capture) -> list[NoteCode]:
    return [note.code for note in capture.notes]  # type: ignore[misc]


def test_calls_that_wait_for_the_device_are_joined(tmp_path: Path) -> None:
    calls = [
        _event("cuda_runtime", "cudaStreamSynchronize", 100, 50),
        _event("cuda_driver", "cuCtxSynchronize", 140, 20),
        _event("cuda_runtime", "hipDeviceSynchronize", 300, 5),
        _event("cuda_runtime", "cudaStreamWaitEvent", 400, 5),
    ]
    line = _line(tmp_path, [_kernel(1), *calls])
    assert _pairs(line.host.waits) == [(100_000, 160_000), (300_000, 305_000)]


def test_loading_of_input_is_told_from_other_annotations(tmp_path: Path) -> None:
    marks = [
        _event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 10, 5),
        _event("cpu_op", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 20, 5),
        _event("user_annotation", "get_batch", 30, 5),
        _event("user_annotation", "forward", 50, 5),
    ]
    line = _line(tmp_path, [_kernel(1), *marks])
    assert _pairs(line.host.input) == [(10_000, 15_000), (20_000, 25_000), (30_000, 35_000)]


@pytest.mark.parametrize("name", ["cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch"])
def test_launches_of_graphs_are_counted(tmp_path: Path, name: str) -> None:
    capture = _read(tmp_path, [_launch(0, 5, name), _kernel(10, correlation=5), _kernel(30, correlation=5)])
    (line,) = capture.timelines
    assert line.host.graph_launches == 1
    assert line.launched_ns.tolist() == [0, 0]
    assert line.idle_known


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("cudaGraphLaunch", NoteCode.GRAPHS_UNDER_RECORDED),
        ("cudaLaunchKernel", NoteCode.KERNELS_MISSING),
        ("hipExtModuleLaunchKernel", NoteCode.KERNELS_MISSING),
        ("urEnqueueKernelLaunch", NoteCode.KERNELS_MISSING),
    ],
)
def test_launches_that_lead_nowhere_make_idle_time_unknown(tmp_path: Path, name: str, code: NoteCode) -> None:
    launches = [_launch(10 * at, at, name) for at in range(1, 11)]
    capture = _read(tmp_path, [*launches, _kernel(5, correlation=1), _kernel(200, correlation=10)])
    assert code in _codes(capture)
    (note,) = [note for note in capture.notes if note.code == code]
    assert note.params == {"count": 10, "seen": 2}
    (line,) = capture.timelines
    assert not line.idle_known
    assert idle_by_cause(line, 0, whole_window(line)).launch_bound_ns is None


def test_launches_after_the_last_work_or_into_a_graph_that_is_recorded_are_no_sign(tmp_path: Path) -> None:
    late = [_launch(1000 + at, 100 + at) for at in range(10)]
    recording = [
        _event("cuda_runtime", "cudaStreamBeginCapture_v10000", 20, 1),
        *[_launch(30 + at, 50 + at) for at in range(10)],
        _event("cuda_runtime", "cudaStreamEndCapture", 60, 1),
    ]
    capture = _read(tmp_path, [_launch(1, 1), _kernel(5, correlation=1), *recording, *late, _kernel(99, correlation=1)])
    assert capture.timelines[0].idle_known
    assert NoteCode.KERNELS_MISSING not in _codes(capture)


@pytest.mark.parametrize(
    ("keys", "start", "epoch"),
    [
        ({"baseTimeNanoseconds": 1_717_200_000_000_000_000}, 5, 1_717_200_000_000_000_000),
        ({}, 1_717_200_005_000_000, 0),
        ({"baseTimeNanoseconds": 1_717_200_000_000_000_000}, 1_717_200_005_000_000, 0),
        ({}, 5, None),
        ({"baseTimeNanoseconds": "soon"}, 5, None),
    ],
)
def test_times_since_1970(tmp_path: Path, keys: dict[str, Any], start: int, epoch: int | None) -> None:
    assert _line(tmp_path, [_kernel(start)], **keys).epoch_ns == epoch


@pytest.mark.parametrize(
    ("keys", "call", "vendor"),
    [
        ({"deviceProperties": [{"id": 0, "name": "NVIDIA B200"}]}, None, "NVIDIA"),
        ({"deviceProperties": [{"id": 0, "name": "Tesla T4"}]}, None, "NVIDIA"),
        ({"deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X"}]}, "cudaLaunchKernel", "AMD"),
        ({"deviceProperties": [{"id": 0, "name": "Intel(R) Data Center GPU Max 1550"}]}, None, "Intel"),
        ({"roctracer_version": 4.1}, None, "AMD"),
        ({"cupti_version": 22}, None, "NVIDIA"),
        ({}, "hipLaunchKernel", "AMD"),
        ({}, "cuLaunchKernelEx", "NVIDIA"),
        ({}, "urEnqueueKernelLaunch", "Intel"),
        ({}, None, None),
    ],
)
def test_the_maker_of_the_devices(tmp_path: Path, keys: dict[str, Any], call: str | None, vendor: str | None) -> None:
    calls = [] if call is None else [_launch(0, 1, call)]
    assert _line(tmp_path, [*calls, _kernel(1)], **keys).vendor == vendor


def test_occupancy_counts_numbers_alone(tmp_path: Path) -> None:
    field = "est. achieved occupancy %"
    events = [_kernel(1, **{field: 25}), _kernel(20, **{field: None}), _kernel(40, **{field: 0}), _kernel(60)]
    capture = _read(tmp_path, events)
    assert capture.timelines[0].occupancy_known == 2
    assert [note.params for note in capture.notes if note.code == NoteCode.OCCUPANCY_UNKNOWN] == [{"count": 1}]
    assert _line(tmp_path, [_kernel(1)]).occupancy_known is None


COLLECTIVE = {"Collective name": "allgather", "In msg nelems": 10, "Out msg nelems": 80, "dtype": "BFloat16"}
GROUP = {"Group size": 8, "Process Group Name": "tp", "Seq": 4}


def test_process_groups_and_sequence_numbers(tmp_path: Path) -> None:
    events = [
        _kernel(1, NCCL, **COLLECTIVE, **GROUP),
        _kernel(20, NCCL, **COLLECTIVE, **(GROUP | {"Process Group Name": "dp", "Seq": 5})),
        _kernel(40, NCCL, **COLLECTIVE),
    ]
    known = _line(tmp_path, events).collectives
    assert known.communicator is not None
    assert known.sequence is not None
    assert [None if one == UNKNOWN else known.communicators[one] for one in known.communicator] == ["tp", "dp", None]
    assert known.sequence.tolist() == [4, 5, UNKNOWN]


def test_a_kernel_without_arguments_is_described_by_the_operator_that_called_it(tmp_path: Path) -> None:
    call = _event("cpu_op", "record_param_comms", 0, **{"External id": 9}, **COLLECTIVE, **GROUP)
    events = [call, _kernel(1, NCCL, **{"External id": 9}), _kernel(20, NCCL, **{"External id": 10})]
    known = _line(tmp_path, events).collectives
    assert known.message_bytes.tolist() == [160, UNKNOWN]
    assert known.group_size.tolist() == [8, UNKNOWN]


def _merged(start: float, rank: int, correlation: int) -> list[dict[str, Any]]:
    host, device = 1000 * (rank + 1), 10_000 * (rank + 1)
    labels = [
        {"ph": "M", "name": "process_labels", "pid": device, "args": {"labels": f"rank {rank} GPU 0"}},
        {"ph": "M", "name": "process_name", "pid": host, "args": {"name": f"rank {rank} python"}},
    ]
    return [*labels, _launch(start, correlation, pid=host), _kernel(start + 20, pid=device, correlation=correlation)]


def test_ranks_of_a_merged_file_are_linked_to_their_own_launches(tmp_path: Path) -> None:
    first, second = _read(tmp_path, [*_merged(0, 0, 7), *_merged(100, 1, 7)]).timelines
    assert (first.rank, first.launched_ns.tolist()) == (0, [0])
    assert (second.rank, second.launched_ns.tolist()) == (1, [100_000])


@pytest.mark.parametrize(
    ("label", "ranks"),
    [
        ("rank={}", [0, 1]),
        ("[Rank {}] GPU 0", [0, 1]),
        ("rank: {}", [0, 1]),
        ("TP{}", [0, 1]),
        ("local_rank {}", [None, None]),
    ],
)
def test_labels_of_ranks_in_a_merged_file(tmp_path: Path, label: str, ranks: list[int | None]) -> None:
    events: list[dict[str, Any]] = []
    for rank in (0, 1):
        args = {"labels": label.format(rank)}
        events.append({"ph": "M", "name": "process_labels", "pid": 10 + rank, "args": args})
        events.append(_kernel(100, pid=10 + rank))
    assert [line.rank for line in _read(tmp_path, events).timelines] == ranks


@pytest.mark.parametrize(
    ("prefix", "ranks"), [("[TP{:02d}]", [0, 1]), ("[TP{:02d}-DP00]", [None, None]), ("[TP00-EP{:02d}]", [None, None])]
)
def test_ranks_that_a_merge_wrote_before_the_process_ids(tmp_path: Path, prefix: str, ranks: list[int | None]) -> None:
    """As SGLang merges its ranks: each device keeps its number and each rank its correlation ids."""
    events = []
    for rank in (1, 0):
        mine = [_launch(90 - rank, 5), _kernel(100, correlation=5)]
        events += [{**event, "pid": f"{prefix.format(rank)} {event['pid']}"} for event in mine]
    lines = _read(tmp_path, events).timelines
    assert [line.rank for line in lines] == ranks
    assert [line.launched_ns.tolist() for line in lines] == [[90_000], [89_000]]


@pytest.mark.parametrize("after", [[410.0], [410.0, 500.0]])
def test_a_kernel_that_runs_absurdly_over_its_successor_is_cut(tmp_path: Path, after: list[float]) -> None:
    events = [_kernel(start) for start in (0.0, 100.0, 200.0, *after)]
    events.append(_event("kernel", GEMM, 300.0, 9e6, pid=0, device=0, stream=7))
    capture = _read(tmp_path, events)
    assert NoteCode.RUNAWAY_KERNELS in _codes(capture)
    (line,) = capture.timelines
    assert line.duration_ns.tolist() == [10_000] * 3 + [110_000] + [10_000] * len(after)


def test_shares_of_a_capture_that_lacks_work_are_said_to_be_of_the_rest(tmp_path: Path) -> None:
    lost = {"WARNING": ["Dropped 3 records"]}
    _read(tmp_path, [_kernel(100.0 * at) for at in range(20)], **lost)
    analysis = analyse([tmp_path / "trace.json"])
    (rank,) = analysis_document(analysis)["ranks"]
    assert (rank["gpu_busy_us"], rank["idle_us"]) == (200.0, None)
    found = bottleneck_of(analysis)
    assert found is not None
    assert BottleneckCode.OF_RECORDED_WORK in [note.code for note in found.warnings]


@pytest.mark.parametrize("known", [{}, {"correlation": 0}, {"correlation": -1}])
def test_kernels_whose_launch_is_not_told_are_not_missing(tmp_path: Path, known: dict[str, int]) -> None:
    events = [event for at in range(1, 9) for event in (_launch(100.0 * at, at), _kernel(100.0 * at + 20, **known))]
    capture = _read(tmp_path, events)
    assert NoteCode.KERNELS_WITHOUT_LAUNCH in _codes(capture)
    assert NoteCode.KERNELS_MISSING not in _codes(capture)
    assert capture.timelines[0].idle_known


def test_a_delay_is_never_negative(tmp_path: Path) -> None:
    """Half a microsecond is within what clocks are trusted to, but no kernel starts before its launch."""
    line = _line(tmp_path, [_launch(100.5, 5), _kernel(100, correlation=5)])
    assert line.clocks_agree
    (device,) = read_rank(line, lambda: None).devices
    assert (device.linked_kernels, device.launch_delay_ns) == (1, None)


@pytest.mark.parametrize(
    ("dtype", "size"), [("UInt32", 4000), ("Float8_e8m0fnu", 1000), ("Float4_e2m1fn_x2", 1000), ("Quux", UNKNOWN)]
)
def test_sizes_of_data_types(tmp_path: Path, dtype: str, size: int) -> None:
    known = {"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": dtype}
    assert _line(tmp_path, [_kernel(0, NCCL, **known)]).collectives.message_bytes.tolist() == [size]


def _op(name: str, dims: list[Any], number: int = 3, **args: Any) -> dict[str, Any]:
    types = ["c10::BFloat16"] * len(dims)
    return _event("cpu_op", name, 0, **{"External id": number, "Input Dims": dims, "Input type": types}, **args)


CONV = {"Concrete Inputs": ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]}
QKV = [[2, 64, 8, 32]] * 3


@pytest.mark.parametrize(
    ("op", "flops"),
    [
        (_op("aten::mm", [[3, 5], [5, 7]]), 2 * 3 * 5 * 7),
        (_op("aten::addmm", [[7], [3, 5], [5, 7]]), 2 * 3 * 5 * 7),
        (_op("aten::bmm", [[4, 3, 5], [4, 5, 7]]), 4 * 2 * 3 * 5 * 7),
        (_op("aten::baddbmm", [[4, 3, 7], [4, 3, 5], [4, 5, 7]]), 4 * 2 * 3 * 5 * 7),
        (_op("aten::linear", [[2, 3, 5], [7, 5], [7]]), 2 * 2 * 3 * 5 * 7),
        (_op("aten::convolution", [[1, 3, 8, 8], [16, 3, 3, 3], [16]], **CONV), 2 * 16 * 4 * 4 * 3 * 3 * 3),
        (_op("aten::convolution_backward", [[1, 16, 4, 4], [1, 3, 8, 8], [16, 3, 3, 3]]), 4 * 16 * 4 * 4 * 27),
        (_op("aten::_flash_attention_forward", QKV), 4 * 2 * 8 * 64 * 64 * 32),
        (_op("aten::_flash_attention_backward", [QKV[0], *QKV]), 10 * 2 * 8 * 64 * 64 * 32),
        (_op("aten::mm", [], flops=1234), 1234),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)
def test_work_of_an_operator_is_given_to_its_longest_fitting_kernel(tmp_path: Path, op: Any, flops: float) -> None:
    link = {"External id": 3}
    copy = _event("kernel", "void at::native::elementwise_kernel<128>", 50, 90, pid=0, device=0, stream=7, **link)
    line = _line(tmp_path, [op, _kernel(1, **link), copy, _kernel(200)])
    assert line.flops is not None
    assert line.flops.tolist()[0] == flops
    assert np.isnan(line.flops[1:]).all()


@pytest.mark.parametrize(
    ("name", "dims", "moved"),
    [("aten::add", [[8, 8], [8, 8]], 3 * 128), ("aten::copy_", [[8, 8], [8, 8]], 2 * 128), ("aten::gelu", [[8]], 32)],
)
def test_bytes_of_operators_that_read_and_write_once(tmp_path: Path, name: str, dims: Any, moved: float) -> None:
    kernel = _kernel(1, "void at::native::elementwise_kernel<128>", **{"External id": 3})
    line = _line(tmp_path, [_op(name, dims), kernel])
    assert line.moved_bytes is not None
    assert line.moved_bytes.tolist() == [moved]
    assert line.flops is None


@pytest.mark.parametrize(
    "op",
    [
        _op("aten::mm", [[3, 5], [6, 7]]),
        _op("aten::mm", [[3], [5, 7]]),
        _op("aten::mm", [[3, -5], [-5, 7]]),
        _op("aten::mm", ["a", {}]),
        _op("aten::convolution", [[1, 3, 8, 8], [16, 3, 3, 3], [16]]),
        _op("aten::unheard_of", [[3, 5], [5, 7]]),
        _event("cpu_op", "aten::mm", 0, **{"External id": 3}),
    ],
)
def test_shapes_that_do_not_fit_tell_nothing(tmp_path: Path, op: dict[str, Any]) -> None:
    line = _line(tmp_path, [op, _kernel(1, **{"External id": 3})])
    assert (line.flops, line.moved_bytes) == (None, None)


def test_ids_that_mean_something_else_tell_nothing(tmp_path: Path) -> None:
    events = [_op("aten::mm", [[3, 5], [5, 7]], number) for number in range(1, 9)]
    names = [GEMM, *["void at::native::elementwise_kernel<128>"] * 7]
    kernels = [_kernel(20 * number, name, **{"External id": number}) for number, name in enumerate(names, 1)]
    assert _line(tmp_path, [*events, *kernels]).flops is None


def test_categories_that_no_one_knows_and_events_without_one_change_nothing(tmp_path: Path) -> None:
    odd = [_event(f"odd{at}", "x", at) for at in range(200)] + [
        _event(None, "x", 1),
        _event("KERNEL", GEMM, 500, pid=0),
    ]
    line = _line(tmp_path, [_kernel(1), *odd, _kernel(600)])
    assert line.start_ns.tolist() == [1000, 500_000, 600_000]


@pytest.mark.parametrize("args", [[], "text", 5, None])
def test_arguments_of_another_kind_are_none(tmp_path: Path, args: Any) -> None:
    line = _line(tmp_path, [_kernel(1) | {"args": args}, _launch(0, 1) | {"args": args}])
    assert line.start_ns.tolist() == [1000]


def test_times_that_no_float_holds_are_exact_beside_events_that_are_passed_over(tmp_path: Path) -> None:
    events = [_kernel(1), _event("odd", "x", 5)]
    text = json.dumps({"schemaVersion": 1, "traceEvents": events})
    text = text.replace('"ts": 1,', '"ts": 1717200005019000.123,').replace('"name": "x"', '"name": ["\udcff"]')
    path = tmp_path / "trace.json"
    path.write_bytes(text.encode("utf-8", errors="surrogateescape"))
    assert read(path).timelines[0].start_ns.tolist() == [1_717_200_005_019_000_123]
