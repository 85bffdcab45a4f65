"""What bounds a captured step by its own replay: simulated programs whose bound is known, laws, and real captures."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.own_replay import OWN_RESOURCES, agrees, own_bound, streaming_of
from profiling.analysis import analyse
from profiling.bottleneck import COMMUNICATION, COMPUTE, HOST, LABELS, MEMORY, Bottleneck
from profiling.generate import write
from profiling.label import bottleneck_of
from profiling.measured_step import measured_step
from profiling.notes import BottleneckCode, Note
from profiling.sample_capture import sample_capture
from profiling.steps import find_steps
from profiling.timeline import WorkKind
from tests.engine.simulator import ADD, GEMM, REDUCE, Launch, Order, run
from tests.engine.test_replay import bucketed, programs
from tests.paths import SHARED
from tests.profiling.timelines import Row, timeline

US = 1_000
TRACES = SHARED / "traces" / "files" if SHARED else None
needs_traces = pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")


def step_of(program):
    return measured_step(line := run(program), find_steps(line))[0]


def bound_of(program, streaming=0.0, **changes):
    return own_bound(replace(step_of(program), **changes), streaming)


def longer(step, times):
    """The same step on a machine that is slower in everything."""
    columns = ("work_s", "host_copy_s", "busy_s", "gap_s", "after_s", "first_s", "last_s", "tail_s", "reach_s")
    graph = replace(
        step.graph,
        **{
            name: getattr(step.graph, name) * times
            for name in (*columns, "resume_s", "lag_s", "end_s", "end_lag_s", "ahead_s")
        },
    )
    kernels = tuple(replace(work, busy_s=work.busy_s * times) for work in step.kernels)
    collectives = tuple(
        replace(work, busy_s=work.busy_s * times, exposed_s=work.exposed_s * times) for work in step.collectives
    )
    scaled = {
        name: None if getattr(step, name) is None else getattr(step, name) * times
        for name in ("step_s", "idle_s", "waiting_s", "late_launch_s")
    }
    return replace(step, graph=graph, kernels=kernels, collectives=collectives, **scaled)


def test_a_loop_of_products_is_bound_by_compute():
    """200 products of 200 us; what is left without them is 201 pauses and launches."""
    found = bound_of([Launch(GEMM, 200 * US) for _ in range(200)])
    assert found.label == COMPUTE
    assert found.sensitivities[COMPUTE] > 0.95
    assert found.limits_s[COMPUTE] < 0.1 * found.step_s
    assert found.limits_s[MEMORY] == found.limits_s[COMMUNICATION] == pytest.approx(found.step_s)


@pytest.mark.parametrize(("streaming", "label"), [(0.0, COMPUTE), (0.5, "balanced"), (1.0, MEMORY)])
def test_products_that_read_weights_go_with_memory(streaming, label):
    found = bound_of([Launch(GEMM, 200 * US) for _ in range(50)], streaming)
    assert found.label == label
    assert found.sensitivities[MEMORY] == pytest.approx(streaming * 0.98, abs=0.03)


def test_attention_on_a_cache_goes_with_memory():
    step = step_of([Launch("flash_fwd_splitkv_kernel", 200 * US) for _ in range(50)])
    assert own_bound(step, 0.0).label == COMPUTE
    assert own_bound(step, 0.0, cached_attention=1.0).label == MEMORY


def test_elementwise_kernels_are_bound_by_memory():
    assert bound_of([Launch(ADD, 100 * US) for _ in range(100)]).label == MEMORY


def test_kernels_that_wait_for_their_launch_are_bound_by_the_host():
    """10 us of work every 96 us: without a host the device works for a ninth of the time."""
    found = bound_of([Launch(GEMM, 10 * US, think=90 * US) for _ in range(50)])
    assert found.label == HOST
    assert found.sensitivities[HOST] > 0.95
    assert found.sensitivities[COMPUTE] < 0.01
    assert found.limits_s[HOST] < 0.15 * found.step_s


def test_an_exchange_under_computing_bounds_nothing():
    """300 us of exchange beside each 400 us of products: three quarters of the time, and only the last one shows."""
    found = bound_of(bucketed(buckets=20), waiting_s=0.0)
    assert found.sensitivities[COMMUNICATION] < 0.05
    assert found.label == COMPUTE
    hidden = [Launch(GEMM, 50 * US), Order(1, 0), Launch(REDUCE, 300 * US, 1), Launch(GEMM, 2_000 * US)]
    found = bound_of([*hidden, Order(0, 1), Launch(ADD, 20 * US)], waiting_s=0.0)
    assert found.sensitivities[COMMUNICATION] == 0.0
    assert found.limits_s[COMMUNICATION] == pytest.approx(found.step_s)


def exchanging():
    for _ in range(20):
        yield from (Launch(GEMM, 100 * US), Order(1, 0), Launch(REDUCE, 900 * US, 1), Order(0, 1))
    yield Launch(ADD, 20 * US)


def test_an_exchange_that_shows_bounds_the_step_as_far_as_it_is_not_waiting():
    step = step_of(exchanging())
    shown_s = sum(work.exposed_s for work in step.collectives)
    unknown = own_bound(step, 0.0)
    moving = own_bound(replace(step, waiting_s=0.0), 0.0)
    assert unknown.transfer_unverified
    assert not moving.transfer_unverified
    assert unknown.label == moving.label == COMMUNICATION
    assert unknown.sensitivities == moving.sensitivities
    waits = replace(step, waiting_s=0.9 * shown_s)
    late = own_bound(replace(waits, late_launch_s=0.9 * shown_s), 0.0)
    assert late.label == HOST
    assert late.sensitivities[COMMUNICATION] < 0.12
    assert late.limits_s[COMMUNICATION] > 0.88 * late.step_s
    busier = own_bound(replace(waits, late_launch_s=0.0), 0.0)
    assert busier.label == COMPUTE, "ranks that had more to do had more of what this one does"
    unexplained = own_bound(waits, 0.0)
    assert sum(unexplained.sensitivities.values()) < 0.3, "waiting of open cause goes with nothing"


@pytest.mark.parametrize(
    ("name", "label"),
    [("Memcpy HtoD (Pageable -> Device)", HOST), ("Memcpy DtoD (Device -> Device)", MEMORY), ("Memset", MEMORY)],
)
def test_copies_go_by_their_way(name, label):
    rows = [Row(name, 50 * US + at * 501 * US, 500 * US, 5 * US * at, kind=WorkKind.COPY) for at in range(30)]
    line = timeline(rows)
    found = own_bound(measured_step(line, find_steps(line))[0], 0.0)
    assert found.label == label
    assert found.sensitivities[label] > 0.9


def test_without_a_graph_or_beyond_the_gate_nothing_is_said():
    step = step_of(list(bucketed()))
    assert own_bound(replace(step, graph=None), 0.0) is None
    graph = step.graph
    broken = replace(graph, source=graph.source[:0], target=graph.target[:0], after_s=graph.after_s - 2e-4)
    assert own_bound(replace(step, graph=broken), 0.0) is None


def test_what_the_graph_lacks_goes_with_the_host():
    step = step_of([Launch(GEMM, 200 * US) for _ in range(50)])
    missing_s = 0.04 * step.step_s
    found = own_bound(replace(step, step_s=step.step_s + missing_s, idle_s=step.idle_s + missing_s), 0.0)
    before = own_bound(step, 0.0)
    share = missing_s / (step.step_s + missing_s)
    assert found.sensitivities[HOST] - before.sensitivities[HOST] == pytest.approx(share, abs=0.005)


def test_time_that_a_host_which_ran_ahead_waited_is_not_its_own():
    """Each step the host waits for the first kernel of the step, launched long before: a queue of 10 ms stands."""
    step = step_of([Launch(GEMM, 500 * US) for _ in range(20)])
    steady = replace(
        step.graph,
        reach_s=np.array([-9e-3]),
        waited_for=np.zeros(1, dtype=np.int32),
        resume_s=np.zeros(1),
        end_break=0,
        end_s=0.5e-3,
        ahead_s=-9.5e-3,
    )
    found = own_bound(replace(step, graph=steady), 0.0)
    assert found.label == COMPUTE
    assert found.limits_s[COMPUTE] < 0.2 * found.step_s


@settings(max_examples=150)
@given(programs(), st.floats(0, 1), st.sampled_from((None, 0.0, 0.5, 1.0)), st.sampled_from((None, 0.0, 0.5, 1.0)))
def test_laws(program, streaming, waiting, late):
    step = step_of(program)
    shown_s = sum(work.exposed_s for work in step.collectives)
    waiting_s = None if waiting is None else waiting * shown_s
    late_s = None if waiting is None or late is None else late * waiting_s
    step = replace(step, waiting_s=waiting_s, late_launch_s=late_s)
    found = own_bound(step, streaming)
    assert found is not None
    assert tuple(found.sensitivities) == tuple(found.limits_s) == OWN_RESOURCES
    assert all(0 <= value <= 1 for value in found.sensitivities.values())
    assert sum(found.sensitivities.values()) <= 1.02
    for name in OWN_RESOURCES:
        tenth_faster_s = found.step_s * 1.1 ** -found.sensitivities[name]
        assert 0 <= found.limits_s[name] <= tenth_faster_s * (1 + 1e-9) <= found.step_s * (1 + 2e-9)
    assert found.transfer_unverified == (waiting is None and bool(step.collectives))


@settings(max_examples=60)
@given(programs(), st.floats(0, 1), st.sampled_from((1e-3, 0.5, 7.0, 1e3)))
def test_units_do_not_matter(program, streaming, times):
    step = replace(step_of(program), waiting_s=1e-5, late_launch_s=5e-6)
    found, again = own_bound(step, streaming), own_bound(longer(step, times), streaming)
    for name in OWN_RESOURCES:
        assert again.sensitivities[name] == pytest.approx(found.sensitivities[name], abs=1e-6)
        assert again.limits_s[name] == pytest.approx(found.limits_s[name] * times, rel=1e-6, abs=1e-9 * times)


@settings(max_examples=60)
@given(programs(), st.floats(0, 1), st.floats(0, 1))
def test_the_more_products_stream_the_more_memory_counts(program, one, other):
    step = step_of(program)
    less, more = (own_bound(step, part) for part in sorted((one, other)))
    assert less.limits_s[COMPUTE] <= more.limits_s[COMPUTE] * (1 + 1e-9)
    assert less.limits_s[MEMORY] >= more.limits_s[MEMORY] * (1 - 1e-9)


def _found(label):
    probabilities = {name: float(name == label) for name in LABELS}
    return Bottleneck(
        label=label, probabilities=probabilities, host_bound=label == HOST, evidence=(Note(BottleneckCode.IDLE_SHARE),),
        warnings=(),
    )  # fmt: skip


def test_when_the_two_agree():
    clear = bound_of([Launch(GEMM, 200 * US) for _ in range(50)])
    assert agrees(clear, _found(COMPUTE)) is True
    assert agrees(clear, _found(MEMORY)) is False
    assert agrees(clear, _found(None)) is None
    balanced = bound_of([Launch(GEMM, 200 * US) for _ in range(50)], 0.5)
    assert [agrees(balanced, _found(label)) for label in LABELS] == [True, True, False, False]


def test_streaming_is_taken_from_shapes_then_tiles(tmp_path):
    write(sample_capture(), tmp_path / "rank0.json")
    features = analyse([tmp_path / "rank0.json"]).features
    assert streaming_of(replace(features, streaming_share=0.3, narrow_share=0.8)) == 0.3
    assert streaming_of(replace(features, streaming_share=None, narrow_share=0.8)) == 0.8
    assert streaming_of(replace(features, streaming_share=None, narrow_share=None)) == 0.0


def _real(*names):
    analysis = analyse([TRACES / name for name in names])
    return analysis, own_bound(analysis.workload.measured, streaming_of(analysis.features))


@needs_traces
def test_eight_ranks_that_wait_for_two_late_hosts_are_not_bound_by_communication():
    """88 % of the exchange is waiting for ranks 0 and 6; faster links would help by 8 % of the step at most."""
    analysis, found = _real("kineto-megatron-tp8")
    assert len(analysis.ranks) == 8
    assert found.label == HOST
    assert not found.transfer_unverified
    assert found.limits_s[COMMUNICATION] > 0.92 * found.step_s
    assert agrees(found, bottleneck_of(analysis)) is True


@needs_traces
def test_experts_whose_exchange_is_hidden_are_bound_by_compute():
    """The host of this step polls for token counts: 66 of 129 ms in which no call of CUDA shows."""
    _, found = _real("kineto-deepseek-train/train.json")
    assert found.label == COMPUTE


@needs_traces
@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("kineto-tracelens/inference__vllm_decode_full__graph_execution.json.gz", MEMORY),
        ("kineto-tracelens/inference__vllm_prefilldecode_piecewise__graph_execution.json.gz", COMPUTE),
        ("kineto-tracelens/torch_compile_triton__trace.json.gz", COMPUTE),
        ("kineto-tracelens/h100__gaunernst_bert-small-uncased__1016001.json.gz", HOST),
        ("kineto-tracelens/h100__facebook_timesformer-base-finetuned-k400__1016002.json.gz", MEMORY),
        ("nsys-cloverleaf-a100/perlmutter-cloverleaf-cuda.sqlite", MEMORY),
    ],
)
def test_real_captures_whose_bound_an_expert_knows(name, label):
    _, found = _real(name)
    assert found.label == label
