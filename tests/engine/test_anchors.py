"""A step that the buyer measured: it comes back where it was measured, and is scaled to other counts from there."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.plans import Plan
from advisor.engine.prediction import predict
from advisor.engine.together import UNEVEN, slowest
from profiling.known_models import find_model, known_models
from profiling.workload import Anchor, InputPipeline, Mode, ModelTotals, Workload
from tests.engine.machines import H100_PCIE, H100_SXM, NVSWITCH, PCIE_STAGED, TRAINING_SMALL, server

COUNTS = (1, 2, 4, 8)
EIGHT = server(H100_SXM, NVSWITCH)
FAMILIES = sorted({known.model.family for known in known_models() if isinstance(known.model, ModelTotals)})


def job(model="ResNet-50", *, batch=1280, stack="torch-eager", gpus=1, **changes):
    known = find_model(model)
    assert known is not None
    kind = {"totals": known} if isinstance(known, ModelTotals) else {"model": known}
    return Workload(
        name=model, mode=Mode.TRAINING, precision="fp16", batch_per_step=batch * gpus, stack=stack, **kind, **changes
    )


def anchored(workload, step_s, *, gpus=1, batch=None):
    told = Anchor(
        accelerator_key=H100_SXM.key,
        gpus=gpus,
        step_s=step_s,
        batch_per_step=batch or workload.batch_per_step,
        micro_batch=None,
    )
    return replace(workload, anchor=told)


def step(workload, gpus, *, on=EIGHT, traced=H100_SXM):
    found = predict(workload, traced_accelerator=traced, server=on, gpus=gpus, plan=Plan(dp=gpus))
    return found.step_s


def efficiency(model, gpus, *, step_s, batch, **changes):
    """From one GPU that takes ``step_s`` for ``batch`` samples, the same batch on each of ``gpus``."""
    workload = anchored(job(model, batch=batch, gpus=gpus, **changes), step_s, batch=batch)
    return step_s / step(workload, gpus)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["ResNet-50", "GNMT", "DLRM", "Jasper", "BERT-large"]), st.sampled_from(COUNTS), st.floats(0.5, 4)
)
def test_the_measured_step_comes_back_where_it_was_measured(model, gpus, slower):
    described = job(model, batch=64, gpus=gpus)
    measured_s = slower * step(described, gpus, traced=None)
    assert step(anchored(described, measured_s, gpus=gpus), gpus) == pytest.approx(measured_s, rel=1e-6)


def test_convolutions_on_an_nvswitch_board():
    """Twenty H100 servers of Lambda: 460 ms on one GPU, 465 ms on 2, 4 and 8 (ResNet-50, 1,280 images a GPU)."""
    for gpus in COUNTS[1:]:
        assert efficiency("ResNet-50", gpus, step_s=0.460, batch=1280) == pytest.approx(0.99, abs=0.03)


def test_samples_of_different_lengths_wait_more():
    """Jasper on 8 V100 with NVSwitch: 0.91 of one, 0.94 on 4 (NVIDIA/DeepLearningExamples)."""
    assert efficiency("Jasper", 8, step_s=1.459, batch=64) == pytest.approx(0.91, abs=0.06)
    assert efficiency("Jasper", 4, step_s=1.459, batch=64) == pytest.approx(0.94, abs=0.06)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(FAMILIES), st.floats(0.01, 5))
def test_more_gpus_are_never_more_efficient(family, step_s):
    totals = replace(find_model("ResNet-50"), family=family)
    told = [
        replace(anchored(job(batch=256, gpus=gpus), step_s, batch=256), totals=totals, micro_batch=256)
        for gpus in COUNTS
    ]
    steps = [step(one, gpus) for one, gpus in zip(told, COUNTS, strict=True)]
    assert steps[0] == pytest.approx(step_s, rel=1e-6)
    assert steps == sorted(steps)


def test_uneven_families_are_families_of_known_models():
    assert set(FAMILIES) >= UNEVEN


def test_tensorflow_and_short_steps_lose_more():
    usual = efficiency("UNet", 8, step_s=0.1, batch=8)
    assert efficiency("UNet", 8, step_s=0.1, batch=8, stack="tensorflow") < usual
    assert efficiency("UNet", 8, step_s=0.02, batch=8) < usual


def test_noise_averages_over_passes_between_exchanges():
    """BERT-large on eight A100: 0.93 with one pass a step, 0.99 with 32 of them (NVIDIA/DeepLearningExamples)."""

    def lost(passes):
        workload = anchored(
            job("BERT-large", batch=32 * passes, gpus=8, micro_batch=32), passes * 0.1, batch=32 * passes
        )
        plan = Plan(dp=8, micro_batch=32, accumulation=passes)
        found = predict(workload, traced_accelerator=H100_SXM, server=EIGHT, gpus=8, plan=plan)
        return found.step_s / (passes * 0.1) - 1

    assert 0 < lost(32) < lost(1) / 3


def test_a_described_transformer_is_left_as_its_stack_was_fitted():
    """Constants of stacks were fitted to runs on many GPUs and hold what those lose: nothing is counted twice."""
    one, eight = (step(replace(TRAINING_SMALL, batch_per_step=8 * gpus), gpus, traced=None) for gpus in (1, 8))
    found = predict(replace(TRAINING_SMALL, batch_per_step=64), server=EIGHT, gpus=8, plan=Plan(dp=8))
    assert eight - found.parts.communication_exposed_s == pytest.approx(one, rel=1e-6)


def test_gradients_of_tables_hide_under_nothing():
    """The first layer gets its gradients last: NCF takes 8.4 ms on one V100 for what takes 10.9 ms on each of 8."""
    workload = anchored(job("NCF", batch=131_072, gpus=8), 0.006, batch=131_072)
    found = predict(workload, traced_accelerator=H100_SXM, server=EIGHT, gpus=8, plan=Plan(dp=8))
    assert found.parts.communication_hidden_s == 0 < found.parts.communication_exposed_s


def test_links_are_timed_again_whatever_the_anchor():
    workload = anchored(job("VGG16", batch=64, gpus=8), 0.1, batch=64)
    staged = server(H100_PCIE, PCIE_STAGED)
    slow = predict(workload, traced_accelerator=H100_SXM, server=staged, gpus=8, plan=Plan(dp=8)).parts
    fast = predict(workload, traced_accelerator=H100_SXM, server=EIGHT, gpus=8, plan=Plan(dp=8)).parts
    assert slow.communication_exposed_s > 5 * fast.communication_exposed_s


def test_all_gpus_of_one_server_share_its_cores():
    """1,024 images at 10 ms of a core each on 64 cores: 160 ms a step, on however many of its GPUs."""
    machine = replace(EIGHT, cpu_cores=64)
    augmented = job(batch=128, gpus=8, input_pipeline=InputPipeline(cpu_s_per_sample=0.010))
    for gpus in (4, 8):
        assert step(augmented, gpus, on=machine, traced=None) == pytest.approx(0.160, rel=1e-6)


@pytest.mark.parametrize(("ranks", "expected"), [(1, 0.0), (2, 0.564), (4, 1.029), (8, 1.424), (1024, 3.25)])
def test_the_slowest_of_normal_ranks(ranks, expected):
    """Expected maxima of normal samples (Harter 1961, table 1; 1,024 by integration)."""
    assert slowest(np.array([ranks]))[0] == pytest.approx(expected, abs=0.03)


def test_the_slowest_of_many_grows_and_keeps_its_place():
    found = slowest(np.array([8, 1, 4, 1]))
    assert found[1] == found[3] == 0 < found[2] < found[0] < NormalDist().inv_cdf(0.99)
