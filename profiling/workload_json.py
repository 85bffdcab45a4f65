"""A workload as a plain JSON document, and back, strictly: the form, the API and ``--workload FILE.json`` use it.

What a document may say is one table of fields. Whatever is not in it, has another type, or cannot be true is refused
with the place (``/model/layers``) and a code; the sentence for the code is in ``profiling.messages``.
``docs/workload.md`` describes the document.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Any

from profiling.field_readers import LONGEST_TEXT, boolean_field, choice_field, number_field, text_field, whole_field
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
from profiling.workload_checks import check_workload
from profiling.workload_errors import WorkloadCode, WorkloadError

PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
_MOST_ITEMS = 200


@dataclass(frozen=True, slots=True)
class _Field:
    read: Callable[[Any, str], Any]
    required: bool = False


def _enum(kind: type[StrEnum]) -> Callable[[Any, str], StrEnum]:
    choice = choice_field(*(member.value for member in kind))
    return lambda value, pointer: kind(choice(value, pointer))


def _record(kind: type, table: Mapping[str, _Field]) -> Callable[[Any, str], Any]:
    """Reads an object with exactly these fields into ``kind``; null stands for a missing optional field."""
    unknown_by_default = {item.name: None for item in fields(kind) if item.default is MISSING}

    def read(value: Any, pointer: str) -> Any:
        if not isinstance(value, Mapping):
            raise WorkloadError(WorkloadCode.NOT_AN_OBJECT, pointer)
        unknown = next((name for name in value if name not in table), None)
        if unknown is not None:
            name = "".join(character for character in str(unknown) if character.isprintable())[:LONGEST_TEXT]
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


_SECONDS = number_field(0.0, 1e6)
_STEP_SECONDS = number_field(1e-7, 1e6)
_COUNT = number_field(0.0, 1e12)
_BYTES = number_field(1.0, 1e15)

_MODEL = _record(
    ModelShape,
    {
        "layers": _Field(whole_field(1, 10_000), required=True),
        "hidden": _Field(whole_field(8, 1_000_000), required=True),
        "heads": _Field(whole_field(1, 10_000), required=True),
        "vocabulary": _Field(whole_field(2, 100_000_000), required=True),
        "sequence_length": _Field(whole_field(1, 100_000_000), required=True),
        "kv_heads": _Field(whole_field(1, 10_000)),
        "ffn_hidden": _Field(whole_field(1, 10_000_000)),
        "gated_mlp": _Field(boolean_field),
        "parameters": _Field(number_field(1.0, 1e14)),
        "head_dim": _Field(whole_field(1, 100_000)),
        "value_head_dim": _Field(whole_field(1, 100_000)),
        "kv_latent": _Field(whole_field(1, 1_000_000)),
        "query_latent": _Field(whole_field(1, 1_000_000)),
        "causal": _Field(boolean_field),
        "attention_window": _Field(whole_field(1, 100_000_000)),
        "windowed_layers": _Field(whole_field(0, 10_000)),
        "tied_embeddings": _Field(boolean_field),
        "experts": _Field(whole_field(1, 100_000)),
        "experts_per_token": _Field(whole_field(1, 100_000)),
        "expert_ffn": _Field(whole_field(1, 10_000_000)),
        "shared_expert_ffn": _Field(whole_field(0, 10_000_000)),
        "dense_layers": _Field(whole_field(0, 10_000)),
    },
)
_TOTALS = _record(
    ModelTotals,
    {
        "family": _Field(text_field, required=True),
        "parameters": _Field(number_field(1.0, 1e14), required=True),
        "flops_per_sample": _Field(number_field(1.0, 1e21), required=True),
        "traffic_bytes_per_sample": _Field(number_field(0.0, 1e17), required=True),
        "kernels_per_pass": _Field(whole_field(1, 10_000_000), required=True),
        "activation_bytes_per_sample": _Field(number_field(0.0, 1e15), required=True),
        "embedding_parameters": _Field(number_field(0.0, 1e14)),
        "embedding_values_per_sample": _Field(number_field(0.0, 1e12)),
    },
)
_ANCHOR = _record(
    Anchor,
    {
        "accelerator_key": _Field(text_field, required=True),
        "gpus": _Field(whole_field(1, 100_000), required=True),
        "step_s": _Field(_STEP_SECONDS, required=True),
        "batch_per_step": _Field(number_field(1.0, 1e9), required=True),
        "micro_batch": _Field(whole_field(1, 1_000_000)),
    },
)
_INPUT = _record(
    InputPipeline,
    {
        "cpu_s_per_sample": _Field(number_field(0.0, 1e5)),
        "bytes_per_sample": _Field(number_field(0.0, 1e13)),
    },
)
_KERNEL = _record(
    KernelWork,
    {
        "kernel_class": _Field(_enum(KernelClass), required=True),
        "busy_s": _Field(_SECONDS, required=True),
        "launches": _Field(_COUNT, required=True),
        "flops": _Field(number_field(0.0, 1e24)),
        "bytes": _Field(number_field(0.0, 1e18)),
    },
)
_COLLECTIVE = _record(
    CollectiveWork,
    {
        "kind": _Field(_enum(CollectiveKind), required=True),
        "calls": _Field(_COUNT, required=True),
        "message_bytes": _Field(_BYTES),
        "group_size": _Field(whole_field(1, 1_000_000)),
        "busy_s": _Field(_SECONDS, required=True),
        "exposed_s": _Field(_SECONDS, required=True),
    },
)
_MEASURED = _record(
    MeasuredStep,
    {
        "device_name": _Field(text_field),
        "accelerator_key": _Field(text_field),
        "gpu_count": _Field(whole_field(1, 1_000_000), required=True),
        "step_s": _Field(_STEP_SECONDS, required=True),
        "idle_s": _Field(_SECONDS, required=True),
        "kernels": _Field(_list(_KERNEL), required=True),
        "collectives": _Field(_list(_COLLECTIVE), required=True),
        "steps_observed": _Field(whole_field(1, 10_000_000)),
        "waiting_s": _Field(_SECONDS),
        "host_launches": _Field(_COUNT),
        "late_launch_s": _Field(_SECONDS),
    },
)
_WORKLOAD = _record(
    Workload,
    {
        "name": _Field(text_field, required=True),
        "mode": _Field(_enum(Mode), required=True),
        "precision": _Field(choice_field(*PRECISIONS), required=True),
        "batch_per_step": _Field(number_field(1.0, 1e9), required=True),
        "micro_batch": _Field(whole_field(1, 1_000_000)),
        "model": _Field(_MODEL),
        "parameters": _Field(number_field(1.0, 1e14)),
        "measured": _Field(_MEASURED),
        "peak_memory_bytes": _Field(_BYTES),
        "recompute_activations": _Field(boolean_field),
        "flash_attention": _Field(boolean_field),
        "totals": _Field(_TOTALS),
        "anchor": _Field(_ANCHOR),
        "output_tokens": _Field(whole_field(0, 10_000_000)),
        "lora_rank": _Field(whole_field(1, 100_000)),
        "weight_bits": _Field(whole_field(1, 32)),
        "gradient_bits": _Field(whole_field(1, 32)),
        "stack": _Field(text_field),
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
    check_workload(workload)
    return workload


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
