"""A workload as first values of the description form: what the form would have to say to mean it."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from advisor.forms import TOTALS, TRANSFORMER
from advisor.kinds import kind_of
from advisor.optional_forms import KILO
from advisor.optional_forms import TOTALS as TOTALS_FIELDS
from advisor.shape_form import BILLION
from catalog.specs import PricingModel
from profiling.workload import Anchor, InputPipeline, ModelShape, ModelTotals, Workload

Values = dict[str, Any]
_SAME = (
    "precision",
    "micro_batch",
    "recompute_activations",
    "flash_attention",
    "output_tokens",
    "lora_rank",
    "weight_bits",
    "gradient_bits",
    "stack",
)


def initial_of(workload: Workload) -> Values:
    """Fields of ``DescriptionForm`` by name; what is unknown is left out."""
    values: Values = {name: getattr(workload, name) for name in _SAME}
    values |= {"kind": kind_of(workload).value, "batch_per_step": _whole(workload.batch_per_step)}
    values["model_kind"] = TRANSFORMER if workload.totals is None else TOTALS
    if workload.totals is not None:
        values |= totals_values(workload.totals)
    elif workload.model is not None:
        values |= shape_values(workload.model, workload.parameters)
    if workload.anchor is not None:
        values |= _anchor(workload.anchor)
    if workload.input_pipeline is not None:
        values |= _input(workload.input_pipeline)
    return {name: value for name, value in values.items() if value is not None}


def shape_values(shape: ModelShape, parameters: float | None = None) -> Values:
    """The fields of ``ShapeForm``."""
    values = {item.name: getattr(shape, item.name) for item in fields(shape) if item.name != "parameters"}
    count = parameters or shape.parameters
    values["parameters_billions"] = None if count is None else count / BILLION
    tied = values.pop("tied_embeddings")
    values["tied_embeddings"] = None if tied is None else "yes" if tied else "no"
    unused = [name for name in ("shared_expert_ffn", "dense_layers", "windowed_layers") if not values[name]]
    return {name: value for name, value in values.items() if value is not None and name not in unused}


def goal_values(goal: Mapping[str, Any]) -> Values:
    """The fields of ``GoalForm``, of a goal as a study keeps it."""
    models = goal["pricing_models"]
    values = {name: goal[name] for name in ("objective", "gpus")}
    values["samples"] = None if goal["samples"] is None else _whole(goal["samples"])
    values["pricing"] = [model.value for model in PricingModel] if models is None else models
    return {name: value for name, value in values.items() if value is not None}


def totals_values(totals: ModelTotals) -> Values:
    figures = {own: _whole(getattr(totals, name) / unit) for own, (name, unit) in TOTALS_FIELDS.items()}
    return {
        "totals_family": totals.family,
        **{name: figure for name, figure in figures.items() if _is_told(name, figure)},
    }


def _is_told(name: str, figure: float) -> bool:
    return figure != 0 or "embedding" not in name


def _anchor(anchor: Anchor) -> Values:
    return {
        "anchor_accelerator": anchor.accelerator_key,
        "anchor_gpus": anchor.gpus,
        "anchor_step_s": anchor.step_s,
        "anchor_batch": _whole(anchor.batch_per_step),
        "anchor_micro_batch": anchor.micro_batch,
    }


def _input(pipeline: InputPipeline) -> Values:
    cpu_s, size = pipeline.cpu_s_per_sample, pipeline.bytes_per_sample
    return {
        "input_cpu_ms": None if cpu_s is None else _whole(cpu_s * KILO),
        "input_kilobytes": None if size is None else _whole(size / KILO),
    }


def _whole(number: float) -> float | int:
    return int(number) if float(number).is_integer() else number
