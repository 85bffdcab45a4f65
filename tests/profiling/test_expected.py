"""Every hand-made Kineto fault file against what a right reader says of it."""

import re

import pytest

from profiling.analysis import Analysis, analyse
from profiling.document import analysis_document
from profiling.messages import sentence
from profiling.notes import NoteCode, Outcome, Refusal
from tests.profiling.expected import FIELDS, Row, agrees, rows

KINETO = rows("kineto", "chrome-trace")
pytestmark = pytest.mark.skipif(not KINETO, reason="the reference captures are not beside the checkout")


def _part(analysis: Analysis, mark: str | None) -> dict[str, float | None]:
    parts = analysis_document(analysis)["ranks"]
    if mark is None:
        return parts[0]
    key = "rank" if mark[0] == "r" else "device_index"
    return next(part for part in parts if part[key] == int(mark[1:]))


def _figures(row: Row) -> list[tuple[str, str, str | None, str]]:
    found = []
    for key, fact in row.facts.items():
        match = re.fullmatch(r"(\w+?)(?:\[(r\d+|d\d+)\])?", key)
        if match and match[1] in FIELDS:
            found.append((key, match[1], match[2], fact))
    return found


@pytest.mark.parametrize("row", [row for row in KINETO if row.outcome not in ("error",)], ids=lambda row: row.id)
def test_figures_are_exact(row: Row) -> None:
    analysis = analyse([row.path])
    wrong = {
        key: (_part(analysis, mark)[name], fact)
        for key, name, mark, fact in _figures(row)
        if not agrees(_part(analysis, mark)[name], fact)
    }
    assert not wrong
    if "ranks" in row.facts and row.facts["ranks"] != "0":
        assert [part.rank for part in analysis.ranks] == [int(rank) for rank in row.facts["ranks"].split(",")]


@pytest.mark.parametrize("row", [row for row in KINETO if row.outcome == "error"], ids=lambda row: row.id)
def test_hopeless_files_are_refused_with_a_sentence(row: Row) -> None:
    with pytest.raises(Refusal) as caught:
        analyse([row.path])
    text = sentence(caught.value)
    assert text.endswith(".")
    assert len(text) <= 200


@pytest.mark.parametrize("row", [row for row in KINETO if row.outcome == "warn"], ids=lambda row: row.id)
def test_faults_that_change_trust_are_told(row: Row) -> None:
    assert analyse([row.path]).outcome in (Outcome.WARN, Outcome.PARTIAL)


@pytest.mark.parametrize("row", [row for row in KINETO if row.outcome == "ok"], ids=lambda row: row.id)
def test_sound_files_raise_no_warning(row: Row) -> None:
    assert analyse([row.path]).outcome == Outcome.OK


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("P01_truncated_mid_event.json", NoteCode.FILE_TRUNCATED),
        ("P04_gzip_trailing_bytes.json.gz", NoteCode.BYTES_AFTER_GZIP),
        ("P07_non_utf8_name.json", NoteCode.NAMES_NOT_UTF8),
        ("P12_merged_two_ranks.json", NoteCode.RANKS_MERGED),
        ("P13_windows_path.json", NoteCode.ESCAPES_REPAIRED),
        ("P15_control_chars.json", NoteCode.CONTROL_CHARACTERS),
        ("P16_nan_inf.json", NoteCode.BARE_NUMBERS),
        ("P18_unquoted_hex.json", NoteCode.BARE_TOKENS),
        ("P22_duplicate_keys.json", NoteCode.DUPLICATE_KEYS),
        ("P27_log_arrays_comma.json", NoteCode.PROFILER_WARNINGS),
        ("P27_log_arrays_comma.json", NoteCode.TRAILING_COMMA),
        ("P32_negative_duration.json", NoteCode.NEGATIVE_DURATIONS),
        ("P35_runaway_duration.json", NoteCode.RUNAWAY_KERNELS),
        ("P40_kernel_before_launch.json", NoteCode.CLOCKS_DIFFER),
        ("P42_slow_first_step.json", NoteCode.FIRST_STEP_EXCLUDED),
        ("P46_correlation_minus_one.json", NoteCode.KERNELS_WITHOUT_LAUNCH),
        ("P66_straggler", NoteCode.WAITING_FOR_STRAGGLERS),
        ("P69_nccl_no_args.json", NoteCode.MESSAGE_SIZES_UNKNOWN),
        ("P71_fp8_dtype.json", NoteCode.UNKNOWN_DTYPE),
        ("P76_no_profilerstep.json", NoteCode.NO_STEP_MARKERS),
        ("P78_duplicate_rank", NoteCode.DUPLICATE_RANK),
        ("P80_gpu_only.json", NoteCode.NO_HOST_OPERATORS),
    ],
)
def test_each_fault_is_named(name: str, code: NoteCode) -> None:
    path = next(row.path for row in KINETO if row.path.name == name)
    assert code in [note.code for note in analyse([path]).notes]


def test_steady_steps_leave_the_slow_first_one_out() -> None:
    path = next(row.path for row in KINETO if row.path.name.startswith("P42"))
    measured = analyse([path]).workload.measured
    assert measured is not None
    assert measured.steps_observed == 5
    assert measured.step_s == pytest.approx(200e-6)
    assert sum(work.busy_s for work in measured.kernels) == pytest.approx(120e-6)


def test_message_sizes_follow_the_type() -> None:
    path = next(row.path for row in KINETO if row.path.name.startswith("P71"))
    measured = analyse([path]).workload.measured
    assert measured is not None
    assert {work.message_bytes for work in measured.collectives} == {4194304.0, 8388608.0, None}


def test_waiting_is_told_per_rank() -> None:
    path = next(row.path for row in KINETO if row.path.name == "P66_straggler")
    assert analyse([path]).waiting_ns == (27_000_000, 0)
