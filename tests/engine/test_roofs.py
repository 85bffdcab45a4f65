"""No figure of the buyer, of a stack or of long runs takes a step over the peak of its chip."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engine.explain import EngineCode, EngineRefusal
from advisor.engine.prediction import predict
from advisor.engine.shapes import model_flops
from advisor.engine.stacks import stack_names
from profiling.workload import Anchor, Mode, ModelTotals, Workload
from tests.engine.accelerators import shipped
from tests.engine.machines import A100_SXM, H100_SXM, L40S, TRAINING_7B, TRAINING_SMALL, server

CHIPS = sorted(key for key, one in shipped().items() if one.dense_flops_per_s.get("bf16"))
PRODUCTS_ALONE = ModelTotals(
    family="cnn",
    parameters=1e6,
    flops_per_sample=1e14,
    traffic_bytes_per_sample=0,
    kernels_per_pass=5,
    activation_bytes_per_sample=0,
)


def utilisation(job: Workload, accelerator, traced=None) -> float:
    found = predict(job, traced_accelerator=traced, server=server(accelerator, gpus=1), gpus=1)
    peak = accelerator.dense_flops_per_s[job.precision]
    return model_flops(job, found.samples_per_step) / (peak * found.step_s)


@given(st.sampled_from(CHIPS), st.sampled_from(["", *stack_names()]), st.sampled_from(["bf16", "tf32", "fp16"]))
def test_products_alone_stay_under_the_peak_whatever_the_software(key, stack, precision):
    chip = shipped()[key]
    job = Workload(
        name="products",
        mode=Mode.TRAINING,
        precision=precision if chip.dense_flops_per_s.get(precision) else "bf16",
        batch_per_step=64,
        totals=PRODUCTS_ALONE,
        stack=stack or None,
    )
    assert utilisation(job, chip) <= 1 + 1e-9


def anchored(share_of_peak: float, job: Workload = TRAINING_SMALL) -> Workload:
    step_s = model_flops(job, job.batch_per_step) / (share_of_peak * H100_SXM.dense_flops_per_s["bf16"])
    anchor = Anchor(accelerator_key=H100_SXM.key, gpus=1, step_s=step_s, batch_per_step=job.batch_per_step)
    return replace(job, anchor=anchor)


def test_a_measured_step_above_the_peak_is_refused():
    with pytest.raises(EngineRefusal) as refused:
        utilisation(anchored(1.05), H100_SXM, traced=H100_SXM)
    assert refused.value.code is EngineCode.ANCHOR_IMPOSSIBLE


@pytest.mark.parametrize("chip", [A100_SXM, L40S, H100_SXM], ids=lambda one: one.key)
@pytest.mark.parametrize("share", [0.4, 0.7, 0.95])
def test_the_pace_of_a_fast_run_carries_no_chip_above_its_peak(chip, share):
    assert 0 < utilisation(anchored(share), chip, traced=H100_SXM) <= 1 + 1e-9


def test_answers_are_never_faster_than_their_weights_are_read():
    """A run measured with a fast prompt says nothing of memory: 7B in 16 bit for each token of one request."""
    job = replace(TRAINING_7B, mode=Mode.INFERENCE, batch_per_step=1, output_tokens=512)
    formulas = predict(job, server=server(H100_SXM, gpus=1), gpus=1)
    anchor = Anchor(accelerator_key=H100_SXM.key, gpus=1, step_s=formulas.step_s / 3, batch_per_step=1)
    with pytest.raises(EngineRefusal) as refused:
        predict(replace(job, anchor=anchor), traced_accelerator=H100_SXM, server=server(H100_SXM, gpus=1), gpus=1)
    assert refused.value.code is EngineCode.ANCHOR_IMPOSSIBLE


def test_a_frozen_base_needs_no_gradients_of_its_weights():
    """Forward and the gradients of the inputs: two thirds of the products of full training (2106.09685)."""
    adapters = replace(TRAINING_7B, lora_rank=16)
    assert 2 / 3 < model_flops(adapters, 1) / model_flops(TRAINING_7B, 1) < 0.72
