"""A transformer's matrix products, parameters and traffic, counted from its shape."""

from dataclasses import dataclass
from math import ceil

from profiling.workload import Mode, ModelShape, Workload

_FFN_MULTIPLE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A shape with its gaps filled. ``up_width``: columns of the first MLP product (twice the FFN where gated)."""

    layers: int
    hidden: int
    heads: int
    kv_width: int
    ffn: int
    up_width: int
    vocabulary: int
    sequence: int
    gated: bool
    parameters: float


def counted(shape: ModelShape, parameters: float | None = None) -> Counted:
    """Fills what the shape leaves open: FFN 4h (where gated 8h/3, up to the next 256), one KV head per head."""
    gated_ffn = ceil(8 * shape.hidden / 3 / _FFN_MULTIPLE) * _FFN_MULTIPLE
    ffn = shape.ffn_hidden or (gated_ffn if shape.gated_mlp else 4 * shape.hidden)
    kv_width = shape.hidden * (shape.kv_heads or shape.heads) // shape.heads
    up_width = ffn * (2 if shape.gated_mlp else 1)
    return Counted(
        layers=shape.layers,
        hidden=shape.hidden,
        heads=shape.heads,
        kv_width=kv_width,
        ffn=ffn,
        up_width=up_width,
        vocabulary=shape.vocabulary,
        sequence=shape.sequence_length,
        gated=shape.gated_mlp,
        parameters=parameters or shape.parameters or _implied(shape, kv_width, ffn, up_width),
    )


def _implied(shape: ModelShape, kv_width: int, ffn: int, up_width: int) -> float:
    """Weights of the products and the embedding; gated models of today keep a second, untied one."""
    hidden = shape.hidden
    layer = hidden * (hidden + 2 * kv_width) + hidden * hidden + hidden * up_width + ffn * hidden + 2 * hidden
    embeddings = (2 if shape.gated_mlp else 1) * shape.vocabulary * hidden
    return float(shape.layers * layer + embeddings)


def parameter_count(workload: Workload) -> float | None:
    """Parameters of the job's model, None where neither the description nor the shape says."""
    if workload.parameters is not None or workload.model is None:
        return workload.parameters
    return counted(workload.model).parameters


def bytes_per_value(precision: str) -> int:
    """Size of a gradient or activation value: 4 in fp32 and tf32, else 2 (fp8 jobs keep 16-bit activations)."""
    return 4 if precision in ("fp32", "tf32") else 2


def model_flops(workload: Workload, samples: float) -> float | None:
    """FLOPs of the products and of causal attention that ``samples`` need, None without a shape.

    Nothing that is done twice counts: no recomputation. Inference needs the logits of the last token alone.
    """
    if workload.model is None:
        return None
    shape = counted(workload.model)
    training = workload.mode is Mode.TRAINING
    weights = shape.hidden * (2 * shape.hidden + 2 * shape.kv_width + shape.up_width + shape.ffn)
    layer = 2 * weights * shape.sequence + 2 * shape.sequence**2 * shape.hidden
    logits = 2 * shape.hidden * shape.vocabulary * (shape.sequence if training else 1)
    return (3 if training else 1) * (shape.layers * layer + logits) * samples
