"""The engine against published runs; the bars are those of a first form.

Not unseen rows: some constants come from an earlier fit that shares sources, and the width of the range was set here.
"""

import csv
from math import ceil, exp, log
from statistics import median

import pytest

from advisor.engine.plans import Plan, Recompute
from advisor.engine.prediction import predict
from profiling.workload import CollectiveKind, Mode, ModelShape, Workload
from tests.engine.machines import A100_PCIE, A100_SXM, H100_PCIE, H100_SXM, NVSWITCH, PCIE_P2P, server
from tests.engine.test_collectives import seconds
from tests.paths import SHARED

pytestmark = pytest.mark.skipif(SHARED is None, reason="published figures are not beside this checkout")

ACCELERATORS = {
    "A100-SXM4": A100_SXM,
    "A100-SXM4-80GB": A100_SXM,
    "A100-PCIe-80GB": A100_PCIE,
    "H100-SXM5-80GB": H100_SXM,
    "H100-SXM5-96GB": H100_SXM,
    "H100-PCIe-80GB": H100_PCIE,
}
FABRICS = {"nvswitch": NVSWITCH, "nvswitch?": NVSWITCH, "pcie": PCIE_P2P}
PRECISIONS = {"bf16": "bf16", "fp16": "fp16", "fp16-amp": "fp16", "fp8": "fp8", "fp16/bf16": "bf16", "fp32": "fp32"}
UNFUSED_ATTENTION = ("vtrain", "dle", "lambda", "neusight")
SHARDED = {"fsdp": 3, "fsdp2": 3, "3": 3, "2": 3, "1": 1}


def rows(name):
    with (SHARED / "measured" / name).open(newline="") as lines:
        yield from csv.DictReader(lines)


def whole(row, column, default=None):
    return int(float(row[column])) if row[column] else default


def is_expressible(row):
    """Transformer training on one server, without pipeline stages, with its shape stated."""
    stated = all(row[column] for column in ("layers", "hidden", "seq_len", "global_batch", "step_time_s"))
    return (
        stated
        and row["mode"] in ("train", "finetune")
        and row["core"] == "1"
        and row["quality"] in ("A", "B")
        and row["family"] in ("transformer-decoder", "transformer-encoder")
        and not row["model"].startswith("Transformer-XL")
        and row["gpu_key"] in ACCELERATORS
        and row["intra_class"] in FABRICS
        and row["gpus_total"] in ("1", "2", "4", "8")
        and all(whole(row, column, 1) == 1 for column in ("nodes", "pp", "cp"))
    )


def predicted(row):
    gpus, tp, batch = whole(row, "gpus_total"), whole(row, "tp", 1), whole(row, "global_batch")
    dp = gpus // tp
    micro = min(whole(row, "micro_batch", max(1, batch // dp // whole(row, "grad_accum", 1))), max(1, batch // dp))
    recompute = "full" in row["act_ckpt"]
    gated = any(name in row["model"].lower() for name in ("llama", "mistral"))
    job = Workload(
        name=row["id"],
        mode=Mode.TRAINING,
        precision=PRECISIONS.get(row["precision"].partition(" ")[0], "bf16"),
        batch_per_step=batch,
        micro_batch=micro,
        recompute_activations=recompute,
        flash_attention=row["source_group"] not in UNFUSED_ATTENTION,
        parameters=float(row["params_b"]) * 1e9 if row["params_b"] else None,
        model=ModelShape(
            layers=whole(row, "layers"),
            hidden=whole(row, "hidden"),
            heads=whole(row, "heads", whole(row, "hidden") // 64),
            kv_heads=whole(row, "kv_heads"),
            vocabulary=whole(row, "vocab", 50304),
            sequence_length=whole(row, "seq_len"),
            ffn_hidden=whole(row, "ffn"),
            gated_mlp=gated,
        ),
    )
    plan = Plan(
        dp=dp,
        tp=tp,
        zero_stage=SHARDED.get(row["zero_stage"].lower(), 0),
        micro_batch=micro,
        accumulation=ceil(batch / dp / micro),
        recompute=Recompute.FULL if recompute else Recompute.NONE,
    )
    machine = server(ACCELERATORS[row["gpu_key"]], FABRICS[row["intra_class"]])
    return predict(job, server=machine, gpus=gpus, plan=plan)


@pytest.fixture(scope="module")
def runs():
    return [(row, predicted(row)) for row in rows("measured_dev.csv") if is_expressible(row)]


def test_transformer_training_within_the_bars_of_a_first_form(runs):
    errors = [abs(found.step_s / float(row["step_time_s"]) - 1) for row, found in runs]
    covered = [found.low_s <= float(row["step_time_s"]) <= found.high_s for row, found in runs]
    by_source = {}
    for (row, _), error in zip(runs, errors, strict=True):
        by_source.setdefault(row["source_group"], []).append(error)
    print(f"{len(runs)} runs, median error {median(errors):.3f}, covered {sum(covered) / len(covered):.3f}")
    print({source: (len(found), round(median(found), 3)) for source, found in sorted(by_source.items())})
    assert len(runs) > 120
    assert median(errors) < 0.30
    assert sum(covered) / len(covered) > 0.70
    assert max(median(found) for found in by_source.values()) < 0.5


def test_gross_errors_are_those_that_are_understood(runs):
    """Off by more than 2: a small model in 4 or 8 tensor-parallel ranks on a 2021 stack, where launching takes several
    times as long as assumed; and a BERT whose head works on the masked tokens alone, which a shape does not say."""
    gross = [row for row, found in runs if abs(log(found.step_s / float(row["step_time_s"]))) > log(2)]
    assert all(
        (row["model"] == "GPT-h2048-L20" and row["tp"] in ("4", "8")) or row["flags"] == "PaddlePaddle" for row in gross
    )
    assert len(gross) < 0.15 * len(runs)


def test_scaling_of_data_parallel_training(runs):
    """Efficiency at 2, 4 and 8 GPUs against the smallest count of the same series, in points."""
    series = {}
    for row, found in runs:
        if whole(row, "tp", 1) == 1:
            rate = whole(row, "global_batch") / float(row["step_time_s"]) / found.gpus
            series.setdefault((row["series"], row["micro_batch"]), []).append((found, rate))
    gaps = []
    for members in series.values():
        base, base_rate = min(members, key=lambda member: member[0].gpus)
        for found, rate in members:
            if found.gpus > base.gpus:
                mine = (found.samples_per_s / found.gpus) / (base.samples_per_s / base.gpus)
                gaps.append(abs(mine - rate / base_rate))
    print(f"{len(gaps)} pairs, median {median(gaps):.3f}")
    assert len(gaps) >= 10
    assert median(gaps) < 0.12


def test_collectives_of_other_sources_on_the_same_boxes():
    """nccl-tests and torch figures that the stored curves do not come from, above 64 MB."""
    ratios = []
    for row in rows("collectives_dev.csv"):
        accelerator = ACCELERATORS.get(row["gpu"])
        known = row["message_bytes"] and row["time_us"] and row["n"] in ("2", "4", "8")
        own = row["source_group"] == "aiconfigurator" or row["intra_class"] != "nvswitch"
        if not accelerator or not known or own or row["collective"] != "all_reduce":
            continue
        size = float(row["message_bytes"])
        if size >= 6e7 and row["nodes"] in ("", "1"):
            mine = seconds(accelerator, NVSWITCH, int(row["n"]), CollectiveKind.ALL_REDUCE, size)
            ratios.append(mine / (float(row["time_us"]) * 1e-6))
    assert len(ratios) > 20
    assert exp(median(abs(log(ratio)) for ratio in ratios)) < 1.08
    assert max(ratios) < 1.35
    assert min(ratios) > 0.75
