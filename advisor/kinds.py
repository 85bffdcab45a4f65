"""Kinds of job as people name them, and what each means in a workload."""

from enum import StrEnum
from typing import TypedDict

from profiling.workload import Mode, Workload

USUAL_RANK = 16
"""Rank of adapters where none is given; the LoRA paper (2106.09685, table 6) finds no gain above 8 to 64."""
QLORA_BITS = 4
"""NF4 (2305.14314)."""


class Kind(StrEnum):
    """``TRAINING`` and ``FULL`` (fine-tuning of all weights) demand the same of the hardware."""

    TRAINING = "training"
    FULL = "full"
    LORA = "lora"
    QLORA = "qlora"
    INFERENCE = "inference"


class Meaning(TypedDict):
    mode: Mode
    lora_rank: int | None
    weight_bits: int | None
    output_tokens: int


def kind_named(kind: str, lora_rank: int | None, weight_bits: int | None, output_tokens: int | None) -> Meaning:
    """The fields of a workload that this kind of job sets."""
    serves, adapts = kind == Kind.INFERENCE, kind in (Kind.LORA, Kind.QLORA)
    return {
        "mode": Mode.INFERENCE if serves else Mode.TRAINING,
        "lora_rank": (lora_rank or USUAL_RANK) if adapts else None,
        "weight_bits": weight_bits or (QLORA_BITS if kind == Kind.QLORA else None),
        "output_tokens": (output_tokens or 0) if serves else 0,
    }


def kind_of(workload: Workload) -> Kind:
    if workload.mode is Mode.INFERENCE:
        return Kind.INFERENCE
    if workload.lora_rank is None:
        return Kind.TRAINING
    return Kind.QLORA if workload.weight_bits == QLORA_BITS else Kind.LORA
