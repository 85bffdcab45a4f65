"""Tables and reports of nccl-tests of every age."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from profiling.evidence import CollectiveTimings
from profiling.formats.capture import Capture, Format
from profiling.formats.registry import read
from profiling.notes import NoteCode, Outcome, Refusal, RefusalCode, outcome_of
from profiling.workload import CollectiveKind
from tests.paths import SHARED
from tests.profiling.expected import Row, reads, rows

ROWS = rows("nccl-tests", "nccl-tests-json")
TRACES = SHARED / "traces" if SHARED else Path()
PUBLISHED = json.loads((TRACES / "reference" / "text_files.json").read_text()) if SHARED else {}
TABLES = sorted(path for path, entry in PUBLISHED.items() if entry["kind"] == "nccl_tests")

SIDE = "    time   algbw   busbw  #wrong "
NOW = f"#       size         count      type   redop    root {SIDE}{SIDE}\n"


def _timings(capture: Capture) -> CollectiveTimings:
    (one,) = capture.evidence
    assert isinstance(one, CollectiveTimings)
    return one


def _read(tmp_path: Path, text: str, name: str = "out.txt") -> Capture:
    path = tmp_path / name
    path.write_text(text)
    return read(path)


def _said(timings: CollectiveTimings, key: str, fact: str) -> bool:
    (kind,) = {row.kind for row in timings.rows}
    if key.startswith(("busbw_gbs[", "latency_us[")):
        (row,) = (row for row in timings.rows if row.message_bytes == float(key.split("[")[1][:-1]))
        both = fact.split("|") if "|" in fact else [fact]
        if key.startswith("busbw"):
            found = [row.bus_bytes_per_s, row.in_place_bus_bytes_per_s]
            return all(reads(None if one is None else one / 1e9, fact) for one, fact in zip(found, both, strict=False))
        found = [row.time_s, row.in_place_time_s]
        return all(reads(None if one is None else one * 1e6, fact) for one, fact in zip(found, both, strict=False))
    value: Any = {
        "collective": str(kind),
        "nranks_listed": timings.ranks_listed,
        "sizes": len(timings.rows),
        "peak_busbw_gbs": timings.peak_bus_bytes_per_s[kind] / 1e9,
    }[key]
    return reads(value, fact)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_facts_of_the_table(row: Row) -> None:
    capture = read(row.path)
    facts = {key: fact for key, fact in row.facts.items() if key != "must_not_appear"}
    assert [key for key, fact in facts.items() if not _said(_timings(capture), key, fact)] == []
    assert row.facts.get("must_not_appear", "\0") not in repr(capture)
    assert outcome_of(capture.notes) == row.outcome


@pytest.mark.parametrize("path", TABLES)
def test_real_tables_agree_with_an_independent_reading(path: str) -> None:
    published = PUBLISHED[path]["result"]
    timings = _timings(read(TRACES / path))
    assert len(timings.rows) == published["table_rows"]
    assert max(row.message_bytes or 0 for row in timings.rows) == published["largest_bytes"]
    assert timings.rows[-1].bus_bytes_per_s == pytest.approx(published["busbw_at_largest"] * 1e9)
    best = max(row.bus_bytes_per_s or 0 for row in timings.rows)
    assert best == pytest.approx(published["max_busbw_out_of_place_GBps"] * 1e9)
    assert timings.ranks_listed == (published["rank_lines"] or None)
    assert {timings.device_name} == set(published["gpu_names"] or {None})


@pytest.mark.skipif(not TABLES, reason="the reference captures are not beside the checkout")
@pytest.mark.parametrize("name", ["allgather", "allreduce", "alltoall", "reducescatter"])
def test_the_collective_of_real_tables(name: str) -> None:
    timings = _timings(read(TRACES / "files" / "nccltests-8xa100" / f"nccl_{name}.log"))
    assert {str(row.kind).replace("_", "") for row in timings.rows} == {name}


def test_2017_counts_in_milliseconds(tmp_path: Path) -> None:
    capture = _read(
        tmp_path,
        "# NCCL Tests compiled with NCCL 2.0\n# Using devices\n"
        "#   Rank  0 on host1 device  0 [0x04] Tesla P100-SXM2-16GB\n"
        "#                                                 out-of-place                    in-place\n"
        "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res\n"
        "    10000000       2500000   float     sum    0.500  20.00  35.00    2e-06    0.520  19.23  33.65    2e-06\n",
    )
    timings = _timings(capture)
    (row,) = timings.rows
    assert (timings.ranks_listed, timings.device_name) == (1, "Tesla P100-SXM2-16GB")
    assert (row.kind, row.time_s) == (CollectiveKind.ALL_REDUCE, 0.0005)
    assert row.bus_bytes_per_s == 35e9


def test_wide_numbers_columns_per_iteration_and_time_stamps(tmp_path: Path) -> None:
    titles = "cputime  algbw  busbw  #wrong  i_min  i_max  i_p99  i_cv%"
    capture = _read(
        tmp_path,
        "# Collective test starting: reduce_scatter_perf\n"
        f"#  size  count  type  redop  root  {titles}  {titles}  timestamp\n"
        "  8589934592  2147  float  sum  -1  1.2e+05  71.58  62.63  0  1.1e+05  1.3e+05  1.3e+05  2.00"
        "  1.3e+05  66.08  57.82  0  1.2e+05  1.4e+05  1.4e+05  1.00  2025-10-02 10:11:12\n",
    )
    (row,) = _timings(capture).rows
    assert (row.kind, row.time_s, row.in_place_time_s) == (CollectiveKind.REDUCE_SCATTER, 0.12, 0.13)
    assert (row.bus_bytes_per_s, row.in_place_bus_bytes_per_s) == (62.63e9, 57.82e9)
    assert outcome_of(capture.notes) == Outcome.OK


@pytest.mark.parametrize(
    ("redop", "root", "ratio", "kind"),
    [
        ("sum", -1, 1.75, CollectiveKind.ALL_REDUCE),
        ("sum", -1, 1.0, CollectiveKind.ALL_REDUCE),
        ("sum", -1, 0.875, CollectiveKind.REDUCE_SCATTER),
        ("none", 0, 1.0, CollectiveKind.BROADCAST),
        ("none", -1, 0.875, CollectiveKind.UNKNOWN),
        ("none", -1, 1.0, CollectiveKind.UNKNOWN),
    ],
)
def test_the_collective_where_nothing_names_it(
    tmp_path: Path, redop: str, root: int, ratio: float, kind: CollectiveKind
) -> None:
    half = f"1000.0  100.00  {100 * ratio:.2f}  0"
    timings = _timings(_read(tmp_path, NOW + f" 1048576  262144  float  {redop}  {root}  {half}  {half}\n"))
    assert timings.rows[0].kind == kind
    assert timings.peak_bus_bytes_per_s[kind] == pytest.approx(ratio * 100e9)


def test_the_name_of_the_file_is_the_last_hint(tmp_path: Path) -> None:
    half = "1000.0  100.00  87.50  0"
    timings = _timings(_read(tmp_path, NOW + f" 1048576 262144 float none -1 {half} {half}\n", "run_alltoall_8.log"))
    assert timings.rows[0].kind == CollectiveKind.ALL_TO_ALL


def test_several_tests_in_one_output(tmp_path: Path) -> None:
    half = "1000.0  100.00  87.50  0"
    table = NOW + f" 1048576 262144 float none -1 {half} {half}\n"
    text = "$ ./all_gather_perf -g 8\n" + table + "$ ./alltoall_perf -g 8\n" + table
    kinds = [row.kind for row in _timings(_read(tmp_path, text)).rows]
    assert kinds == [CollectiveKind.ALL_GATHER, CollectiveKind.ALL_TO_ALL]


def test_the_peak_is_taken_on_the_plateau(tmp_path: Path) -> None:
    rows_of = "".join(
        f" {size} 1 float sum -1 10.0 {bus} {bus} 0 10.0 {bus} {bus} 0\n"
        for size, bus in ((1024, 900), (1 << 30, 400), (1 << 31, 390))
    )
    assert _timings(_read(tmp_path, NOW + rows_of)).peak_bus_bytes_per_s == {CollectiveKind.ALL_REDUCE: 400e9}


def test_what_cannot_be_true_is_left_out_and_said(tmp_path: Path) -> None:
    capture = _read(tmp_path, NOW + " 1048576 262144 float sum -1 0.01 99999 99999 0 10.0 100.00 175.00 0\n")
    (row,) = _timings(capture).rows
    assert (row.bus_bytes_per_s, row.time_s, row.in_place_bus_bytes_per_s) == (None, None, 175e9)
    assert [note.code for note in capture.notes] == [NoteCode.IMPOSSIBLE_BANDWIDTHS]


def test_wrong_results_are_said(tmp_path: Path) -> None:
    capture = _read(tmp_path, NOW + " 1048576 262144 float sum -1 10.0 100.0 175.0 3 10.0 100.00 175.00 0\n")
    assert [(note.code, note.params["count"]) for note in capture.notes] == [(NoteCode.WRONG_RESULTS, 3)]


def test_a_row_that_is_cut_keeps_its_whole_direction(tmp_path: Path) -> None:
    (row,) = _timings(_read(tmp_path, NOW + " 1048576 262144 float sum -1 10.0 100.0 175.0 0 11.0 95")).rows
    assert (row.time_s, row.bus_bytes_per_s) == (10e-6, 175e9)
    assert row.in_place_bus_bytes_per_s is None


def test_only_in_place_is_measured(tmp_path: Path) -> None:
    (row,) = _timings(_read(tmp_path, NOW + " 1048576 262144 float sum -1" + " " * 33 + "10.0 100.0 175.0 0\n")).rows
    assert (row.time_s, row.in_place_time_s) == (None, 10e-6)


def _report(**changes: Any) -> dict[str, Any]:
    side = {"time": 100.0, "alg_bw": 10.0, "bus_bw": 8.75, "nwrong": 0}
    result = {"size": 1048576, "count": 1, "type": "float", "redop": "none", "root": "    -1"}
    devices = [{"rank": rank, "hostname": f"secret{rank // 4}", "device_info": "NVIDIA H200"} for rank in range(8)]
    return {
        "version": 2,
        "start_time": "2026-01-01 00:00:00",
        "args": ["./build/alltoall_perf"],
        "env": ["TOKEN=hunter2"],
        "nccl_version": 22807,
        "config": {"nthreads": 1, "ngpus": 1, "devices": devices},
        "results": [{**result, "out_of_place": side, "in_place": {**side, "time": 90.0}}],
        **changes,
    }


def test_a_report_of_today(tmp_path: Path) -> None:
    capture = _read(tmp_path, json.dumps(_report()), "report.json")
    timings = _timings(capture)
    assert capture.format == Format.NCCL_TESTS_JSON
    assert (timings.ranks, timings.nodes, timings.device_name) == (8, 2, "NVIDIA H200")
    (row,) = timings.rows
    assert (row.kind, row.time_s, row.in_place_time_s) == (CollectiveKind.ALL_TO_ALL, 100e-6, 90e-6)
    assert "hunter2" not in repr(capture)
    assert "secret" not in repr(capture)


def test_a_report_with_a_long_environment_is_recognised(tmp_path: Path) -> None:
    capture = _read(tmp_path, json.dumps(_report(env=["A=" + "x" * 200_000])), "report.json")
    assert capture.format == Format.NCCL_TESTS_JSON


def test_a_report_that_is_cut_gives_what_is_whole(tmp_path: Path) -> None:
    report = _report()
    report["results"] = report["results"] * 3
    text = json.dumps(report)
    capture = _read(tmp_path, text[: text.rindex('"in_place"')], "report.json")
    assert len(_timings(capture).rows) == 2
    assert outcome_of(capture.notes) == Outcome.SALVAGE


def test_bare_infinity_counts_as_missing(tmp_path: Path) -> None:
    text = json.dumps(_report()).replace('"bus_bw": 8.75', '"bus_bw": inf', 1)
    (row,) = _timings(_read(tmp_path, text, "report.json")).rows
    assert (row.bus_bytes_per_s, row.in_place_bus_bytes_per_s) == (None, 8.75e9)


def test_a_report_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        _read(tmp_path, json.dumps(_report(results=[])), "report.json")
    assert caught.value.code == RefusalCode.NO_ROWS


def test_damage_gives_an_answer_or_a_refusal(tmp_path: Path) -> None:
    chance, seeds = (
        random.Random(5),
        [NOW + " 1048576 262144 float sum -1 10 100 175 0 10 100 175 0\n", json.dumps(_report())],
    )
    for turn in range(400):
        data = bytearray(seeds[turn % 2].encode())
        for _ in range(chance.randrange(1, 12)):
            data[chance.randrange(len(data))] = chance.choice(b'0123456789.-e"{}[],nNaA \n#')
        path = tmp_path / "damaged"
        path.write_bytes(data[: chance.randrange(1, len(data) + 1)])
        try:
            capture = read(path)
        except Refusal:
            continue
        assert "hunter2" not in repr(capture)
