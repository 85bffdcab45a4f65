"""What training keeps for the backward pass, and what the backward pass needs on top of it.

Bytes a token and layer, counted from what the products, norms and attention of a fused implementation save
(Korthikanti et al., 2205.05198, section 4: 34 h for GPT with two dropout masks; without dropout 32 h here). With
sequence parallelism everything that a layer keeps is divided over the tensor-parallel ranks.
"""

from dataclasses import dataclass

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates
from advisor.engine.collectives import Floats
from advisor.engine.memory_stages import Stage, Weights
from advisor.engine.memory_states import held_experts, layer_weights
from advisor.engine.shapes import Counted, bytes_per_value
from advisor.engine.stacks import UNTOLD, stack_of
from profiling.workload import Workload

_FUSED_LOSS = "megatron-core"
_ROUTER_BYTES = 8.0
"""A token and expert: logits and their softmax in fp32 (Megatron-Core's router)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Bytes of one micro-batch on one rank: a layer with a dense MLP, one with experts, and a layer's input alone."""

    dense: Floats
    moe: Floats
    layer_input: Floats


def tokens_of(shape: Counted, candidates: Candidates) -> Floats:
    """Tokens of one micro-batch on one context-parallel rank."""
    return candidates.micro_batch * shape.sequence / candidates.cp


def activation_bytes(workload: Workload, shape: Counted, stage: Stage, candidates: Candidates) -> Floats:
    """Bytes kept by all micro-batches in flight; recomputation keeps the inputs of layers and one layer at work."""
    kept = _kept(workload, shape, candidates)
    layers = stage.dense_layers * kept.dense + stage.moe_layers * kept.moe
    largest = np.maximum(
        np.where(stage.dense_layers > 0, kept.dense, 0.0), np.where(stage.moe_layers > 0, kept.moe, 0.0)
    )
    inputs = stage.in_flight * stage.layers * kept.layer_input + largest
    return np.where(candidates.recompute > 0, np.minimum(inputs, stage.in_flight * layers), stage.in_flight * layers)


def _kept(workload: Workload, shape: Counted, candidates: Candidates) -> Kept:
    value = bytes_per_value(workload.precision)
    tokens = tokens_of(shape, candidates) / candidates.tp
    shared = 2 * shape.hidden + attention_values(shape, candidates)
    scores = _score_bytes(workload, shape, candidates, tokens)
    dense = value * tokens * (shared + shape.hidden + shape.up_width + shape.ffn) + scores
    moe = value * tokens * (shared + shape.hidden + expert_values(shape)) + scores
    moe = moe + _ROUTER_BYTES * tokens * shape.experts
    return Kept(dense=dense, moe=moe, layer_input=value * tokens * shape.hidden)


def attention_values(shape: Counted, candidates: Candidates) -> Floats:
    """Values a token that attention keeps, to be divided by ``tp``: its normed input, q, k, v, output, latents.

    Keys and values of fewer heads than ranks lie on several ranks.
    """
    kv_heads = max(shape.kv_width // shape.head_dim, 1)
    copies = np.maximum(candidates.tp / kv_heads, 1.0)
    keys_and_values = shape.kv_width + kv_heads * shape.value_head_dim
    latents = 2 * sum(product.n for product in shape.attention if not product.split)
    return shape.hidden + shape.query_width + copies * keys_and_values + shape.value_width + latents


def expert_values(shape: Counted) -> float:
    """Values a token that the experts keep: each of its copies as dispatched and within the MLP, the shared ones."""
    if not shape.experts:
        return 0.0
    routed = shape.hidden + sum(product.n if product.split == "n" else product.k for product in shape.expert)
    always = sum(product.n if product.split == "n" else product.k for product in shape.shared)
    return float(shape.experts_per_token * routed + always)


def _score_bytes(workload: Workload, shape: Counted, candidates: Candidates, tokens: Floats) -> Floats | float:
    """Attention that is not fused keeps its scores, 5 bytes each (2205.05198), unless it is computed again."""
    if workload.flash_attention:
        return 0.0
    wide = bytes_per_value(workload.precision) / 2
    return np.where(candidates.recompute_attention > 0, 0.0, 5 * wide * shape.heads * shape.sequence * tokens)


def working_bytes(workload: Workload, shape: Counted, weights: Weights, stage: Stage, candidates: Candidates) -> Floats:
    """What the backward pass of one layer, or the loss, needs beyond what is kept."""
    value = bytes_per_value(workload.precision)
    tokens, tp = tokens_of(shape, candidates), candidates.tp
    around = constant("full_width_buffers") * value * tokens * shape.hidden
    dense = np.where(stage.dense_layers > 0, float(shape.up_width + shape.ffn), 0.0)
    moe = np.where(stage.moe_layers > 0, expert_values(shape), 0.0)
    peak = value * tokens * np.maximum(dense, moe) / tp
    if stage.is_last:
        peak = np.maximum(peak, _loss_bytes(workload, shape, tokens) / tp)
    return around + peak + _weight_bytes_at_work(workload, shape, weights, stage, candidates)


def _loss_bytes(workload: Workload, shape: Counted, tokens: Floats) -> Floats:
    """Logits at the loss; then their gradient beside that of the output table."""
    value = bytes_per_value(workload.precision)
    trained = 0.0 if workload.lora_rank is not None else value * shape.hidden
    scale = value / 2
    return shape.vocabulary * np.maximum(scale * _logits_bytes(workload) * tokens, value * tokens + trained)


def _logits_bytes(workload: Workload) -> float:
    """Bytes a token and vocabulary entry: fused cross-entropy, PyTorch's own, or, not told, half-way."""
    fused, plain = constant("logits_bytes"), constant("logits_bytes_plain")
    name = stack_of(workload.stack).name
    return fused if name == _FUSED_LOSS else (fused + plain) / 2 if name == UNTOLD else plain


def _weight_bytes_at_work(
    workload: Workload, shape: Counted, weights: Weights, stage: Stage, candidates: Candidates
) -> Floats:
    """Gradients of one layer's weights before they are added up: one tensor for each shape of a weight.

    With ZeRO 3 all experts of a layer at once, until they are scattered. Adapters alone have almost none; there the
    matrix of a quantised base that is at work is widened instead.
    """
    value, has_mlp = bytes_per_value(workload.precision), stage.dense_layers > 0
    if workload.lora_rank is not None:
        widened = shape.hidden * np.maximum(np.where(has_mlp, float(shape.ffn), 0.0), float(shape.query_width))
        return value * widened / candidates.tp * (workload.weight_bits is not None)
    held = np.where(candidates.zero_stage == 3, held_experts(weights, candidates), weights.expert)
    moe = np.where(stage.moe_layers > 0, weights.shared / candidates.tp + held, 0.0)
    return value * (layer_weights(weights, candidates) + np.where(has_mlp, weights.mlp / candidates.tp, 0.0) + moe)
