"""A captured step run again: against simulations whose program is known, and real captures against themselves."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.explain import EngineCode
from advisor.engine.fabric import usual_fabric
from advisor.engine.prediction import predict
from advisor.engine.replay import CLASSES, as_captured, replay, scaled
from advisor.engine.step import job_of
from profiling.analysis import analyse
from profiling.generate import write
from profiling.measured_step import measured_step
from profiling.notes import Refusal
from profiling.sample_capture import sample_capture
from profiling.step_graph import NONE
from profiling.steps import find_steps
from profiling.workload import KernelClass, Mode, Workload
from tests.engine.accelerators import of_device
from tests.engine.machines import A100_PCIE, A100_SXM, H100_SXM, NVSWITCH, PCIE_P2P, PCIE_STAGED, server
from tests.engine.simulator import ADD, GEMM, REDUCE, Launch, Order, Synchronise, run
from tests.paths import SHARED

US = 1_000


def step_of(line):
    return measured_step(line, find_steps(line))[0]


def again(step, **factors):
    """The step with classes (and ``exchange``) that take so many times as long."""
    graph = step.graph
    by_class = np.array([[factors.get(name.value, 1.0)] for name in CLASSES])
    moved = np.where(graph.collective == NONE, 0.0, graph.busy_s * factors.get("exchange", 1.0))[:, None]
    return replay(graph, scaled(graph, by_class, moved, factors.get("host", 1.0)))


def simulated_s(program, **factors):
    def factor(launch):
        return factors[{GEMM: "matmul", ADD: "memory", REDUCE: "exchange"}[launch.name]]

    return step_of(run(program, factor)).step_s


def bucketed(buckets=6, length=400 * US, exchange=300 * US):
    """A backward pass whose gradients are reduced beside it, then an optimizer that waits for all of them."""
    for _ in range(buckets):
        yield from (Launch(GEMM, length // 4) for _ in range(4))
        yield Order(1, 0)
        yield Launch(REDUCE, exchange, 1)
    yield Order(0, 1)
    yield from (Launch(ADD, 50 * US) for _ in range(3))
    yield Synchronise()


@pytest.mark.parametrize("exchange", [0.2, 1.0, 2.0, 8.0])
@pytest.mark.parametrize("compute", [0.1, 0.5, 1.0, 3.0])
def test_overlap_comes_out_of_the_graph(exchange, compute):
    """Scaling what showed would be off by up to a factor: hidden exchanges show once they outgrow their cover."""
    program = list(bucketed())
    step = step_of(run(program))
    found = again(step, matmul=compute, exchange=exchange)
    truth = simulated_s(program, matmul=compute, memory=1.0, exchange=exchange)
    assert found.step_s[0] == pytest.approx(truth, rel=0.02)


def test_a_step_that_the_host_launches_late_gains_nothing_from_faster_kernels():
    program = [Launch(GEMM, 10 * US, think=90 * US) for _ in range(50)]
    step = step_of(run(program))
    assert again(step, matmul=0.1).step_s[0] == pytest.approx(step.step_s, rel=0.01)
    assert again(step, matmul=30.0).step_s[0] == pytest.approx(simulated_s(program, matmul=30.0), rel=0.02)
    assert again(step, host=2.0).step_s[0] == pytest.approx(step.step_s / 2, rel=0.05)


def test_a_queue_that_faster_kernels_empty_makes_the_host_the_bound():
    """20 us of work every 6 us of launching: at a tenth of the time the launching is what is left."""
    program = [Launch(GEMM, 20 * US) for _ in range(200)]
    step = step_of(run(program))
    assert again(step, matmul=0.1).step_s[0] == pytest.approx(simulated_s(program, matmul=0.1), rel=0.03)
    assert again(step, matmul=0.1).step_s[0] > 0.25 * step.step_s


@st.composite
def programs(draw):
    """Kernels on two streams, orders between them, thinking and synchronising hosts."""
    length = st.integers(5, 500)
    steps = []
    for _ in range(draw(st.integers(3, 25))):
        kind = draw(st.sampled_from(("run", "run", "exchange", "join", "think", "wait")))
        if kind == "run":
            name = draw(st.sampled_from((GEMM, ADD)))
            steps += [Launch(name, draw(length) * US) for _ in range(draw(st.integers(1, 6)))]
        elif kind == "exchange":
            steps += [Order(1, 0), Launch(REDUCE, draw(length) * US, 1)]
        elif kind == "join":
            steps += [Order(0, 1), Launch(ADD, draw(length) * US)]
        elif kind == "think":
            steps.append(Launch(ADD, 5 * US, think=draw(length) * US))
        else:
            steps += [Synchronise(), Launch(GEMM, draw(length) * US)]
    return [Launch(GEMM, 50 * US), *steps, Order(0, 1), Launch(ADD, 20 * US)]


SCALE = st.sampled_from((0.3, 1.0, 2.0))


@settings(max_examples=200)
@given(programs())
def test_a_step_comes_back_with_its_own_durations(program):
    step = step_of(run(program))
    own = replay(step.graph, as_captured(step.graph))
    exposed_s = sum(work.exposed_s for work in step.collectives)
    for found, captured in ((own.step_s, step.step_s), (own.idle_s, step.idle_s), (own.exposed_s, exposed_s)):
        assert abs(found[0] - captured) <= 0.03 * step.step_s + 5e-6


@settings(max_examples=200)
@given(programs(), SCALE, SCALE, SCALE)
def test_a_replay_says_what_the_program_would_do(program, matmul, memory, exchange):
    """But for pauses of some microseconds that the capture did not show."""
    step = step_of(run(program))
    truth = simulated_s(program, matmul=matmul, memory=memory, exchange=exchange)
    found = again(step, matmul=matmul, memory=memory, exchange=exchange)
    assert abs(found.step_s[0] - truth) <= 0.12 * truth + 20e-6


@settings(max_examples=100)
@given(programs(), SCALE, SCALE, SCALE)
def test_its_parts_add_up_and_nothing_faster_makes_it_longer(program, matmul, memory, exchange):
    step = step_of(run(program))
    found = again(step, matmul=matmul, memory=memory, exchange=exchange)
    total = found.covered_s + found.exposed_s + found.copy_s + found.idle_s
    assert total == pytest.approx(found.step_s, rel=1e-9)
    for name in ("matmul", "memory", "exchange"):
        factors = {"matmul": matmul, "memory": memory, "exchange": exchange}
        faster = again(step, **{**factors, name: factors[name] * 0.8})
        assert faster.step_s[0] <= found.step_s[0] * (1 + 1e-9)


def test_rows_are_replayed_together_as_one_by_one():
    step = step_of(run(list(bucketed())))
    factors = np.array([[1.0, 0.5, 2.0]] * len(CLASSES))
    moved = np.where(step.graph.collective == NONE, 0.0, step.graph.busy_s)[:, None] * np.array([1.0, 4.0, 0.1])
    together = replay(step.graph, scaled(step.graph, factors, moved, 1.0))
    for row in range(3):
        alone = replay(step.graph, scaled(step.graph, factors[:, [row]], moved[:, [row]], 1.0))
        assert together.step_s[row] == pytest.approx(alone.step_s[0], rel=1e-12)
        assert together.exposed_s[row] == pytest.approx(alone.exposed_s[0], rel=1e-9, abs=1e-12)


def traced(program, **changes):
    step = replace(step_of(run(program)), gpu_count=8, **changes)
    sized = tuple(replace(work, message_bytes=2e7, group_size=8) for work in step.collectives)
    return Workload(
        name="simulated",
        mode=Mode.TRAINING,
        precision="bf16",
        batch_per_step=8,
        measured=replace(step, collectives=sized),
    )


def on(job, accelerator, fabric, gpus=8):
    return predict(job, traced_accelerator=A100_SXM, server=server(accelerator, fabric), gpus=gpus)


def codes(found):
    return [note.code for note in found.notes]


def test_a_graph_that_does_not_return_its_own_step_is_not_used():
    job = traced(list(bucketed()))
    assert job_of(job, A100_SXM).captured.graph is not None
    assert EngineCode.REPLAY_NOT_POSSIBLE not in codes(on(job, A100_SXM, NVSWITCH))
    graph = job.measured.graph
    broken = replace(graph, source=graph.source[:0], target=graph.target[:0], after_s=graph.after_s - 2e-4)
    other = replace(job, measured=replace(job.measured, graph=broken))
    assert job_of(other, A100_SXM).captured.graph is None
    assert EngineCode.REPLAY_NOT_POSSIBLE in codes(on(other, A100_SXM, NVSWITCH))


def test_the_captured_configuration_comes_back():
    """Six all-reduces of 20 MB take 0.15 ms each on eight A100 of one NVSwitch, half of what they took here."""
    job = traced(list(bucketed()))
    found = on(job, A100_SXM, NVSWITCH)
    assert found.low_s <= job.measured.step_s <= found.high_s
    assert found.step_s == pytest.approx(job.measured.step_s, rel=0.05)


def test_exchanges_that_outgrow_their_cover_show():
    """Over PCIe 20 MB take about 2.8 ms a call; the 2.4 ms of computing hide next to nothing of six of them."""
    job = traced(list(bucketed()))
    slow = on(job, A100_PCIE, PCIE_P2P)
    assert slow.parts.communication_exposed_s > 4 * slow.parts.communication_hidden_s
    assert slow.step_s > 6 * 2e-3


@settings(max_examples=60)
@given(programs(), st.sampled_from((None, 0.0, 1e-4)), st.sampled_from((2, 8)))
def test_a_replayed_step_is_never_longer_over_faster_links(program, waiting, gpus):
    job = traced([*program, *bucketed(2)], waiting_s=waiting)
    steps = [on(job, A100_PCIE, fabric, gpus).step_s for fabric in (NVSWITCH, PCIE_P2P, PCIE_STAGED)]
    assert steps[0] <= steps[1] * (1 + 1e-9)
    assert steps[1] <= steps[2] * (1 + 1e-9)


def test_a_host_bound_step_is_called_so_on_a_faster_gpu():
    program = [Launch(GEMM, 12 * US) for _ in range(300)]
    job = replace(traced(program), mode=Mode.INFERENCE)
    assert on(job, A100_SXM, NVSWITCH, gpus=1).bottleneck == "compute"
    fast = replace(H100_SXM, dense_flops_per_s={name: 4 * rate for name, rate in H100_SXM.dense_flops_per_s.items()})
    assert on(job, fast, NVSWITCH, gpus=1).bottleneck == "host"


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_parts_of_a_replayed_prediction_add_up(gpus):
    found = on(traced(list(bucketed())), H100_SXM, NVSWITCH, gpus)
    parts = found.parts
    shown = parts.compute_s + parts.memory_s + parts.copy_s + parts.communication_exposed_s + parts.host_s
    assert shown == pytest.approx(found.step_s, rel=1e-9)
    assert (parts.communication_exposed_s + parts.communication_hidden_s > 0) == (gpus > 1)


def test_the_sample_capture_is_replayed(tmp_path):
    write(sample_capture(), tmp_path / "rank0.json")
    workload = analyse([tmp_path / "rank0.json"]).workload
    assert job_of(workload, of_device(workload.measured.device_name)).captured.graph is not None


CAPTURES = sorted((SHARED / "traces" / "files").glob("kineto-*/*.json*")) if SHARED else []


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
def test_most_real_captures_come_back_within_five_percent():
    errors = []
    for path in CAPTURES:
        if path.stat().st_size > 3.5e6:
            continue
        try:
            step = analyse([path]).workload.measured
        except Refusal:
            continue
        if step.graph is not None:
            own = replay(step.graph, as_captured(step.graph))
            errors.append(abs(float(own.step_s[0]) / step.step_s - 1))
    assert len(errors) >= 30
    assert np.mean(np.array(errors) <= 0.05) >= 0.9
    assert np.median(errors) < 0.005


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
@pytest.mark.parametrize(
    "name", ["facebook_timesformer-base-finetuned-k400__1016002", "gaunernst_bert-small-uncased__1016001"]
)
def test_the_same_job_on_another_gpu(name):
    """Measured on an H100 and an MI300X of different hosts; each is told from the other within 20 %."""
    folder = SHARED / "traces" / "files" / "kineto-tracelens"
    jobs = [analyse([folder / f"{host}__{name}.json.gz"]).workload for host in ("h100", "mi300")]
    chips = [of_device("NVIDIA H100 80GB HBM3"), of_device("AMD Instinct MI300X")]
    for job, chip, other, target in ((jobs[0], chips[0], jobs[1], chips[1]), (jobs[1], chips[1], jobs[0], chips[0])):
        found = predict(job, traced_accelerator=chip, server=server(target, usual_fabric(target)), gpus=1)
        assert found.step_s == pytest.approx(other.measured.step_s, rel=0.2)


def test_classes_are_the_columns_of_a_graph():
    assert list(KernelClass) == list(CLASSES)
