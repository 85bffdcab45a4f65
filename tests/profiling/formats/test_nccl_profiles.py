"""NCCL Inspector and the example profiler plugin."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from profiling.evidence import CollectiveTimings
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits
from profiling.formats.registry import read
from profiling.notes import NoteCode, Outcome, Refusal, RefusalCode, outcome_of
from profiling.workload import CollectiveKind


def _record(coll: str = "AllReduce", size: int = 1 << 20, **perf: Any) -> dict[str, Any]:
    return {
        "header": {"id": "0x7f8c", "rank": 2, "n_ranks": 8, "nnodes": 2},
        "metadata": {"inspector_output_format_version": "v4.0", "hostname": "secret-host", "pid": 7},
        "coll_perf": {
            "coll": coll,
            "coll_sn": 1,
            "coll_msg_size_bytes": size,
            "coll_exec_time_us": 100,
            "coll_timing_source": "kernel_gpu",
            "coll_algobw_gbs": 10.0,
            "coll_busbw_gbs": 17.5,
            **perf,
        },
    }


def _read(tmp_path: Path, text: str, **limits: int) -> Capture:
    path = tmp_path / "records.log"
    path.write_text(text)
    return read(path, Limits(**limits))


def _timings(capture: Capture) -> CollectiveTimings:
    (one,) = capture.evidence
    assert isinstance(one, CollectiveTimings)
    return one


@pytest.mark.parametrize(
    "written",
    [
        lambda records: "\n".join(map(json.dumps, records)),
        lambda records: "".join(map(json.dumps, records)),
        lambda records: "\n".join(json.dumps(one, indent=2) for one in records),
        lambda records: json.dumps(records),
        lambda records: json.dumps(records, indent=2),
    ],
    ids=["lines", "glued", "indented", "array", "indented array"],
)
def test_however_the_records_are_written(tmp_path: Path, written: Any) -> None:
    records = [_record(), _record(coll_exec_time_us=300, coll_busbw_gbs=5.5), _record("Broadcast", 4096)]
    capture = _read(tmp_path, written(records))
    timings = _timings(capture)
    assert (capture.format, timings.ranks, timings.nodes) == (Format.NCCL_INSPECTOR, 8, 2)
    first, second = timings.rows
    assert (first.kind, first.message_bytes, first.calls) == (CollectiveKind.ALL_REDUCE, 2.0**20, 2)
    assert (first.time_s, first.total_time_s) == (pytest.approx(200e-6), pytest.approx(400e-6))
    assert first.bus_bytes_per_s == pytest.approx((17.5e9 * 100 + 5.5e9 * 300) / 400)
    assert (second.kind, second.message_bytes) == (CollectiveKind.BROADCAST, 4096.0)
    assert "secret" not in repr(capture)


def test_one_rank_s_part_becomes_the_full_buffer(tmp_path: Path) -> None:
    """The documented sample: 64 KiB of output on each of 32 ranks in 110 us are 19.065 GB/s."""
    record = _record("ReduceScatter", 65536, coll_exec_time_us=110, coll_algobw_gbs=19.065018, coll_busbw_gbs=18.469236)
    record["header"]["n_ranks"] = 32
    (row,) = _timings(_read(tmp_path, json.dumps(record))).rows
    assert (row.kind, row.message_bytes) == (CollectiveKind.REDUCE_SCATTER, 32 * 65536.0)


def test_point_to_point(tmp_path: Path) -> None:
    record = _record()
    record["p2p_perf"] = {key.replace("coll", "p2p", 1): value for key, value in record.pop("coll_perf").items()}
    record["p2p_perf"]["p2p"] = "Send"
    (row,) = _timings(_read(tmp_path, json.dumps(record))).rows
    assert (row.kind, row.operation, row.bus_bytes_per_s) == (CollectiveKind.SEND_RECV, "Send", pytest.approx(17.5e9))


def test_times_of_the_call_are_no_times_of_the_transfer(tmp_path: Path) -> None:
    capture = _read(tmp_path, json.dumps(_record(coll_timing_source="collective_cpu")))
    (row,) = _timings(capture).rows
    assert (row.calls, row.time_s, row.bus_bytes_per_s) == (1, None, None)
    assert [note.code for note in capture.notes] == [NoteCode.TIMED_ON_HOST]


def test_dropped_records_are_said(tmp_path: Path) -> None:
    lost = {"header": {"n_ranks": 8}, "dump_stats": {"coll": {"dropped_total": 5}}}
    capture = _read(tmp_path, json.dumps(lost) + "\n" + json.dumps(_record()))
    assert [note.code for note in capture.notes] == [NoteCode.EVENTS_DROPPED]


def test_impossible_bandwidths(tmp_path: Path) -> None:
    capture = _read(tmp_path, json.dumps(_record(coll_busbw_gbs=1e9)) + json.dumps(_record(coll_busbw_gbs=-1)))
    assert _timings(capture).rows[0].bus_bytes_per_s is None
    assert [(note.code, note.params["count"]) for note in capture.notes] == [(NoteCode.IMPOSSIBLE_BANDWIDTHS, 2)]


def test_an_integer_that_no_float_holds_is_no_time(tmp_path: Path) -> None:
    records = [_record(), _record(coll_exec_time_us=10**400)]
    (row,) = _timings(_read(tmp_path, "\n".join(map(json.dumps, records)))).rows
    assert row.time_s == pytest.approx(100e-6)


def test_a_damaged_record_is_left_out(tmp_path: Path) -> None:
    lines = [json.dumps(_record()), json.dumps(_record()).replace('"coll_sn"', "coll_sn"), json.dumps(_record())]
    capture = _read(tmp_path, "\n".join(lines))
    assert _timings(capture).rows[0].calls == 2
    assert outcome_of(capture.notes) == Outcome.SALVAGE


def test_a_file_that_is_cut(tmp_path: Path) -> None:
    capture = _read(tmp_path, json.dumps(_record()) + "\n" + json.dumps(_record())[:-40])
    assert [(note.code, note.params["events"]) for note in capture.notes] == [(NoteCode.FILE_TRUNCATED, 1)]


def test_objects_without_end_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        _read(tmp_path, json.dumps(_record()) + '{"a":"' + "x" * 3_000_000, event_bytes=1 << 20)
    assert caught.value.code == RefusalCode.EVENT_TOO_LONG


def test_the_prometheus_text(tmp_path: Path) -> None:
    labels = (
        'version="v5.1",slurm_job_id="4711",node="secret",gpu="GPU-1",comm_name="DP Group 0",n_nodes="2",nranks="16",'
        'collective="AllGather",message_size="4-5MB",algo_proto="RING_SIMPLE"'
    )
    text = f"nccl_bus_bandwidth_gbs{{{labels}}} 120.5\nnccl_collective_exec_time_microseconds{{{labels}}} 250\n"
    capture = _read(tmp_path, text)
    timings = _timings(capture)
    (row,) = timings.rows
    assert (timings.ranks, timings.nodes) == (16, 2)
    assert (row.kind, row.message_bytes) == (CollectiveKind.ALL_GATHER, 4.0 * 2**20)
    assert (row.time_s, row.bus_bytes_per_s) == (pytest.approx(250e-6), pytest.approx(120.5e9))
    assert "secret" not in repr(capture)
    assert "4711" not in repr(capture)


def _plugin(*events: dict[str, Any]) -> str:
    return "[\n" + "".join(json.dumps({"pid": 7, "tid": 1, **event}) + ",\n" for event in events) + "{}]\n"


def _called(name: str, count: int, datatype: str, cat: str = "COLL") -> dict[str, Any]:
    args = {
        "SeqNum": 1,
        "CommHash": 99,
        "Rank": 0,
        "Count": count,
        "Datatype": datatype,
        "Algorithm": "RING",
        "nChannels": 4,
    }
    return {"name": name, "cat": cat, "ph": "b", "id": 0, "ts": 10.5, "args": args}


def test_calls_of_the_profiler_plugin(tmp_path: Path) -> None:
    group = {"name": "Group", "cat": "GROUP", "ph": "b", "id": 0, "ts": 1.0, "args": {"groupId": 0}}
    end = {"name": "AllReduce", "cat": "COLL", "ph": "e", "id": 0, "ts": 20.0}
    capture = _read(
        tmp_path,
        _plugin(
            group,
            _called("AllReduce", 1024, "ncclBfloat16"),
            end,
            _called("AllReduce", 1024, "ncclBfloat16"),
            _called("AllGather", 1024, "ncclFloat32"),
            _called("Send", 512, "ncclFloat8e4m3", "P2P"),
        ),
    )
    assert capture.format == Format.NCCL_PROFILER
    told = {(row.kind, row.message_bytes, row.calls, row.time_s) for row in _timings(capture).rows}
    assert told == {
        (CollectiveKind.ALL_REDUCE, 2048.0, 2, None),
        (CollectiveKind.ALL_GATHER, None, 1, None),
        (CollectiveKind.SEND_RECV, 512.0, 1, None),
    }
    assert {note.code for note in capture.notes} == {NoteCode.CALL_TIMES_ONLY, NoteCode.SOME_SIZES_UNKNOWN}
    assert outcome_of(capture.notes) == Outcome.PARTIAL


def test_a_plugin_file_that_is_cut(tmp_path: Path) -> None:
    text = _plugin(_called("AllReduce", 1024, "ncclFloat"), _called("AllReduce", 1024, "ncclFloat"))
    capture = _read(tmp_path, text[: text.rindex('"Datatype"')])
    assert _timings(capture).rows[0].calls == 1
    assert NoteCode.FILE_TRUNCATED in [note.code for note in capture.notes]


def test_a_plugin_file_without_collectives_is_refused(tmp_path: Path) -> None:
    group = {"name": "Group", "cat": "GROUP", "ph": "b", "id": 0, "ts": 1.0, "args": {"groupId": 0}}
    with pytest.raises(Refusal) as caught:
        _read(tmp_path, _plugin(group))
    assert caught.value.code == RefusalCode.NO_ROWS


def test_damage_gives_an_answer_or_a_refusal(tmp_path: Path) -> None:
    chance = random.Random(11)
    seeds = ["\n".join(json.dumps(_record()) for _ in range(3)), _plugin(_called("AllReduce", 1024, "ncclHalf"))]
    path = tmp_path / "damaged"
    for turn in range(400):
        data = bytearray(seeds[turn % 2].encode())
        for _ in range(chance.randrange(1, 8)):
            data[chance.randrange(len(data))] = chance.choice(b'0123456789.-e"{}[],nN \n')
        path.write_bytes(data[: chance.randrange(1, len(data) + 1)])
        try:
            assert read(path).notes is not None
        except Refusal:
            continue
