"""What the fields of a workload document may not say together, though each alone could be true."""

from profiling.workload import MeasuredStep, Mode, ModelShape, ModelTotals, Workload
from profiling.workload_errors import WorkloadCode, WorkloadError

_ROUNDING = 1.02
# Below this, weights cannot be trained themselves: QLoRA (2305.14314) keeps them frozen under adapters.
_FEWEST_TRAINED_BITS = 8


def check_workload(workload: Workload) -> None:
    """WorkloadError names the first contradiction and where it is."""
    if workload.model is not None and workload.totals is not None:
        raise WorkloadError(WorkloadCode.MODEL_AND_TOTALS, "/totals")
    if workload.model is not None:
        check_model(workload.model)
    if workload.totals is not None:
        _check_totals(workload.totals)
    if workload.measured is not None:
        _check_measured(workload.measured)
    if workload.micro_batch is not None and workload.micro_batch > workload.batch_per_step:
        raise _above("/micro_batch", workload.batch_per_step)
    anchor = workload.anchor
    if anchor is not None and anchor.micro_batch is not None and anchor.micro_batch > anchor.batch_per_step:
        raise _above("/anchor/micro_batch", anchor.batch_per_step)
    _check_mode(workload)


def _above(pointer: str, batch: float) -> WorkloadError:
    return WorkloadError(WorkloadCode.OUT_OF_RANGE, pointer, low=1, high=f"{batch:,.10g}")


def _check_mode(workload: Workload) -> None:
    """Answers belong to inference, adapters and gradients to training."""
    training = workload.mode is Mode.TRAINING
    if training and workload.output_tokens:
        raise WorkloadError(WorkloadCode.NOT_IN_MODE, "/output_tokens", mode=Mode.INFERENCE.value)
    if workload.output_tokens and workload.model is None:
        raise WorkloadError(WorkloadCode.NEEDS_FIELD, "/output_tokens", other="model")
    for name in ("lora_rank", "gradient_bits"):
        if not training and getattr(workload, name) is not None:
            raise WorkloadError(WorkloadCode.NOT_IN_MODE, f"/{name}", mode=Mode.TRAINING.value)
    bits = workload.weight_bits
    if training and workload.lora_rank is None and bits is not None and bits < _FEWEST_TRAINED_BITS:
        raise WorkloadError(WorkloadCode.NEEDS_FIELD, "/weight_bits", other="lora_rank")


def check_model(model: ModelShape) -> None:
    """Widths that divide, windows and experts that say all they need."""
    if model.head_dim is None and model.hidden % model.heads:
        raise WorkloadError(WorkloadCode.NOT_DIVISIBLE, "/model/hidden", by="heads")
    if model.kv_heads is not None and model.heads % model.kv_heads:
        raise WorkloadError(WorkloadCode.NOT_DIVISIBLE, "/model/heads", by="kv_heads")
    _check_attention(model)
    _check_experts(model)


def _check_attention(model: ModelShape) -> None:
    if model.query_latent is not None and model.kv_latent is None:
        raise WorkloadError(WorkloadCode.NEEDS_FIELD, "/model/query_latent", other="kv_latent")
    if model.windowed_layers and model.attention_window is None:
        raise WorkloadError(WorkloadCode.NEEDS_FIELD, "/model/windowed_layers", other="attention_window")
    if model.attention_window is not None and not model.windowed_layers:
        raise WorkloadError(WorkloadCode.NEEDS_FIELD, "/model/attention_window", other="windowed_layers")
    _at_most(model, "windowed_layers", "layers")
    head = model.head_dim or model.hidden // model.heads
    positional = head - (model.value_head_dim or head)
    if model.kv_latent is not None and model.kv_latent <= positional:
        raise WorkloadError(WorkloadCode.EXCEEDS, "/model/head_dim", other="value_head_dim + kv_latent")


def _check_experts(model: ModelShape) -> None:
    """A mixture of experts says how many there are, how many a token takes, and how wide one is."""
    if model.experts is None:
        for name in ("experts_per_token", "expert_ffn", "shared_expert_ffn", "dense_layers"):
            if getattr(model, name):
                raise WorkloadError(WorkloadCode.NEEDS_FIELD, f"/model/{name}", other="experts")
        return
    for name in ("experts_per_token", "expert_ffn"):
        if getattr(model, name) is None:
            raise WorkloadError(WorkloadCode.NEEDS_FIELD, "/model/experts", other=name)
    _at_most(model, "experts_per_token", "experts")
    _at_most(model, "dense_layers", "layers")


def _at_most(model: ModelShape, name: str, other: str) -> None:
    if getattr(model, name) > getattr(model, other):
        raise WorkloadError(WorkloadCode.EXCEEDS, f"/model/{name}", other=other)


def _check_totals(totals: ModelTotals) -> None:
    if totals.embedding_parameters > totals.parameters:
        raise WorkloadError(WorkloadCode.EXCEEDS, "/totals/embedding_parameters", other="parameters")
    if bool(totals.embedding_parameters) != bool(totals.embedding_values_per_sample):
        given, other = "embedding_parameters", "embedding_values_per_sample"
        if not totals.embedding_parameters:
            given, other = other, given
        raise WorkloadError(WorkloadCode.NEEDS_FIELD, f"/totals/{given}", other=other)


def _check_measured(step: MeasuredStep) -> None:
    """Parts of a step never add up to more than the step."""
    for place, work in enumerate(step.collectives):
        if work.exposed_s > work.busy_s * _ROUNDING:
            raise WorkloadError(WorkloadCode.PARTS_EXCEED_STEP, f"/measured/collectives/{place}/exposed_s")
    parts = sum(work.busy_s for work in step.kernels) + sum(work.exposed_s for work in step.collectives)
    if parts + step.idle_s > step.step_s * _ROUNDING:
        raise WorkloadError(WorkloadCode.PARTS_EXCEED_STEP, "/measured/step_s")
