"""The SQLite file of rocprof (v1)."""

import pytest

from profiling.formats import sqlite_reader
from profiling.formats.capture import Format
from profiling.formats.limits import Limits, Watch
from profiling.formats.source import Source
from profiling.notes import NoteCode
from profiling.timeline import WorkKind
from tests.paths import SHARED


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
def test_the_real_file() -> None:
    assert SHARED is not None
    path = SHARED / "traces" / "files" / "rocprofv1-hip" / "results.db"
    capture = sqlite_reader.read(Source(path, path.name, Watch(limits=Limits())))
    (line,) = capture.timelines
    assert capture.format is Format.ROCPROF
    assert [line.names[at] for at in line.name_id] == [
        *("CopyHostToDevice", "CopyHostToDevice", "vector_add(float*, float*, float*, int)", "CopyDeviceToHost")
    ]
    assert line.kind.tolist() == [WorkKind.COPY, WorkKind.COPY, WorkKind.KERNEL, WorkKind.COPY]
    assert line.duration_ns.tolist() == [92212447, 88505203, 3431611, 885689740]
    assert line.devices == (4,)
    assert line.launched_ns.tolist() == [622108814230486, 622109153185365, 622109243450309, 622109247935172]
    assert line.host.launches == 4
    assert [note.code for note in capture.notes] == [NoteCode.CLOCKS_DIFFER]
