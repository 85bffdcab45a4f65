"""Every hand-made Kineto fault file against what a right reader says of it."""

import re
from pathlib import Path
from typing import Any

import pytest

from profiling.analysis import Analysis, analyse
from profiling.classifier import classify
from profiling.document import analysis_document
from profiling.formats.registry import read
from profiling.messages import sentence
from profiling.notes import NoteCode, Outcome, Refusal
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN
from tests.profiling.expected import Row, reads, rows

KINETO = rows("kineto", "chrome-trace")
pytestmark = pytest.mark.skipif(not KINETO, reason="the reference captures are not beside the checkout")


COLLECTIVE_FACTS = {"transfer_us_per_collective": "transfer_us", "busbw_gbs": "busbw_gbs"}
SAID = {
    "P01": "truncated",
    "P04": "bytes after the gzip stream were ignored",
    "P07": "1 name.* not valid utf-8",
    "P10": "not valid json.* two traces written to one file",
    "P12": "2 ranks are merged in one file",
    "P13": "invalid escapes repaired",
    "P15": "control characters in strings",
    "P16": "occupancy unknown for 2 kernel",
    "P18": "bare token repaired",
    "P22": "duplicate keys in 1 event",
    "P25_no_traceevents": "no traceevents",
    "P25_empty": "no events recorded",
    "P27": "trailing comma.* the profiler itself reported.* dropped records",
    "P32": "2 event.* with negative duration dropped",
    "P35": "1 kernel.* overlap their successors on the same stream.*clipped",
    "P40": "device clock is about 50.* us ahead of the host clock",
    "P42": "first step excluded as an outlier .20.*x",
    "P46": "29 kernels have no usable launch",
    "P66": "1 come.* 9.* ms late",
    "P69": "sizes not recorded.*bandwidth is unknown",
    "P71": "unknown dtype .quux.",
    "P74": "gpu side not recorded .20 launches, 0 kernels",
    "P75": "no events besides metadata",
    "P76": "no step markers",
    "P78": "rank 0 appears in 2 files",
    "P80": "no cpu ops recorded",
}
"""What the sentences of a row must hold, in our words."""


@pytest.mark.parametrize("row", [row for row in KINETO if row.outcome != "error"], ids=lambda row: row.id)
def test_every_fact_is_exact(row: Row) -> None:
    analysis = analyse([row.path])
    wrong = {
        key: (said, fact) for key, fact in row.facts.items() if not _holds(said := _said(row, analysis, key), fact)
    }
    assert not wrong


def _holds(said: Any, fact: str) -> bool:
    return said == fact or (said is None and fact in ("unknown", "n/a")) or reads(said, fact)


def _said(row: Row, analysis: Analysis, key: str) -> Any:
    """What the answer says for a fact of the table; a fact that it has no place for is an error."""
    match = re.fullmatch(r"(\w+?)(?:\[(?:(r|d)?(\w+))\])?", key)
    assert match
    name, kind, mark = match.groups()
    document = analysis_document(analysis)
    ranks = document["ranks"]
    if name == "ranks":
        known = [str(0 if one["rank"] is None and len(ranks) == 1 else one["rank"]) for one in ranks]
        return ",".join(known)
    if name == "straggler_rank":
        return next(note.params["ranks"] for note in analysis.notes if note.code == NoteCode.WAITING_FOR_STRAGGLERS)
    if name in COLLECTIVE_FACTS:
        return document["collectives"][0][COLLECTIVE_FACTS[name]]
    if name == "allreduce_bytes":
        return next(one["message_bytes"] for one in document["collectives"] if one["kind"] == "all_reduce")
    if name == "comm_bytes":
        sizes = [one["message_bytes"] for one in document["collectives"]]
        return None if None in sizes else sum(sizes)
    if name == "host_bound":
        found = classify(analysis.features) if analysis.features else None
        return None if found is None or analysis.ranks[0].operators == 0 else found.host_bound
    if name in ("collective", "out_bytes"):
        return _of_call(row.path, name, str(mark))
    if name == "gpu":
        return ranks[0]["device"]
    part = ranks[0]
    if kind:
        part = next(one for one in ranks if one["rank" if kind == "r" else "device_index"] == int(mark))
    return part[{"wait_us": "waiting_us"}.get(name, name)]


def _of_call(path: Path, name: str, mark: str) -> Any:
    """The n-th communication kernel, or the one that calls itself so."""
    (line,) = read(path).timelines
    known = line.collectives
    names = [line.names[one] for one in line.name_id[known.row]]
    at = int(mark) if mark.isdigit() else next(place for place, one in enumerate(names) if mark in one)
    if name == "out_bytes":
        return None if known.message_bytes[at] == UNKNOWN else int(known.message_bytes[at])
    kind = str(COLLECTIVE_KINDS[int(known.kind[at])]).replace("_", "")
    return None if kind == "unknown" else kind


@pytest.mark.parametrize("row", [row for row in KINETO if row.must_say], ids=lambda row: row.id)
def test_what_must_be_said_is_said(row: Row) -> None:
    try:
        told = " ".join(sentence(note) for note in analyse([row.path]).notes)
    except Refusal as refusal:
        told = sentence(refusal)
    (pattern,) = [words for start, words in SAID.items() if row.id.startswith(start)]
    assert re.search(pattern, told.lower()), told


@pytest.mark.parametrize("row", [row for row in KINETO if row.outcome == "error"], ids=lambda row: row.id)
def test_hopeless_files_are_refused_with_a_sentence(row: Row) -> None:
    with pytest.raises(Refusal) as caught:
        analyse([row.path])
    known = {name: str(value) for name, value in caught.value.params.items()}
    assert {key: known.get(key) for key in row.facts} == row.facts
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
        ("P16_nan_inf.json", NoteCode.OCCUPANCY_UNKNOWN),
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
        ("P76_no_profilerstep.json", NoteCode.UNMARKED_REPETITION),
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
