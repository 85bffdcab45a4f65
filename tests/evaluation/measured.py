"""Made-up measured rows: the cells that matter, all others not stated."""

import csv

from advisor.evaluation.rows import REAL, TEXT, WHOLE, read_rows

COLUMNS = (*TEXT, *WHOLE, *REAL)

LLAMA = {
    "id": "llama",
    "core": "1",
    "quality": "A",
    "mode": "train",
    "source_group": "someone",
    "series": "llama-dp",
    "date": "2025-03",
    "gpu_key": "H100-SXM5-80GB",
    "gpus_per_node": "8",
    "nodes": "1",
    "gpus_total": "8",
    "intra_class": "nvswitch",
    "model": "Llama3-8B",
    "family": "transformer-decoder",
    "seq_len": "8192",
    "dp": "8",
    "zero_stage": "fsdp2",
    "micro_batch": "1",
    "global_batch": "8",
    "precision": "bf16",
    "act_ckpt": "selective(per-op)",
    "flags": "compile",
    "metric": "iteration_time",
    "value": "1.4",
    "unit": "s",
    "step_time_s": "1.4",
}

RESNET = {
    "id": "resnet-1",
    "core": "1",
    "quality": "B",
    "mode": "train",
    "source_group": "someone-else",
    "series": "resnet",
    "date": "2024-04",
    "gpu_key": "A100-SXM4-80GB",
    "gpus_per_node": "1",
    "nodes": "1",
    "gpus_total": "1",
    "intra_class": "nvswitch",
    "model": "ResNet-50",
    "family": "cnn",
    "dp": "1",
    "micro_batch": "256",
    "precision": "fp16-amp",
    "flags": "PyTorch",
    "metric": "train_throughput",
    "value": "2600",
    "unit": "images/s",
}


def write(path, *rows, without=()):
    """A file of these rows, without some columns."""
    names = [name for name in COLUMNS if name not in without]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def read(path, *rows):
    return read_rows(write(path / "measured.csv", *rows))


def one(path, row, **cells):
    """The row with these cells changed, read back."""
    return read(path, {**row, **cells})[0]
