"""A workload as a plain JSON document, and back, strictly: the form, the API and ``--workload FILE.json`` use it.

What a document may say is one table of fields. Whatever is not in it, has another type, or cannot be true is refused
with the place (``/model/layers``) and a code; the sentence for the code is in ``profiling.messages``.
``docs/workload.md`` describes the document.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from math import isfinite
from typing import Any

from profiling.step_graph import StepGraph
from profiling.workload import (
    Anchor,
    CollectiveKind,
    CollectiveWork,
    InputPipeline,
    KernelClass,
    KernelWork,
    MeasuredStep,
    Mode,
    ModelShape,
    ModelTotals,
    Workload,
)

PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
_LONGEST_TEXT = 200
_MOST_ITEMS = 200


class WorkloadCode(StrEnum):
    """Why a workload document is refused."""

    NOT_AN_OBJECT = "workload_not_an_object"
    NOT_A_LIST = "workload_not_a_list"
    TOO_MANY_ITEMS = "workload_too_many_items"
    UNKNOWN_FIELD = "workload_unknown_field"
    MISSING_FIELD = "workload_missing_field"
    NOT_TEXT = "workload_not_text"
    NOT_A_NUMBER = "workload_not_a_number"
    NOT_A_WHOLE_NUMBER = "workload_not_a_whole_number"
    NOT_A_BOOLEAN = "workload_not_a_boolean"
    OUT_OF_RANGE = "workload_out_of_range"
    NOT_A_CHOICE = "workload_not_a_choice"
    NEEDS_MODEL_OR_MEASURED = "workload_needs_model_or_measured"
    NOT_DIVISIBLE = "workload_not_divisible"
    PARTS_EXCEED_STEP = "workload_parts_exceed_step"


class WorkloadError(ValueError):
    """``pointer``: JSON pointer to the place; ``params``: what the sentence of the code names."""

    def __init__(self, code: WorkloadCode, pointer: str, **params: str | int | float) -> None:
        super().__init__(code, pointer, params)
        self.code = code
        self.pointer = pointer
        self.params: Mapping[str, str | int | float] = {"field": pointer.lstrip("/") or "/", **params}


@dataclass(frozen=True, slots=True)
class _Field:
    read: Callable[[Any, str], Any]
    required: bool = False


def _number(low: float, high: float) -> Callable[[Any, str], float]:
    def read(value: Any, pointer: str) -> float:
        number = isinstance(value, int) or (isinstance(value, float) and isfinite(value))
        if isinstance(value, bool) or not number:
            raise WorkloadError(WorkloadCode.NOT_A_NUMBER, pointer)
        if not low <= value <= high:
            raise WorkloadError(WorkloadCode.OUT_OF_RANGE, pointer, low=f"{low:,.10g}", high=f"{high:,.10g}")
        return float(value)

    return read


def _whole(low: int, high: int) -> Callable[[Any, str], int]:
    def read(value: Any, pointer: str) -> int:
        number = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not number:
            raise WorkloadError(WorkloadCode.NOT_A_WHOLE_NUMBER, pointer)
        if not low <= value <= high:
            raise WorkloadError(WorkloadCode.OUT_OF_RANGE, pointer, low=low, high=high)
        return int(value)

    return read


def _text(value: Any, pointer: str) -> str:
    if not isinstance(value, str) or not 0 < len(value.strip()) <= _LONGEST_TEXT or not value.isprintable():
        raise WorkloadError(WorkloadCode.NOT_TEXT, pointer, longest=_LONGEST_TEXT)
    return value.strip()


def _boolean(value: Any, pointer: str) -> bool:
    if not isinstance(value, bool):
        raise WorkloadError(WorkloadCode.NOT_A_BOOLEAN, pointer)
    return value


def _choice(*choices: str) -> Callable[[Any, str], str]:
    def read(value: Any, pointer: str) -> str:
        if not isinstance(value, str) or value not in choices:
            raise WorkloadError(WorkloadCode.NOT_A_CHOICE, pointer, choices=", ".join(choices))
        return value

    return read


def _enum(kind: type[StrEnum]) -> Callable[[Any, str], StrEnum]:
    choice = _choice(*(member.value for member in kind))
    return lambda value, pointer: kind(choice(value, pointer))


def _record(kind: type, table: Mapping[str, _Field]) -> Callable[[Any, str], Any]:
    """Reads an object with exactly these fields into ``kind``; null stands for a missing optional field."""
    unknown_by_default = {item.name: None for item in fields(kind) if item.default is MISSING}

    def read(value: Any, pointer: str) -> Any:
        if not isinstance(value, Mapping):
            raise WorkloadError(WorkloadCode.NOT_AN_OBJECT, pointer)
        unknown = next((name for name in value if name not in table), None)
        if unknown is not None:
            name = str(unknown)[:_LONGEST_TEXT]
            raise WorkloadError(WorkloadCode.UNKNOWN_FIELD, f"{pointer}/{name}", known=", ".join(table))
        missing = next((name for name, item in table.items() if item.required and value.get(name) is None), None)
        if missing is not None:
            raise WorkloadError(WorkloadCode.MISSING_FIELD, f"{pointer}/{missing}")
        given = {name: item for name, item in value.items() if item is not None}
        known = {name: table[name].read(item, f"{pointer}/{name}") for name, item in given.items()}
        return kind(**{**unknown_by_default, **known})

    return read


def _list(read_item: Callable[[Any, str], Any]) -> Callable[[Any, str], tuple[Any, ...]]:
    def read(value: Any, pointer: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise WorkloadError(WorkloadCode.NOT_A_LIST, pointer)
        if len(value) > _MOST_ITEMS:
            raise WorkloadError(WorkloadCode.TOO_MANY_ITEMS, pointer, most=_MOST_ITEMS)
        return tuple(read_item(item, f"{pointer}/{place}") for place, item in enumerate(value))

    return read


_SECONDS = _number(0.0, 1e6)
_STEP_SECONDS = _number(1e-7, 1e6)
_COUNT = _number(0.0, 1e12)
_BYTES = _number(1.0, 1e15)

_MODEL = _record(
    ModelShape,
    {
        "layers": _Field(_whole(1, 10_000), required=True),
        "hidden": _Field(_whole(8, 1_000_000), required=True),
        "heads": _Field(_whole(1, 10_000), required=True),
        "vocabulary": _Field(_whole(2, 100_000_000), required=True),
        "sequence_length": _Field(_whole(1, 100_000_000), required=True),
        "kv_heads": _Field(_whole(1, 10_000)),
        "ffn_hidden": _Field(_whole(1, 10_000_000)),
        "gated_mlp": _Field(_boolean),
        "parameters": _Field(_number(1.0, 1e14)),
        "head_dim": _Field(_whole(1, 100_000)),
        "value_head_dim": _Field(_whole(1, 100_000)),
        "kv_latent": _Field(_whole(1, 1_000_000)),
        "query_latent": _Field(_whole(1, 1_000_000)),
        "causal": _Field(_boolean),
        "attention_window": _Field(_whole(1, 100_000_000)),
        "windowed_layers": _Field(_whole(0, 10_000)),
        "tied_embeddings": _Field(_boolean),
        "experts": _Field(_whole(1, 100_000)),
        "experts_per_token": _Field(_whole(1, 100_000)),
        "expert_ffn": _Field(_whole(1, 10_000_000)),
        "shared_expert_ffn": _Field(_whole(0, 10_000_000)),
        "dense_layers": _Field(_whole(0, 10_000)),
    },
)
_TOTALS = _record(
    ModelTotals,
    {
        "family": _Field(_text, required=True),
        "parameters": _Field(_number(1.0, 1e14), required=True),
        "flops_per_sample": _Field(_number(1.0, 1e21), required=True),
        "traffic_bytes_per_sample": _Field(_number(0.0, 1e17), required=True),
        "kernels_per_pass": _Field(_whole(1, 10_000_000), required=True),
        "activation_bytes_per_sample": _Field(_number(0.0, 1e15), required=True),
        "embedding_parameters": _Field(_number(0.0, 1e14)),
        "embedding_values_per_sample": _Field(_number(0.0, 1e12)),
    },
)
_ANCHOR = _record(
    Anchor,
    {
        "accelerator_key": _Field(_text, required=True),
        "gpus": _Field(_whole(1, 100_000), required=True),
        "step_s": _Field(_STEP_SECONDS, required=True),
        "batch_per_step": _Field(_number(1.0, 1e9), required=True),
        "micro_batch": _Field(_whole(1, 1_000_000)),
    },
)
_INPUT = _record(
    InputPipeline,
    {
        "cpu_s_per_sample": _Field(_number(0.0, 1e5)),
        "bytes_per_sample": _Field(_number(0.0, 1e13)),
    },
)
_KERNEL = _record(
    KernelWork,
    {
        "kernel_class": _Field(_enum(KernelClass), required=True),
        "busy_s": _Field(_SECONDS, required=True),
        "launches": _Field(_COUNT, required=True),
        "flops": _Field(_number(0.0, 1e24)),
        "bytes": _Field(_number(0.0, 1e18)),
    },
)
_COLLECTIVE = _record(
    CollectiveWork,
    {
        "kind": _Field(_enum(CollectiveKind), required=True),
        "calls": _Field(_COUNT, required=True),
        "message_bytes": _Field(_BYTES),
        "group_size": _Field(_whole(1, 1_000_000)),
        "busy_s": _Field(_SECONDS, required=True),
        "exposed_s": _Field(_SECONDS, required=True),
    },
)
_MEASURED = _record(
    MeasuredStep,
    {
        "device_name": _Field(_text),
        "accelerator_key": _Field(_text),
        "gpu_count": _Field(_whole(1, 1_000_000), required=True),
        "step_s": _Field(_STEP_SECONDS, required=True),
        "idle_s": _Field(_SECONDS, required=True),
        "kernels": _Field(_list(_KERNEL), required=True),
        "collectives": _Field(_list(_COLLECTIVE), required=True),
        "steps_observed": _Field(_whole(1, 10_000_000)),
        "waiting_s": _Field(_SECONDS),
        "host_launches": _Field(_COUNT),
        "late_launch_s": _Field(_SECONDS),
    },
)
_WORKLOAD = _record(
    Workload,
    {
        "name": _Field(_text, required=True),
        "mode": _Field(_enum(Mode), required=True),
        "precision": _Field(_choice(*PRECISIONS), required=True),
        "batch_per_step": _Field(_number(1.0, 1e9), required=True),
        "micro_batch": _Field(_whole(1, 1_000_000)),
        "model": _Field(_MODEL),
        "parameters": _Field(_number(1.0, 1e14)),
        "measured": _Field(_MEASURED),
        "peak_memory_bytes": _Field(_BYTES),
        "recompute_activations": _Field(_boolean),
        "flash_attention": _Field(_boolean),
        "totals": _Field(_TOTALS),
        "anchor": _Field(_ANCHOR),
        "output_tokens": _Field(_whole(0, 10_000_000)),
        "lora_rank": _Field(_whole(1, 100_000)),
        "weight_bits": _Field(_whole(1, 32)),
        "gradient_bits": _Field(_whole(1, 32)),
        "stack": _Field(_text),
        "input_pipeline": _Field(_INPUT),
    },
)


def workload_from_json(document: Any) -> Workload:
    """A parsed JSON document as a Workload. WorkloadError names the first thing that is wrong and where."""
    if not isinstance(document, Mapping):
        raise WorkloadError(WorkloadCode.NOT_AN_OBJECT, "")
    if all(document.get(name) is None for name in ("model", "totals", "measured")):
        raise WorkloadError(WorkloadCode.NEEDS_MODEL_OR_MEASURED, "")
    workload: Workload = _WORKLOAD(document, "")
    if workload.model is not None:
        _check_model(workload.model)
    if workload.measured is not None:
        _check_measured(workload.measured)
    if workload.micro_batch is not None and workload.micro_batch > workload.batch_per_step:
        raise WorkloadError(WorkloadCode.OUT_OF_RANGE, "/micro_batch", low=1, high=workload.batch_per_step)
    return workload


def _check_model(model: ModelShape) -> None:
    if model.head_dim is None and model.hidden % model.heads:
        raise WorkloadError(WorkloadCode.NOT_DIVISIBLE, "/model/hidden", by="heads")
    if model.kv_heads is not None and model.heads % model.kv_heads:
        raise WorkloadError(WorkloadCode.NOT_DIVISIBLE, "/model/heads", by="kv_heads")


_ROUNDING = 1.02


def _check_measured(step: MeasuredStep) -> None:
    """Parts of a step never add up to more than the step."""
    for place, work in enumerate(step.collectives):
        if work.exposed_s > work.busy_s * _ROUNDING:
            raise WorkloadError(WorkloadCode.PARTS_EXCEED_STEP, f"/measured/collectives/{place}/exposed_s")
    parts = sum(work.busy_s for work in step.kernels) + sum(work.exposed_s for work in step.collectives)
    if parts + step.idle_s > step.step_s * _ROUNDING:
        raise WorkloadError(WorkloadCode.PARTS_EXCEED_STEP, "/measured/step_s")


def workload_to_json(workload: Workload) -> dict[str, Any]:
    """A plain document; ``workload_from_json`` gives the same workload back. What is unknown is left out.

    The graph of a measured step stays out: it is the capture's, and no figure of the job.
    """
    document: dict[str, Any] = _plain(workload)
    return document


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        items = ((item.name, getattr(value, item.name)) for item in fields(value))
        return {name: _plain(item) for name, item in items if item is not None and not isinstance(item, StepGraph)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, StrEnum) else value
