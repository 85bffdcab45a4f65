"""rocprofv3's results as JSON: small documents, and the real one against another reading of it."""

import gzip
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from profiling.formats import rocprof_json
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits, Watch
from profiling.formats.source import Source
from profiling.intervals import union
from profiling.notes import NoteCode, Refusal, RefusalCode
from profiling.timeline import WorkKind
from tests.paths import SHARED

SECRET = "hf_abcdef"
REAL = SHARED / "traces" / "files" / "rocprof-tracelens" / "908_results.json.gz" if SHARED else None


def handle(number: int) -> dict[str, int]:
    return {"handle": number}


def record(start: int, end: int, internal: int, **more: Any) -> dict[str, Any]:
    correlation = {"internal": internal, "external": 0}
    return {"size": 1, "correlation_id": correlation, "start_timestamp": start, "end_timestamp": end, **more}


def dispatch(start: int, end: int, internal: int, kernel: int, agent: int) -> dict[str, Any]:
    info = {"agent_id": handle(agent), "queue_id": handle(18), "kernel_id": kernel, "dispatch_id": 1}
    return record(start, end, internal, kind=0, operation=0, dispatch_info=info, stream_id=handle(5))


def document(records: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    agents = [
        {"id": handle(900), "type": 1, "node_id": 0, "product_name": "EPYC", "mem_banks": [{"a": 1}, {"b": 2}]},
        {"id": handle(902), "type": 2, "node_id": 3, "product_name": "AMD Instinct MI300X"},
        {"id": handle(901), "type": 2, "node_id": 2, "product_name": "AMD Instinct MI300X"},
    ]
    tool = {
        "metadata": {
            "pid": 1,
            "command": ["python", f"--token={SECRET}", '"kernel_dispatch":['],
            "node": {"hostname": SECRET},
        },
        "agents": agents,
        "strings": {
            "buffer_records": [
                {"kind": "NONE", "operations": []},
                {"kind": "HIP_API", "operations": ["hipLaunchKernel", "hipDeviceSynchronize"]},
                {"kind": "MEMORY_COPY", "operations": ["NONE", "MEMORY_COPY_DEVICE_TO_DEVICE"]},
            ],
            "marker_api": [
                {"key": 41, "value": "step 1"},
                {"key": 42, "value": "step 2"},
                {"key": 43, "value": "step 3"},
            ],
        },
        "kernel_symbols": [
            {"kernel_id": 8, "kernel_name": "f.kd", "formatted_kernel_name": "f(int)"},
            {"kernel_id": 9, "kernel_name": "ncclDevKernel_Generic(x)", "formatted_kernel_name": ""},
        ],
        "callback_records": {"counter_collection": []},
        "buffer_records": records,
    }
    return {"rocprofiler-sdk-tool": [tool]}


RECORDS = {
    "kernel_dispatch": [dispatch(2000, 2500, 12, 9, 902), dispatch(1000, 1600, 11, 8, 901)],
    "hip_api": [
        record(900, 950, 11, kind=1, operation=0),
        record(2500, 2600, 13, kind=1, operation=1),
        record(2600, 2700, 14, kind=9, operation=99),
    ],
    "marker_api": [record(0, 900, 41), record(900, 1800, 42), record(1800, 2700, 43)],
    "memory_copy": [
        record(1600, 1700, 15, kind=2, operation=1, src_agent_id=handle(902), dst_agent_id=handle(901), bytes=4096)
    ],
}


def read(path: Path, limits: Limits | None = None) -> Capture:
    source = Source(path, path.name, Watch(limits=limits or Limits()))
    assert rocprof_json.recognises(source.head())
    return rocprof_json.read(source)


def written(folder: Path, content: str) -> Path:
    path = folder / "1_results.json"
    path.write_text(content)
    return path


@pytest.mark.parametrize("indent", [None, 2])
def test_records_of_all_kinds(tmp_path: Path, indent: int | None) -> None:
    capture = read(written(tmp_path, json.dumps(document(RECORDS), indent=indent)))
    (line,) = capture.timelines
    assert capture.format is Format.ROCPROF_V3_JSON
    assert line.start_ns.tolist() == [1000, 1600, 2000]
    assert line.duration_ns.tolist() == [600, 100, 500]
    assert [line.names[at] for at in line.name_id] == [
        *("f(int)", "MEMORY_COPY_DEVICE_TO_DEVICE", "ncclDevKernel_Generic(x)")
    ]
    assert line.kind.tolist() == [WorkKind.KERNEL, WorkKind.PEER_COPY, WorkKind.KERNEL]
    assert line.device.tolist() == [0, 1, 1]
    assert line.device_names == {0: "AMD Instinct MI300X", 1: "AMD Instinct MI300X"}
    assert line.bytes.tolist() == [-1, 4096, -1]
    assert line.launched_ns.tolist() == [900, -1, -1]
    assert line.host.launches == 1
    assert line.host.waits.length == 100
    assert [step.number for step in line.steps] == [1, 2, 3]
    assert line.collectives.row.tolist() == [2]


def test_the_command_line_and_the_host_are_not_kept(tmp_path: Path) -> None:
    assert SECRET not in repr(read(written(tmp_path, json.dumps(document(RECORDS)))))


def test_a_file_that_ends_early_is_read_up_to_there(tmp_path: Path) -> None:
    records = {"kernel_dispatch": [dispatch(1000 * at, 1000 * at + 10, at, 8, 901) for at in range(1, 100)]}
    whole = json.dumps(document(records))
    cut = whole[: whole.index('"internal": 50,')]
    capture = read(written(tmp_path, cut))
    assert capture.timelines[0].start_ns.size == 49
    assert [(note.code, note.params) for note in capture.notes] == [(NoteCode.FILE_TRUNCATED, {"events": 49})]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text[: text.index("kernel_dispatch", 900) + 30], RefusalCode.FILE_TRUNCATED),
        (lambda text: text.replace('"dispatch_info": {', '"dispatch_info": {{'), RefusalCode.INVALID_JSON),
        (
            lambda text: text.replace('"start_timestamp": 1000', '"start_timestamp": ' + "[" * 5000),
            RefusalCode.TOO_DEEP,
        ),
        (lambda text: text.replace('"kernel_dispatch"', '"other"'), None),
    ],
)
def test_broken_documents_are_refused(tmp_path: Path, change: Any, code: RefusalCode | None) -> None:
    path = written(tmp_path, change(json.dumps(document({"kernel_dispatch": RECORDS["kernel_dispatch"]}))))
    with pytest.raises(Refusal) as caught:
        read(path)
    assert caught.value.code is (code or RefusalCode.NO_DISPATCHES)


def test_limits_are_kept(tmp_path: Path) -> None:
    records = {"kernel_dispatch": [dispatch(1000 * at, 1000 * at + 10, at, 8, 901) for at in range(1, 100)]}
    path = written(tmp_path, json.dumps(document(records)))
    with pytest.raises(Refusal) as caught:
        read(path, Limits(events=50))
    assert caught.value.code is RefusalCode.TOO_MANY_EVENTS


@pytest.mark.skipif(REAL is None, reason="the reference captures are not beside the checkout")
def test_the_real_file_agrees_with_another_reading_of_it() -> None:
    assert REAL is not None
    tool = json.loads(gzip.decompress(REAL.read_bytes()))["rocprofiler-sdk-tool"][0]
    records = sorted(tool["buffer_records"]["kernel_dispatch"], key=lambda one: one["start_timestamp"])
    capture = read(REAL)
    (line,) = capture.timelines
    assert line.start_ns.tolist() == [one["start_timestamp"] for one in records]
    assert line.duration_ns.sum() == sum(one["end_timestamp"] - one["start_timestamp"] for one in records)
    assert line.devices == (0,)
    assert len(line.device_names) == 8
    names = {one["kernel_id"]: one["formatted_kernel_name"] for one in tool["kernel_symbols"]}
    called = Counter(names[one["dispatch_info"]["kernel_id"]] for one in records)
    assert Counter(line.names[at] for at in line.name_id) == Counter({name[:1000]: n for name, n in called.items()})
    reach = covered = 0
    for one in records:
        covered += max(0, one["end_timestamp"] - max(one["start_timestamp"], reach))
        reach = max(reach, one["end_timestamp"])
    assert union(line.start_ns, line.end_ns).length == covered
    assert tool["metadata"]["node"]["hostname"] not in repr(capture)
