"""Rows as jobs: layout, precision, software, model and step time from what each states; refusals with reasons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.engine.plans import Recompute
from advisor.evaluation.jobs import case_of
from advisor.evaluation.layout import recompute, zero_stage
from advisor.evaluation.refusals import Reason, RowRefused
from advisor.evaluation.shapes import layer_count, sequence_length
from advisor.evaluation.stacks import stack_of
from profiling.workload import Mode
from tests.evaluation.measured import LLAMA, RESNET, one

NO_TIME = {"step_time_s": "", "value": "", "unit": ""}


def test_a_full_row(tmp_path):
    case = case_of(one(tmp_path, LLAMA))
    job, plan = case.workload, case.plan
    assert (job.mode, job.precision, job.batch_per_step) == (Mode.TRAINING, "bf16", 8)
    assert (job.model.layers, job.model.hidden, job.model.vocabulary) == (32, 4096, 128256)
    assert (job.flash_attention, job.stack) == (True, "torch-compile")
    assert (plan.dp, plan.zero_stage, plan.micro_batch, plan.accumulation) == (8, 3, 1, 1)
    assert plan.recompute is Recompute.SELECTIVE
    assert (case.gpus, case.measured_step_s, case.assumed) == (8, 1.4, ())


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("", 0),
        ("ddp (find_unused_parameters)", 0),
        ("zero-1 within 8 GPUs", 1),
        ("distributed-optimizer(1)", 1),
        ("zero-2", 2),
        ("fsdp(64)", 3),
        ("fsdp2", 3),
        ("ZeRO-3", 3),
        ("3", 3),
    ],
)
def test_sharding(text, stage):
    assert zero_stage(text) == stage


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("full (repo validation configs)", Recompute.FULL),
        ("selective(every 2nd layer)", Recompute.SELECTIVE),
        ("none", Recompute.NONE),
        ("", Recompute.NONE),
    ],
)
def test_recomputation(text, again):
    assert recompute(text) is again


@pytest.mark.parametrize(
    ("text", "gpu", "precision", "bits"),
    [
        ("fp16 (assumed: Megatron-DeepSpeed default)", "A100-SXM4", "fp16", None),
        ("bf16?", "A100-SXM4", "bf16", None),
        ("mxfp8", "B200-SXM-180GB", "fp8", None),
        ("nvfp4", "GB300", "fp4", None),
        ("TF32", "A100-SXM4", "tf32", None),
        ("int4 weights", "RTX 3090", "bf16", 4),
        ("nf4-dq", "A100-SXM4", "bf16", 4),
        ("", "A100-SXM4", "bf16", None),
        ("", "V100-SXM2-16GB", "fp16", None),
        ("", "P100", "fp32", None),
        ("fp16/bf16", "V100-SXM2-16GB", "fp16", None),
        ("mixed (not stated)", "RTX 4090", "bf16", None),
    ],
)
def test_precision(tmp_path, text, gpu, precision, bits):
    job = case_of(one(tmp_path, LLAMA, precision=text, gpu_key=gpu)).workload
    assert (job.precision, job.weight_bits) == (precision, bits)


@given(
    dp=st.integers(1, 16),
    tp=st.sampled_from([1, 2, 4]),
    pp=st.integers(1, 4),
    micro=st.integers(1, 8),
    passes=st.integers(1, 32),
)
def test_any_two_of_batch_micro_batch_and_passes_give_the_third(tmp_path_factory, dp, tp, pp, micro, passes):
    """global batch = dp x micro-batch x passes."""
    whole = {"gpus_total": str(dp * tp * pp), "dp": "", "tp": str(tp), "pp": str(pp), "gpus_per_node": "1"}
    told = {"micro_batch": str(micro), "grad_accum": str(passes), "global_batch": str(dp * micro * passes)}
    for left_out in (None, *told):
        row = one(tmp_path_factory.getbasetemp(), LLAMA, **whole, **told | ({left_out: ""} if left_out else {}))
        case = case_of(row)
        assert (case.plan.dp, case.plan.micro_batch, case.plan.accumulation) == (dp, micro, passes)
        assert case.workload.batch_per_step == dp * micro * passes


def test_a_batch_alone_leaves_the_micro_batch_open(tmp_path):
    assert case_of(one(tmp_path, LLAMA, micro_batch="", global_batch="64")).plan.micro_batch == 0


@pytest.mark.parametrize(
    ("cells", "batch"),
    [
        ({"value": "8707.8", "unit": "tokens/s/GPU", "step_time_s": "15.0882", "seq_len": "4096"}, 257),
        ({"value": "20", "unit": "samples/s", "step_time_s": "2"}, 40),
        ({"flags": "Megatron-LM, 2M token batch"}, 244),
    ],
)
def test_a_batch_that_other_cells_tell(tmp_path, cells, batch):
    case = case_of(one(tmp_path, LLAMA, global_batch="", micro_batch="", **cells))
    assert case.workload.batch_per_step == batch


def test_a_named_pipeline_schedule_has_micro_batches(tmp_path):
    cells = {"tp": "1", "pp": "4", "dp": "2", "micro_batch": "16", "global_batch": "32"}
    staged = case_of(one(tmp_path, LLAMA, **cells, flags="FSDP + 1F1B")).plan
    assert (staged.micro_batch, staged.accumulation) == (1, 16)
    assert case_of(one(tmp_path, LLAMA, **cells, flags="FSDP")).plan.micro_batch == 16


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        ({"value": "10000", "unit": "tokens/s/GPU", "metric": "tokens_per_s_per_gpu"}, 8 * 8192 / 80000),
        ({"value": "80000", "unit": "tokens/s", "metric": "train_throughput"}, 8 * 8192 / 80000),
        ({"value": "10000", "unit": "tokens/s (as logged: per GPU)", "metric": "tokens_per_s"}, 8 * 8192 / 80000),
        ({"value": "16", "unit": "samples/s", "metric": "train_throughput"}, 0.5),
        ({"value": "250", "unit": "ms", "metric": "iteration_time"}, 0.25),
        ({"value": "2", "unit": "samples/s/GPU", "metric": "samples_per_s_per_gpu"}, 0.5),
    ],
)
def test_a_step_time_from_a_rate(tmp_path, cells, seconds):
    assert case_of(one(tmp_path, LLAMA, **NO_TIME | cells)).measured_step_s == pytest.approx(seconds)


def test_a_step_time_from_model_flops(tmp_path):
    """Llama-3-8B: 6 x 7.5e9 parameters in products x 8192 tokens, attention beside it."""
    cells = NO_TIME | {"value": "400", "unit": "TFLOP/s/GPU", "metric": "model_tflops_per_gpu"}
    least = 6 * 7.5e9 * 8192 * 8 / (400e12 * 8)
    assert least < case_of(one(tmp_path, LLAMA, **cells)).measured_step_s < 1.25 * least


def test_a_sequence_length_from_step_time_and_rate(tmp_path):
    cells = {"seq_len": "", "step_time_s": "2", "value": "16384", "unit": "tokens/s/GPU"}
    assert case_of(one(tmp_path, LLAMA, **cells)).workload.model.sequence_length == 2 * 16384 * 8 // 8


@pytest.mark.parametrize(("text", "layers"), [("32", 32), ("6+6", 12), ("", None)])
def test_layers(text, layers):
    assert layer_count(text) == layers


@pytest.mark.parametrize(("text", "tokens"), [("4096", 4096), ("1000/2000", 1000), ("", None), ("unknown", None)])
def test_sequences(text, tokens):
    assert sequence_length(text) == tokens


def test_the_rows_own_layers_count(tmp_path):
    shape = case_of(one(tmp_path, LLAMA, model="DeepSeek-V3 (4 layers)", layers="4", family="moe")).workload.model
    assert (shape.layers, shape.experts, shape.experts_per_token) == (4, 256, 8)


def test_a_model_that_nobody_knows_has_the_shape_of_its_columns(tmp_path):
    cells = {"model": "Ours", "layers": "20", "hidden": "2048", "heads": "16", "ffn": "8192", "params_b": "1.112"}
    shape = case_of(one(tmp_path, LLAMA, **cells)).workload.model
    assert (shape.layers, shape.heads, shape.gated_mlp, shape.causal) == (20, 16, False, True)
    assert shape.vocabulary == pytest.approx(51200, rel=0.05)  # what 1.112e9 parameters leave for one embedding


@pytest.mark.parametrize(
    ("cells", "stack"),
    [
        ({"flags": "Megatron-Core; Pre-Training Performance"}, "megatron-core"),
        ({"flags": "Megatron-LM", "date": "2021-05"}, "megatron-2021"),
        ({"flags": "Megatron-LM", "date": "2025"}, "megatron-core"),
        ({"flags": "Megatron-DeepSpeed, 1F1B", "date": "2023..2024"}, "megatron-2021"),
        ({"flags": "FSDP + torch.compile"}, "torch-compile"),
        ({"flags": "HF Trainer/Accelerate no compile", "zero_stage": "ddp"}, "torch-eager"),
        ({"flags": "JAX MaxText, flash attention"}, "jax"),
        ({"flags": "TensorFlow XLA=XLA"}, "tensorflow"),
        ({"flags": "", "zero_stage": "", "precision": "bf16"}, None),
    ],
)
def test_software(tmp_path, cells, stack):
    assert stack_of(one(tmp_path, LLAMA, **cells)) == stack


def test_adapters(tmp_path):
    assert case_of(one(tmp_path, LLAMA, mode="finetune", flags="NeMo; LoRA")).workload.lora_rank == 16
    assert case_of(one(tmp_path, LLAMA, mode="finetune", flags="LoRA rank 8")).workload.lora_rank == 8
    assert case_of(one(tmp_path, LLAMA, mode="finetune", flags="NeMo; SFT")).workload.lora_rank is None


def test_a_model_known_by_its_totals(tmp_path):
    case = case_of(one(tmp_path, RESNET))
    assert case.workload.totals.family == "cnn"
    assert case.measured_step_s == pytest.approx(256 / 2600)
    assert not case.is_transformer


@pytest.mark.parametrize(
    ("cells", "samples", "seconds"),
    [
        # a rate of tokens of both sides: pairs of 30 + 30
        ({"model": "GNMT", "family": "rnn", "value": "60000", "unit": "tokens/s"}, 256, 0.256),
        # batches and rates in tokens of one side: pairs of 32 + 32
        (
            {"model": "Transformer-big", "family": "transformer-encdec", "micro_batch": "5120", "unit": "tokens/s"},
            160,
            5120 / 2600,
        ),
        # segments of 8,192 audio values are 32 mel frames
        ({"model": "HiFi-GAN", "value": "16384", "unit": "mel frames/s?"}, 256, 0.5),
        # sequences of 96 tokens of a model whose totals are of 192
        (
            {"model": "Transformer-XL-base", "family": "transformer-decoder", "seq_len": "96", "unit": "samples/s"},
            128,
            256 / 2600,
        ),
    ],
)
def test_what_a_row_counts_becomes_samples_of_the_models_totals(tmp_path, cells, samples, seconds):
    case = case_of(one(tmp_path, RESNET, **cells))
    assert case.workload.batch_per_step == samples
    assert case.measured_step_s == pytest.approx(seconds)


def test_serving(tmp_path):
    cells = NO_TIME | {
        "mode": "infer",
        "seq_len": "1000/2000",
        "metric": "output_tokens_per_s",
        "value": "4000",
        "unit": "tokens/s",
        "global_batch": "64",
        "flags": "vLLM",
    }
    case = case_of(one(tmp_path, LLAMA, **cells))
    assert (case.workload.model.sequence_length, case.workload.output_tokens) == (1000, 2000)
    assert (case.plan.dp, case.plan.micro_batch, case.plan.zero_stage) == (8, 8, 0)
    assert case.measured_step_s == pytest.approx(64 * 2000 / 4000)


def test_the_latency_of_requests(tmp_path):
    cells = NO_TIME | {"mode": "infer", "dp": "1", "tp": "8", "global_batch": "1", "micro_batch": ""}
    cells |= {"flags": "vLLM benchmark_latency, input 1 output 200", "metric": "latency", "value": "5.5", "unit": "s"}
    case = case_of(one(tmp_path, LLAMA, **cells))
    assert (case.workload.model.sequence_length, case.workload.output_tokens, case.measured_step_s) == (1, 200, 5.5)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"mode": "sleep"}, Reason.MODE_UNKNOWN),
        ({"gpu_key": "Riva 128"}, Reason.GPU_UNKNOWN),
        ({"gpus_total": "", "gpus_per_node": ""}, Reason.GPUS_UNKNOWN),
        ({"tp": "3"}, Reason.LAYOUT_INCONSISTENT),
        ({"global_batch": "", "micro_batch": ""}, Reason.BATCH_UNKNOWN),
        ({"precision": "posit8"}, Reason.PRECISION_UNKNOWN),
        ({"model": "Ours", "family": "cnn"}, Reason.SHAPE_UNKNOWN),
        ({"model": "Ours", "layers": "4", "hidden": "64", "heads": "128"}, Reason.SHAPE_UNKNOWN),
        ({"model": "Ours-Mamba"}, Reason.STATE_SPACE_LAYERS),
        ({"model": "Ours", "layers": "4", "hidden": "256", "seq_len": ""}, Reason.SEQUENCE_UNKNOWN),
        (NO_TIME | {"value": "12", "unit": "s", "metric": "epoch_time"}, Reason.TIME_UNKNOWN),
        ({"mode": "infer"}, Reason.SERVING_SHAPE_UNKNOWN),
        ({"mode": "infer", "flags": "vLLM; MTP n=3"}, Reason.SPECULATIVE_DECODING),
    ],
)
def test_what_cannot_be_known_is_refused_with_the_reason(tmp_path, cells, reason):
    with pytest.raises(RowRefused) as found:
        case_of(one(tmp_path, LLAMA, **cells))
    assert found.value.reason is reason


def test_nothing_depends_on_whose_row_it_is(tmp_path):
    one_source = case_of(one(tmp_path, LLAMA))
    other = case_of(one(tmp_path, LLAMA, id="x-1", source_group="other", series="z"))
    assert (one_source.workload, one_source.plan, one_source.server.fabric) == (
        other.workload,
        other.plan,
        other.server.fabric,
    )
