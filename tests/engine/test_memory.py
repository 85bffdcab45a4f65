"""Memory of a plan: published figures, and what must hold whatever the constants are."""

import csv
from dataclasses import replace
from statistics import median, quantiles

import numpy as np
import pytest

from advisor.engine.candidates import Candidates
from advisor.engine.hardware import hardware
from advisor.engine.memory import FITS_IN_ORDER, Fit, allocated_bytes, fit, need_bytes
from advisor.engine.memory_activations import activation_bytes
from advisor.engine.memory_stages import micro_batches, stages, weights_of
from advisor.engine.memory_states import divided, trained
from advisor.engine.plans import Plan, Recompute
from advisor.engine.shapes import counted
from advisor.engine.system import System
from profiling.workload import Mode, ModelShape, ModelTotals, Workload
from tests.engine.machines import A100_SXM, NVSWITCH, TRACED
from tests.paths import SHARED

GIB = 2**30
FULL = Recompute.FULL

LLAMA2_7B = ModelShape(layers=32, hidden=4096, heads=32, vocabulary=32000, sequence_length=512, ffn_hidden=11008)
LLAMA_33B = ModelShape(layers=60, hidden=6656, heads=52, vocabulary=32000, sequence_length=512, ffn_hidden=17920)
LLAMA_65B = ModelShape(layers=80, hidden=8192, heads=64, vocabulary=32000, sequence_length=512, ffn_hidden=22016)
LLAMA3_8B = ModelShape(
    layers=32, hidden=4096, heads=32, kv_heads=8, vocabulary=128256, sequence_length=8192, ffn_hidden=14336
)
LLAMA3_70B = ModelShape(
    layers=80, hidden=8192, heads=64, kv_heads=8, vocabulary=128256, sequence_length=8192, ffn_hidden=28672
)
LLAMA3_405B = ModelShape(
    layers=126, hidden=16384, heads=128, kv_heads=8, vocabulary=128256, sequence_length=8192, ffn_hidden=53248
)
DEEPSEEK_V2 = ModelShape(
    layers=60,
    hidden=5120,
    heads=128,
    vocabulary=102400,
    sequence_length=4096,
    ffn_hidden=12288,
    head_dim=192,
    value_head_dim=128,
    kv_latent=576,
    query_latent=1536,
    experts=160,
    experts_per_token=6,
    expert_ffn=1536,
    shared_expert_ffn=3072,
    dense_layers=1,
)
DEEPSEEK_V3 = replace(
    DEEPSEEK_V2,
    layers=61,
    hidden=7168,
    vocabulary=129280,
    ffn_hidden=18432,
    experts=256,
    experts_per_token=8,
    expert_ffn=2048,
    shared_expert_ffn=2048,
    dense_layers=3,
)


def candidates(*plans):
    rows = hardware([System(A100_SXM, NVSWITCH)], "bf16").take(np.zeros(len(plans), dtype=np.int64))
    return Candidates.of(rows, plans, np.arange(len(plans)))


def job(shape, *, batch=64, mode=Mode.TRAINING, precision="bf16", **more):
    return Workload(name="a job", mode=mode, precision=precision, batch_per_step=batch, model=shape, **more)


def allocated(workload, **plan):
    return float(allocated_bytes(workload, candidates(Plan(**{"micro_batch": 1, **plan})))[0])


def needed(workload, **plan):
    return float(need_bytes(workload, candidates(Plan(**{"micro_batch": 1, **plan})))[0])


def verdict(workload, capacity, **plan):
    need = np.array([needed(workload, **plan)])
    return FITS_IN_ORDER[fit(workload, need, np.array([capacity]), None)[0]]


# published figures


MEASURED = {
    "DeepSeek-V2": replace(DEEPSEEK_V2, layers=4),
    "DeepSeek-V3": replace(DEEPSEEK_V3, layers=4, dense_layers=1),
    "Llama3-70B": LLAMA3_70B,
    "Llama3.1-405B": LLAMA3_405B,
}


def measured_peaks():
    """Peak of allocated memory on the fullest rank, Megatron-LM 0.14 on eight B200 (SimuMax)."""
    with (SHARED / "measured" / "measured_dev.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            if "measured peak alloc" not in row["notes"]:
                continue
            peak = float(row["notes"].partition("alloc ")[2].split()[0]) * GIB
            sizes = {name: int(row[name] or 1) for name in ("dp", "tp", "pp", "ep", "cp")}
            shape = replace(
                MEASURED[row["model"].split()[0]], layers=int(row["layers"]), sequence_length=int(row["seq_len"])
            )
            yield job(shape, batch=int(row["global_batch"]), stack="megatron-core"), {**sizes, "zero_stage": 1}, peak


@pytest.mark.skipif(SHARED is None, reason="published figures are not beside this checkout")
def test_measured_peaks_of_dense_and_expert_models():
    """43 runs of 19 layouts: tensor, pipeline, expert and context parallel, 4,096 to 131,072 tokens."""
    ratios = [allocated(workload, **plan) / peak for workload, plan, peak in measured_peaks()]
    errors = sorted(abs(ratio - 1) for ratio in ratios)
    print(
        f"{len(errors)} runs, median {median(errors):.4f}, p90 {quantiles(errors, n=10)[-1]:.4f}, max {errors[-1]:.4f}"
    )
    assert len(errors) == 43
    assert median(errors) < 0.01
    assert quantiles(errors, n=10)[-1] < 0.02
    assert errors[-1] < 0.05


TORCHTITAN = [
    (LLAMA3_8B, 32768, {"dp": 8}, 83.9),
    (LLAMA3_8B, 65536, {"dp": 4, "cp": 2}, 84.2),
    (LLAMA3_8B, 131072, {"dp": 2, "cp": 4}, 84.0),
    (LLAMA3_8B, 262144, {"dp": 1, "cp": 8}, 84.5),
    (LLAMA3_70B, 8192, {"dp": 32, "tp": 8, "micro_batch": 16}, 71.9),
    (LLAMA3_405B, 8192, {"dp": 8, "tp": 8, "pp": 8, "micro_batch": 4}, 82.5),
    (LLAMA3_405B, 8192, {"dp": 8, "tp": 8, "pp": 8, "vpp": 2, "micro_batch": 4}, 72.7),
    (LLAMA3_405B, 32768, {"dp": 8, "tp": 8, "pp": 8}, 75.3),
    (LLAMA3_405B, 65536, {"dp": 4, "cp": 2, "tp": 8, "pp": 8}, 75.9),
    (LLAMA3_405B, 131072, {"dp": 2, "cp": 4, "tp": 8, "pp": 8}, 77.1),
    (LLAMA3_405B, 262144, {"dp": 1, "cp": 8, "tp": 8, "pp": 8}, 84.9),
]
"""GiB reserved on H100, FSDP, whole layers recomputed: pytorch/torchtitan benchmarks/llama3_h100_202412_torchtitan.md.
Micro-batches of the pipelines: local batch over the default of one for each stage."""


@pytest.mark.parametrize(("shape", "sequence", "plan", "gib"), TORCHTITAN)
def test_published_peaks_of_sharded_training(shape, sequence, plan, gib):
    batch = plan["dp"] * plan.get("micro_batch", 1) * (8 if "pp" in plan else 1)
    workload = job(replace(shape, sequence_length=sequence), batch=batch, stack="torch-compile")
    need = needed(workload, zero_stage=3, recompute=FULL, **plan)
    assert need / GIB == pytest.approx(gib, rel=0.15)


@pytest.mark.parametrize(("stage", "gigabytes"), [(0, 120), (1, 31.4), (2, 16.6), (3, 1.9)])
def test_states_of_zero(stage, gigabytes):
    """ZeRO, 1910.02054, figure 1: 7.5 billion parameters over 64 ranks."""
    found = divided(trained(job(LLAMA2_7B)), 7.5e9, np.array([64.0]), np.array([stage]))
    assert found[0] / 1e9 == pytest.approx(gigabytes, abs=0.05)


def kept(workload, **plan):
    """Activations of the first stage."""
    one, shape = candidates(Plan(**{"micro_batch": 1, **plan})), counted(workload.model)
    first = stages(shape, weights_of(shape), one, micro_batches(workload, one))[0]
    return float(activation_bytes(workload, shape, first, one)[0])


GPT_175B = ModelShape(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence_length=2048, gated_mlp=False)
VALUES = 2048 * 12288
"""Tokens times width of one sequence."""


def test_activations_are_those_of_korthikanti():
    """2205.05198, table 2: 34 values of the hidden width a layer, two of them dropout masks that nobody keeps today."""
    assert kept(job(GPT_175B), tp=8) == pytest.approx(32 * VALUES * 96 / 8, rel=1e-9)
    unfused = job(GPT_175B, flash_attention=False)
    scores = 5 * 96 * 2048 * 2048 * 96 / 8
    assert kept(unfused, tp=8) - kept(job(GPT_175B), tp=8) == pytest.approx(scores, rel=1e-9)
    assert kept(unfused, tp=8, recompute=Recompute.SELECTIVE) == kept(job(GPT_175B), tp=8)
    assert kept(job(GPT_175B), tp=8, recompute=FULL) == pytest.approx((2 * 96 + 32) * VALUES / 8, rel=1e-9)


@pytest.mark.parametrize(("vpp", "factor"), [(1, 1.0), (3, 1 + 7 / 24)])
def test_the_first_stage_keeps_what_the_whole_model_would(vpp, factor):
    """2205.05198, section 4.2.3: 1 + (p - 1) / (p m) with m interleaved chunks."""
    whole = kept(job(GPT_175B), tp=8)
    assert kept(job(GPT_175B), tp=8, pp=8, vpp=vpp) == pytest.approx(factor * whole, rel=1e-9)
    few = job(GPT_175B, batch=2)
    assert kept(few, tp=8, pp=8) == pytest.approx(2 / 8 * whole, rel=1e-9)


def test_fine_tuning_a_quantised_base():
    """QLoRA, 2305.14314: 65 billion parameters on one GPU of 48 GB, which 16-bit training needs over 780 GB for."""
    adapters = {"lora_rank": 64, "weight_bits": 4, "batch": 16}
    assert verdict(job(LLAMA_65B, **adapters), 48 * GIB, recompute=FULL) is not Fit.DOES_NOT_FIT
    assert verdict(job(LLAMA_33B, **adapters), 24 * GIB, recompute=FULL) is not Fit.DOES_NOT_FIT
    assert verdict(job(LLAMA_33B, lora_rank=64, batch=16), 48 * GIB, recompute=FULL) is Fit.DOES_NOT_FIT
    assert 5e9 < allocated(job(LLAMA2_7B, **adapters), recompute=FULL) < 7e9
    assert allocated(job(LLAMA_65B), recompute=FULL) > 780e9


@pytest.mark.parametrize(
    ("shape", "bytes_per_token"),
    [
        (LLAMA2_7B, 2 * 32 * 4096 * 2),
        (LLAMA3_8B, 2 * 32 * 1024 * 2),
        (DEEPSEEK_V3, 61 * 576 * 2),
    ],
)
def test_cache_of_a_token(shape, bytes_per_token):
    """0.5 MiB for Llama 2 7B (vLLM, 2309.06180 has 0.8 for 13B), 70 KB for DeepSeek-V3 (2505.09343, table 1)."""
    served = job(shape, mode=Mode.INFERENCE, batch=1)
    grown = allocated(replace(served, output_tokens=1000)) - allocated(served)
    assert grown / 1000 == pytest.approx(bytes_per_token, rel=0.01)


def test_an_encoder_that_serves_keeps_no_cache():
    served = job(replace(LLAMA2_7B, causal=False), mode=Mode.INFERENCE, batch=1)
    assert allocated(replace(served, output_tokens=1000)) == pytest.approx(allocated(served))


# models known by their totals


RECOMMENDER = ModelTotals(
    family="recommender",
    parameters=24e9,
    flops_per_sample=1e8,
    traffic_bytes_per_sample=1e5,
    kernels_per_pass=100,
    activation_bytes_per_sample=1e5,
    embedding_parameters=23.99e9,
)
VISION = ModelTotals(
    family="vision",
    parameters=25.6e6,
    flops_per_sample=8e9,
    traffic_bytes_per_sample=2e8,
    kernels_per_pass=160,
    activation_bytes_per_sample=90e6,
)


def totalled(totals, **more):
    fields = {"mode": Mode.TRAINING, "precision": "fp16", "batch_per_step": 2048, **more}
    return Workload(name="totals", totals=totals, **fields)


def test_tables_are_divided_and_dense_weights_are_not():
    """DLRM on 24 billion parameters needs eight GPUs of 32 GB (NVIDIA DeepLearningExamples: DGX-1, DGX A100)."""
    alone, eight = allocated(totalled(RECOMMENDER)), allocated(totalled(RECOMMENDER), dp=8)
    assert alone > 80e9
    assert eight < 32e9 / 1.35
    assert eight == pytest.approx(alone / 8, rel=0.05)


def test_activations_of_totals_grow_with_the_micro_batch_alone():
    assert allocated(totalled(VISION), micro_batch=256) - allocated(totalled(VISION)) == pytest.approx(255 * 90e6)
    assert allocated(totalled(VISION), micro_batch=256, recompute=FULL) < allocated(totalled(VISION), micro_batch=64)
    wide = totalled(VISION, precision="fp32")
    assert allocated(wide, micro_batch=2) - allocated(wide) == pytest.approx(2 * 90e6)
    served = totalled(VISION, mode=Mode.INFERENCE)
    assert allocated(served, micro_batch=256) == allocated(served) == 2 * 25.6e6


# verdicts


@pytest.mark.parametrize("stack", [None, "megatron-core"])
def test_the_verdict_is_firm_outside_the_range_only(stack):
    workload = job(LLAMA2_7B, stack=stack)
    places = fit(workload, np.array([30e9, 74e9, 110e9, np.nan]), np.full(4, 80e9), None)
    assert [FITS_IN_ORDER[place] for place in places] == [Fit.FITS, Fit.TIGHT, Fit.DOES_NOT_FIT, Fit.UNKNOWN]


def test_a_told_stack_narrows_the_range():
    needs, capacity = np.linspace(40e9, 110e9, 200), np.full(200, 80e9)
    tight = FITS_IN_ORDER.index(Fit.TIGHT)
    counts = [
        (fit(job(LLAMA2_7B, stack=stack), needs, capacity, None) == tight).sum() for stack in (None, "torch-compile")
    ]
    assert counts[0] > counts[1] > 0


def test_a_measured_peak_replaces_the_formula():
    captured = candidates(Plan(dp=8), Plan(dp=4))
    assert need_bytes(TRACED, captured).tolist() == [20e9, 20e9]
    assert np.isnan(need_bytes(replace(TRACED, peak_memory_bytes=None), captured)).all()


def test_units_survive():
    """Every part is bytes: a model of twice the width in all its parts needs four times the weights."""
    small = job(replace(LLAMA2_7B, sequence_length=1), batch=1)
    large = job(
        replace(LLAMA2_7B, hidden=8192, heads=64, ffn_hidden=22016, vocabulary=64000, sequence_length=1), batch=1
    )
    assert allocated(large) / allocated(small) == pytest.approx(4, rel=0.001)
