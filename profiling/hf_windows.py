"""Sliding windows as Hugging Face configurations write them: how many tokens a query sees, in how many layers."""

from collections.abc import Callable
from math import ceil
from typing import Any, Protocol

from profiling.field_readers import whole_field

_TOKENS = whole_field(1, 100_000_000)
_NEAR = ("sliding_attention", "chunked_attention", "local_attention")
_MOST_LAYERS = 10_000


class Fields(Protocol):
    """What is needed of the configuration."""

    prefix: str

    def raw(self, name: str) -> Any: ...

    def whole(self, name: str, reader: Any = ...) -> int | None: ...


def windows_of(read: Fields, model_type: str, layers: int) -> dict[str, int | None]:
    """Fields of ModelShape; nothing where every query sees all."""
    if read.raw("index_topk"):  # DeepSeek sparse attention: each query sees that many tokens, in every layer
        return {"attention_window": read.whole("index_topk", _TOKENS), "windowed_layers": layers}
    names = ("sliding_window", "attention_chunk_size", "local_attention", "window_size")
    window = next((read.whole(name, _TOKENS) for name in names if read.raw(name)), None)
    near = _windowed_layers(read, model_type, layers)
    if window is None or not near:
        return {}
    return {"attention_window": window, "windowed_layers": near}


def _windowed_layers(read: Fields, model_type: str, layers: int) -> int:
    kinds = read.raw("layer_types")
    if isinstance(kinds, list) and len(kinds) <= _MOST_LAYERS:
        return min(sum(1 for kind in kinds if kind in _NEAR), layers)
    if read.raw("use_sliding_window") is False:
        return 0
    rule = _RULES.get(model_type)
    return rule(read, layers) if rule else 0


def _all(read: Fields, layers: int) -> int:
    return layers


def _every_second(read: Fields, layers: int) -> int:
    return ceil(layers / 2)


def _all_but_every(name: str, usual: int) -> Callable[[Fields, int], int]:
    """Each n-th layer sees everything, counted from the end of each group."""
    return lambda read, layers: layers - layers // (read.whole(name, whole_field(1, 1000)) or usual)


def _from_a_layer(read: Fields, layers: int) -> int:
    """Qwen: layers from ``max_window_layers`` on, and only where it says so."""
    if read.raw("use_sliding_window") is not True:
        return 0
    return max(0, layers - (read.whole("max_window_layers", whole_field(0, _MOST_LAYERS)) or 0))


def _modernbert(read: Fields, layers: int) -> int:
    every = read.whole("global_attn_every_n_layers", whole_field(1, 1000)) or 3
    return layers - ceil(layers / every)


_RULES: dict[str, Callable[[Fields, int], int]] = {
    **dict.fromkeys(("mistral", "mixtral", "ministral", "phi3", "phimoe", "starcoder2"), _all),
    **dict.fromkeys(("gemma2", "gpt_oss"), _every_second),
    **dict.fromkeys(("gemma3", "gemma3_text"), _all_but_every("sliding_window_pattern", 6)),
    **dict.fromkeys(("cohere2", "olmo3", "exaone4"), _all_but_every("sliding_window_pattern", 4)),
    **dict.fromkeys(("llama4", "llama4_text"), _all_but_every("no_rope_layer_interval", 4)),
    **dict.fromkeys(("qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen2_vl", "qwen2_5_vl"), _from_a_layer),
    "modernbert": _modernbert,
}
