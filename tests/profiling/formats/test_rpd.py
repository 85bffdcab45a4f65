"""rocmProfileData: operations and calls from SQLite, real files against plain SQL."""

import gzip
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from profiling.formats import sqlite_reader
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits, Watch
from profiling.formats.source import Source
from profiling.intervals import union
from profiling.notes import NoteCode, Refusal, RefusalCode
from profiling.timeline import StepSource, Timeline, WorkKind
from tests.paths import SHARED

SCHEMA = """
CREATE TABLE "rocpd_string" ("id" integer PRIMARY KEY, "string" varchar(4096));
CREATE TABLE "rocpd_op" ("id" integer PRIMARY KEY, "gpuId" integer, "queueId" integer, "start" integer, "end" integer,
    "description_id" integer, "opType_id" integer);
CREATE TABLE "rocpd_api" ("id" integer PRIMARY KEY, "pid" integer, "start" integer, "end" integer,
    "apiName_id" integer, "args_id" integer);
CREATE TABLE "rocpd_api_ops" ("id" integer PRIMARY KEY, "api_id" integer, "op_id" integer);
CREATE TABLE "rocpd_kernelapi" ("api_ptr_id" integer PRIMARY KEY, "stream" varchar(18), "kernelName_id" integer);
CREATE TABLE "rocpd_copyapi" ("api_ptr_id" integer PRIMARY KEY, "stream" varchar(18), "size" integer,
    "kind" integer, "dstDevice" integer, "srcDevice" integer);
"""
STRINGS = (
    *("", "KernelExecution", "CopyHostToDevice", "CopyDeviceToDevice", "FillBuffer", "Barrier", "Task"),
    *("gemm", "copy_kernel", "hipLaunchKernel", "hipMemcpyAsync", "hipGraphLaunch", "hipStreamSynchronize"),
    *("UserMarker", "step 1", "step 2", "step 3"),
)
Fields = tuple[object, ...]
ID = {text: number for number, text in enumerate(STRINGS, start=1)}


def source_of(path: Path) -> Source:
    return Source(path, path.name, Watch(limits=Limits()))


def read(path: Path) -> Capture:
    source = source_of(path)
    assert sqlite_reader.recognises(source.head())
    return sqlite_reader.read(source_of(path))


def database(folder: Path, *, operations: Sequence[Fields], calls: Sequence[Fields] = ()) -> Path:
    path = folder / "trace.rpd"
    with sqlite3.connect(path) as file:
        file.executescript(SCHEMA)
        file.executemany("INSERT INTO rocpd_string VALUES (?, ?)", [(number, text) for text, number in ID.items()])
        file.executemany("INSERT INTO rocpd_op VALUES (?, ?, ?, ?, ?, ?, ?)", operations)
        file.executemany("INSERT INTO rocpd_api VALUES (?, 7, ?, ?, ?, ?)", calls)
        file.executemany(
            "INSERT INTO rocpd_api_ops VALUES (?, ?, ?)", [(1, 51, 1), (2, 52, 2), (3, 53, 3), (4, 54, 6), (5, 54, 7)]
        )
        file.execute("INSERT INTO rocpd_kernelapi VALUES (51, '0x5', ?)", (ID["gemm"],))
        file.executemany(
            "INSERT INTO rocpd_copyapi VALUES (?, '0x6', ?, 3, ?, ?)", [(52, 4096, 0, 0), (53, 8192, 1, 0)]
        )
    file.close()
    return path


def operation(number: int, start: int, end: int, name: str, kind: str, gpu: int = 0) -> Fields:
    return (number, gpu, 0, start, end, ID[name], ID[kind])


def test_operations_calls_and_ranges(tmp_path: Path) -> None:
    path = database(
        tmp_path,
        operations=[
            operation(1, 9000000000000000101, 9000000000000000200, "", "KernelExecution"),
            operation(2, 9000000000000000250, 9000000000000000300, "", "CopyHostToDevice"),
            operation(3, 9000000000000000300, 9000000000000000400, "", "CopyDeviceToDevice"),
            operation(4, 9000000000000000400, 9000000000000000450, "", "FillBuffer"),
            operation(5, 9000000000000000000, 9000000000000009999, "", "Barrier"),
            operation(6, 9000000000000000500, 9000000000000000600, "copy_kernel", "KernelExecution"),
            operation(7, 9000000000000000600, 9000000000000000700, "gemm", "Task", gpu=3),
        ],
        calls=[
            (51, 9000000000000000090, 9000000000000000095, ID["hipLaunchKernel"], 1),
            (52, 9000000000000000210, 9000000000000000215, ID["hipMemcpyAsync"], 1),
            (54, 9000000000000000460, 9000000000000000470, ID["hipGraphLaunch"], 1),
            (55, 9000000000000000700, 9000000000000000800, ID["hipStreamSynchronize"], 1),
            (61, 9000000000000000000, 9000000000000000250, ID["UserMarker"], ID["step 1"]),
            (62, 9000000000000000250, 9000000000000000500, ID["UserMarker"], ID["step 2"]),
            (63, 9000000000000000500, 9000000000000000750, ID["UserMarker"], ID["step 3"]),
        ],
    )
    capture = read(path)
    (line,) = capture.timelines
    assert capture.format is Format.RPD
    assert [line.names[at] for at in line.name_id] == [
        *("gemm", "CopyHostToDevice", "CopyDeviceToDevice", "FillBuffer", "copy_kernel", "gemm")
    ]
    assert line.kind.tolist() == [
        *(WorkKind.KERNEL, WorkKind.COPY, WorkKind.PEER_COPY, WorkKind.FILL, WorkKind.KERNEL, WorkKind.KERNEL)
    ]
    assert line.duration_ns.tolist() == [99, 50, 100, 50, 100, 100]
    assert line.device.tolist() == [0, 0, 0, 0, 0, 3]
    assert line.bytes.tolist() == [-1, 4096, 8192, -1, -1, -1]
    assert (line.launched_ns - line.start_ns).tolist()[0] == -11
    assert (line.host.launches, line.host.graph_launches, line.host.operators) == (3, 1, None)
    assert line.host.waits.length == 100
    assert line.steps_from is StepSource.RANGES
    assert [step.number for step in line.steps] == [1, 2, 3]
    assert NoteCode.STEPS_FROM_RANGES in [note.code for note in capture.notes]


def test_a_file_without_operations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        read(database(tmp_path, operations=[]))
    assert caught.value.code is RefusalCode.NO_DISPATCHES


def test_a_view_in_place_of_a_table_is_not_asked(tmp_path: Path) -> None:
    path = database(tmp_path, operations=[])
    with sqlite3.connect(path) as file:
        file.execute("ALTER TABLE rocpd_op RENAME TO kept")
        file.execute("CREATE VIEW \"rocpd_op\" AS SELECT 1 AS id, 0 AS gpuId, 1 AS start, 2 AS 'end'")
    file.close()
    with pytest.raises(Refusal) as caught:
        read(path)
    assert caught.value.code is RefusalCode.NOT_READ_YET


@pytest.mark.parametrize("junk", [b"", b"\x00" * 5000, b"SQLite"])
def test_a_damaged_file_is_refused(tmp_path: Path, junk: bytes) -> None:
    path = database(tmp_path, operations=[operation(1, 10, 20, "gemm", "KernelExecution")])
    path.write_bytes(path.read_bytes()[:4096] + junk)
    with pytest.raises(Refusal) as caught:
        sqlite_reader.read(source_of(path))
    assert caught.value.code is RefusalCode.DATABASE_DAMAGED


def shares(line: Timeline, device: int) -> dict[str, float]:
    mine = line.device == device
    span = line.end_ns[mine].max() - line.start_ns[mine].min()
    busy = union(line.start_ns[mine], line.end_ns[mine]).length
    kernels = mine & np.isin(line.kind, [WorkKind.KERNEL])
    return {
        "busy_pct": 100 * busy / span,
        "compute_pct": 100 * union(line.start_ns[kernels], line.end_ns[kernels]).length / span,
        "n": int(mine.sum()),
        "span_ms": span / 1e6,
    }


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
@pytest.mark.parametrize("name", ["files/rpd-torch/mytrace.rpd.gz", "files/rpd-torch/matmul_result.rpd"])
def test_real_files_agree_with_plain_sql(name: str) -> None:
    assert SHARED is not None
    reference = json.loads((SHARED / "traces" / "reference" / "sqlite_plain_sql.json").read_text())[name]["devices"]
    (line,) = read(SHARED / "traces" / name).timelines
    assert {str(device) for device in line.devices} == set(reference)
    for device, told in reference.items():
        for key, value in shares(line, int(device)).items():
            assert value == pytest.approx(told[key], abs=0.1), key
    assert line.vendor == "AMD"
    assert (line.launched_ns > 0).all()


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
def test_compressed_and_plain_are_the_same(tmp_path: Path) -> None:
    assert SHARED is not None
    packed = SHARED / "traces" / "files" / "rpd-torch" / "mytrace.rpd.gz"
    plain = tmp_path / "mytrace.rpd"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    first, second = (read(path).timelines[0] for path in (packed, plain))
    assert (first.start_ns == second.start_ns).all()
    assert first.names == second.names
