"""A transformer's matrix products, parameters and traffic, counted from its shape."""

from dataclasses import dataclass
from math import ceil

from profiling.workload import Mode, ModelShape, Workload

_FFN_MULTIPLE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One weight of a layer: tokens x ``k`` times ``k`` x ``n``.

    Tensor parallelism divides ``n`` (``split`` = "n"), ``k`` ("k") or neither ("").
    """

    n: int
    k: int
    split: str = ""

    @property
    def weights(self) -> int:
        return self.n * self.k


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A shape with its gaps filled.

    ``query_width``, ``value_width``: all query heads and all value heads together; ``kv_width``: all key heads.
    ``kv_values``: values that one token leaves in one layer's cache. ``up_width``: columns of the first MLP product
    (twice the FFN where gated). ``dense_parameters`` + ``expert_parameters`` (routed experts) = ``parameters``.
    ``attention``, ``mlp``, ``shared``, ``expert``: the weights of a layer; ``expert`` is one routed expert.
    """

    layers: int
    moe_layers: int
    hidden: int
    heads: int
    head_dim: int
    value_head_dim: int
    query_width: int
    kv_width: int
    value_width: int
    kv_values: int
    ffn: int
    up_width: int
    vocabulary: int
    sequence: int
    gated: bool
    causal: bool
    window: int
    windowed_layers: int
    experts: int
    experts_per_token: int
    attention: tuple[Product, ...]
    mlp: tuple[Product, ...]
    shared: tuple[Product, ...]
    expert: tuple[Product, ...]
    dense_parameters: float
    expert_parameters: float

    @property
    def parameters(self) -> float:
        return self.dense_parameters + self.expert_parameters

    @property
    def dense_layers(self) -> int:
        """Layers with a dense MLP."""
        return self.layers - self.moe_layers

    def context(self, sequence: float) -> float:
        """Tokens that a query sees, summed over the layers and averaged over the queries of a sequence."""
        seen = sequence / 2 if self.causal else sequence
        window = min(self.window, sequence) if self.window else sequence
        near = window - window**2 / (2 * sequence) if self.causal else window
        return (self.layers - self.windowed_layers) * seen + self.windowed_layers * min(near, seen)


def counted(shape: ModelShape, parameters: float | None = None) -> Counted:
    """Fills what the shape leaves open: FFN 4h (where gated 8h/3, up to the next 256), one KV head per head."""
    head_dim = shape.head_dim or shape.hidden // shape.heads
    value_dim = shape.value_head_dim or head_dim
    kv_heads = shape.kv_heads or shape.heads
    gated_ffn = ceil(8 * shape.hidden / 3 / _FFN_MULTIPLE) * _FFN_MULTIPLE
    ffn = shape.ffn_hidden or (gated_ffn if shape.gated_mlp else 4 * shape.hidden)
    experts = shape.experts or 0
    moe_layers = shape.layers - min(shape.dense_layers, shape.layers) if experts else 0
    attention = _attention_products(shape, head_dim, value_dim, kv_heads)
    mlp, shared = _mlp(shape, ffn), _mlp(shape, shape.shared_expert_ffn)
    expert = _mlp(shape, shape.expert_ffn or ffn) if experts else ()
    expert_parameters = float(moe_layers * experts * _weights(expert))
    given = parameters or shape.parameters
    implied = _dense_parameters(shape, moe_layers, attention, mlp, shared)
    return Counted(
        layers=shape.layers,
        moe_layers=moe_layers,
        hidden=shape.hidden,
        heads=shape.heads,
        head_dim=head_dim,
        value_head_dim=value_dim,
        query_width=shape.heads * head_dim,
        kv_width=kv_heads * head_dim,
        value_width=shape.heads * value_dim,
        kv_values=shape.kv_latent or kv_heads * (head_dim + value_dim),
        ffn=ffn,
        up_width=ffn * (2 if shape.gated_mlp else 1),
        vocabulary=shape.vocabulary,
        sequence=shape.sequence_length,
        gated=shape.gated_mlp,
        causal=shape.causal,
        window=shape.attention_window or 0,
        windowed_layers=min(shape.windowed_layers, shape.layers) if shape.attention_window else 0,
        experts=experts,
        experts_per_token=min(shape.experts_per_token or 1, experts) if experts else 0,
        attention=attention,
        mlp=mlp,
        shared=shared,
        expert=expert,
        dense_parameters=max(given - expert_parameters, 0.0) if given else implied,
        expert_parameters=min(expert_parameters, given) if given else expert_parameters,
    )


def _attention_products(shape: ModelShape, head_dim: int, value_dim: int, kv_heads: int) -> tuple[Product, ...]:
    queries, values = shape.heads * head_dim, shape.heads * value_dim
    out = Product(n=shape.hidden, k=values, split="k")
    if shape.kv_latent is None:
        return Product(n=queries + kv_heads * (head_dim + value_dim), k=shape.hidden, split="n"), out
    positional = max(head_dim - value_dim, 0)
    latent = shape.query_latent
    down = (Product(n=latent, k=shape.hidden),) if latent else ()
    return (
        *down,
        Product(n=queries, k=latent or shape.hidden, split="n"),
        Product(n=shape.kv_latent, k=shape.hidden),
        Product(n=shape.heads * (head_dim - positional + value_dim), k=shape.kv_latent - positional, split="n"),
        out,
    )


def _mlp(shape: ModelShape, ffn: int) -> tuple[Product, ...]:
    if not ffn:
        return ()
    up = ffn * (2 if shape.gated_mlp else 1)
    return Product(n=up, k=shape.hidden, split="n"), Product(n=shape.hidden, k=ffn, split="k")


def _weights(products: tuple[Product, ...]) -> int:
    return sum(one.weights for one in products)


def _dense_parameters(
    shape: ModelShape,
    moe_layers: int,
    attention: tuple[Product, ...],
    mlp: tuple[Product, ...],
    shared: tuple[Product, ...],
) -> float:
    """All but the routed experts; gated models of today keep a second, untied embedding unless told otherwise."""
    tied = not shape.gated_mlp if shape.tied_embeddings is None else shape.tied_embeddings
    every = _weights(attention) + 2 * shape.hidden
    sparse = _weights(shared) + (shape.experts or 0) * shape.hidden
    embeddings = (1 if tied else 2) * shape.vocabulary * shape.hidden
    dense = (shape.layers - moe_layers) * _weights(mlp)
    return float(shape.layers * every + dense + moe_layers * sparse + embeddings)


def parameter_count(workload: Workload) -> float | None:
    """Parameters of the job's model, None where neither the description nor the shape says."""
    if workload.parameters is not None:
        return workload.parameters
    if workload.totals is not None:
        return workload.totals.parameters
    return None if workload.model is None else counted(workload.model).parameters


def bytes_per_value(precision: str) -> int:
    """Size of a gradient or activation value: 4 in fp32 and tf32, else 2 (fp8 jobs keep 16-bit activations)."""
    return 4 if precision in ("fp32", "tf32") else 2


def model_flops(workload: Workload, samples: float) -> float | None:
    """FLOPs of the products and of attention that ``samples`` need, None for a job known by its capture alone.

    Nothing that is done twice counts: no recomputation. Inference needs the logits of the last token alone; a base that
    is frozen under adapters needs no gradients of its weights.
    """
    training = workload.mode is Mode.TRAINING
    if workload.totals is not None:
        return (3 if training else 1) * workload.totals.flops_per_sample * samples
    if workload.model is None:
        return None
    shape = counted(workload.model)
    sequence = shape.sequence
    routed = shape.experts_per_token * _weights(shape.expert) + _weights(shape.shared) + shape.experts * shape.hidden
    weights = shape.layers * _weights(shape.attention) + shape.dense_layers * _weights(shape.mlp)
    weights += shape.moe_layers * routed
    scores = 2 * sequence * shape.context(sequence) * (shape.query_width + shape.value_width)
    logits = 2 * shape.hidden * shape.vocabulary * (sequence if training else 1)
    products = 2 * weights * sequence + logits
    of_products = 1 if not training else 3 if workload.lora_rank is None else 2
    return (of_products * products + (3 if training else 1) * scores) * samples
