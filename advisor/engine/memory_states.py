"""Weights, gradients and optimizer states on one GPU.

Adam in mixed precision keeps 2 bytes of weight, 2 of gradient (4 where a stack accumulates in fp32) and 12 of master
weight and moments for each parameter (ZeRO, 1910.02054, section 3.1); in fp32 4, 4 and 8. ZeRO divides the optimizer
(stage 1), the gradients (2) and the weights (3) over the ranks that hold the same parameters: data times context
parallel ones; of a routed expert, all but the ``ep`` that share the experts out.
"""

from dataclasses import dataclass

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates
from advisor.engine.collectives import Floats, Ints
from advisor.engine.memory_stages import Stage, Weights
from advisor.engine.shapes import Counted, Product, bytes_per_value
from advisor.engine.stacks import stack_of
from profiling.workload import Workload

_GATHERED_LAYERS = 2
_REDUCED_IN = 4.0
"""Bytes of a gradient that FSDP adds up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerParameter:
    """Bytes of one parameter: what every rank keeps, and what ZeRO 1, 2 and 3 divide."""

    weight: float
    gradient: float
    optimizer: float
    cache: float = 0.0


def trained(workload: Workload) -> PerParameter:
    """Bytes of a parameter that is trained.

    A gradient that is compressed for its exchange is kept whole. fp8 and fp4 jobs keep 16-bit weights and, beside them,
    the quantised ones, row-wise and column-wise (Transformer Engine).
    """
    value = bytes_per_value(workload.precision)
    exchanged = (workload.gradient_bits or 0) / 8
    moments = constant("adam_bytes")
    return PerParameter(
        weight=value,
        gradient=max(value, exchanged, stack_of(workload.stack).gradient_bytes),
        optimizer=moments if value == 2 else moments - 4,
        cache=2 * _QUANTISED_BITS[workload.precision] / 8 if workload.precision in _QUANTISED_BITS else 0.0,
    )


_QUANTISED_BITS = {"fp8": 8.0, "fp4": 4.5}
"""Bits of a weight as stored, block scales included (NVFP4: one byte of scale for 16 values)."""


def frozen_bytes(workload: Workload) -> float:
    """Bytes of a weight of the base under adapters."""
    if workload.weight_bits is None or workload.weight_bits >= 16:
        return bytes_per_value(workload.precision)
    return (workload.weight_bits + constant("quantisation_scale_bits")) / 8


def state_bytes(workload: Workload, shape: Counted, weights: Weights, stage: Stage, candidates: Candidates) -> Floats:
    """Bytes of one stage's states on one rank; gathered layers of ZeRO 3 included."""
    dense, tables, experts = _local(weights, stage, candidates)
    data, expert_data = sharing_ranks(candidates)
    if workload.lora_rank is not None:
        return _adapted(workload, shape, weights, stage, candidates, dense, tables, experts)
    per = trained(workload)
    states = divided(per, dense + tables, data, candidates.zero_stage)
    states = states + divided(per, experts, expert_data, candidates.zero_stage)
    return states + _whole_bytes(per, weights, stage, candidates, dense + tables, experts)


def sharing_ranks(candidates: Candidates) -> tuple[Floats, Floats]:
    """Ranks that hold the same parameters: of dense layers, and of routed experts."""
    data = (candidates.dp * candidates.cp).astype(np.float64)
    return data, np.maximum(data * candidates.tp / candidates.ep, 1.0)


def divided(per: PerParameter, parameters: Floats | float, ranks: Floats, zero_stage: Ints) -> Floats:
    """Bytes of these parameters on one rank, by ZeRO stage.

    Sharded weights and gradients take two values in all: FSDP keeps no narrow copy beside its fp32 weights, which are
    their own master, and DeepSpeed keeps both narrow.
    """
    optimizer = per.optimizer / np.where(zero_stage >= 1, ranks, 1.0)
    gradient = per.gradient / np.where(zero_stage >= 2, ranks, 1.0)
    replicated = per.weight + per.cache + gradient
    return parameters * (optimizer + np.where(zero_stage >= 3, 2 * per.weight / ranks, replicated))


def layer_weights(weights: Weights, candidates: Candidates) -> Floats:
    """Parameters of a layer's attention and norms on one rank."""
    return weights.attention_split / candidates.tp + weights.attention_whole


def _local(weights: Weights, stage: Stage, candidates: Candidates) -> tuple[Floats, Floats, Floats]:
    """Parameters of the stage on one rank: dense, embedding tables, routed experts."""
    tp = candidates.tp
    dense = stage.layers * layer_weights(weights, candidates) + stage.dense_layers * weights.mlp / tp
    dense = dense + stage.moe_layers * (weights.shared / tp + weights.router)
    return dense, stage.tables / tp, stage.moe_layers * held_experts(weights, candidates)


def held_experts(weights: Weights, candidates: Candidates) -> Floats:
    """Parameters of the routed experts of one layer on one rank."""
    return weights.experts * weights.expert / candidates.ep


def _whole_bytes(
    per: PerParameter, weights: Weights, stage: Stage, candidates: Candidates, dense: Floats, experts: Floats
) -> Floats:
    """What ZeRO 2 and 3 keep whole beside the shards.

    Without a pipeline ZeRO 3 gathers the layer at work and the next one, or a table. With one, FSDP gathers a stage
    once a step, and gradients stay whole, in fp32 with FSDP, until the last micro-batch (torchtitan).
    """
    data, expert_data = sharing_ranks(candidates)
    staged, fully = candidates.pp > 1, candidates.zero_stage == 3
    sharded = dense * (1 - 1 / data) + experts * (1 - 1 / expert_data)
    gathered = np.where(staged, sharded, np.minimum(_at_work(weights, stage, candidates, dense, experts), sharded))
    gradient = np.where(fully, max(per.gradient, _REDUCED_IN), per.gradient) * sharded
    return np.where(fully, per.weight * gathered, 0.0) + np.where(staged & (candidates.zero_stage >= 2), gradient, 0.0)


def _at_work(weights: Weights, stage: Stage, candidates: Candidates, dense: Floats, experts: Floats) -> Floats:
    """Parameters of two layers, or of a table where that is more."""
    share = _GATHERED_LAYERS / np.maximum(stage.layers, _GATHERED_LAYERS)
    layers = share * (dense - stage.tables / candidates.tp + experts)
    return np.maximum(layers, weights.end / candidates.tp)


def _adapted(
    workload: Workload,
    shape: Counted,
    weights: Weights,
    stage: Stage,
    candidates: Candidates,
    dense: Floats,
    tables: Floats,
    experts: Floats,
) -> Floats:
    """A frozen base and the states of its adapters, on every product of attention and dense or shared MLP."""
    data, expert_data = sharing_ranks(candidates)
    fully = candidates.zero_stage == 3
    base, value = frozen_bytes(workload), bytes_per_value(workload.precision)
    layers = (base * dense / np.where(fully, data, 1.0)) + base * experts / np.where(fully, expert_data, 1.0)
    ends = value * tables / np.where(fully, data, 1.0)
    two = base * (dense + experts) * _GATHERED_LAYERS / np.maximum(stage.layers, _GATHERED_LAYERS)
    whole = base * (dense * (1 - 1 / data) + experts * (1 - 1 / expert_data)) + value * tables * (1 - 1 / data)
    at_work = np.minimum(np.maximum(two, value * weights.end / candidates.tp), whole)
    frozen = layers + ends + np.where(fully, np.where(candidates.pp > 1, whole, at_work), 0.0)
    rank = float(workload.lora_rank or 0)
    adapters = rank * (
        stage.layers * _ends(shape.attention)
        + stage.dense_layers * _ends(shape.mlp)
        + stage.moe_layers * _ends(shape.shared)
    )
    return frozen + divided(trained(workload), adapters, data, candidates.zero_stage)


def _ends(products: tuple[Product, ...]) -> float:
    """Parameters of adapters of rank one (LoRA, 2106.09685: k x r and r x n beside k x n)."""
    return float(sum(one.n + one.k for one in products))
