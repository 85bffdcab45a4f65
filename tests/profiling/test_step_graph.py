"""What waited for what in a step, read off hand-made timelines."""

import json
from pathlib import Path

import numpy as np
import pytest

from profiling.analysis import analyse, read_file
from profiling.formats.limits import Limits
from profiling.generate import write
from profiling.graph_building import MOST_ROWS
from profiling.intervals import Intervals
from profiling.measured_step import measured_step
from profiling.reading import read_captures
from profiling.sample_capture import sample_capture
from profiling.step_graph import NONE, StepGraph
from profiling.steps import find_steps
from profiling.stored_reading import dumps, loads
from profiling.timeline import UNKNOWN, HostSide, WorkKind
from profiling.workload import KernelClass
from profiling.workload_json import workload_from_json, workload_to_json
from tests.profiling.timelines import Row, timeline

GEMM, ADD, REDUCE = "ampere_sgemm_128x64_nn", "vectorized_elementwise_kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
US = 1000


def graph_of(rows: list[Row], streams: list[int] | None = None, **host: object) -> StepGraph | None:
    """Rows in order of start; ``streams`` of each."""
    stream = np.array(streams or [0] * len(rows), dtype=np.int32)
    line = timeline(rows, stream=stream, host=HostSide(launches=len(rows), **host))
    step, _ = measured_step(line, find_steps(line))
    return step.graph


def queue(count: int, *, launched_every: int = 5 * US, length: int = 100 * US) -> list[Row]:
    """Kernels that follow each other, launched long before."""
    return [Row(GEMM, 50 * US + place * (length + US), length, launched_every * place) for place in range(count)]


def test_a_run_of_kernels_on_one_stream_is_one_node() -> None:
    graph = graph_of(queue(10))
    assert graph is not None
    assert len(graph) < 4
    matmul = list(KernelClass).index(KernelClass.MATMUL)
    assert graph.work_s[:, matmul].sum() == pytest.approx(10 * 100e-6)
    assert graph.work_s.sum() == pytest.approx(10 * 100e-6)


def test_a_kernel_that_starts_when_another_stream_is_done_waited_for_it() -> None:
    rows = [Row(GEMM, 50 * US, 500 * US, 0), Row(ADD, 552 * US, 100 * US, 10 * US)]
    graph = graph_of(rows, [0, 1])
    assert graph is not None
    assert list(zip(graph.source, graph.target, strict=True)) == [(0, 1)]


def test_work_that_ran_beside_it_did_not_wait() -> None:
    rows = [Row(GEMM, 50 * US, 500 * US, 0), Row(ADD, 55 * US, 600 * US, 50 * US)]
    graph = graph_of(rows, [0, 1])
    assert graph is not None
    assert graph.source.size == 0


def test_an_order_of_the_host_is_a_wait_even_where_it_cost_nothing() -> None:
    """The second stream was told to wait for the first between the two launches, and got to it only later."""
    rows = [
        Row(GEMM, 50 * US, 100 * US, 0),
        Row(ADD, 60 * US, 400 * US, 50 * US),
        Row(REDUCE, 461 * US, 100 * US, 100 * US),
    ]
    told = graph_of(rows, [0, 1, 1], orders_ns=np.array([90 * US]))
    untold = graph_of(rows, [0, 1, 1])
    assert told is not None
    assert untold is not None
    assert list(zip(told.source, told.target, strict=True)) == [(0, 2)]
    assert untold.source.size == 0


def test_an_order_that_the_times_contradict_was_for_earlier_work() -> None:
    rows = [
        Row(GEMM, 10 * US, 100 * US, 0),
        Row(GEMM, 111 * US, 900 * US, 5 * US),
        Row(ADD, 120 * US, 100 * US, 112 * US),
    ]
    graph = graph_of(rows, [0, 0, 1], orders_ns=np.array([100 * US]))
    assert graph is not None
    order = {int(target): int(source) for source, target in zip(graph.source, graph.target, strict=True)}
    assert order == {1: 0}


def test_the_host_goes_on_when_what_it_waited_for_has_ended() -> None:
    rows = [Row(GEMM, 50 * US, 1000 * US, 0), Row(GEMM, 1090 * US, 100 * US, 1080 * US)]
    graph = graph_of(rows, waits=Intervals(np.array([20 * US]), np.array([1060 * US])))
    assert graph is not None
    assert graph.waited_for.tolist() == [0]
    assert graph.resume_s[0] == pytest.approx(10e-6, abs=1e-7)
    assert graph.last_break.tolist() == [NONE, 0]
    assert graph.last_s[1] == pytest.approx(20e-6, abs=1e-7)


def test_a_call_that_returned_at_once_was_no_wait() -> None:
    rows = [Row(GEMM, 50 * US, 100 * US, 0), Row(GEMM, 1090 * US, 100 * US, 1080 * US)]
    graph = graph_of(rows, waits=Intervals(np.array([500 * US]), np.array([501 * US])))
    assert graph is not None
    assert graph.waited_for.size == 0


def test_collectives_are_nodes_of_their_own() -> None:
    rows = queue(4)
    rows[2] = Row(REDUCE, rows[2].start, rows[2].length, rows[2].launched)
    graph = graph_of(rows)
    assert graph is not None
    assert (graph.collective != NONE).sum() == 1
    assert graph.busy_s[graph.collective != NONE] == pytest.approx(100e-6)


@pytest.mark.parametrize(
    "rows",
    [
        [Row(GEMM, place * 100, 90) for place in range(10)],
        queue(MOST_ROWS + 1, launched_every=1, length=100),
    ],
    ids=["launches unknown", "too long"],
)
def test_what_tells_too_little_or_is_too_long_has_no_graph(rows: list[Row]) -> None:
    assert graph_of(rows) is None


def test_device_work_that_is_missing_leaves_no_graph() -> None:
    line = timeline(queue(5), idle_known=False)
    assert measured_step(line, find_steps(line))[0].graph is None


def test_a_graph_points_backwards_only() -> None:
    """So that one pass over the nodes runs it."""
    rng = np.random.default_rng(1)
    rows, streams, free = [], [], [0, 0, 0]
    for place in range(300):
        stream = int(rng.integers(3))
        start = max(free[stream], place * 20 * US) + int(rng.integers(30)) * US
        length = int(rng.integers(1, 200)) * US
        rows.append(Row(GEMM, start, length, place * 20 * US if rng.random() < 0.95 else UNKNOWN))
        streams.append(stream)
        free[stream] = start + length
    order = np.argsort([row.start for row in rows], kind="stable")
    graph = graph_of([rows[at] for at in order], [streams[at] for at in order], orders_ns=np.arange(0, 6000, 70) * US)
    assert graph is not None
    place = np.arange(len(graph))
    assert (graph.source < graph.target).all()
    assert (graph.before < place).all()
    assert graph.busy_s.sum() == pytest.approx(sum(row.length for row in rows) / 1e9)


def test_a_stored_reading_keeps_the_graph(tmp_path: Path) -> None:
    write(sample_capture(), tmp_path / "rank0.json")
    files, notes = read_captures([tmp_path / "rank0.json"], Limits(), None, None, keep=read_file)
    ((again,), _) = loads(dumps(files, notes))
    kept, first = again.ranks[0].step.graph, files[0].ranks[0].step.graph
    assert kept is not None
    assert first is not None
    for name in StepGraph.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(kept, name), getattr(first, name))


def test_the_document_of_a_workload_leaves_it_out(tmp_path: Path) -> None:
    write(sample_capture(), tmp_path / "rank0.json")
    workload = analyse([tmp_path / "rank0.json"]).workload
    assert workload is not None
    assert workload.measured is not None
    assert workload.measured.graph is not None
    document = json.loads(json.dumps(workload_to_json(workload)))
    again = workload_from_json(document)
    assert again == workload
    assert again.measured is not None
    assert again.measured.graph is None


def after_silence(*, length: int, start: int, pause: int) -> list[Row]:
    """A kernel launched after 10 us, and another one ``pause`` after it ended."""
    end = start + length
    return [
        Row(GEMM, 8 * US, 20 * US, 0),
        Row(ADD, start, length, 10 * US),
        Row(GEMM, end + pause + 8 * US, 50 * US, end + pause),
    ]


@pytest.mark.parametrize(("length", "pause"), [(5_000 * US, 40 * US), (60_000 * US, 400 * US)])
def test_a_host_that_is_silent_until_its_last_kernel_ended_watched_it(length: int, pause: int) -> None:
    graph = graph_of(after_silence(length=length, start=30 * US, pause=pause))
    assert graph is not None
    assert list(graph.resume_s) == pytest.approx([pause / 1e9])
    assert graph.waited_for[0] != NONE


@pytest.mark.parametrize(
    "rows",
    [
        after_silence(length=5_000 * US, start=30 * US, pause=400 * US),
        after_silence(length=10 * US, start=5_000 * US, pause=40 * US),
        after_silence(length=500 * US, start=30 * US, pause=40 * US),
    ],
    ids=["went on much later", "the launch took long", "no silence"],
)
def test_a_host_that_is_silent_for_another_reason_waited_for_nothing(rows: list[Row]) -> None:
    graph = graph_of(rows)
    assert graph is not None
    assert graph.waited_for.size == 0


def test_copies_to_and_from_the_host_are_told_apart() -> None:
    names = ("Memcpy HtoD (Pinned -> Device)", "Memcpy DtoD (Device -> Device)", "Memset (Device)")
    rows = [
        Row(name, 50 * US + at * 101 * US, 100 * US, 5 * US * at, kind=WorkKind.COPY) for at, name in enumerate(names)
    ]
    graph = graph_of(rows)
    assert graph is not None
    copy = list(KernelClass).index(KernelClass.COPY)
    assert graph.work_s[:, copy].sum() == pytest.approx(300e-6)
    assert graph.host_copy_s.sum() == pytest.approx(100e-6)
