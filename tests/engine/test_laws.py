"""What must hold for every job on every server, whatever the constants are."""

from dataclasses import asdict, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from advisor.engine.hardware import running_dtype
from advisor.engine.plans import GPU_COUNTS, Plan, legal_plans
from advisor.engine.prediction import predict
from advisor.engine.shapes import model_flops
from profiling.workload import Mode, ModelShape, Workload
from tests.engine.accelerators import shipped
from tests.engine.machines import (
    A100_SXM,
    ACCELERATORS,
    FABRICS,
    H100_SXM,
    NVSWITCH,
    PCIE_P2P,
    TRACED,
    described_jobs,
    server,
    traced_jobs,
)

ROUNDING = 1 + 1e-9
SERVERS = st.builds(server, st.sampled_from(ACCELERATORS), st.sampled_from(FABRICS))
JOBS = st.one_of(described_jobs(), traced_jobs())
LAWS = settings(max_examples=60)


@st.composite
def settled(draw):
    """A job, a server and one of its plans."""
    job, machine = draw(JOBS), draw(SERVERS)
    plans = legal_plans(job, draw(st.sampled_from(GPU_COUNTS)))
    assume(plans)
    return job, machine, draw(st.sampled_from(plans))


def step(job, machine, plan):
    traced = A100_SXM if job.measured else None
    return predict(job, traced_accelerator=traced, server=machine, gpus=plan.gpus, plan=plan)


@LAWS
@given(settled())
def test_parts_add_up_to_the_step(drawn):
    found = step(*drawn)
    parts = found.parts
    shown = {name: value for name, value in asdict(parts).items() if name != "communication_hidden_s"}
    assert sum(shown.values()) == pytest.approx(found.step_s, rel=1e-9)
    assert min(*shown.values(), parts.communication_hidden_s) >= 0


@LAWS
@given(settled())
def test_the_range_is_there_and_holds_the_middle(drawn):
    found = step(*drawn)
    assert 0 < found.low_s < found.step_s < found.high_s


@LAWS
@given(settled(), st.floats(1, 4))
def test_faster_silicon_never_slows_a_step(drawn, factor):
    job, machine, plan = drawn
    rates = {dtype: rate * factor for dtype, rate in machine.accelerator.dense_flops_per_s.items()}
    faster = replace(machine, accelerator=replace(machine.accelerator, dense_flops_per_s=rates))
    assert step(job, faster, plan).step_s <= step(job, machine, plan).step_s * ROUNDING


@LAWS
@given(settled(), st.floats(1, 4))
def test_more_memory_bandwidth_never_slows_a_step(drawn, factor):
    job, machine, plan = drawn
    bandwidth = machine.accelerator.memory_bandwidth_bytes_per_s * factor
    faster = replace(machine, accelerator=replace(machine.accelerator, memory_bandwidth_bytes_per_s=bandwidth))
    assert step(job, faster, plan).step_s <= step(job, machine, plan).step_s * ROUNDING


@LAWS
@given(settled(), st.floats(1, 4))
def test_faster_links_never_slow_a_step(drawn, factor):
    job, machine, plan = drawn
    fabric = replace(machine.fabric, bandwidth_bytes_per_s=200e9, pcie_bandwidth_bytes_per_s=25e9)
    faster = replace(
        fabric,
        bandwidth_bytes_per_s=200e9 * factor,
        pcie_bandwidth_bytes_per_s=25e9 * factor,
        peer_bandwidth_bytes_per_s=fabric.peer_bandwidth_bytes_per_s and fabric.peer_bandwidth_bytes_per_s * factor,
    )
    before, after = (step(job, replace(machine, fabric=one), plan).step_s for one in (fabric, faster))
    assert after <= before * ROUNDING


@LAWS
@given(settled())
def test_peer_copies_never_slow_a_step(drawn):
    job, machine, plan = drawn
    allowed, unknown, staged = (
        step(job, replace(machine, fabric=replace(PCIE_P2P, peer_to_peer=value)), plan).step_s
        for value in (True, None, False)
    )
    assert allowed <= unknown * ROUNDING
    assert unknown <= staged * ROUNDING


@LAWS
@given(JOBS, SERVERS)
def test_one_gpu_does_not_communicate(job, machine):
    for plan in legal_plans(job, 1):
        parts = step(job, machine, plan).parts
        assert parts.communication_exposed_s == 0
        assert parts.communication_hidden_s == 0


@LAWS
@given(described_jobs(), SERVERS, st.sampled_from(GPU_COUNTS), st.data())
def test_never_above_the_peak(job, machine, gpus, data):
    plans = legal_plans(job, gpus)
    assume(plans)
    found = step(job, machine, data.draw(st.sampled_from(plans)))
    peak = max(machine.accelerator.dense_flops_per_s.values()) * gpus
    assert model_flops(job, found.samples_per_step) / found.step_s <= peak


LARGE = ModelShape(
    layers=8, hidden=16384, heads=128, kv_heads=8, vocabulary=32000, sequence_length=1024, ffn_hidden=53248
)


RATED = [
    (key, precision)
    for key, accelerator in sorted(shipped().items())
    for precision in ("fp32", "tf32", "fp16", "bf16", "fp8")
    if running_dtype(accelerator, precision)
]


@pytest.mark.parametrize(("key", "precision"), RATED)
def test_no_accelerator_computes_above_the_peak_of_the_precision(key, precision):
    """Large products, alone on one GPU: compute time against the data sheet's rate of what they run in."""
    accelerator = shipped()[key]
    rates = accelerator.dense_flops_per_s
    peak = max(rates[running_dtype(accelerator, precision)], rates.get(precision, 0.0))
    job = Workload(name="large", mode=Mode.INFERENCE, precision=precision, batch_per_step=64, model=LARGE)
    alone = predict(job, server=server(accelerator, gpus=1), gpus=1, plan=Plan(micro_batch=64))
    assert model_flops(job, 64) <= alone.parts.compute_s * peak


@LAWS
@given(settled())
def test_sensitivities_are_shares(drawn):
    found = step(*drawn).sensitivities
    assert all(0 <= value <= 1 for value in found.values())
    assert sum(found.values()) <= 1.05


def test_exposed_and_hidden_are_the_whole_collective():
    sure = replace(TRACED, measured=replace(TRACED.measured, waiting_s=0.0))
    slow = step(sure, server(H100_SXM, PCIE_P2P), legal_plans(TRACED, 8)[0]).parts
    shares = replace(TRACED.measured.collectives[0], exposed_s=TRACED.measured.collectives[0].busy_s)
    shown = replace(TRACED, measured=replace(sure.measured, collectives=(shares,)))
    all_shown = step(shown, server(H100_SXM, PCIE_P2P), legal_plans(TRACED, 8)[0]).parts
    assert all_shown.communication_hidden_s == 0
    whole = slow.communication_exposed_s + slow.communication_hidden_s
    assert whole == pytest.approx(all_shown.communication_exposed_s)


def test_the_capture_on_its_own_hardware_is_the_capture():
    found = step(TRACED, server(A100_SXM, NVSWITCH), legal_plans(TRACED, 8)[0])
    kernels = sum(work.busy_s for work in TRACED.measured.kernels)
    computed = found.step_s - found.parts.communication_exposed_s
    assert computed == pytest.approx(kernels + TRACED.measured.idle_s)
    assert found.evidence == "anchored"
