"""CSV files of rocprof, rocprofv2 and rocprofv3 of all layouts, alone and as files of one run."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from profiling.analysis import analyse
from profiling.document import analysis_document
from profiling.evidence import KernelProfiles, KernelSums
from profiling.formats import rocprof_csv
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits, Watch
from profiling.formats.rocprof_run import run_of
from profiling.formats.source import Source
from profiling.label import bottleneck_of
from profiling.messages import sentence
from profiling.notes import NoteCode, Refusal, RefusalCode
from profiling.timeline import StepSource, Timeline, WorkKind
from tests.profiling.expected import FIELDS, Row, agrees, rows

V3 = rows("rocprofv3-csv")
OLD = "Kind,Agent_Id,Queue_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Private_Segment_Size"
NEW = "Guid,Kind,Agent_Id,Queue_Id,Stream_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Duration,Scratch"
COPY = "Kind,Direction,Stream_Id,Source_Agent_Id,Destination_Agent_Id,Correlation_Id,Start_Timestamp,End_Timestamp"
CALLS = "Domain,Function,Process_Id,Thread_Id,Correlation_Id,Start_Timestamp,End_Timestamp"
AGENTS = "Node_Id,Logical_Node_Id,Agent_Type,Cu_Count,Name,Vendor_Name,Product_Name,Model_Name"
V1 = (
    "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj,"
    "DispatchNs,BeginNs,EndNs,CompleteNs"
)


def write(folder: Path, name: str, header: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def read(*paths: Path, limits: Limits | None = None) -> Capture:
    return rocprof_csv.read_run([Source(path, path.name, Watch(limits=limits or Limits())) for path in paths])


def line_of(*paths: Path) -> Timeline:
    (line,) = read(*paths).timelines
    return line


def names(line: Timeline) -> list[str]:
    return [line.names[at] for at in line.name_id]


# --- the table of hand-made faults -------------------------------------------------------------------------------


@pytest.mark.skipif(not V3, reason="the reference captures are not beside the checkout")
@pytest.mark.parametrize("row", [row for row in V3 if row.outcome != "error"], ids=lambda row: row.id)
def test_figures_are_exact(row: Row) -> None:
    analysis = analyse([row.path])
    assert analysis.outcome == row.outcome
    assert set(row.facts) <= set(FIELDS)
    (part,) = analysis_document(analysis)["ranks"]
    assert {key: part[key] for key, fact in row.facts.items() if not agrees(part[key], fact)} == {}


@pytest.mark.skipif(not V3, reason="the reference captures are not beside the checkout")
@pytest.mark.parametrize("row", [row for row in V3 if row.outcome == "error"], ids=lambda row: row.id)
def test_files_without_dispatches_are_refused(row: Row) -> None:
    with pytest.raises(Refusal) as caught:
        analyse([row.path])
    assert "no kernel dispatches recorded" in sentence(caught.value).lower()


# --- layouts -----------------------------------------------------------------------------------------------------


def test_rows_of_2024_have_integers_for_agents_and_queues_for_streams(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "1_kernel_trace.csv",
        OLD,
        '"KERNEL_DISPATCH",1,140690,15,"void g<float, 2>(int*, int)",0,9000000000000000500,9000000000000000900,0',
        '"KERNEL_DISPATCH",1,140691,15,"f(int)",0,9000000000000000001,9000000000000000002,0',
    )
    capture = read(path)
    (line,) = capture.timelines
    assert capture.format is Format.ROCPROF_V3
    assert capture.notes == ()
    assert names(line) == ["f(int)", "void g<float, 2>(int*, int)"]
    assert line.start_ns.tolist() == [9000000000000000001, 9000000000000000500]
    assert line.duration_ns.tolist() == [1, 400]
    assert line.devices == (1,)
    assert len(set(line.stream.tolist())) == 2
    assert line.vendor == "AMD"
    assert not line.incomplete
    assert line.host.launches is None


def test_rows_of_2026_have_an_id_in_front_and_a_duration_behind(tmp_path: Path) -> None:
    path = write(tmp_path, "k.csv", NEW, '"00-11","KERNEL_DISPATCH","Agent 7",1,3,"f",4,100,150,50,0')
    line = line_of(path)
    assert line.devices == (7,)
    assert (line.start_ns.tolist(), line.duration_ns.tolist()) == ([100], [50])


@pytest.mark.parametrize("early", ["0,1000,1500,0", "900,1000,1500,1600"])
def test_rows_of_rocprofv2_lack_two_cells_before_their_times(tmp_path: Path, early: str) -> None:
    path = write(tmp_path, "results_0.csv", V1, f'1,"f(int, int) [clone .kd]",2,0,0,7,7,64,64,0,0,8,0,16,64,{early}')
    capture = read(path)
    (line,) = capture.timelines
    assert capture.format is Format.ROCPROF
    assert names(line) == ["f(int, int)"]
    assert (line.start_ns.tolist(), line.duration_ns.tolist(), line.devices) == ([1000], [500], (2,))
    assert [(note.code, note.params) for note in capture.notes] == [(NoteCode.TOO_FEW_VALUES, {"count": 1})]


def test_rows_of_rocprofv2_may_lack_the_same_cells_before_their_names(tmp_path: Path) -> None:
    header = "Dispatch_ID,GPU_ID,Queue_ID,SGPR,SIG,OBJ,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID"
    path = write(tmp_path, "results_7.csv", header, '1,3,1,64,"f",10,40,5', '2,3,1,64,0,0,"g",50,70,6')
    capture = read(path)
    (line,) = capture.timelines
    assert (names(line), line.duration_ns.tolist()) == (["f", "g"], [30, 20])
    assert [(note.code, note.params) for note in capture.notes] == [(NoteCode.TOO_FEW_VALUES, {"count": 1})]


def test_whole_rows_of_rocprof(tmp_path: Path) -> None:
    path = write(
        tmp_path, "results.csv", V1 + ",DurationNs", '0,"f.kd",4,0,0,7,7,64,64,0,0,8,0,16,64,0,0x7,1,10,30,40,20'
    )
    assert line_of(path).duration_ns.tolist() == [20]


def test_second_layout_of_rocprofv2(tmp_path: Path) -> None:
    header = "Dispatch_ID,GPU_ID,Queue_ID,PID,TID,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID,SQ_WAVES"
    capture = read(write(tmp_path, "results_7.csv", header, '1,3,1,7,7,"f",10,40,5,1024'))
    assert capture.format is Format.ROCPROF
    assert capture.timelines[0].devices == (3,)


def test_program_output_before_the_header_is_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, "k.csv", "Hello, world, from, a, program", OLD, '"KERNEL_DISPATCH",1,2,3,"f",0,10,20,0')
    assert rocprof_csv.recognises(Source(path, path.name, Watch(limits=Limits())).head())
    assert line_of(path).duration_ns.tolist() == [10]


@pytest.mark.parametrize("times", ["0,0", ",", "5,x", "-7,-3", "10,99999999999999999999", "20,90000000000000"])
def test_rows_without_usable_times_are_counted(tmp_path: Path, times: str) -> None:
    good = '"KERNEL_DISPATCH",1,2,3,"f",0,10,20,0'
    capture = read(write(tmp_path, "k.csv", OLD, good, f'"KERNEL_DISPATCH",1,2,3,"g",0,{times},0'))
    assert names(capture.timelines[0]) == ["f"]
    assert [(note.code, note.params) for note in capture.notes] == [(NoteCode.BAD_TIMES, {"count": 1})]


def test_rows_that_end_before_they_start_are_counted(tmp_path: Path) -> None:
    good = '"KERNEL_DISPATCH",1,2,3,"f",0,10,20,0'
    capture = read(write(tmp_path, "k.csv", OLD, good, '"KERNEL_DISPATCH",1,2,3,"g",0,30,20,0'))
    assert [(note.code, note.params) for note in capture.notes] == [(NoteCode.NEGATIVE_DURATIONS, {"count": 1})]


# --- copies ------------------------------------------------------------------------------------------------------


def copies(folder: Path, *lines: str) -> Path:
    return write(folder, "1_memory_copy_trace.csv", COPY, *lines)


def test_copies_belong_to_the_gpu_at_their_end(tmp_path: Path) -> None:
    path = copies(
        tmp_path,
        '"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE",0,"Agent 0","Agent 5",1,10,20',
        '"MEMORY_COPY","DEVICE_TO_HOST",0,4,0,1,30,40',
        '"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_DEVICE",0,"Agent 4","Agent 5",1,50,60',
        '"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_DEVICE",0,"Agent 4","Agent 4",1,70,80',
    )
    capture = read(path)
    (line,) = capture.timelines
    assert line.device.tolist() == [5, 4, 4, 4]
    assert line.kind.tolist() == [WorkKind.COPY, WorkKind.COPY, WorkKind.PEER_COPY, WorkKind.COPY]
    assert line.bytes.tolist() == [-1] * 4
    assert [note.code for note in capture.notes] == [NoteCode.COPIES_ONLY]
    assert line.incomplete


def test_copies_alone_tell_neither_idle_time_nor_what_bounds_the_job_nor_a_step(tmp_path: Path) -> None:
    path = copies(tmp_path, *(f'"MEMORY_COPY","DEVICE_TO_HOST",0,4,0,1,{at}0,{at}5' for at in range(1, 20)))
    analysis = analyse([path])
    (rank,) = analysis_document(analysis)["ranks"]
    assert rank["copy_us"] == pytest.approx(0.095)
    assert (rank["gpu_busy_us"], rank["idle_us"]) == (None, None)
    assert set(rank["idle_by_cause"].values()) == {None}
    assert bottleneck_of(analysis) is None
    assert analysis.workload is None


# --- files of one run --------------------------------------------------------------------------------------------


def run(folder: Path) -> list[Path]:
    return [
        write(
            folder,
            "9_kernel_trace.csv",
            NEW,
            '"g","KERNEL_DISPATCH","Agent 3",1,0,"f",12,1000,1500,500,0',
            '"g","KERNEL_DISPATCH","Agent 2",1,0,"__amd_rocclr_fillBufferAligned",14,2000,2100,100,0',
        ),
        write(
            folder, "9_memory_copy_trace.csv", COPY, '"MEMORY_COPY","HOST_TO_DEVICE",0,"Agent 0","Agent 3",16,300,400'
        ),
        write(
            folder,
            "9_hip_api_trace.csv",
            CALLS,
            '"HIP_RUNTIME_API","hipLaunchKernel",9,9,12,900,950',
            '"HIP_COMPILER_API","__hipPushCallConfiguration",9,9,13,890,895',
            '"HIP_RUNTIME_API_EXT","hipMemsetAsync",9,9,14,1900,1950',
            '"HIP_RUNTIME_API","hipMemcpyAsync",9,9,16,200,250',
            '"HIP_RUNTIME_API","hipStreamSynchronize",9,9,17,1960,2200',
            '"HIP_RUNTIME_API","hipGraphAddMemcpyNode",9,9,18,2300,2310',
            '"HSA_CORE_API","hsa_signal_wait_scacquire",9,9,19,1,2',
            '"MARKER_CORE_API","step 0",9,9,20,100,900',
            '"MARKER_CORE_API","step 1",9,9,21,900,1700',
            '"MARKER_CORE_API","step 2",9,9,22,1700,2500',
            '"MARKER_CORE_API","point",9,9,23,1700,1700',
        ),
        write(
            folder,
            "9_agent_info.csv",
            AGENTS,
            '3,3,"GPU",304,"gfx942","AMD","AMD Instinct MI300X",""',
            '0,0,"CPU",0,"EPYC","CPU","EPYC",""',
            '2,2,"GPU",304,"gfx942","AMD","AMD Instinct MI300X",""',
            '1,1,"CPU",0,"EPYC","CPU","EPYC",""',
        ),
        write(
            folder,
            "9_kernel_stats.csv",
            "Name,Calls,TotalDurationNs,AverageNs,Percentage,MinNs",
            '"f",1,500,500,100,500',
        ),
    ]


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 4, 1, 3)])
def test_files_of_one_run_make_one_timeline(tmp_path: Path, order: Sequence[int]) -> None:
    paths = run(tmp_path)
    capture = read(*[paths[at] for at in order])
    (line,) = capture.timelines
    assert capture.evidence == ()
    assert line.start_ns.tolist() == [300, 1000, 2000]
    assert line.device.tolist() == [1, 1, 0]
    assert line.kind.tolist() == [WorkKind.COPY, WorkKind.KERNEL, WorkKind.FILL]
    assert line.launched_ns.tolist() == [200, 900, 1900]
    assert line.device_names == {0: "AMD Instinct MI300X", 1: "AMD Instinct MI300X"}
    assert line.host.launches == 3
    assert (line.host.waits.start.tolist(), line.host.waits.end.tolist()) == ([1960], [2200])
    assert line.steps_from is StepSource.RANGES
    assert [(step.number, step.start_ns) for step in line.steps] == [(0, 100), (1, 900), (2, 1700)]


def test_agents_may_be_called_by_their_number_among_gpus(tmp_path: Path) -> None:
    kernels = write(tmp_path, "k.csv", NEW, '"g","KERNEL_DISPATCH","GPU 1",1,0,"f",12,1000,1500,500,0')
    assert line_of(kernels, run(tmp_path)[3]).devices == (1,)
    assert line_of(kernels).devices == (1,)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("out/12_kernel_trace.csv", "out/12"),
        ("out/12_memory_copy_trace.csv.gz", "out/12"),
        ("out/12_agent_info.csv", "out/12"),
        ("out/12_hip_runtime_api_trace.csv", "out/12"),
        ("rank_0_kernel_stats.csv", "rank_0"),
        ("results.hip_stats.csv", "results"),
        ("kernel_trace.csv", "-"),
        ("trace.json", None),
        ("kernel_trace_notes.csv", None),
    ],
)
def test_names_tell_which_files_are_of_one_run(name: str, expected: str | None) -> None:
    assert run_of(name) == expected


@pytest.mark.parametrize("at", [2, 3])
def test_a_part_without_device_work_is_refused_by_its_name(tmp_path: Path, at: int) -> None:
    with pytest.raises(Refusal) as caught:
        read(run(tmp_path)[at])
    assert caught.value.code is RefusalCode.PART_OF_RUN
    assert re.search("API calls|list of devices", sentence(caught.value))


# --- sums and counters -------------------------------------------------------------------------------------------


def test_sums_tell_kernels_from_copies_and_leave_calls_out(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "x_kernel_stats.csv",
        "Name,Calls,TotalDurationNs,AverageNs,Percentage,MinNs,MaxNs,StdDev",
        '"copy_kernel<int, 4>(int*)",3,4500,1500.0,60.0,1,2,3',
        '"MEMORY_COPY_HOST_TO_DEVICE",2,3000,1500.0,40.0,1,2,3',
        '"__amd_rocclr_fillBufferAligned",2,100,50.0,1.0,1,2,3',
        '"hipMemcpy",2,9000,1500.0,40.0,1,2,3',
        '"HIP_API",2,9000,1500.0,40.0,1,2,3',
        '"ncclDevKernel_Generic_4(x)",1,7,7.0,1.0,7,7,0',
        '"ncclAllReduce",1,7,7.0,1.0,7,7,0',
    )
    capture = read(path)
    (sums,) = capture.evidence
    assert isinstance(sums, KernelSums)
    assert [(row.name, row.kind, row.count, row.total_ns) for row in sums.rows] == [
        ("copy_kernel<int, 4>(int*)", WorkKind.KERNEL, 3, 4500),
        ("MEMORY_COPY_HOST_TO_DEVICE", WorkKind.COPY, 2, 3000),
        ("__amd_rocclr_fillBufferAligned", WorkKind.FILL, 2, 100),
        ("ncclDevKernel_Generic_4(x)", WorkKind.KERNEL, 1, 7),
    ]
    assert [note.code for note in capture.notes] == [NoteCode.NO_TIMELINE]
    assert capture.format is Format.ROCPROF_V3


def test_sums_of_calls_alone_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "x_hip_stats.csv", "Name,Calls,TotalDurationNs,AverageNs,Percentage", '"hipFree",1,2,2,100')
    with pytest.raises(Refusal) as caught:
        read(path)
    assert caught.value.code is RefusalCode.PART_OF_RUN


def test_counters_give_means_per_kernel_and_no_timeline(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "x_counter_collection.csv",
        "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp",
        '1,1,"Agent 1",1,"f","FETCH_SIZE",1000,10,1010',
        '1,1,"Agent 1",1,"f","WRITE_SIZE",500.0,10,1010',
        '2,2,"Agent 1",1,"f","FETCH_SIZE",3000,2000,5000',
        '2,2,"Agent 1",1,"f","WRITE_SIZE",1500,2000,5000',
        '3,3,"Agent 1",1,"g","SQ_WAVES",7,6000,6400',
    )
    capture = read(path)
    (profiles,) = capture.evidence
    assert isinstance(profiles, KernelProfiles)
    first, second = profiles.kernels
    assert (first.name, first.duration_s, first.dram_bytes) == ("f", pytest.approx(2e-6), 3000 * 1024)
    assert first.dram_bytes_per_s == pytest.approx(3000 * 1024 / 2e-6)
    assert (second.name, second.duration_s, second.dram_bytes) == ("g", pytest.approx(4e-7), None)
    assert [note.code for note in capture.notes] == [NoteCode.NO_TIMELINE]
    assert capture.timelines == ()


def test_counters_of_rocprof_stand_in_columns(tmp_path: Path) -> None:
    header = "Index,KernelName,gpu-id,queue-id,pid,tid,obj,FETCH_SIZE,WRITE_SIZE"
    (profiles,) = read(
        write(tmp_path, "input.csv", header, '0,"f.kd",2,0,1,1,0x0,10,5', '1,"f.kd",2,0,1,1,0x0,30,5')
    ).evidence
    assert isinstance(profiles, KernelProfiles)
    assert [(one.name, one.duration_s, one.dram_bytes) for one in profiles.kernels] == [("f", None, 25 * 1024)]


@pytest.mark.parametrize(
    "titles",
    ["a,b,c", "Name,Calls,Total Time (ns)", "Kind,Operation,Agent_Id,Start_Timestamp,End_Timestamp", "Kernel Name,ID"],
)
def test_other_tables_are_not_taken(tmp_path: Path, titles: str) -> None:
    path = write(tmp_path, "1_kernel_trace.csv", titles, "1,2,3,4,5")
    assert not rocprof_csv.recognises(Source(path, path.name, Watch(limits=Limits())).head())


def test_limits_are_named(tmp_path: Path) -> None:
    lines = [f'"KERNEL_DISPATCH",1,2,3,"f{at}",0,{10 * at + 10},{10 * at + 15},0' for at in range(30)]
    path = write(tmp_path, "k.csv", OLD, *lines)
    with pytest.raises(Refusal) as caught:
        read(path, limits=Limits(names=20))
    assert caught.value.code is RefusalCode.TOO_MANY_NAMES
    with pytest.raises(Refusal) as caught:
        read(path, limits=Limits(events=20))
    assert caught.value.params["limit"] == 20
