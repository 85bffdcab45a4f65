"""rocpd, the SQLite output of rocprofv3, in both layouts that were published, one process or several."""

import json
import sqlite3
from pathlib import Path

import pytest

from profiling.formats import sqlite_reader
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits, Watch
from profiling.formats.source import Source
from profiling.notes import NoteCode, Refusal, RefusalCode
from profiling.timeline import WorkKind

SECRET = "HF_TOKEN=hf_abcdef"
STRINGS = (
    *("KERNEL_DISPATCH", "HIP_RUNTIME_API_EXT", "MARKER_CORE_RANGE_API", "MEMORY_COPY_HOST_TO_DEVICE"),
    *("MEMORY_COPY_DEVICE_TO_DEVICE", "hipLaunchKernel", "hipMemcpyAsync", "hipDeviceSynchronize", "roctxThreadRangeA"),
)
ID = {text: number for number, text in enumerate(STRINGS, start=1)}
SHARED_TABLES = """
CREATE TABLE "rocpd_metadata{u}" ("id" INTEGER PRIMARY KEY, "tag" TEXT, "value" TEXT);
CREATE TABLE "rocpd_string{u}" ("id" INTEGER PRIMARY KEY, "guid" TEXT, "string" TEXT);
CREATE TABLE "rocpd_info_process{u}" ("id" INTEGER PRIMARY KEY, "pid" INTEGER, "command" TEXT, "environment" JSONB);
CREATE TABLE "rocpd_info_agent{u}" ("id" INTEGER PRIMARY KEY, "type" TEXT, "absolute_index" INTEGER, "name" TEXT,
    "product_name" TEXT);
CREATE TABLE "rocpd_info_kernel_symbol{u}" ("id" INTEGER PRIMARY KEY, "kernel_name" TEXT, "display_name" TEXT);
CREATE TABLE "rocpd_event{u}" ("id" INTEGER PRIMARY KEY, "category_id" INTEGER, "stack_id" INTEGER, "extdata" JSONB);
CREATE VIEW "rocpd_kernel_dispatch_all" AS SELECT 1 AS id, 5 AS start, 6 AS end;
"""
IN_ROWS = """
CREATE TABLE "rocpd_region{u}" ("id" INTEGER PRIMARY KEY, "start" BIGINT, "end" BIGINT, "name_id" INTEGER,
    "event_id" INTEGER);
CREATE TABLE "rocpd_kernel_dispatch{u}" ("id" INTEGER PRIMARY KEY, "agent_id" INTEGER, "kernel_id" INTEGER,
    "queue_id" INTEGER, "stream_id" INTEGER, "start" BIGINT, "end" BIGINT, "event_id" INTEGER);
CREATE TABLE "rocpd_memory_copy{u}" ("id" INTEGER PRIMARY KEY, "start" BIGINT, "end" BIGINT, "name_id" INTEGER,
    "dst_agent_id" INTEGER, "src_agent_id" INTEGER, "size" INTEGER, "queue_id" INTEGER, "stream_id" INTEGER,
    "event_id" INTEGER);
"""
IN_TABLES = """
CREATE TABLE "rocpd_timestamp{u}" ("id" INTEGER PRIMARY KEY, "value" BIGINT, "phase" INTEGER);
CREATE TABLE "rocpd_track{u}" ("id" INTEGER PRIMARY KEY, "agent_id" INTEGER, "queue_id" INTEGER, "stream_id" INTEGER);
CREATE TABLE "rocpd_region{u}" ("id" INTEGER PRIMARY KEY, "track_id" INTEGER, "name_id" INTEGER, "start_id" INTEGER,
    "end_id" INTEGER, "event_id" INTEGER);
CREATE TABLE "rocpd_kernel_dispatch{u}" ("id" INTEGER PRIMARY KEY, "track_id" INTEGER, "kernel_id" INTEGER,
    "start_id" INTEGER, "end_id" INTEGER, "event_id" INTEGER);
CREATE TABLE "rocpd_memory_copy{u}" ("id" INTEGER PRIMARY KEY, "track_id" INTEGER, "start_id" INTEGER,
    "end_id" INTEGER, "name_id" INTEGER, "dst_agent_id" INTEGER, "src_agent_id" INTEGER, "size" INTEGER,
    "event_id" INTEGER);
"""
DISPATCHES = [(4, 11, 1000, 1600, 101), (5, 12, 2000, 2500, 102)]
COPIES = [(300, 400, "MEMORY_COPY_HOST_TO_DEVICE", 4, 0, 4096, 103), (2600, 2700, STRINGS[4], 5, 4, 8192, 104)]
REGIONS = [
    (900, 950, "hipLaunchKernel", 201),
    (250, 260, "hipMemcpyAsync", 202),
    (2700, 2900, "hipDeviceSynchronize", 203),
    (0, 900, "roctxThreadRangeA", 301),
    (900, 1800, "roctxThreadRangeA", 302),
    (1800, 2750, "roctxThreadRangeA", 303),
]


def fill(file: sqlite3.Connection, u: str, *, in_rows: bool, shift: int = 0, environment: str = "{}") -> None:
    """One process; agents 0 (CPU), 4 and 5 (GPU)."""
    file.executescript(
        (SHARED_TABLES + (IN_ROWS if in_rows else IN_TABLES)).replace("{u}", u).replace("_all", u + "_v")
    )
    file.executemany(f'INSERT INTO "rocpd_string{u}" VALUES (?, "g", ?)', [(at, text) for text, at in ID.items()])
    file.execute(f'INSERT INTO "rocpd_info_process{u}" VALUES (1, 77, ?, ?)', (f"python --key={SECRET}", environment))
    agents = [(5, "GPU", 5, "gfx942", "MI300X"), (0, "CPU", 0, "EPYC", "EPYC"), (4, "GPU", 4, "gfx942", "MI300X")]
    file.executemany(f'INSERT INTO "rocpd_info_agent{u}" VALUES (?, ?, ?, ?, ?)', agents)
    symbols = [(11, "_Z1fv.kd", "f()"), (12, "g.kd", "")]
    file.executemany(f'INSERT INTO "rocpd_info_kernel_symbol{u}" VALUES (?, ?, ?)', symbols)
    events = [
        *((101, ID["KERNEL_DISPATCH"], 1, "{}"), (102, ID["KERNEL_DISPATCH"], 9, "{}"), (103, 1, 2, "{}")),
        *((104, 1, 8, "{}"), (201, ID["HIP_RUNTIME_API_EXT"], 1, "{}"), (202, 2, 2, "{}"), (203, 2, 3, "{}")),
        *(
            (300 + step, ID["MARKER_CORE_RANGE_API"], 50 + step, json.dumps({"message": f"step {step}"}))
            for step in (1, 2, 3)
        ),
    ]
    file.executemany(f'INSERT INTO "rocpd_event{u}" VALUES (?, ?, ?, ?)', events)
    moments: dict[int, int] = {}

    def moment(value: int) -> int:
        return moments.setdefault(value + shift, len(moments) + 1)

    for at, (agent, kernel, start, end, event) in enumerate(DISPATCHES):
        row = (
            (at, agent, kernel, 1, 6, start + shift, end + shift, event)
            if in_rows
            else (at, agent, kernel, moment(start), moment(end), event)
        )
        file.execute(f'INSERT INTO "rocpd_kernel_dispatch{u}" VALUES ({", ".join("?" * len(row))})', row)
    for at, (start, end, name, target, giver, size, event) in enumerate(COPIES):
        row = (
            (at, start + shift, end + shift, ID[name], target, giver, size, None, 6, event)
            if in_rows
            else (at, 4, moment(start), moment(end), ID[name], target, giver, size, event)
        )
        file.execute(f'INSERT INTO "rocpd_memory_copy{u}" VALUES ({", ".join("?" * len(row))})', row)
    for at, (start, end, name, event) in enumerate(REGIONS):
        row = (
            (at, start + shift, end + shift, ID[name], event)
            if in_rows
            else (at, 9, ID[name], moment(start), moment(end), event)
        )
        file.execute(f'INSERT INTO "rocpd_region{u}" VALUES ({", ".join("?" * len(row))})', row)
    if not in_rows:
        file.executemany(
            f'INSERT INTO "rocpd_timestamp{u}" VALUES (?, ?, 1)', [(at, one) for one, at in moments.items()]
        )
        file.executemany(f'INSERT INTO "rocpd_track{u}" VALUES (?, ?, 1, 6)', [(4, 4), (5, 5)])


def read(path: Path, limits: Limits | None = None) -> Capture:
    source = Source(path, path.name, Watch(limits=limits or Limits()))
    assert sqlite_reader.recognises(source.head())
    return sqlite_reader.read(source)


@pytest.mark.parametrize("in_rows", [True, False])
def test_both_layouts_tell_the_same(tmp_path: Path, in_rows: bool) -> None:
    path = tmp_path / "9_results.db"
    with sqlite3.connect(path) as file:
        fill(file, "_0000ab", in_rows=in_rows)
    file.close()
    capture = read(path)
    (line,) = capture.timelines
    assert capture.format is Format.ROCPD
    assert [line.names[at] for at in line.name_id] == [STRINGS[3], "f()", "g.kd", STRINGS[4]]
    assert line.start_ns.tolist() == [300, 1000, 2000, 2600]
    assert line.duration_ns.tolist() == [100, 600, 500, 100]
    assert line.device.tolist() == [0, 0, 1, 0]
    assert line.device_names == {0: "MI300X", 1: "MI300X"}
    assert line.kind.tolist() == [WorkKind.COPY, WorkKind.KERNEL, WorkKind.KERNEL, WorkKind.PEER_COPY]
    assert line.bytes.tolist() == [4096, -1, -1, 8192]
    assert line.launched_ns.tolist() == [250, 900, -1, -1]
    assert line.host.launches == 2
    assert line.host.waits.length == 200
    assert [(step.number, step.start_ns) for step in line.steps] == [(1, 0), (2, 900), (3, 1800)]
    assert NoteCode.ENVIRONMENT_NOT_READ not in [note.code for note in capture.notes]


def test_the_environment_and_the_command_line_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "9_results.db"
    with sqlite3.connect(path) as file:
        fill(file, "_0000ab", in_rows=True, environment=json.dumps({"HF_TOKEN": SECRET}))
    file.close()
    capture = read(path)
    assert NoteCode.ENVIRONMENT_NOT_READ in [note.code for note in capture.notes]
    assert SECRET not in repr(capture)


def test_processes_of_a_merged_file_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "merged.db"
    with sqlite3.connect(path) as file:
        fill(file, "_0000ab", in_rows=True)
        fill(file, "_0000cd", in_rows=True, shift=50)
    file.close()
    capture = read(path)
    assert [line.start_ns[0] for line in capture.timelines] == [300, 350]
    assert [line.launched_ns[0] for line in capture.timelines] == [250, 300]
    assert {"count": 2} in [note.params for note in capture.notes if note.code is NoteCode.RANKS_MERGED]


def test_a_file_without_dispatches_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "9_results.db"
    with sqlite3.connect(path) as file:
        file.executescript(SHARED_TABLES.replace("{u}", "_1"))
    file.close()
    with pytest.raises(Refusal) as caught:
        read(path)
    assert caught.value.code is RefusalCode.NO_DISPATCHES


def test_limits_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "9_results.db"
    with sqlite3.connect(path) as file:
        fill(file, "_1", in_rows=True)
    file.close()
    with pytest.raises(Refusal) as caught:
        read(path, Limits(events=3))
    assert caught.value.code is RefusalCode.TOO_MANY_EVENTS
    with pytest.raises(Refusal) as caught:
        read(path, Limits(names=2))
    assert caught.value.code is RefusalCode.TOO_MANY_NAMES
