"""How a row divided its job over the GPUs: what it states, completed so that the numbers agree."""

import re
from dataclasses import dataclass

from advisor.engine.plans import Plan, Recompute
from advisor.evaluation.measures import samples_in_a_step
from advisor.evaluation.refusals import Reason, RowRefused
from advisor.evaluation.rows import MeasuredRow
from advisor.evaluation.serving import requests_at_once
from advisor.evaluation.shapes import sequence_length
from profiling.known_models import find_model
from profiling.workload import ModelShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """``batch``: samples of one step of the whole job; ``plan``: with micro-batch 0 where the row leaves it open."""

    batch: float
    plan: Plan


def layout_of(row: MeasuredRow, *, trains: bool) -> Layout:
    """Raises RowRefused where GPU count or batch are not stated and do not follow, or contradict each other."""
    gpus = gpu_count(row)
    tp, pp, cp = row.tp or 1, row.pp or 1, row.cp or 1
    dp, rest = divmod(gpus, tp * pp * cp)
    if rest or dp < 1:
        raise RowRefused(Reason.LAYOUT_INCONSISTENT)
    batch, micro, passes = _batches(row, dp, gpus) if trains else (*requests_at_once(row, dp), 1)
    if trains and pp > 1 and passes == 1 and _is_interleaved(row):
        micro, passes = 1, max(1, round(batch / dp))
    plan = Plan(
        dp=dp,
        tp=tp,
        pp=pp,
        ep=_experts_over(row.ep or 1, dp * tp * cp),
        cp=cp,
        vpp=(row.vpp or 1) if pp > 1 else 1,
        zero_stage=zero_stage(row.zero_stage) if trains else 0,
        micro_batch=micro,
        accumulation=passes,
        recompute=recompute(row.act_ckpt) if trains else Recompute.NONE,
    )
    return Layout(batch=batch, plan=plan)


def gpu_count(row: MeasuredRow) -> int:
    stated = row.gpus_total or (row.nodes or 1) * (row.gpus_per_node or 0)
    if not stated:
        raise RowRefused(Reason.GPUS_UNKNOWN)
    return stated


def _batches(row: MeasuredRow, dp: int, gpus: int) -> tuple[float, int, int]:
    """Global batch, micro-batch (0 = open) and passes; any two of them give the third."""
    batch = row.global_batch or (row.micro_batch or 0) * dp * (row.grad_accum or 1) or _told_otherwise(row, gpus)
    if not batch:
        raise RowRefused(Reason.BATCH_UNKNOWN)
    per_rank = max(1, -(-round(batch) // dp))
    if row.micro_batch:
        micro = min(row.micro_batch, per_rank)
        return batch, micro, -(-per_rank // micro)
    if row.grad_accum:
        micro = max(1, per_rank // row.grad_accum)
        return batch, micro, -(-per_rank // micro)
    return batch, 0, 1


def _told_otherwise(row: MeasuredRow, gpus: int) -> float | None:
    """A batch in tokens (``2M token batch``), or what step time and rate give together."""
    known = find_model(row.model)
    usual = known.sequence_length if isinstance(known, ModelShape) else 0
    sequence = sequence_length(row.seq_len) or usual
    tokens = re.search(r"(\d+(?:\.\d+)?)\s*([km])\s*tokens? batch", row.flags.lower())
    if tokens and sequence:
        return round(float(tokens.group(1)) * {"k": 1e3, "m": 1e6}[tokens.group(2)] / sequence) or None
    return samples_in_a_step(row, gpus, sequence)


def _is_interleaved(row: MeasuredRow) -> bool:
    """A pipeline whose schedule is named runs on micro-batches though only the batch of a rank is stated."""
    return re.search(r"1f1b|interleav|gpipe|zero.?bubble|pipeline schedule", row.flags.lower()) is not None


def _experts_over(ep: int, ranks: int) -> int:
    """Expert-parallel ranks are taken from the others, so there are never more."""
    return ep if ranks % ep == 0 else 1


def zero_stage(text: str) -> int:
    """``fsdp2`` 3, ``zero-2`` 2, ``distributed-optimizer(1)`` 1, anything else 0."""
    said = text.lower()
    if "fsdp" in said or re.search(r"zero-?\s?3|^3$", said):
        return 3
    if re.search(r"zero-?\s?2|^2$", said):
        return 2
    return 1 if re.search(r"zero-?\s?1|distributed.optimizer|^1$", said) else 0


def recompute(text: str) -> Recompute:
    """``full``, ``selective`` (also every second layer, or by operation), else nothing."""
    said = text.lower()
    if said.startswith("full"):
        return Recompute.FULL
    return Recompute.SELECTIVE if said.startswith("selective") else Recompute.NONE
