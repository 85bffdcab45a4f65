"""Reports of nsys stats: CSV and terminal text, sums and the trace."""

import re
from pathlib import Path
from typing import Any

import pytest

from profiling.evidence import KernelSums, SummedKernel
from profiling.formats import registry
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits
from profiling.kernels import COMMUNICATING, classify
from profiling.notes import NoteCode, Refusal, RefusalCode, outcome_of
from profiling.timeline import UNKNOWN, WorkKind
from tests.paths import SHARED
from tests.profiling.expected import Row, agrees, rows

FAULTS = rows("nsys-stats-csv")
needs_captures = pytest.mark.skipif(not FAULTS, reason="the reference captures are not beside the checkout")
NEW = "Time (%),Total Time ({unit}),Instances,Avg ({unit}),Med ({unit}),Min ({unit}),Max ({unit}),StdDev ({unit}),Name"
CALLS = "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"
TRACE = (
    "Start ({unit}),Duration ({unit}),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),"
    "Bytes (MB),Throughput (MBps),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name"
)


def _read(tmp_path: Path, text: str, limits: Limits | None = None) -> Capture:
    path = tmp_path / "report.csv"
    path.write_text(text, encoding="utf-8")
    return registry.read(path, limits)


def _sums(capture: Capture) -> tuple[SummedKernel, ...]:
    (evidence,) = capture.evidence
    assert isinstance(evidence, KernelSums)
    return evidence.rows


def _kernels(capture: Capture) -> list[tuple[str, int | None, int]]:
    return [(row.name, row.count, row.total_ns) for row in _sums(capture) if row.kind == WorkKind.KERNEL]


@needs_captures
@pytest.mark.parametrize("row", FAULTS, ids=lambda row: row.id)
def test_every_figure_of_the_fault_files_is_exact(row: Row) -> None:
    capture = registry.read(row.path)
    summed = _sums(capture)
    kernels = [one for one in summed if one.kind == WorkKind.KERNEL]
    communicating = [one for one in kernels if classify(one.name)[0] in COMMUNICATING]
    copies = [one for one in summed if one.kind in (WorkKind.COPY, WorkKind.FILL)]
    known: dict[str, Any] = {
        "kernel_time_sum_us": sum(one.total_ns for one in kernels) / 1000,
        "comm_time_sum_us": sum(one.total_ns for one in communicating) / 1000,
        "copy_time_sum_us": sum(one.total_ns for one in copies) / 1000,
        "kernels": sum(one.count or 0 for one in kernels),
        "gpu_busy_us": None,
    }
    assert all(agrees(known[key], fact) for key, fact in row.facts.items())
    assert not capture.timelines
    assert outcome_of(capture.notes) == row.outcome
    assert NoteCode.NO_TIMELINE in {note.code for note in capture.notes}


@pytest.mark.skipif(not SHARED, reason="the reference captures are not beside the checkout")
def test_sums_of_terminal_reports_are_those_that_a_plain_pattern_finds() -> None:
    assert SHARED
    pattern = re.compile(r"\s+[\d.]+\s+([\d,]+)\s+([\d,]+)\s")
    for path in sorted((SHARED / "traces" / "files").glob("nsys-txt-*/*")):
        report, time, count = False, 0, 0
        for line in path.read_text(encoding="utf-8").splitlines():
            report = "(cuda_gpu_kern_sum)" in line if line.startswith(" ** ") else report
            if report and (match := pattern.match(line)):
                time, count = time + int(match[1].replace(",", "")), count + int(match[2].replace(",", ""))
        found = _kernels(registry.read(path))
        assert (sum(row[2] for row in found), sum(row[1] or 0 for row in found)) == (time, count), path.name
        assert count


@pytest.mark.parametrize(("unit", "time"), [("ns", "1500"), ("us", "1.5"), ("ms", "0.0015"), ("s", "0.0000015")])
def test_units_stand_in_the_titles(tmp_path: Path, unit: str, time: str) -> None:
    text = f'{NEW.format(unit=unit)}\n100.0,{time},3,1,1,1,1,0,"gemm<a, b>"\n'
    assert _kernels(_read(tmp_path, text)) == [("gemm<a, b>", 3, 1500)]


def test_points_part_thousands_where_commas_part_decimals(tmp_path: Path) -> None:
    """As a spreadsheet in German stores the report again."""
    report = (
        "Time (%);Total Time (ns);Instances;Avg (ns);Name\n"
        "60,0;600.500;6;100.083,3;gemm_k\n40,0;400.250;1.004;398,7;ncclDevKernel_AllGather_RING_LL\n"
    )
    assert _kernels(_read(tmp_path, report)) == [
        ("gemm_k", 6, 600_500),
        ("ncclDevKernel_AllGather_RING_LL", 1004, 400_250),
    ]


def test_old_titles_without_units_are_in_nanoseconds(tmp_path: Path) -> None:
    text = "Time(%),Total Time,Instances,Average,Minimum,Maximum,Name\n70.0,700,7,100,100,100,gemm\n"
    assert _kernels(_read(tmp_path, text)) == [("gemm", 7, 700)]


def test_reports_of_the_host_and_reports_by_grid_count_nothing_twice(tmp_path: Path) -> None:
    kernel = "60.0,600,6,100,100,100,100,0.0,gemm"
    by_grid = NEW.format(unit="ns").replace("Name", "GridXYZ,BlockXYZ,Name")
    copies = NEW.format(unit="ns").replace("Instances", "Count").replace("Name", "Operation")
    ranges = NEW.format(unit="ns").replace("Name", "Style,Range")
    text = "\n".join(
        [
            *(
                "Processing [a.sqlite] with [/opt/reports/cuda_api_sum.py]... ",
                CALLS,
                "99.0,9999,9,1,1,1,1,0.0,cudaMalloc",
                "",
            ),
            *(NEW.format(unit="ns"), kernel, "", NEW.format(unit="ns"), kernel, ""),
            *(by_grid, "60.0,600,6,100,100,100,100,0.0,1 1 1,128 1 1,gemm", ""),
            *(ranges, "60.0,600,6,100,100,100,100,0.0,PushPop,step", ""),
            *(
                copies,
                "50.0,20,2,10,10,10,10,0.0,[CUDA memset]",
                "50.0,20,2,10,10,10,10,0.0,[CUDA memcpy Peer-to-Peer]",
            ),
            *(
                "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation",
                "1.0,2,1,1,1,1,0,[CUDA memset]",
            ),
        ]
    )
    rows_ = [(row.name, row.kind, row.total_ns) for row in _sums(_read(tmp_path, text))]
    assert rows_ == [
        ("gemm", WorkKind.KERNEL, 600),
        ("[CUDA memset]", WorkKind.FILL, 20),
        ("[CUDA memcpy Peer-to-Peer]", WorkKind.PEER_COPY, 20),
    ]


def test_a_terminal_report_is_cut_at_its_rule(tmp_path: Path) -> None:
    text = """step 1 done, loss 2.5, 3 left

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)      Name
 --------  ---------------  ---------  --------  -------------
     90.0        1,234,567         10      12.0  gemm<1, 2> a…
     10.0          100,000         20    5000.0  norm

 ** OS Runtime Summary (osrt_sum):

 Time (%)  Total Time (ns)  Num Calls  Avg (ns)      Name
 --------  ---------------  ---------  --------  -------------
     90.0          900,000          1      12.0  poll
"""
    assert _kernels(_read(tmp_path, text)) == [("gemm<1, 2> a…", 10, 1_234_567), ("norm", 20, 100_000)]


@pytest.mark.parametrize(("unit", "scale"), [("ns", 1), ("us", 1000)])
def test_the_gpu_trace_is_a_timeline(tmp_path: Path, unit: str, scale: int) -> None:
    lines = [
        TRACE.format(unit=unit),
        "3000,100,2,1,1,1,1,1,1,2,0.0,0.0,,,,,NVIDIA A100 (1),1,7,gemm",
        '1000,"1,500",1,,,,,,,,,,1.049,9.0,Pageable,Device,NVIDIA A100 (1),1,8,[CUDA memcpy Host-to-Device]',
        "4000,50,1,,,,,,,,,,2.000,9.0,Device,Device,NVIDIA A100 (1),1,8,[CUDA memcpy Peer-to-Peer]",
        "later,50,1,,,,,,,,,,2.000,9.0,Device,Device,NVIDIA A100 (1),1,8,gemm",
    ]
    capture = _read(tmp_path, "\n".join(lines))
    (line,) = capture.timelines
    assert line.start_ns.tolist() == [1000 * scale, 3000 * scale, 4000 * scale]
    assert line.duration_ns.tolist() == [1500 * scale, 100 * scale, 50 * scale]
    assert line.kind.tolist() == [WorkKind.COPY, WorkKind.KERNEL, WorkKind.PEER_COPY]
    assert line.bytes.tolist() == [1_049_000, UNKNOWN, 2_000_000]
    assert (line.device.tolist(), line.device_names, len(set(line.stream.tolist()))) == ([1] * 3, {1: "NVIDIA A100"}, 2)
    assert {note.code: note.params["count"] for note in capture.notes} == {NoteCode.BAD_TIMES: 1}
    assert line.vendor == "NVIDIA"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{CALLS}\n99.0,9999,9,1,1,1,1,0.0,cudaMalloc\n", RefusalCode.NO_ROWS),
        (f"{NEW.format(unit='ns')}\n", RefusalCode.NO_ROWS),
        (
            "Processing [a.sqlite] with [/opt/reports/cuda_gpu_kern_sum.py]... \n"
            "SKIPPED: a.sqlite does not contain CUDA kernel data.\n",
            RefusalCode.CUDA_NOT_TRACED,
        ),
    ],
)
def test_reports_without_a_gpu_are_refused(tmp_path: Path, text: str, code: RefusalCode) -> None:
    path = tmp_path / "report.csv"
    path.write_text("Processing [a.sqlite] with [/opt/reports/cuda_api_sum.py]... \n" + text, encoding="utf-8")
    with pytest.raises(Refusal) as caught:
        registry.read(path)
    assert caught.value.code == code


def test_rows_are_bounded_and_missing_sums_told(tmp_path: Path) -> None:
    text = (
        NEW.format(unit="ns")
        + "\n"
        + "".join(f"1.0,{n},1,1,1,1,1,0,k{n}\n" for n in range(9))
        + "1.0,n/a,1,1,1,1,1,0,x\n"
    )
    capture = _read(tmp_path, text)
    assert capture.format == Format.NSYS_STATS
    assert {note.code for note in capture.notes} == {NoteCode.NO_TIMELINE, NoteCode.VALUES_MISSING}
    with pytest.raises(Refusal) as caught:
        _read(tmp_path, text, Limits(rows=9))
    assert caught.value.code == RefusalCode.TOO_MANY_ROWS


@pytest.mark.parametrize("count", ["1e22", "9223372036854775808", "-1", "n/a"])
def test_a_count_that_cannot_be_true_is_unknown(tmp_path: Path, count: str) -> None:
    (row,) = _sums(_read(tmp_path, f"{NEW.format(unit='ns')}\n100,500,{count},1,1,1,1,1,gemm\n"))
    assert (row.count, row.total_ns) == (None, 500)
