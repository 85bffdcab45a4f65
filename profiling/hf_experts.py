"""Experts as Hugging Face configurations write them: how many, how many a token takes, how wide, in which layers."""

from typing import Any, Protocol

from profiling.field_readers import whole_field

_EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts", "ffn_config/moe_num_experts")
_CHOSEN = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "moe_topk",
    "moe_k",
    "ffn_config/moe_top_k",
)
_WIDTH = ("moe_intermediate_size", "intermediate_size", "ffn_config/ffn_hidden_size")
_COUNT, _FFN = whole_field(1, 100_000), whole_field(1, 10_000_000)


class Fields(Protocol):
    """What is needed of the configuration."""

    prefix: str

    def raw(self, name: str) -> Any: ...


def experts_of(read: Fields, layers: int) -> dict[str, int | None]:
    """Fields of ModelShape; nothing for a dense model."""
    experts = _first(read, _EXPERTS, _COUNT)
    if experts is None or experts == 1:
        return {}
    width = _first(read, _WIDTH, _FFN)
    return {
        "experts": experts,
        "experts_per_token": _first(read, _CHOSEN, _COUNT),
        "expert_ffn": width,
        "shared_expert_ffn": _shared(read, width or 0),
        "dense_layers": _dense_layers(read, layers),
    }


def _first(read: Fields, names: tuple[str, ...], reader: Any) -> int | None:
    """The first that the file states; a list (one value a layer) stands for its largest."""
    for name in names:
        value = read.raw(name)
        if isinstance(value, list) and value and all(isinstance(item, int) for item in value):
            value = max(value)
        if value:
            number: int = reader(value, f"{read.prefix}/{name}")
            return number
    return None


def _shared(read: Fields, width: int) -> int:
    """Width of what every token passes through besides its experts."""
    stated = _first(read, ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"), _FFN)
    if stated is not None:
        return stated
    if read.raw("intermediate_size_mlp"):
        return width  # Llama 4: one shared expert as wide as a routed one
    shared = _first(
        read, ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"), _COUNT
    )
    return (shared or 0) * width


def _dense_layers(read: Fields, layers: int) -> int:
    """Layers without experts, wherever they lie: the shape counts them as the first ones."""
    first = _first(read, ("first_k_dense_replace", "moe_layer_start_index"), _COUNT) or 0
    every = _first(read, ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq"), _COUNT) or 1
    pattern = read.raw("moe_layer_freq")
    if isinstance(pattern, list):
        return min(sum(1 for item in pattern if not item), layers)
    named = read.raw("mlp_only_layers")
    dense = layers - (layers - first) // every if every > 1 else first
    return min(dense + (len(named) if isinstance(named, list) else 0), layers)
