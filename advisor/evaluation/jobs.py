"""One measured row as a job that the engine can predict: the same rules for every source."""

import re
from dataclasses import dataclass, replace

from advisor.engine.plans import Plan, Recompute
from advisor.evaluation.layout import Layout, layout_of
from advisor.evaluation.machines import server_of
from advisor.evaluation.measures import measured_step_s
from advisor.evaluation.precisions import precision_of, weight_bits_of
from advisor.evaluation.refusals import Reason, RowRefused
from advisor.evaluation.rows import MeasuredRow
from advisor.evaluation.shapes import TRANSFORMERS, model_of
from advisor.evaluation.stacks import has_fused_attention, stack_of
from catalog.specs import ServerSpec
from profiling.workload import Mode, ModelShape, ModelTotals, Workload

_MODES = {"train": Mode.TRAINING, "finetune": Mode.TRAINING, "infer": Mode.INFERENCE}
_USUAL_RANK = 16
"""Rank of low-rank adapters where the row says LoRA and no rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row that can be predicted: the job without any anchor, where it ran and how, and what was measured."""

    row: MeasuredRow
    workload: Workload
    server: ServerSpec
    gpus: int
    plan: Plan
    measured_step_s: float

    @property
    def is_transformer(self) -> bool:
        """Predicted from its description alone."""
        return self.workload.model is not None and self.row.family in TRANSFORMERS

    @property
    def samples_per_s(self) -> float:
        return self.workload.batch_per_step / self.measured_step_s


def case_of(row: MeasuredRow) -> Case:
    """Raises RowRefused with the reason where a row does not say enough."""
    mode = _MODES.get(row.mode)
    if mode is None:
        raise RowRefused(Reason.MODE_UNKNOWN)
    if mode is Mode.INFERENCE:
        raise RowRefused(Reason.SERVING_SHAPE_UNKNOWN)
    layout = layout_of(row, trains=mode is Mode.TRAINING)
    server = server_of(row, layout.plan.gpus)
    workload = _workload(row, mode, layout, precision_of(row.precision, server.accelerator))
    step_s = measured_step_s(row, workload, layout.plan.gpus)
    return Case(
        row=row,
        workload=workload,
        server=server,
        gpus=layout.plan.gpus,
        plan=layout.plan,
        measured_step_s=step_s,
    )


def _workload(row: MeasuredRow, mode: Mode, layout: Layout, precision: str) -> Workload:
    model = model_of(row)
    shape = _with_sequence(model, row, layout.batch, layout.plan.gpus) if isinstance(model, ModelShape) else None
    return Workload(
        name=row.model,
        mode=mode,
        precision=precision,
        batch_per_step=layout.batch,
        micro_batch=layout.plan.micro_batch or None,
        model=shape,
        totals=model if isinstance(model, ModelTotals) else None,
        recompute_activations=layout.plan.recompute is Recompute.FULL,
        flash_attention=has_fused_attention(row.flags, row.date, precision),
        lora_rank=_lora_rank(row.flags),
        weight_bits=weight_bits_of(row.precision),
        stack=stack_of(row.flags, row.date, row.zero_stage),
    )


def _with_sequence(model: ModelShape, row: MeasuredRow, batch: float, gpus: int) -> ModelShape:
    """The stated length, else the one that step time and tokens per second give together, else the model's usual."""
    length = model.sequence_length
    rate = row.value if row.unit.lower().startswith("tokens/s") else None
    if not row.seq_len and row.step_time_s and rate:
        ranks = gpus if "per_gpu" in row.metric or "/gpu" in row.unit.lower() else 1
        length = round(row.step_time_s * rate * ranks / batch)
    if not length:
        raise RowRefused(Reason.SEQUENCE_UNKNOWN)
    return replace(model, sequence_length=length)


def _lora_rank(flags: str) -> int | None:
    if "lora" not in flags.lower():
        return None
    stated = re.search(r"(?:rank|r)\s*=?\s*(\d+)", flags.lower())
    return int(stated.group(1)) if stated else _USUAL_RANK
