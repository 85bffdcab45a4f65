"""Nsight Compute: pages as CSV and the terminal report, old names and new, units and locales."""

import re
from pathlib import Path

import pytest

from profiling.evidence import KernelProfile, KernelProfiles
from profiling.formats import registry
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits
from profiling.notes import NoteCode, Refusal, RefusalCode, outcome_of
from tests.paths import SHARED
from tests.profiling.expected import Row, agrees, rows

FAULTS = rows("ncu-csv")
needs_captures = pytest.mark.skipif(not FAULTS, reason="the reference captures are not beside the checkout")
TITLES = {
    12: '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream","Section Name",'
    '"Metric Name","Metric Unit","Metric Value"',
    15: '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"',
}
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


def _read(tmp_path: Path, text: str, limits: Limits | None = None) -> Capture:
    path = tmp_path / "report.csv"
    path.write_text(text, encoding="utf-8")
    return registry.read(path, limits)


def _profiles(capture: Capture) -> tuple[KernelProfile, ...]:
    (evidence,) = capture.evidence
    assert isinstance(evidence, KernelProfiles)
    assert capture.format == Format.NCU
    return evidence.kernels


def _raw(tmp_path: Path, names: str, units: str, *values: str) -> KernelProfile:
    lines = [f'"ID","Kernel Name",{names}', f'"","",{units}', *(f'"{n}","k",{row}' for n, row in enumerate(values))]
    (found,) = _profiles(_read(tmp_path, "\n".join(lines)))
    return found


@needs_captures
@pytest.mark.parametrize("row", FAULTS, ids=lambda row: row.id)
def test_every_figure_of_the_fault_files_is_exact(row: Row) -> None:
    capture = registry.read(row.path)
    profiles = {one.name: one for one in _profiles(capture)}
    for key, fact in row.facts.items():
        match = re.fullmatch(r"(\w+)(?:\[(\w+)\])?", key)
        assert match
        if match[1] == "kernels":
            assert agrees(sum(one.launches for one in profiles.values()), fact)
            continue
        one = profiles[match[2]]
        known = {
            "duration_us": (one.duration_s or 0) * 1e6,
            "sm_pct": (one.compute_fraction or 0) * 100,
            "dram_pct": (one.dram_fraction or 0) * 100,
            "dram_bytes": one.dram_bytes,
            "dram_gbs": (one.dram_bytes_per_s or 0) / 1e9,
            "bound": one.bound,
        }[match[1]]
        assert known == fact if isinstance(known, str) else agrees(known, fact), key
    assert outcome_of(capture.notes) == row.outcome


@pytest.mark.skipif(not SHARED, reason="the reference captures are not beside the checkout")
def test_the_tools_own_rule_is_followed_in_real_reports() -> None:
    """Each of these files holds the tool's own sentence for kernels that it takes for latency bound."""
    assert SHARED
    folder = SHARED / "traces" / "files"
    names = (
        "ncu-clima/baseline-details.csv",
        "ncu-clima/mod-details.csv",
        "ncu-superbench/cublaslt_ncu.log",
        "ncu-txt-gpumode/triton_profile",
    )
    for name in names:
        text = (folder / name).read_text(encoding="utf-8")
        bounds = [one.bound for one in _profiles(registry.read(folder / name)) for _ in range(one.launches)]
        assert bounds.count("latency") == text.count("low compute throughput and memory bandwidth"), name
        assert None not in bounds


@pytest.mark.parametrize("width", [12, 15])
def test_details_of_any_width_among_other_output(tmp_path: Path, width: int) -> None:
    blank = '"",' * (width - 9)
    rows_ = [
        f'"{launch}","9","python","127.0.0.1","{name}",{blank}"SOL","{metric}","{unit}","{value}"'
        for launch, name, metric, unit, value in [
            (0, "a", "Duration", "us", "1,000.50"),
            (0, "a", "SOL SM", "%", "70.0"),
            (0, "a", "SOL Memory", "%", "80.0"),
            (0, "a", "", "", ""),
            (1, "a", "Duration", "us", "3,000.50"),
            (1, "a", "SOL SM", "%", "70.0"),
            (1, "a", "SOL Memory", "%", "80.0"),
        ]
    ]
    text = "\n".join(
        ["loss, 1.0, 2.0", "==PROF== Connected to process 9", TITLES[width], *rows_, "==PROF== Disconnected"]
    )
    (found,) = _profiles(_read(tmp_path, text))
    assert (found.launches, found.bound, found.memory_fraction) == (2, "memory", pytest.approx(0.8))
    assert found.duration_s == pytest.approx(2000.5e-6)


@pytest.mark.parametrize(
    ("compute", "memory", "bound"),
    [
        ("59.9", "59.9", "latency"),
        ("60", "20", "compute"),
        ("20", "60", "memory"),
        ("70", "70", "compute"),
        ("n/a", "90", None),
    ],
)
def test_what_bounds_a_kernel(tmp_path: Path, compute: str, memory: str, bound: str | None) -> None:
    found = _raw(tmp_path, f'"{SM}","{MEMORY}"', '"%","%"', f'"{compute}","{memory}"')
    assert found.bound == bound


@pytest.mark.parametrize(
    ("unit", "value", "size"),
    [("byte", "1500000", 1.5e6), ("Kbyte", "1,500.00", 1.5e6), ("Mbyte", "1.5", 1.5e6), ("Gbyte", "0.0015", 1.5e6)],
)
def test_the_units_row_scales(tmp_path: Path, unit: str, value: str, size: float) -> None:
    names = '"dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum"'
    found = _raw(tmp_path, names, f'"{unit}","{unit}","msecond"', f'"{value}","{value}","2"')
    assert found.dram_bytes == pytest.approx(2 * size)
    assert found.dram_bytes_per_s == pytest.approx(2 * size / 2e-3)


def test_a_comma_before_decimals_counts_for_the_whole_file(tmp_path: Path) -> None:
    found = _raw(tmp_path, f'"gpu__time_duration.sum","{SM}","{MEMORY}"', '"ns","%","%"', '"27.595","21,75","6,5"')
    assert found.duration_s == pytest.approx(27595e-9)
    assert found.compute_fraction == pytest.approx(0.2175)


def test_means_of_launches_are_weighted_by_time(tmp_path: Path) -> None:
    found = _raw(tmp_path, f'"gpu__time_duration.sum","{SM}"', '"us","%"', '"1","10"', '"3","50"')
    assert (found.launches, found.duration_s) == (2, pytest.approx(2e-6))
    assert found.compute_fraction == pytest.approx(0.4)


@pytest.mark.parametrize(("tensor", "flops"), [("0", 2 * 30 + 5 + 7), ("1.5", None)])
def test_operations_are_counted_where_no_tensor_core_works(tmp_path: Path, tensor: str, flops: float | None) -> None:
    op = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
    names = ",".join(f'"{op.format(one)}"' for one in ("ffma", "fadd", "dmul"))
    names += ',"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active","gpu__time_duration.sum"'
    found = _raw(tmp_path, names, '"inst","inst","inst","%","ns"', f'"30","5","7","{tensor}","1000"')
    assert found.flops == flops
    assert found.flops_per_s == (None if flops is None else pytest.approx(flops / 1e-6))


def test_the_terminal_report(tmp_path: Path) -> None:
    text = """==PROF== Connected to process 1 (/usr/bin/python3)
[1] python3@127.0.0.1
  void gemm<float, (int)4>(float *, int) (64, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ------------- ------------
    Metric Name               Metric Unit Metric Value
    ----------------------- ------------- ------------
    Memory Throughput                   %        20.57
    Duration                      usecond     1,005.92
    Compute (SM) Throughput             %        82.33
    ----------------------- ------------- ------------

    INF   This kernel is compute bound
"""
    (found,) = _profiles(_read(tmp_path, text))
    assert (found.name, found.bound) == ("void gemm<float, (int)4>(float *, int)", "compute")
    assert found.duration_s == pytest.approx(1005.92e-6)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU",
            RefusalCode.NO_COUNTERS,
        ),
        ("==WARNING== No kernels were profiled.", RefusalCode.NO_ROWS),
        (TITLES[15], RefusalCode.NO_ROWS),
    ],
)
def test_reports_without_a_kernel_are_refused(tmp_path: Path, text: str, code: RefusalCode) -> None:
    with pytest.raises(Refusal) as caught:
        _read(tmp_path, f"==PROF== Connected to process 1\n{text}\n")
    assert caught.value.code == code


def test_figures_that_are_not_there_are_told_and_launches_bounded(tmp_path: Path) -> None:
    text = "\n".join(['"ID","Kernel Name","gpu__time_duration.sum"', '"","","ns"', '"0","a","5"', '"1","a","n/a"'])
    capture = _read(tmp_path, text)
    assert [(note.code, note.params["count"]) for note in capture.notes] == [(NoteCode.VALUES_MISSING, 1)]
    with pytest.raises(Refusal) as caught:
        _read(tmp_path, text, Limits(rows=1))
    assert caught.value.code == RefusalCode.TOO_MANY_ROWS


def test_titles_of_both_pages_in_one_row_are_of_the_raw_page(tmp_path: Path) -> None:
    text = "\n".join(['"ID","Metric Name","Kernel Name","gpu__time_duration.sum"', '"","","","ns"', '"0","","a","5"'])
    (found,) = _profiles(_read(tmp_path, text))
    assert found.duration_s == pytest.approx(5e-9)
