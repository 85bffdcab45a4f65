"""Work of one micro-batch of a transformer on its slowest pipeline stage, counted from its shape.

Tokens of a rank: micro-batch x sequence / cp. Tensor parallelism divides products and, with sequence parallelism, the
element-wise work (Korthikanti et al., 2205.05198); experts are divided over ``ep`` ranks, so that a rank computes as
many routed tokens as it holds, in larger products (GShard, 2006.16668).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates, Speed
from advisor.engine.collectives import Floats, Ints
from advisor.engine.hardware import HEAD_DIMS
from advisor.engine.kernels import Work, matmul, no_work, slowdown, streamed
from advisor.engine.shapes import Counted, Product, bytes_per_value
from profiling.workload import Mode, Workload

_LEAST_SIDE = 1024.0
"""Shortest side that the law of products was fitted to; batched products of heads fill the chip all together."""
_SWEEPS_FORWARD, _SWEEPS_BACKWARD = 5.0, 8.0
"""Passes over the attention scores where these are written to memory: scale, mask, softmax, dropout, product."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Work of one micro-batch by kind of kernel, by the laws of the chip alone.

    ``experts``: products of routed experts; ``routing``: what moves tokens to them, values into narrow
    precision, and what adapters add.
    """

    products: Work
    experts: Work
    attention: Work
    elementwise: Work
    routing: Work

    @property
    def total(self) -> Work:
        return self.products + self.experts + self.attention + self.elementwise + self.routing

    def take(self, rows: Ints) -> Self:
        """The given rows, in the given order."""
        return replace(self, **{item.name: getattr(self, item.name).take(rows) for item in fields(self)})


def micro_batch_pieces(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Pieces:
    """One micro-batch through the stage: forward, and in training backward (and forward again if recomputed)."""
    return Pieces(
        products=_products(workload, shape, candidates, speed),
        experts=_experts(workload, shape, candidates, speed),
        attention=_attention(workload, shape, candidates, speed),
        elementwise=_elementwise(workload, shape, candidates, speed),
        routing=_routing(workload, shape, candidates, speed),
    )


def tokens_per_pass(shape: Counted, candidates: Candidates) -> Floats:
    """Tokens that a rank works through in one forward pass."""
    return candidates.micro_batch * shape.sequence / candidates.cp


def stage_share(shape: Counted, candidates: Candidates) -> Floats:
    """Layers of the fullest pipeline stage over all layers."""
    return np.ceil(shape.layers / candidates.pp) / shape.layers


def head_share(shape: Counted, candidates: Candidates) -> Floats:
    """1 where the slowest stage also computes the logits; of layers that do not divide evenly the last has fewer."""
    return np.where(shape.layers % candidates.pp == 0, 1.0, 0.0)


def _products(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Work:
    tokens, share = tokens_per_pass(shape, candidates), stage_share(shape, candidates)
    groups = ((shape.layers, shape.attention), (shape.dense_layers, shape.mlp), (shape.moe_layers, shape.shared))
    found = no_work(len(candidates))
    for layers, products in groups:
        if layers and products:
            found += _weights(workload, candidates, speed, products, tokens, layers * share, products is shape.mlp)
    return found + _head(workload, shape, candidates, speed)


def _weights(
    workload: Workload,
    candidates: Candidates,
    speed: Speed,
    products: Sequence[Product],
    tokens: Floats,
    layers: Floats,
    ends_block: bool,
) -> Work:
    found = no_work(len(candidates))
    for one in products:
        n = one.n / candidates.tp if one.split == "n" else np.full(len(candidates), float(one.n))
        k = one.k / candidates.tp if one.split == "k" else np.full(len(candidates), float(one.k))
        again = _again(workload, candidates, is_last=one is products[-1] and ends_block)
        found += _passes(workload, candidates, speed, (tokens, n, k), layers, again)
    return found


def _experts(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Work:
    """Routed tokens spread evenly: each of the rank's experts gets tokens x k x ep / experts rows."""
    found = no_work(len(candidates))
    if not shape.moe_layers:
        return found
    routed = tokens_per_pass(shape, candidates) * shape.experts_per_token / candidates.tp
    local = shape.experts / candidates.ep
    rows, layers = np.maximum(routed / local, 1.0), shape.moe_layers * stage_share(shape, candidates)
    for one in shape.expert:
        n, k = np.full(len(candidates), float(one.n)), np.full(len(candidates), float(one.k))
        busy = np.minimum(local, routed)
        again = _again(workload, candidates, is_last=one is shape.expert[-1])
        found += _passes(workload, candidates, speed, (rows, n, k), layers * busy, again, grouped=busy)
    return found


_PER_OPERATOR = 0.5
"""Share of the products that PyTorch's selective checkpointing by operator repeats: every second one (torchtitan)."""


def _again(workload: Workload, candidates: Candidates, *, is_last: bool = False) -> Floats:
    """Share of a product that is computed again.

    PyTorch stops recomputing a block where nothing more is needed, so that its last product is not repeated
    (non-reentrant checkpointing), and by operator it repeats every second product instead of the attention core.
    """
    if not _checkpoints_as_torch(workload):
        return candidates.recompute
    selective = candidates.recompute_attention - candidates.recompute
    return candidates.recompute * (0.0 if is_last else 1.0) + _PER_OPERATOR * selective


def _attention_again(workload: Workload, candidates: Candidates) -> Floats:
    return candidates.recompute if _checkpoints_as_torch(workload) else candidates.recompute_attention


def _checkpoints_as_torch(workload: Workload) -> bool:
    return (workload.stack or "").startswith("torch-")


def _passes(
    workload: Workload,
    candidates: Candidates,
    speed: Speed,
    sides: tuple[Floats, Floats, Floats],
    count: Floats,
    again: Floats,
    grouped: Floats | float = 1.0,
) -> Work:
    """``count`` products forward, this share of them ``again``, and in training the gradients of both operands.

    A frozen base needs no gradient of its weights.
    """
    about = {"width": bytes_per_value(workload.precision), "grouped": grouped}
    m, n, k = sides
    found = matmul(candidates, speed, (m, n, k), count=count * (1.0 + again), **about)
    if workload.mode is Mode.TRAINING:
        found += matmul(candidates, speed, (m, k, n), count=count, **about)
        if workload.lora_rank is None:
            found += matmul(candidates, speed, (n, k, m), count=count, **about)
    return found


def _head(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Work:
    """The logits: of all tokens in training, of the last one when serving."""
    training = workload.mode is Mode.TRAINING
    rows = tokens_per_pass(shape, candidates) if training else candidates.micro_batch
    sides = rows, shape.vocabulary / candidates.tp, np.full(len(candidates), float(shape.hidden))
    width = bytes_per_value(workload.precision)
    m, n, k = sides
    found = matmul(candidates, speed, sides, width=width)
    if training:
        found += matmul(candidates, speed, (m, k, n), width=width)
        if workload.lora_rank is None:
            found += matmul(candidates, speed, (n, k, m), width=width)
    return found.times(head_share(shape, candidates))


def _attention(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Work:
    """Scores and weighted values. Unfused kernels compute the masked half too and write the scores to memory."""
    if workload.flash_attention:
        return _fused_attention(workload, shape, candidates, speed)
    tokens = tokens_per_pass(shape, candidates) * stage_share(shape, candidates)
    training = workload.mode is Mode.TRAINING
    scores = tokens * shape.layers * shape.sequence * shape.heads / candidates.tp
    again = _attention_again(workload, candidates)
    passes = (3.0 if training else 1.0) + again
    compute, sequence = candidates.hardware.compute, np.full(len(candidates), float(shape.sequence))
    rate = compute.peak_flops_per_s * speed.compute

    def widest(side: int) -> Floats:
        return np.full(len(candidates), max(float(side), _LEAST_SIDE))

    each = sum(
        2 * width * slowdown(compute, sequence, *sides) / rate
        for width, sides in (
            (shape.head_dim, (sequence, widest(shape.head_dim))),
            (shape.value_head_dim, (widest(shape.value_head_dim), sequence)),
        )
    )
    sweeps = _SWEEPS_FORWARD * (1.0 + again) + (_SWEEPS_BACKWARD if training else 0.0)
    arithmetic = Work(compute_s=scores * passes * each, memory_s=np.zeros(len(candidates)))
    return arithmetic + streamed(candidates, speed, scores * bytes_per_value(workload.precision) * sweeps)


def _fused_attention(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Work:
    """Forward, and backward at 2.5 times the work (FlashAttention-2, 2307.08691), each at its measured rate."""
    tokens = tokens_per_pass(shape, candidates) * stage_share(shape, candidates)
    forward = 2 * tokens * shape.context(shape.sequence) * (shape.query_width + shape.value_width) / candidates.tp
    compute = candidates.hardware.compute
    half = compute.attention_half_causal if shape.causal else compute.attention_half_full
    rate = compute.attention_peak_flops_per_s * speed.compute / (1.0 + half / shape.sequence)
    there = _at_head_dim(compute.attention_forward_utilisation, shape.head_dim)
    back = _at_head_dim(compute.attention_backward_utilisation, shape.head_dim)
    backward = constant("backward_attention_ratio") if workload.mode is Mode.TRAINING else 0.0
    passes = (1.0 + _attention_again(workload, candidates)) / there + backward / back
    return Work(compute_s=forward * passes / rate, memory_s=np.zeros(len(candidates)))


def _at_head_dim(shares: Floats, head_dim: int) -> Floats:
    """Between the measured head dimensions in proportion, beyond them as at the nearest."""
    least, most = HEAD_DIMS
    place = min(max((head_dim - least) / (most - least), 0.0), 1.0)
    return shares[:, 0] * (1 - place) + shares[:, 1] * place


def _elementwise(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Work:
    """Norms, residuals, activations and the loss. A forward pass is a third of forward and backward."""
    tokens, tp = tokens_per_pass(shape, candidates), candidates.tp
    activations = shape.dense_layers * shape.up_width
    if shape.moe_layers:
        shared = sum(one.n for one in shape.shared if one.split == "n")
        expert = sum(one.n for one in shape.expert if one.split == "n")
        activations += shape.moe_layers * (shared + shape.experts_per_token * expert)
    values = 18 * shape.layers * shape.hidden + 10 * activations
    layers = bytes_per_value(workload.precision) * tokens * values / tp * _passed(workload, shape, candidates)
    if workload.mode is not Mode.TRAINING:
        return streamed(candidates, speed, layers)
    loss = 16.0 * tokens * shape.vocabulary / tp * head_share(shape, candidates)
    return streamed(candidates, speed, layers + loss)


def _routing(workload: Workload, shape: Counted, candidates: Candidates, speed: Speed) -> Work:
    wide = bytes_per_value(workload.precision)
    routed = wide * constant("routing_passes") * shape.moe_layers * shape.experts_per_token * shape.hidden
    moved = routed + _cast_bytes(workload, shape) + wide * _adapter_values(workload, shape)
    traffic = moved * tokens_per_pass(shape, candidates) / candidates.tp * _passed(workload, shape, candidates)
    return streamed(candidates, speed, traffic + _widened_bytes(workload, shape, candidates))


def _adapter_values(workload: Workload, shape: Counted) -> float:
    """Values a token that adapters read and write beside the products they adapt, forward and backward."""
    if workload.lora_rank is None:
        return 0.0
    sides = shape.layers * sum(one.n + one.k for one in shape.attention)
    sides += shape.dense_layers * sum(one.n + one.k for one in shape.mlp)
    return constant("adapter_passes") * sides


def _widened_bytes(workload: Workload, shape: Counted, candidates: Candidates) -> Floats:
    """A frozen base kept in few bits is widened in every pass forward and backward (QLoRA, 2305.14314)."""
    if workload.lora_rank is None or not workload.weight_bits or workload.weight_bits >= 16:
        return np.zeros(len(candidates))
    weights = shape.layers * sum(one.weights for one in shape.attention)
    weights += shape.dense_layers * sum(one.weights for one in shape.mlp)
    each = constant("widening_bytes")
    return weights * each / candidates.tp * stage_share(shape, candidates) * (2.0 + candidates.recompute)


def _passed(workload: Workload, shape: Counted, candidates: Candidates) -> Floats:
    """Forward and backward = 1, of the layers of the fullest stage over all layers."""
    passes = (1.0 if workload.mode is Mode.TRAINING else 1 / 3) + candidates.recompute / 3
    return passes * stage_share(shape, candidates)


def _cast_bytes(workload: Workload, shape: Counted) -> float:
    """Bytes a token that narrow precisions move to convert and transpose the operands of the products."""
    if workload.precision not in ("fp8", "fp4"):
        return 0.0
    operands = shape.layers * sum(one.n + one.k for one in shape.attention)
    operands += shape.dense_layers * sum(one.n + one.k for one in shape.mlp)
    routed = sum(one.n + one.k for one in shape.shared) + shape.experts_per_token * sum(
        one.n + one.k for one in shape.expert
    )
    return constant("cast_bytes_per_operand") * (operands + shape.moe_layers * routed)
