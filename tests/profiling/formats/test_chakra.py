"""Chakra traces: collectives of the device with their sizes; durations without a clock are no timeline."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiling.analysis import analyse
from profiling.evidence import ExecutionGraph
from profiling.formats import chakra
from profiling.formats.capture import Format
from profiling.formats.limits import Limits
from profiling.formats.registry import read
from profiling.formats.source import Head
from profiling.notes import NoteCode, Outcome, Refusal, RefusalCode
from profiling.workload import CollectiveKind
from tests.paths import SHARED
from tests.profiling.formats.wire import message, varint

COMP, SEND, COLLECTIVE = 4, 5, 7


def attribute(name: str, value: Any) -> bytes:
    number = 29 if isinstance(value, str) else 27 if isinstance(value, bool) else 9
    return message((1, name), (number, int(value) if isinstance(value, bool) else value))


def record(*fields: tuple[int, Any]) -> bytes:
    data = message(*fields)
    return varint(len(data)) + data


HEADER = record((2, attribute("schema", "1.0.1")), (2, attribute("pid", 7)))


def node(number: int, name: str, kind: int = COMP, shapes: str = "", **attributes: Any) -> bytes:
    inputs = [(8, message((1, "[]"), (2, shapes), (3, "[]")))] if shapes else []
    own = [(10, attribute(key, value)) for key, value in attributes.items()]
    return record((1, number), (2, name), (3, kind), (7, 318), *inputs, *own)


def saved(tmp_path: Path, *records: bytes, name: str = "job.3.et") -> Path:
    path = tmp_path / name
    path.write_bytes(HEADER + b"".join(records))
    return path


def graph_of(path: Path, limits: Limits | None = None) -> ExecutionGraph:
    (graph,) = read(path, limits).evidence
    assert isinstance(graph, ExecutionGraph)
    return graph


def test_collectives_of_the_device_have_kind_size_and_group(tmp_path: Path) -> None:
    path = saved(
        tmp_path,
        node(1, "aten::addmm(0)", shapes="[[9], [2, 3], [3, 4], [], []]", is_cpu_op=True),
        node(2, "aten::addmm(1)", shapes="[[9], [2, 3], [3, 4], [], []]", is_cpu_op=True),
        node(3, "c10d::allreduce_(0)", COLLECTIVE, is_cpu_op=True),
        node(4, "ncclDevKernel_AllReduce", COLLECTIVE, is_cpu_op=False, comm_type=0, comm_size=4096, pg_size=16),
        node(5, "ncclDevKernel_AllGather", COLLECTIVE, comm_type=2, comm_size=10, pg_size=16),
        node(6, "ncclDevKernel_AllGather", COLLECTIVE, comm_type=2, comm_size=10),
        node(7, "COMM_SEND", SEND, comm_size=64),
        node(8, "barrier", COLLECTIVE, comm_type=9, comm_size=1),
        node(9, "ncclDevKernel_ReduceScatter_Sum_f32", COLLECTIVE),
    )
    capture = read(path)
    graph = graph_of(path)
    assert capture.format is Format.CHAKRA_ET
    assert capture.timelines == ()
    assert [(call.kind, call.message_bytes, call.group_size) for call in graph.collectives] == [
        (CollectiveKind.ALL_REDUCE, 4096, 16),
        (CollectiveKind.ALL_GATHER, 160, 16),
        (CollectiveKind.ALL_GATHER, None, None),
        (CollectiveKind.SEND_RECV, 64, None),
        (CollectiveKind.REDUCE_SCATTER, None, None),
    ]
    assert (graph.matmul_flops, graph.rank, graph.operators) == (48, 3, 9)
    assert analyse([path]).outcome is Outcome.PARTIAL


def test_a_cut_file_gives_its_whole_records(tmp_path: Path) -> None:
    path = saved(tmp_path, *(node(at, "n", COLLECTIVE, comm_type=0, comm_size=8) for at in range(1, 40)))
    path.write_bytes(path.read_bytes()[:-5])
    assert len(graph_of(path).collectives) == 38
    assert NoteCode.FILE_TRUNCATED in [note.code for note in read(path).notes]


def test_many_records_run_over_the_borders_of_chunks(tmp_path: Path) -> None:
    sizes = range(1, 9000)
    records = [node(at, "x" * (at % 700 + 1), COLLECTIVE, comm_type=0, comm_size=at) for at in sizes]
    assert [call.message_bytes for call in graph_of(saved(tmp_path, *records)).collectives] == list(sizes)


def test_the_form_in_json(tmp_path: Path) -> None:
    path = tmp_path / "chakra.1.json"
    path.write_text(
        '{"workload_graph": [{"Id": 4, "Name": "c10d::broadcast_(0)", "NodeType": 7, "is_cpu_op": true},'
        ' {"Id": 5, "Name": "ncclKernel_Broadcast_RING_LL_Sum_int8_t(int)", "NodeType": 7, "runtime": 28,'
        ' "is_cpu_op": false}], "ngpus": 1}',
        encoding="utf-8",
    )
    graph = graph_of(path)
    assert [(call.kind, call.message_bytes) for call in graph.collectives] == [(CollectiveKind.BROADCAST, None)]
    assert (graph.rank, graph.operators) == (1, 2)


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x08perfetto" * 40,
        b"\x0a\x40" + message((2, "/host:CPU"), (3, b"x" * 50)),
        b"plain text of some length, with\nlines",
        HEADER,
        HEADER + record((1, 5), (2, "\x00\x01"), (3, 4)),
        HEADER + record((1, 5), (2, "name"), (3, 40)),
    ],
)
def test_other_binary_files_are_not_taken_for_it(data: bytes) -> None:
    assert not chakra.recognises(Head(data, "a.et"))


def test_limits_hold(tmp_path: Path) -> None:
    path = saved(tmp_path, *(node(at, "n" * 50, COLLECTIVE, comm_type=0) for at in range(1, 50)))
    for limits, code in (
        (Limits(events=40), RefusalCode.TOO_MANY_EVENTS),
        (Limits(rows=40), RefusalCode.TOO_MANY_ROWS),
        (Limits(event_bytes=40), RefusalCode.EVENT_TOO_LONG),
    ):
        with pytest.raises(Refusal) as caught:
            read(path, limits)
        assert caught.value.code is code


@settings(max_examples=300)
@given(st.data())
def test_damage_is_refused_or_read_never_a_failure(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    seed = bytearray(HEADER + node(1, "aten::mm", shapes="[[2, 3], [3, 4]]") + node(2, "n", COLLECTIVE, comm_type=0))
    for _ in range(data.draw(st.integers(1, 4))):
        seed[data.draw(st.integers(0, len(seed) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.et"
    path.write_bytes(bytes(seed[: data.draw(st.integers(1, len(seed)))]))
    try:
        capture = read(path)
    except Refusal:
        return
    assert capture.timelines == ()


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
def test_a_real_trace_in_its_archive() -> None:
    assert SHARED is not None
    analysis = analyse([SHARED / "traces/files/chakra-feeder/feeder_tests_trace.tar.gz"])
    ((_, graph),) = analysis.evidence
    assert isinstance(graph, ExecutionGraph)
    sizes = [call.message_bytes for call in graph.collectives if call.kind is CollectiveKind.ALL_REDUCE]
    assert sizes == [4 * elements for elements in (2049000, 7875584, 6563840, 6637568, 2431040)]
    assert [call.message_bytes for call in graph.collectives if call.kind is CollectiveKind.BROADCAST] == [212480, 424]
