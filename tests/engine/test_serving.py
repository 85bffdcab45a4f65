"""Jobs that serve: laws of prompts and answers, and published runs of serving engines."""

import csv
from dataclasses import replace
from math import ceil, log
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.candidates import AS_IS, Candidates, Speed
from advisor.engine.hardware import hardware
from advisor.engine.plans import Plan
from advisor.engine.prediction import predict
from advisor.engine.serving import serving_parts, token_times
from advisor.engine.serving_memory import most_requests, serving_bytes
from advisor.engine.shapes import counted, model_flops
from advisor.engine.system import System
from profiling.known_models import find_model
from profiling.workload import Anchor, Mode, ModelShape, Workload
from tests.engine.accelerators import shipped
from tests.engine.machines import (
    A100_SXM,
    ACCELERATORS,
    FABRICS,
    H100_SXM,
    NVSWITCH,
    PCIE_P2P,
    PCIE_STAGED,
    server,
)
from tests.paths import SHARED

LLAMA = ModelShape(
    layers=80, hidden=8192, heads=64, kv_heads=8, ffn_hidden=28672, vocabulary=128256, sequence_length=1000
)
SPARSE = ModelShape(
    layers=48,
    hidden=2048,
    heads=32,
    kv_heads=4,
    head_dim=128,
    experts=128,
    experts_per_token=8,
    expert_ffn=768,
    vocabulary=151936,
    sequence_length=1000,
)
LATENT = ModelShape(
    layers=61,
    hidden=7168,
    heads=128,
    head_dim=192,
    value_head_dim=128,
    kv_latent=576,
    query_latent=1536,
    ffn_hidden=18432,
    dense_layers=3,
    experts=256,
    experts_per_token=8,
    expert_ffn=2048,
    shared_expert_ffn=2048,
    vocabulary=129280,
    sequence_length=1000,
)
WINDOWED = replace(LLAMA, attention_window=128, windowed_layers=40)
LAWS = settings(max_examples=60, deadline=None)


def job(model=LLAMA, requests=64, answer=500, precision="bf16", **more):
    return Workload(
        name="chat",
        mode=Mode.INFERENCE,
        precision=precision,
        batch_per_step=requests,
        model=model,
        output_tokens=answer,
        **more,
    )


def candidate(plan, accelerator=H100_SXM, fabric=NVSWITCH, precision="bf16"):
    machines = hardware([System(accelerator, fabric)], precision)
    return Candidates.of(machines, [plan], np.array([0]))


def step_s(workload, plan, accelerator=H100_SXM, fabric=NVSWITCH, speed=AS_IS):
    rows = candidate(plan, accelerator, fabric, workload.precision)
    return float(serving_parts(workload, rows, speed).step_s[0])


@st.composite
def served(draw):
    """A job that serves and a plan for it."""
    model = draw(st.sampled_from((LLAMA, SPARSE, LATENT, WINDOWED)))
    model = replace(model, sequence_length=draw(st.sampled_from((1, 128, 2048, 20000))))
    tp, pp, dp = draw(st.sampled_from(((1, 1, 1), (8, 1, 1), (2, 2, 2), (1, 8, 1), (4, 1, 2), (1, 1, 8))))
    ep = draw(st.sampled_from((1, dp * tp))) if model.experts else 1
    workload = job(
        model,
        requests=draw(st.integers(1, 300)),
        answer=draw(st.sampled_from((0, 1, 2, 300))),
        precision=draw(st.sampled_from(("bf16", "fp8"))),
        weight_bits=draw(st.sampled_from((None, 4))),
        stack=draw(st.sampled_from((None, "vllm", "litgpt"))),
    )
    return workload, Plan(dp=dp, tp=tp, pp=pp, ep=ep, micro_batch=draw(st.integers(1, 200)))


MACHINES = st.tuples(st.sampled_from(ACCELERATORS), st.sampled_from(FABRICS))


@LAWS
@given(served(), MACHINES)
def test_parts_are_never_negative_and_add_up_to_the_step(drawn, machine):
    workload, plan = drawn
    parts = serving_parts(workload, candidate(plan, *machine, workload.precision))
    shown = [parts.compute_s, parts.memory_s, parts.communication_exposed_s, parts.bubble_s, parts.host_s]
    assert all(part[0] >= 0 for part in shown)
    assert sum(part[0] for part in shown) == pytest.approx(parts.step_s[0])
    assert np.isfinite(parts.step_s[0]) and parts.step_s[0] > 0


@LAWS
@given(served(), MACHINES, st.sampled_from(("compute", "memory", "communication", "host")), st.floats(1.0, 4.0))
def test_a_faster_resource_never_slows_the_step(drawn, machine, resource, factor):
    workload, plan = drawn
    faster = step_s(workload, plan, *machine, speed=Speed(**{resource: factor}))
    assert faster <= step_s(workload, plan, *machine) * (1 + 1e-9)


@LAWS
@given(served())
def test_prompts_never_run_above_the_peak_of_the_products(drawn):
    workload, plan = drawn
    rows = candidate(plan, precision=workload.precision)
    peak = float(rows.hardware.compute.peak_flops_per_s[0]) * plan.gpus
    attention = float(rows.hardware.compute.attention_peak_flops_per_s[0]) * plan.gpus
    flops = model_flops(workload, workload.batch_per_step)
    assert serving_parts(workload, rows).step_s[0] >= flops / max(peak, attention)


@LAWS
@given(st.integers(1, 64), st.sampled_from((1, 2, 4, 8)), st.integers(2, 400))
def test_answers_never_outrun_the_reading_of_the_weights(requests, tp, answer):
    workload = job(requests=requests, answer=answer)
    weights = counted(LLAMA).parameters - 2 * LLAMA.vocabulary * LLAMA.hidden
    least = (answer - 1) * 2 * weights / (tp * H100_SXM.memory_bandwidth_bytes_per_s)
    assert step_s(workload, Plan(tp=tp, micro_batch=requests)) >= least


@LAWS
@given(served(), MACHINES)
def test_longer_answers_take_longer(drawn, machine):
    workload, plan = drawn
    longer = replace(workload, output_tokens=workload.output_tokens + 100)
    assert step_s(longer, plan, *machine) > step_s(workload, plan, *machine)


@pytest.mark.parametrize("model", [LLAMA, SPARSE, LATENT])
def test_replicas_exchange_nothing(model):
    parts = serving_parts(job(model), candidate(Plan(dp=8, micro_batch=8)))
    assert parts.communication_exposed_s[0] == parts.bubble_s[0] == 0


def test_rows_do_not_depend_on_each_other():
    plans = [Plan(tp=8, micro_batch=16), Plan(dp=2, pp=4, micro_batch=7), Plan(dp=8, micro_batch=64)]
    machines = hardware([System(A100_SXM, NVSWITCH)], "bf16").take(np.zeros(3, dtype=np.int64))
    together = serving_parts(job(), Candidates.of(machines, plans, np.arange(3))).step_s
    assert together.tolist() == pytest.approx([step_s(job(), plan, A100_SXM) for plan in plans])


def test_a_round_that_is_not_full_ends_sooner():
    whole = step_s(job(requests=128), Plan(micro_batch=64))
    assert whole == pytest.approx(2 * step_s(job(requests=64), Plan(micro_batch=64)))
    assert whole / 2 < step_s(job(requests=65), Plan(micro_batch=64)) < whole


def test_more_requests_at_once_serve_more_a_second():
    one, many = step_s(job(requests=64), Plan(micro_batch=1)), step_s(job(requests=64), Plan(micro_batch=64))
    assert one > 5 * many


def test_one_request_keeps_one_pipeline_stage_busy_at_a_time():
    """litgpt on 4, 5 and 8 A100: 7.55, 7.49, 7.47 tokens/s (litgpt tutorials, generate_sequential, Llama 2 70B)."""
    asked = job(requests=1, answer=256, stack="litgpt")
    seconds = [step_s(asked, Plan(pp=pp, micro_batch=1), A100_SXM) for pp in (4, 8)]
    assert seconds[1] == pytest.approx(seconds[0], rel=0.02)
    parts = serving_parts(asked, candidate(Plan(pp=8, micro_batch=1), A100_SXM))
    assert parts.bubble_s[0] == pytest.approx(7 / 8 * parts.step_s[0], rel=0.02)


def test_weights_of_four_bits_are_read_faster():
    wide, narrow = job(requests=1), job(requests=1, weight_bits=4)
    assert step_s(narrow, Plan(micro_batch=1)) < 0.6 * step_s(wide, Plan(micro_batch=1))


def test_a_token_reads_the_experts_that_it_chose_and_many_tokens_read_all():
    dense = replace(SPARSE, experts=None, experts_per_token=None, expert_ffn=None, ffn_hidden=128 * 768)
    _, sparse_one = token_times(job(SPARSE, requests=1), candidate(Plan(micro_batch=1)))
    _, dense_one = token_times(job(dense, requests=1), candidate(Plan(micro_batch=1)))
    assert sparse_one[0] < dense_one[0] / 3
    _, sparse_many = token_times(job(SPARSE, requests=64), candidate(Plan(micro_batch=64)))
    assert sparse_many[0] > 2 * sparse_one[0]


def test_windows_latents_and_shared_heads_leave_less_in_the_cache():
    def cache(model, tp=1):
        """Bytes that one more request takes, without its logits."""
        held = [serving_bytes(job(model, answer=8000), candidate(Plan(tp=tp, micro_batch=n)))[0] for n in (1001, 2001)]
        return (held[1] - held[0]) / 1000 - 4.0 * model.vocabulary / tp

    wide = replace(LLAMA, kv_heads=64)
    assert cache(wide) == pytest.approx(8 * cache(LLAMA))
    assert cache(WINDOWED) < 0.52 * cache(LLAMA)
    assert cache(LATENT) == pytest.approx(9000 * 61 * 576 * 2)
    assert cache(LLAMA, tp=8) == pytest.approx(cache(LLAMA) / 8)
    assert cache(LATENT, tp=8) == pytest.approx(cache(LATENT))


def test_most_requests_fill_what_the_weights_leave():
    workload = job(requests=10_000, answer=1000)
    rows = candidate(Plan(tp=4, micro_batch=1))
    filled = serving_bytes(workload, rows.passing(float(most_requests(workload, rows)[0])))[0]
    assert 0.8 * H100_SXM.memory_bytes < filled < H100_SXM.memory_bytes


def test_tensor_parallel_answers_need_fast_links():
    """Latency: two exchanges a layer of a few kilobytes. NVLink against PCIe staged through the host."""
    asked = job(requests=1, answer=200)
    linked = step_s(asked, Plan(tp=8, micro_batch=1), H100_SXM, NVSWITCH)
    staged = step_s(asked, Plan(tp=8, micro_batch=1), H100_SXM, PCIE_STAGED)
    assert linked < 0.7 * staged


def test_first_token_waits_for_all_prompts_and_each_other_for_one_pass():
    workload = job(requests=16, answer=101)
    first_s, token_s = token_times(workload, candidate(Plan(micro_batch=16)))
    assert step_s(workload, Plan(micro_batch=16)) == pytest.approx(float(first_s[0] + 100 * token_s[0]))
    prompts_alone = step_s(replace(workload, output_tokens=0), Plan(micro_batch=16))
    assert prompts_alone == pytest.approx(float(first_s[0]))


def test_a_measured_run_paces_everything_but_the_exchanges():
    """Served twice as slowly as thought on one GPU, and so on eight; the links are as fast as before."""
    asked = job(requests=64, answer=100, precision="fp8", micro_batch=64)
    alone = step_s(asked, Plan(micro_batch=64))
    told = replace(
        asked, anchor=Anchor(accelerator_key=H100_SXM.key, gpus=1, step_s=2 * alone, batch_per_step=64, micro_batch=64)
    )
    plan = Plan(tp=8, micro_batch=64)
    before, after = (
        predict(one, traced_accelerator=traced, server=server(H100_SXM, NVSWITCH), gpus=8, plan=plan).parts
        for one, traced in ((asked, None), (told, H100_SXM))
    )
    assert after.memory_s == pytest.approx(2 * before.memory_s, rel=1e-6)
    assert after.communication_exposed_s == pytest.approx(before.communication_exposed_s)


REQUESTS = {
    "128/128": 30000,
    "128/2048": 3000,
    "1000/1000": 3000,
    "500/2000": 3000,
    "2048/128": 3000,
    "20000/2000": 1000,
}
"""Requests of a run by prompt and answer (TensorRT-LLM docs/source/performance/perf-overview.md); others 1,500."""
GPUS = {
    "H100-SXM5-80GB": "h100-sxm5-80",
    "H200-SXM-141GB": "h200-sxm",
    "B200-SXM-180GB": "b200",
    "RTX PRO 6000 Blackwell": "rtx-pro-6000-se",
}


def published():
    with (SHARED / "measured" / "measured_dev.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            dense = row["source_group"] == "tensorrt-llm" and row["model"] in ("Llama3-70B", "Llama3.1-405B")
            if dense and row["core"] == "1" and row["metric"] == "output_tokens_per_s":
                yield row


@pytest.mark.skipif(SHARED is None, reason="published figures are not beside this checkout")
def test_dense_models_at_most_throughput_are_within_published_runs():
    """70B and 405B on four GPU models, tp, pp or neither, fp8 and fp4: median 7 %, one in ten beyond 13 %.

    Seven constants were fitted to a part of the same table; the bar is wider than what was measured.
    """
    errors = []
    for row in published():
        prompt, answer = map(int, row["seq_len"].split("/"))
        requests = REQUESTS.get(row["seq_len"], 1500)
        model = replace(find_model(row["model"]), sequence_length=prompt)
        workload = job(model, requests, answer, row["precision"])
        fabric = PCIE_P2P if row["intra_class"] == "pcie" else NVSWITCH
        plan = Plan(tp=int(row["tp"]), pp=int(row["pp"]), micro_batch=1)
        rows = candidate(plan, shipped()[GPUS[row["gpu_key"]]], fabric, row["precision"])
        rows = rows.passing(min(float(most_requests(workload, rows)[0]), requests))
        seconds = requests * answer / float(row["value"])
        errors.append(abs(log(float(serving_parts(workload, rows).step_s[0]) / seconds)))
    assert len(errors) > 60
    assert median(errors) < 0.10
    assert sorted(errors)[ceil(0.9 * len(errors)) - 1] < 0.20
