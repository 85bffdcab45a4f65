"""PyTorch execution traces of all schemas: collectives with their sizes and groups, products with their FLOPs."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiling.analysis import analyse
from profiling.evidence import ExecutionGraph, SizedCollective
from profiling.formats.capture import Format
from profiling.formats.limits import Limits
from profiling.formats.registry import read
from profiling.messages import sentence
from profiling.notes import NoteCode, Outcome, Refusal, RefusalCode
from profiling.workload import CollectiveKind
from tests.paths import SHARED
from tests.profiling.expected import Row, agrees, rows

EXPECTED = rows("pytorch-et")
ROOT = {"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1, "inputs": {}, "attrs": []}


def node(
    number: int, name: str, *, shapes: Any = (), values: Any = (), outputs: Any = (), **attrs: Any
) -> dict[str, Any]:
    """A node as schema 1.1 writes it."""
    return {
        "id": number,
        "name": name,
        "ctrl_deps": 1,
        "inputs": {"values": list(values), "shapes": list(shapes), "types": [], "strides": []},
        "outputs": {"values": list(outputs), "shapes": [], "types": [], "strides": []},
        "attrs": [{"name": key, "type": "", "value": value} for key, value in attrs.items()],
    }


def collective(number: int, name: str, elements: int, out: int | None = None, **attrs: Any) -> dict[str, Any]:
    sizes = {"in_msg_nelems": elements, "out_msg_nelems": elements if out is None else out}
    told = {"collective_name": name, "dtype": "BFloat16", **sizes, "pg_size": 8, **attrs}
    return node(number, "record_param_comms", **told)


def tensor(elements: int, size: int = 2) -> list[Any]:
    return [5, 6, 0, elements, size, "cuda:0"]


def text_of(*nodes: dict[str, Any], schema: str = "1.1.1-chakra.0.0.4") -> str:
    document = {"schema": schema, "pid": 1, "time": "", "start_ts": 1, "nodes": [ROOT, *nodes], "finish_ts": 9}
    return json.dumps(document, indent=1)


def saved(tmp_path: Path, text: str, name: str = "et.json") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def graph_of(path: Path, limits: Limits | None = None) -> ExecutionGraph:
    (graph,) = read(path, limits).evidence
    assert isinstance(graph, ExecutionGraph)
    return graph


FACTS = {
    "collectives": lambda graph: len(graph.collectives),
    "allreduce_bytes": lambda graph: _only(graph, CollectiveKind.ALL_REDUCE),
    "allgather_bytes": lambda graph: _only(graph, CollectiveKind.ALL_GATHER),
    "group_size": lambda graph: graph.collectives[0].group_size,
    "mm_flops": lambda graph: graph.matmul_flops,
    "gpu_busy_us": lambda graph: None,
}


def _only(graph: ExecutionGraph, kind: CollectiveKind) -> float | None:
    (found,) = {call.message_bytes for call in graph.collectives if call.kind is kind}
    return found


@pytest.mark.skipif(not EXPECTED, reason="the reference captures are not beside the checkout")
@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row.id)
def test_every_fact_of_the_table(row: Row) -> None:
    analysis = analyse([row.path])
    assert analysis.format == Format.PYTORCH_ET
    assert analysis.outcome == row.outcome
    assert "no timing; add the Kineto trace" in " ".join(map(sentence, analysis.notes))
    assert analysis.ranks == ()
    for key, fact in row.facts.items():
        assert agrees(FACTS[key](graph_of(row.path)), fact), key


def test_sizes_are_those_of_the_whole_buffer(tmp_path: Path) -> None:
    graph = graph_of(
        saved(
            tmp_path,
            text_of(
                collective(2, "allreduce", 1000),
                collective(3, "_allgather_base", 100, 800),
                collective(4, "_reduce_scatter_base", 800, 100, pg_size=4),
                collective(5, "all_to_allv", 64, 60),
                collective(6, "broadcast", 7, dtype="Float8_e4m3fn"),
                collective(7, "reduce", 7),
                collective(8, "send", 5),
            ),
        )
    )
    assert [(call.kind, call.message_bytes, call.group_size) for call in graph.collectives] == [
        (CollectiveKind.ALL_REDUCE, 2000, 8),
        (CollectiveKind.ALL_GATHER, 1600, 8),
        (CollectiveKind.REDUCE_SCATTER, 1600, 4),
        (CollectiveKind.ALL_TO_ALL, 128, 8),
        (CollectiveKind.BROADCAST, 7, 8),
        (CollectiveKind.UNKNOWN, 14, 8),
        (CollectiveKind.SEND_RECV, 10, 8),
    ]


def test_calls_that_move_nothing_are_no_collectives(tmp_path: Path) -> None:
    names = ("wait", "barrier", "init", "startCoalescing")
    path = saved(tmp_path, text_of(*(collective(at + 2, name, 1) for at, name in enumerate(names))))
    assert graph_of(path).collectives == ()


def test_old_schemas_tell_by_their_inputs(tmp_path: Path) -> None:
    old = {"id": 2, "rf_id": 9, "parent": 1, "op_schema": "", "input_types": [], "output_types": []}
    reduced = {
        "name": "record_param_comms",
        **old,
        "inputs": [[tensor(300)], 337, 93825114103440, 3, "allreduce", [], [], 8],
        "input_shapes": [[[300]], [], [], [], [], [], [], []],
        "outputs": [[tensor(300)]],
    }
    gathered = {**reduced, "inputs": [tensor(10), 338, 7, 3, "_allgather_base", [], [], 8], "outputs": [tensor(80)]}
    waited = {**reduced, "inputs": [337, 0, 0, "wait", [], [], 1], "outputs": []}
    product = {"name": "aten::mm", **old, "inputs": [], "input_shapes": [[2, 3], [3, 4]], "outputs": []}
    graph = graph_of(saved(tmp_path, text_of(reduced, gathered, waited, product, schema="1.0.1")))
    assert [(call.kind, call.message_bytes, call.group_size) for call in graph.collectives] == [
        (CollectiveKind.ALL_REDUCE, 600, 8),
        (CollectiveKind.ALL_GATHER, 160, 8),
    ]
    assert graph.matmul_flops == 48
    assert graph.rank == 3


def test_products_of_operators_that_call_each_other_count_once(tmp_path: Path) -> None:
    shapes = [[64, 32], [32, 16]]
    path = saved(
        tmp_path, text_of(*(node(at, name, shapes=shapes) for at, name in enumerate(("aten::matmul", "aten::mm"), 2)))
    )
    graph = graph_of(path)
    assert (graph.matmul_flops, graph.attention_flops, graph.operators) == (2 * 64 * 32 * 16, None, 2)


def test_the_world_is_that_of_the_default_group(tmp_path: Path) -> None:
    calls = [collective(2, "allreduce", 1, pg_size=4), collective(3, "allreduce", 1, pg_size=32, pg_desc="default_pg")]
    assert graph_of(saved(tmp_path, text_of(*calls), "et_rank_5.json")).world_size == 32
    assert graph_of(saved(tmp_path, text_of(*calls), "et_rank_5.json")).rank == 5


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: text.replace('},\n  {\n   "id": 4', '}\n  {\n   "id": 4'), id="a comma is missing"),
        pytest.param(lambda text: text.replace('"name": "aten::relu"', '"name": "aten\\::relu"'), id="a bad escape"),
        pytest.param(
            lambda text: text.replace('"name": "aten::relu"', '"name": "aten::\x01relu"'), id="control character"
        ),
        pytest.param(lambda text: text.replace('"id": 3,', '"id": 3, "value": nan,'), id="not a number"),
    ],
)
def test_faults_of_the_writer_are_mended(tmp_path: Path, spoil: Any) -> None:
    """pytorch/pytorch#126703."""
    sound = text_of(collective(2, "allreduce", 8), node(3, "aten::relu"), collective(4, "allreduce", 8))
    spoilt = spoil(sound)
    assert spoilt != sound
    graph = graph_of(saved(tmp_path, spoilt))
    assert (len(graph.collectives), graph.operators) == (2, 3)


def test_a_node_without_its_end_costs_only_itself(tmp_path: Path) -> None:
    lost = json.dumps(node(3, "aten::relu"), indent=1)[:-30]
    text = text_of(collective(2, "allreduce", 8), node(3, "aten::relu"), collective(4, "allreduce", 8))
    parts = text.split('{\n   "id": 3')
    assert len(parts) == 2
    path = saved(tmp_path, parts[0] + lost + '\n{\n   "id": 4' + parts[1].split('{\n   "id": 4')[1])
    analysis = analyse([path])
    assert len(graph_of(path).collectives) == 2
    assert analysis.outcome is Outcome.SALVAGE
    assert (NoteCode.EVENTS_UNREADABLE, 1) in [(note.code, note.params.get("count")) for note in analysis.notes]


def test_a_cut_file_is_read_to_its_cut(tmp_path: Path) -> None:
    text = text_of(*(collective(at, "allreduce", 8) for at in range(2, 50)))
    path = saved(tmp_path, text[: len(text) // 2])
    analysis = analyse([path])
    assert 0 < len(graph_of(path).collectives) < 48
    assert analysis.outcome is Outcome.SALVAGE
    assert NoteCode.FILE_TRUNCATED in [note.code for note in analysis.notes]


def test_pieces_of_a_long_file_lose_no_node(tmp_path: Path) -> None:
    calls = [collective(at, "allreduce", at) for at in range(2, 3000)]
    graph = graph_of(saved(tmp_path, text_of(*calls)))
    assert [call.message_bytes for call in graph.collectives] == [2 * at for at in range(2, 3000)]


def test_limits_hold(tmp_path: Path) -> None:
    path = saved(tmp_path, text_of(*(collective(at, "allreduce", 8) for at in range(2, 50))))
    huge = saved(tmp_path, text_of(node(2, "x", values=["y" * 9000])), "huge.json")
    for limits, code, file in (
        (Limits(events=40), RefusalCode.TOO_MANY_EVENTS, path),
        (Limits(rows=40), RefusalCode.TOO_MANY_ROWS, path),
        (Limits(event_bytes=5000), RefusalCode.EVENT_TOO_LONG, huge),
    ):
        with pytest.raises(Refusal) as caught:
            read(file, limits)
        assert caught.value.code is code


def test_a_graph_of_no_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        read(saved(tmp_path, '{"schema": "1.1.1", "nodes": []}'))
    assert caught.value.code in (RefusalCode.NO_ROWS, RefusalCode.FILE_TRUNCATED)


ODD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.recursive(st.integers(), lambda inner: st.lists(inner, max_size=6), max_leaves=8)
)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(["name", "inputs", "outputs", "attrs", "input_shapes"]), ODD), ODD, ODD)
def test_values_of_any_type_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, change: dict[str, Any], one: Any, other: Any
) -> None:
    odd = collective(2, "allreduce", 1, in_msg_nelems=one, pg_size=other, dtype=one)
    path = tmp_path_factory.getbasetemp() / "odd_et.json"
    path.write_text(
        text_of({**odd, **change}, node(3, "aten::mm", shapes=[one, other], values=[one])), encoding="utf-8"
    )
    assert graph_of(path).operators >= 1


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
def test_a_real_trace() -> None:
    assert SHARED is not None
    graph = graph_of(SHARED / "traces/files/chakra-megatron-tp8/megatron_et_0.json")
    assert Counter(graph.collectives) == {
        SizedCollective(kind=CollectiveKind.ALL_REDUCE, message_bytes=67108864, group_size=8): 81,
        SizedCollective(kind=CollectiveKind.ALL_REDUCE, message_bytes=32768, group_size=8): 3,
        SizedCollective(kind=CollectiveKind.ALL_REDUCE, message_bytes=4, group_size=1): 1,
    }
    assert (graph.rank, graph.operators) == (0, 5422)
