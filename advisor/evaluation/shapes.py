"""The model of a row: the row's own columns over what is known of a model of that name."""

import re
from dataclasses import replace

from advisor.evaluation.refusals import Reason, RowRefused
from advisor.evaluation.rows import MeasuredRow
from profiling.known_models import dense_shape_for, find_model
from profiling.workload import ModelShape, ModelTotals

TRANSFORMERS = ("transformer-decoder", "transformer-encoder", "transformer-encdec", "transformer-other", "moe")
_HYBRID = re.compile(
    r"mamba|state.space|\bssm\b|rwkv|jamba|zamba|bamba|falcon.?h|granite.?4|nemotron.?(?:3|h)\b|nemotron_3|qwen3.?next",
    re.IGNORECASE,
)
"""Models whose layers are not all attention and MLP, by name."""
_USUAL_VOCABULARY = 50_304
_USUAL_HEAD = 128
_FINE_ENOUGH = 2_000
"""Entries of a vocabulary that the rounding of a parameter count may blur."""


def model_of(row: MeasuredRow) -> ModelShape | ModelTotals:
    """The model with what the row says put over it. Raises RowRefused where shape or totals cannot be known."""
    known = find_model(row.model)
    if isinstance(known, ModelTotals):
        return known
    if known is None and _HYBRID.search(f"{row.model} {row.flags}"):
        raise RowRefused(Reason.STATE_SPACE_LAYERS)
    if known is None and row.family not in TRANSFORMERS:
        raise RowRefused(Reason.SHAPE_UNKNOWN)
    shape = _with_row(known, row) if known else _stated(row)
    if shape.head_dim is None and shape.heads > shape.hidden:
        raise RowRefused(Reason.SHAPE_UNKNOWN)
    return shape


def layer_count(text: str) -> int | None:
    """``32``, or ``6+6`` for an encoder and a decoder."""
    numbers = re.findall(r"\d+", text)
    return sum(map(int, numbers)) or None


def sequence_length(text: str) -> int | None:
    """Tokens of a sequence; of ``prompt/answer`` the prompt."""
    number = re.match(r"\d+", text)
    return int(number.group()) or None if number else None


def _with_row(known: ModelShape, row: MeasuredRow) -> ModelShape:
    own = {"layers": layer_count(row.layers), "hidden": row.hidden, "heads": row.heads, "kv_heads": row.kv_heads}
    own |= {"vocabulary": row.vocab, "sequence_length": sequence_length(row.seq_len)}
    if known.experts is None:
        own["ffn_hidden"] = row.ffn
    stated = {name: value for name, value in own.items() if value}
    shape = replace(known, **stated)
    if all(getattr(shape, name) == getattr(known, name) for name in ("layers", "hidden", "vocabulary")):
        return shape
    return replace(shape, parameters=None, dense_layers=min(known.dense_layers, shape.layers))


def _stated(row: MeasuredRow) -> ModelShape:
    """A transformer from the columns alone."""
    layers, hidden = layer_count(row.layers), row.hidden
    if not layers or not hidden:
        return _of_usual_proportions(row)
    heads = row.heads or max(1, round(hidden / _USUAL_HEAD))
    experts, chosen = _experts(row)
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        vocabulary=row.vocab or _vocabulary(row, layers, hidden) or _USUAL_VOCABULARY,
        sequence_length=sequence_length(row.seq_len) or 0,
        kv_heads=row.kv_heads,
        ffn_hidden=row.ffn,
        gated_mlp=_is_gated(row, hidden),
        causal=row.family != "transformer-encoder",
        experts=experts,
        experts_per_token=chosen,
        expert_ffn=row.ffn if experts else None,
    )


def _vocabulary(row: MeasuredRow, layers: int, hidden: int) -> int | None:
    """What the stated parameter count leaves for one embedding, where it is stated finely enough to say."""
    if not row.params_b or row.experts_topk:
        return None
    decimals = len(f"{row.params_b:f}".rstrip("0").partition(".")[2])
    if 0.5e9 / 10**decimals / hidden > _FINE_ENOUGH:
        return None
    ffn = row.ffn or 4 * hidden
    matrices = 3 if _is_gated(row, hidden) else 2
    left = row.params_b * 1e9 - layers * (4 * hidden**2 + matrices * hidden * ffn)
    return max(round(left / hidden), 0) or None


def _experts(row: MeasuredRow) -> tuple[int | None, int | None]:
    """``128/8``: experts of a layer and those of each token."""
    numbers = [int(number) for number in re.findall(r"\d+", row.experts_topk)]
    if row.family == "moe" and (len(numbers) < 2 or not row.ffn):
        raise RowRefused(Reason.SHAPE_UNKNOWN)
    return (numbers[0], numbers[1]) if len(numbers) > 1 else (None, None)


def _is_gated(row: MeasuredRow, hidden: int) -> bool:
    """Plain MLPs are four times as wide as the model; gated ones, with three matrices, are not."""
    return row.ffn is not None and row.ffn != 4 * hidden


def _of_usual_proportions(row: MeasuredRow) -> ModelShape:
    """A dense decoder of which only the size is told."""
    named = re.search(r"(\d+(?:\.\d+)?)\s*b\b", row.model.lower())
    billions = row.params_b or (float(named.group(1)) if named else 0.0)
    shape = dense_shape_for(billions * 1e9) if row.family == "transformer-decoder" and billions else None
    if shape is None:
        raise RowRefused(Reason.SHAPE_UNKNOWN)
    stated = {"vocabulary": row.vocab, "sequence_length": sequence_length(row.seq_len) or 0}
    return replace(shape, **{name: value for name, value in stated.items() if value is not None})
