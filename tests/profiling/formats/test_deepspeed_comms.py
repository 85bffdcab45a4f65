"""DeepSpeed's communication logger: bits to bytes, units of 1024, one summary of several."""

from pathlib import Path

import pytest

from profiling.evidence import CollectiveTiming, CollectiveTimings
from profiling.formats.capture import Capture, Format
from profiling.formats.registry import read
from profiling.notes import NoteCode, Refusal, RefusalCode, outcome_of
from profiling.workload import CollectiveKind
from tests.paths import SHARED
from tests.profiling.expected import Row, reads, rows

ROWS = rows("deepspeed-comms")
COLUMNS = ("Comm. Op", "Message Size", "Count")
SUMS = (*COLUMNS, "Total Latency(ms)", "Avg Latency(ms)", "tput_avg (Gbps)", "busbw_avg (Gbps)")
LATE = (*COLUMNS, "Total comm lat(ms)", "Total straggler(ms)", "Avg comm lat(ms)", "Avg straggler(ms)")


def _cells(*cells: str) -> str:
    return "".join(f"{cell: <20}" for cell in cells) + "\n"


HEADER, STRAGGLERS = _cells(*SUMS), _cells(*LATE)
PREFIX = "[2025-11-03 10:00:00,000] [INFO] [logging.py:107:log_dist] [Rank 0] "


def _timings(capture: Capture) -> CollectiveTimings:
    (one,) = capture.evidence
    assert isinstance(one, CollectiveTimings)
    return one


def _read(tmp_path: Path, text: str) -> tuple[CollectiveTiming, ...]:
    path = tmp_path / "train.log"
    path.write_text(text)
    return _timings(read(path)).rows


def _row(*cells: str) -> str:
    return _cells("", *cells)


def _said(timings: CollectiveTimings, key: str) -> float | None:
    name, _, rest = key.partition("[")
    if name == "ops":
        return len({row.kind for row in timings.rows})
    kind, _, place = rest.rstrip("]").partition(",")
    found = [row for row in timings.rows if row.kind == kind]
    if name == "count":
        return sum(row.calls or 0 for row in found)
    if name == "time_ms":
        return sum(row.total_time_s or 0 for row in found) * 1e3
    row = found[int(place)]
    return row.message_bytes if name == "bytes" else (row.bus_bytes_per_s or 0) / 1e9 if name == "busbw_gbs" else None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_facts_of_the_table(row: Row) -> None:
    capture = read(row.path)
    assert {key: fact for key, fact in row.facts.items() if not reads(_said(_timings(capture), key), fact)} == {}
    assert outcome_of(capture.notes) == row.outcome


@pytest.mark.skipif(not ROWS, reason="the reference captures are not beside the checkout")
def test_the_documentation_itself() -> None:
    """A page with two summaries: the last counts, and its operations carry the caller's name."""
    assert SHARED is not None
    capture = read(SHARED / "traces" / "files" / "ds-comms-docs" / "comms-logging.md")
    assert capture.format == Format.DEEPSPEED_COMMS
    told = [(row.kind, row.calls, row.total_time_s) for row in _timings(capture).rows]
    assert told == [
        (CollectiveKind.BROADCAST, 146, pytest.approx(9.39e-3)),
        (CollectiveKind.BROADCAST, 1, pytest.approx(8.5406)),
        (CollectiveKind.REDUCE_SCATTER, 80, pytest.approx(1.52717)),
    ]


def test_prefixes_on_every_line_and_noise_between(tmp_path: Path) -> None:
    text = (
        PREFIX + HEADER + PREFIX + "all_reduce\n" + "step 5 loss 2.0\n"
        "[rank0]: " + _row("1.5 GB", "3", "30.00", "10.00", "100.00", "75.00")
    )
    (row,) = _read(tmp_path, text)
    assert (row.kind, row.message_bytes, row.calls, row.time_s) == (CollectiveKind.ALL_REDUCE, 1.5 * 2**30, 3, 0.01)
    assert row.bus_bytes_per_s == pytest.approx(75e9 / 8)


def test_a_gather_is_counted_as_its_full_buffer(tmp_path: Path) -> None:
    """64 MB from each of 16 ranks in 2 ms; the bandwidth was taken with the ranks, the size was not."""
    text = HEADER + "all_gather_into_tensor\n" + " " * 20 + "64.0 MB 10 20.00 2.00 4294.97 4026.53\n"
    (row,) = _read(tmp_path, text)
    assert row.message_bytes == 16 * 64 * 2**20
    assert row.bus_bytes_per_s == pytest.approx(4026.53e9 / 8)


def test_waiting_for_the_last_rank(tmp_path: Path) -> None:
    row = _row("1.0 MB", "4", "10.00", "2.50", "8.00", "7.00")
    late = _row("1.0 MB", "4", "3.00", "7.00", "0.75", "1.75")
    (found,) = _read(
        tmp_path,
        HEADER
        + "all_reduce\n"
        + row
        + "____\nBreakdown with straggler effect\n----\n"
        + STRAGGLERS
        + "all_reduce\n"
        + late,
    )
    assert (found.total_time_s, found.waiting_s) == (pytest.approx(0.01), pytest.approx(0.007))


def test_verbose_lines_are_added_up(tmp_path: Path) -> None:
    line = "rank=0 | comm op: {} | time (ms): {} | msg size: 6.0 MB | algbw (Gbps): 900.00  | busbw (Gbps): {}\n"
    found = _read(
        tmp_path,
        PREFIX
        + line.format("all_reduce", "0.10", "800.00")
        + PREFIX
        + line.format("all_reduce | [Caller Func: f]", "0.30", "400.00"),
    )
    (row,) = found
    assert (row.calls, row.message_bytes) == (2, 6 * 2**20)
    assert (row.time_s, row.total_time_s) == (pytest.approx(0.2e-3), pytest.approx(0.4e-3))
    assert row.bus_bytes_per_s == pytest.approx(600e9 / 8)


def test_operations_of_no_known_kind_and_sizes_of_zero(tmp_path: Path) -> None:
    text = HEADER + "monitored_barrier\n" + " " * 20 + "0B                  2 1.00 0.50 0.00 0.00\n"
    (row,) = _read(tmp_path, text)
    assert (row.kind, row.operation, row.message_bytes) == (CollectiveKind.UNKNOWN, "monitored_barrier", 0.0)
    assert row.bus_bytes_per_s is None


def test_a_bandwidth_that_cannot_be_true(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(HEADER + "all_reduce\n" + " " * 20 + "1.0 GB 2 0.01 0.00 9000000.00 8000000.00\n")
    capture = read(path)
    assert _timings(capture).rows[0].bus_bytes_per_s is None
    assert [note.code for note in capture.notes] == [NoteCode.IMPOSSIBLE_BANDWIDTHS]


def test_a_title_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        _read(tmp_path, HEADER)
    assert caught.value.code == RefusalCode.NO_ROWS
