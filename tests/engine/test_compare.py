"""Methods side by side: each once, the best first, and what does not fit by how much."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.compare import compare_plans, method_of
from advisor.engine.memory import Fit
from advisor.engine.plans import Plan, legal_plans
from advisor.engine.prediction import Prediction, Shortage, predict
from advisor.engine.search import plainness
from advisor.engine.step import job_of
from advisor.engine.system import System
from profiling.workload import Mode, ModelShape
from tests.engine.machines import (
    A100_PCIE,
    A100_SXM,
    H100_SXM,
    NVSWITCH,
    PCIE_P2P,
    TRACED,
    TRAINING_7B,
    TRAINING_SMALL,
    described_jobs,
    server,
)


@pytest.mark.parametrize(
    ("plan", "method"),
    [
        (Plan(), "single"),
        (Plan(dp=8), "dp"),
        (Plan(dp=8, zero_stage=1), "zero1"),
        (Plan(dp=8, zero_stage=2), "zero2"),
        (Plan(dp=8, zero_stage=3), "zero3"),
        (Plan(tp=8), "tp"),
        (Plan(pp=8, vpp=2), "pp"),
        (Plan(cp=8), "cp"),
        (Plan(dp=4, tp=2, zero_stage=3), "tp+dp"),
        (Plan(dp=8, ep=8, zero_stage=1), "ep"),
        (Plan(dp=4, tp=2, ep=8), "tp+ep+dp"),
        (Plan(dp=2, tp=2, pp=2), "tp+pp+dp"),
        (Plan(dp=8, captured=True), "captured"),
    ],
)
def test_a_plan_has_one_method(plan, method):
    assert method_of(plan) == method


@settings(max_examples=30)
@given(job=described_jobs(), gpus=st.sampled_from((1, 2, 8)))
def test_each_method_of_the_legal_plans_is_there_once_and_the_best_first(job, gpus):
    found = compare_plans(job_of(job, None), System(H100_SXM, NVSWITCH), gpus, limit=100)
    methods = [method_of(outcome.plan) for outcome in found]
    assert len(methods) == len(set(methods))
    assert set(methods) == {method_of(plan) for plan in legal_plans(job, gpus)}
    fitting = [outcome for outcome in found if isinstance(outcome, Prediction)]
    assert list(found[: len(fitting)]) == fitting
    if fitting:
        assert fitting[0] == predict(job, server=server(H100_SXM, NVSWITCH), gpus=gpus)
    for verdict in (Fit.FITS, Fit.TIGHT):
        rates = [one.samples_per_s / plainness(one.plan) for one in fitting if one.memory.verdict is verdict]
        assert rates == sorted(rates, reverse=True)


def test_what_does_not_fit_is_last_and_says_by_how_much():
    """A 70B model's states take 16 bytes a parameter: whole copies never fit, sharded ones nearly do."""
    shape = ModelShape(
        layers=80, hidden=8192, heads=64, kv_heads=8, ffn_hidden=28672, vocabulary=128256, sequence_length=2048
    )
    job = job_of(replace(TRAINING_7B, model=shape), None)
    found = compare_plans(job, System(A100_SXM, NVSWITCH), 8)
    assert found
    missing = {method_of(one.plan): one.memory.shortfall_bytes for one in found if isinstance(one, Shortage)}
    assert missing["dp"] > 15 * 70e9 - A100_SXM.memory_bytes
    assert missing["dp"] > missing["zero1"] > missing["zero3"] > 0


def test_over_pcie_tensor_parallelism_falls_behind():
    job = job_of(TRAINING_SMALL, None)
    nvlink, pcie = (
        {method_of(one.plan): one for one in compare_plans(job, system, 8)}
        for system in (System(A100_SXM, NVSWITCH), System(A100_PCIE, PCIE_P2P))
    )
    assert nvlink["tp+dp"].step_s / nvlink["dp"].step_s < pcie["tp+dp"].step_s / pcie["dp"].step_s


@pytest.mark.parametrize("limit", [1, 3, 5, 8])
def test_a_limit_keeps_the_best_and_what_uses_one_kind_of_parallelism(limit):
    job, system = job_of(TRAINING_SMALL, None), System(A100_SXM, NVSWITCH)
    every, few = (compare_plans(job, system, 8, limit=most) for most in (100, limit))
    assert few[0] == every[0]
    assert len(few) == limit
    assert [one for one in every if one in few] == list(few)
    dropped = [method_of(one.plan) for one in every[1:] if one not in few]
    if any("+" in method_of(one.plan) for one in few[1:]):
        assert all("+" in method for method in dropped)


def test_a_job_that_cannot_be_divided_has_no_methods():
    """Thirteen: more than its samples and layers, and no divisor of its heads."""
    job = job_of(replace(TRAINING_SMALL, batch_per_step=8), None)
    assert compare_plans(job, System(A100_SXM, NVSWITCH), 13) == ()


def test_a_capture_is_compared_too():
    found = compare_plans(job_of(TRACED, A100_SXM), System(H100_SXM, NVSWITCH), 4)
    assert [method_of(one.plan) for one in found] == ["dp"]


def test_a_job_that_answers_tells_what_a_request_waits_for_its_tokens():
    serving = replace(TRAINING_7B, mode=Mode.INFERENCE, batch_per_step=16, output_tokens=128)
    for one in compare_plans(job_of(serving, None), System(H100_SXM, NVSWITCH), 4):
        assert 0 < one.tokens.each_s < one.tokens.first_s < one.step_s
        assert one.tokens.first_s + 127 * one.tokens.each_s <= one.step_s * 1.001
    for silent in (replace(serving, output_tokens=0), TRAINING_7B):
        assert compare_plans(job_of(silent, None), System(H100_SXM, NVSWITCH), 4)[0].tokens is None
