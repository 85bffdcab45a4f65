"""Small files made to harm: numbers of thousands of digits, names without end, work without progress."""

import gzip
import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from profiling.analysis import Analysis, analyse
from profiling.document import analysis_document
from profiling.formats.limits import MIB, Limits
from profiling.formats.registry import read, refuse_unreadable
from profiling.kernels import TELLING, _classified, classify, rules
from profiling.notes import NoteCode, Refusal, RefusalCode
from profiling.timeline import UNKNOWN

DIGITS = "9" * 5000
NCCL = "ncclDevKernel_AllReduce_Sum"
HUGE = [DIGITS, DIGITS[:400], f"[{DIGITS}]", f'"{DIGITS}"', str(2**62), str(2**64), "1e308", '"1e999999999"', "-1e17"]


def _event(name: str = "k", start: int = 0, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": 5, **more}


def _text(events: Sequence[dict[str, Any]]) -> str:
    return json.dumps({"schemaVersion": 1, "traceEvents": list(events)})


def _file(folder: Path, content: str | bytes, name: str = "trace.json") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _analysed(folder: Path, content: str) -> Analysis:
    """The answer, which must be one that can be sent."""
    analysis = analyse([_file(folder, content)])
    json.dumps(analysis_document(analysis), allow_nan=False)
    return analysis


def _refused(path: Path, limits: Limits | None = None) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read(path, limits)
    return caught.value


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("field", ["ts", "dur", "pid", "tid", "name", "cat", "ph", "args"])
def test_no_number_in_an_event_ends_the_reading(tmp_path: Path, field: str, value: str) -> None:
    text = _text([_event(), _event(start=10, **{field: "@"}), _event(start=20)]).replace('"@"', value)
    assert _analysed(tmp_path, text).breakdowns[0].kernels >= 2


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize(
    "field",
    ["device", "stream", "correlation", "bytes", "fromDevice", "In msg nelems", "Group size", "Rank", "Total Reserved"],
)
def test_no_number_in_the_arguments_ends_the_reading(tmp_path: Path, field: str, value: str) -> None:
    args = {"dtype": "double", "Collective name": "allreduce", "In msg nelems": 8, "toDevice": 1, field: "@"}
    events = [
        _event(),
        _event(NCCL, 10, args=args),
        _event("Memcpy PtoP", 20, args=args, cat="gpu_memcpy"),
        _event("record_param_comms", args=args, cat="cpu_op"),
        _event("[memory]", args=args, cat="cpu_instant_event"),
    ]
    assert _analysed(tmp_path, _text(events).replace('"@"', value)).breakdowns[0].kernels == 2


def test_a_step_and_a_rank_of_thousands_of_digits_are_none(tmp_path: Path) -> None:
    label = {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": f"rank {DIGITS}"}}
    step = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{DIGITS}", "pid": 1, "ts": 0, "dur": 20}
    analysis = _analysed(tmp_path, _text([label, step, _event(), _event(start=10)]))
    assert analysis.ranks[0].rank is None
    assert analysis.workload.measured is not None
    assert analysis.workload.measured.steps_observed is None


def test_a_message_of_more_bytes_than_can_be_true_is_unknown(tmp_path: Path) -> None:
    sizes = {"Collective name": "allreduce", "dtype": "double", "In msg nelems": 2**62}
    (line,) = read(_file(tmp_path, _text([_event(NCCL, args=sizes)]))).timelines
    assert line.collectives.message_bytes.tolist() == [UNKNOWN]


# --- names -----------------------------------------------------------------------------------------------------------


def test_more_names_than_the_limit_are_refused(tmp_path: Path) -> None:
    path = _file(tmp_path, _text([_event(f"k{number}", number * 10) for number in range(21)]))
    refusal = _refused(path, Limits(names=20))
    assert (refusal.code, refusal.params) == (RefusalCode.TOO_MANY_NAMES, {"limit": 20})
    assert read(path, Limits(names=21)).timelines[0].start_ns.size == 21


def test_a_name_is_classified_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    names = [f"{number}" + "nccl" * 248 for number in range(50)]
    _classified.cache_clear()
    analyse([_file(tmp_path, _text([_event(name, at * 10) for at, name in enumerate(names * 3)]))])
    assert _classified.cache_info().misses == 50


def test_only_the_beginning_of_a_name_is_looked_at() -> None:
    assert classify("x" * TELLING + "gemm") == classify("x")
    assert classify("x" * (TELLING - 4) + "gemm") != classify("x")


def _branches(pattern: str) -> list[str]:
    """Alternatives of a pattern that are not inside of a group."""
    found, depth = [""], 0
    for character in pattern:
        depth += (character == "(") - (character == ")")
        if character == "|" and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return found


def test_patterns_repeat_only_from_an_anchor() -> None:
    """A repetition that may begin anywhere costs the square of the length of a name, two cost its cube."""
    for rule in rules():
        pattern = rule.pattern.pattern
        assert pattern == pattern.lower()
        repeating = [branch for branch in _branches(pattern) if "*" in branch or "+" in branch]
        assert all(branch.startswith(("^", r"\b")) for branch in repeating), pattern


@pytest.mark.parametrize("field", ["device", "pid"])
def test_more_devices_than_the_limit_are_refused(tmp_path: Path, field: str) -> None:
    args = [{"device": number if field == "device" else 0} for number in range(6)]
    events = [_event(start=10 * at, pid=at if field == "pid" else 0, args=one) for at, one in enumerate(args)]
    refusal = _refused(_file(tmp_path, _text(events)), Limits(devices=5))
    assert (refusal.code, refusal.params) == (RefusalCode.TOO_MANY_DEVICES, {"limit": 5})


# --- time and progress -----------------------------------------------------------------------------------------------


def test_progress_and_clock_are_asked_for_every_piece_that_is_unpacked(tmp_path: Path) -> None:
    host = b'{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":2},\n' * (8 * MIB // 60)
    text = _text([_event()]).encode().replace(b'"traceEvents": [', b'"traceEvents": [' + host)
    path = _file(tmp_path, gzip.compress(text), "trace.json.gz")
    told: list[tuple[int, int]] = []
    read(path, Limits(ratio=10**6), progress=lambda done, total: told.append((done, total)))
    assert path.stat().st_size < MIB // 4
    assert len(told) >= 8
    ticks = iter(range(100))
    with pytest.raises(Refusal) as caught:
        read(path, Limits(ratio=10**6, seconds=4.5), clock=lambda: float(next(ticks)))
    assert caught.value.code == RefusalCode.TOO_SLOW


# --- what is read over -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", ["", "["])
def test_blanks_without_end_are_refused_early(tmp_path: Path, before: str) -> None:
    path = _file(tmp_path, before + " \n" * (16 * MIB) + json.dumps([_event()]).removeprefix(before))
    told: list[int] = []
    with pytest.raises(Refusal) as caught:
        read(path, progress=lambda done, total: told.append(done))
    assert (caught.value.code, caught.value.params) == (RefusalCode.TOO_MANY_BLANKS, {"limit": MIB})
    assert told[-1] <= 2 * MIB


def test_blanks_without_end_are_refused_at_upload(tmp_path: Path) -> None:
    path = _file(tmp_path, " \n" * MIB + _text([_event()]))
    with pytest.raises(Refusal) as caught:
        refuse_unreadable(path, name=path.name)
    assert caught.value.code == RefusalCode.TOO_MANY_BLANKS


def test_packed_blanks_are_refused_at_upload_without_unpacking_them(tmp_path: Path) -> None:
    squeezer = zlib.compressobj(9, wbits=31)
    packed = b"".join(squeezer.compress(b" " * MIB) for _ in range(64)) + squeezer.flush()
    with pytest.raises(Refusal) as caught:
        refuse_unreadable(_file(tmp_path, packed, "blank.json.gz"), name="blank.json.gz")
    assert caught.value.code == RefusalCode.DECOMPRESSION_RATIO
    assert int(caught.value.params["bytes"]) <= 3 * MIB


def test_few_blanks_in_front_are_no_obstacle(tmp_path: Path) -> None:
    path = _file(tmp_path, " \n" * 1000 + _text([_event()]))
    refuse_unreadable(path, name=path.name)
    assert read(path).timelines[0].start_ns.size == 1


def test_gzip_members_that_hold_nothing_are_not_read_over_for_ever(tmp_path: Path) -> None:
    trace, empty = gzip.compress(_text([_event()]).encode()), gzip.compress(b"")
    assert read(_file(tmp_path, empty * 100 + trace, "few.json.gz")).notes[0].code != NoteCode.GZIP_DAMAGED
    path = _file(tmp_path, empty * 2000 + trace, "many.json.gz")
    with pytest.raises(Refusal) as caught:
        refuse_unreadable(path, name=path.name)
    assert caught.value.code == RefusalCode.FILE_TRUNCATED
