"""One measured row as a job that the engine can predict: the same rules for every source."""

import re
from dataclasses import dataclass, replace

from advisor.engine.plans import Plan, Recompute
from advisor.evaluation.layout import Layout, layout_of
from advisor.evaluation.machines import server_of
from advisor.evaluation.measures import is_per_gpu, measured_step_s
from advisor.evaluation.precisions import precision_of, weight_bits_of
from advisor.evaluation.refusals import Reason, RowRefused
from advisor.evaluation.rows import MeasuredRow
from advisor.evaluation.samples import is_in_tokens, per_sample
from advisor.evaluation.serving import requests_of, served_plan, served_step_s
from advisor.evaluation.shapes import TRANSFORMERS, model_of, sequence_length
from advisor.evaluation.stacks import has_fused_attention, stack_of
from catalog.specs import ServerSpec
from profiling.workload import Mode, ModelShape, ModelTotals, Workload

_MODES = {"train": Mode.TRAINING, "finetune": Mode.TRAINING, "infer": Mode.INFERENCE}
_SENTENCE_TOKENS, _QUESTION_TOKENS = 128, 384
"""Lengths that encoders are fine-tuned at (google-research/bert: run_classifier.py, run_squad.py)."""
_USUAL_RANK = 16
"""Rank of low-rank adapters where the row says LoRA and no rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row that can be predicted: the job without any anchor, where it ran and how, and what was measured.

    ``assumed``: what the row leaves open and was completed with what is usual.
    """

    row: MeasuredRow
    workload: Workload
    server: ServerSpec
    gpus: int
    plan: Plan
    measured_step_s: float
    assumed: tuple[str, ...] = ()

    @property
    def is_transformer(self) -> bool:
        """Predicted from its description alone."""
        return self.row.family in TRANSFORMERS

    @property
    def samples_per_s(self) -> float:
        return self.workload.batch_per_step / self.measured_step_s


def case_of(row: MeasuredRow) -> Case:
    """Raises RowRefused with the reason where a row does not say enough."""
    mode = _MODES.get(row.mode)
    if mode is None:
        raise RowRefused(Reason.MODE_UNKNOWN)
    requests = requests_of(row) if mode is Mode.INFERENCE else None
    layout = layout_of(row, trains=mode is Mode.TRAINING)
    gpus, batch = layout.plan.gpus, layout.batch
    server = server_of(row, gpus)
    model = model_of(row)
    if isinstance(model, ModelShape):
        length = requests.prompt if requests else _sequence(model, row, batch, gpus)
        model = replace(model, sequence_length=length)
    elif not requests:
        layout = _in_samples(row, layout)
    workload = _workload(row, mode, model, layout, precision_of(row.precision, server.accelerator))
    if requests:
        workload = replace(workload, output_tokens=requests.answer)
        layout = replace(layout, plan=served_plan(workload, server, layout.plan))
        step_s = served_step_s(row, requests, batch, gpus)
    else:
        step_s = measured_step_s(row, workload, gpus, batch)
    if not step_s:
        raise RowRefused(Reason.TIME_UNKNOWN)
    return Case(
        row=row,
        workload=workload,
        server=server,
        gpus=gpus,
        plan=layout.plan,
        measured_step_s=step_s,
        assumed=_assumed(row, several=gpus > server.gpu_count, one=gpus == 1),
    )


def _assumed(row: MeasuredRow, *, several: bool, one: bool) -> tuple[str, ...]:
    left_open = {
        "precision": not row.precision or "assumed" in row.precision or "?" in row.precision,
        "links": not one and (not row.intra_class or row.intra_class.endswith("?")),
        "network": several and not re.search(r"\d", row.inter_interconnect),
        "sequence": not row.seq_len,
        "stack": stack_of(row) is None,
        "layout": not one and row.dp is None,
    }
    return tuple(name for name, is_open in left_open.items() if is_open)


def _workload(
    row: MeasuredRow, mode: Mode, model: ModelShape | ModelTotals, layout: Layout, precision: str
) -> Workload:
    return Workload(
        name=row.model,
        mode=mode,
        precision=precision,
        batch_per_step=layout.batch,
        micro_batch=layout.plan.micro_batch or None,
        model=model if isinstance(model, ModelShape) else None,
        totals=model if isinstance(model, ModelTotals) else None,
        recompute_activations=layout.plan.recompute is Recompute.FULL,
        flash_attention=has_fused_attention(row, precision),
        lora_rank=_lora_rank(row.flags),
        weight_bits=weight_bits_of(row.precision),
        stack=stack_of(row),
    )


def _sequence(model: ModelShape, row: MeasuredRow, batch: float, gpus: int) -> int:
    """Tokens of a sequence: as stated, else what step time and tokens per second give together, else as usual for the
    model, or for fine-tuning an encoder."""
    stated = sequence_length(row.seq_len)
    rate = row.value if row.unit.lower().startswith("tokens/s") else None
    if not stated and row.step_time_s and rate:
        ranks = gpus if is_per_gpu(row) else 1
        stated = round(row.step_time_s * rate * ranks / batch)
    if (stated or 0) > 1:
        return int(stated or 0)
    if row.mode == "finetune" and row.family == "transformer-encoder":
        return _QUESTION_TOKENS if "squad" in f"{row.model} {row.notes}".lower() else _SENTENCE_TOKENS
    if not model.sequence_length:
        raise RowRefused(Reason.SEQUENCE_UNKNOWN)
    return model.sequence_length


def _in_samples(row: MeasuredRow, layout: Layout) -> Layout:
    """The layout with its batches in the samples that the model's totals are of: a row may count tokens of one side of
    a translation, or have other lengths."""
    usual, stated = per_sample(row.model, "tokens"), sequence_length(row.seq_len)
    if not usual:
        return layout
    share = (2 if is_in_tokens(row.family, row.micro_batch) else stated or usual) / usual
    plan = layout.plan
    return Layout(
        batch=max(plan.dp, round(layout.batch * share)),
        plan=replace(plan, micro_batch=max(1, round(plan.micro_batch * share)) if plan.micro_batch else 0),
    )


def _lora_rank(flags: str) -> int | None:
    if "lora" not in flags.lower():
        return None
    stated = re.search(r"(?:rank|r)\s*=?\s*(\d+)", flags.lower())
    return int(stated.group(1)) if stated else _USUAL_RANK
