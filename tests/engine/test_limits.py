"""What more of one resource could give at most, and warnings about what is cheaper to fix than to rent around."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from advisor.engine.explain import EngineCode
from advisor.engine.plans import Plan, legal_plans
from advisor.engine.prediction import predict
from advisor.engine.sensitivity import RESOURCES
from profiling.presets import preset_workload
from profiling.workload import InputPipeline, Mode
from tests.engine.machines import H100_SXM, LLAMA_7B, NVSWITCH, PCIE_STAGED, TRAINING_7B, TRAINING_SMALL, server
from tests.engine.test_laws import settled, step

SERVING_7B = replace(TRAINING_7B, mode=Mode.INFERENCE, model=LLAMA_7B, batch_per_step=32, output_tokens=128)


def on(job, fabric, plan, cpu_cores=None):
    machine = replace(server(H100_SXM, fabric), cpu_cores=cpu_cores)
    return predict(job, server=machine, gpus=plan.gpus, plan=plan)


@settings(max_examples=60)
@given(settled())
def test_a_limit_is_no_longer_than_the_step_and_than_with_a_tenth_more_speed(drawn):
    found = step(*drawn)
    assert tuple(found.limits_s) == RESOURCES
    for name, limit_s in found.limits_s.items():
        assert 0 < limit_s <= found.step_s * (1 + 1e-12)
        faster_s = found.step_s * 1.1 ** -found.sensitivities[name]
        assert limit_s <= faster_s * (1 + 1e-9)


FAMILIES = (
    "pretrain-70b",
    "long-context-8b",
    "moe-8x7b",
    "qlora-70b",
    "resnet50-augmented",
    "dlrm",
    "serve-70b-answers",
    "serve-moe-671b",
)
NETWORKED = tuple(replace(fabric, network_bandwidth_bytes_per_s=100e9, rdma=True) for fabric in (NVSWITCH, PCIE_STAGED))


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(FAMILIES),
    st.sampled_from((1, 8, 16)),
    st.sampled_from(NETWORKED),
    st.data(),
)
def test_limits_hold_for_every_family_way_of_dividing_and_number_of_servers(key, gpus, fabric, data):
    job = preset_workload(key)
    plans = legal_plans(job, gpus)
    assume(plans)
    machine = replace(server(H100_SXM, fabric), cpu_cores=96)
    found = predict(job, server=machine, gpus=gpus, plan=data.draw(st.sampled_from(plans)))
    for name, limit_s in found.limits_s.items():
        assert 0 < limit_s <= found.step_s * 1.1 ** -found.sensitivities[name] * (1 + 1e-9)
    if gpus == 1:
        assert found.limits_s["communication"] == found.step_s
    if found.parts.input_s == 0:
        assert found.limits_s["input"] == found.step_s


def test_less_computing_that_shows_more_exchanges_is_no_gain_and_no_loss():
    """Experts' exchanges, their gradients and those of the rest each hide under the same computing: without it the
    formulas would make this step 9 % longer."""
    spread = Plan(dp=8, tp=2, ep=8, zero_stage=3, micro_batch=1)
    found = predict(preset_workload("moe-8x7b"), server=server(H100_SXM, NETWORKED[1]), gpus=16, plan=spread)
    assert found.sensitivities["compute"] == 0
    assert found.limits_s["compute"] == found.step_s


@settings(max_examples=60)
@given(settled())
def test_what_takes_no_time_changes_nothing(drawn):
    found = step(*drawn)
    if found.gpus == 1:
        assert found.sensitivities["communication"] == 0
        assert found.limits_s["communication"] == pytest.approx(found.step_s)
    assert found.limits_s["input"] == pytest.approx(found.step_s)


def test_links_without_end_leave_what_the_gpus_do():
    divided = Plan(tp=8, micro_batch=8)
    pcie, switched = (on(TRAINING_7B, fabric, divided) for fabric in (PCIE_STAGED, NVSWITCH))
    assert pcie.limits_s["communication"] < switched.step_s < pcie.step_s
    assert pcie.limits_s["communication"] == pytest.approx(switched.limits_s["communication"], rel=0.05)
    assert pcie.step_s - pcie.limits_s["communication"] == pytest.approx(pcie.parts.communication_exposed_s, rel=0.05)


def test_serving_ends_at_what_the_memory_does_not_take():
    found = on(SERVING_7B, NVSWITCH, Plan(micro_batch=32))
    assert found.bottleneck == "memory"
    assert found.limits_s["memory"] < found.step_s / 2


def test_a_host_that_decides_is_named_with_what_to_do():
    tiny = replace(TRAINING_SMALL, batch_per_step=8.0)
    found = on(tiny, NVSWITCH, Plan(dp=8, micro_batch=1))
    assert found.bottleneck == "host"
    (note,) = (note for note in found.notes if note.code == EngineCode.HOST_BOUND_THERE)
    assert note.params["percent"] == round(100 * found.sensitivities["host"])
    assert EngineCode.HOST_BOUND_THERE not in {
        one.code for one in on(TRAINING_7B, NVSWITCH, Plan(dp=8, micro_batch=4)).notes
    }


def test_loading_that_decides_is_named_too():
    slow = replace(TRAINING_7B, input_pipeline=InputPipeline(cpu_s_per_sample=1000.0))
    found = on(slow, NVSWITCH, Plan(dp=8, micro_batch=4), cpu_cores=8)
    assert found.bottleneck == "input"
    assert EngineCode.INPUT_BOUND_THERE in {note.code for note in found.notes}
    assert found.limits_s["input"] < found.step_s / 10
