"""What each kind of pipeline stage holds: layers, embedding tables, micro-batches in flight.

A stage is as large as its layers, its tables and what it keeps for the backward pass; which one is the largest depends
on the model, so the first, the second and the last are all looked at. Without a pipeline the only stage is all three.
"""

from dataclasses import dataclass

import numpy as np

from advisor.engine.candidates import Candidates
from advisor.engine.collectives import Floats
from advisor.engine.shapes import Counted, Product
from profiling.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One pipeline stage of each candidate; counts per rank.

    ``dense_layers``, ``moe_layers``: its layers by kind of MLP. ``tables``: embedding parameters before tensor
    parallelism. ``in_flight``: micro-batches whose activations it keeps at once, in units of all its layers.
    ``is_last``: whether logits and loss are here.
    """

    dense_layers: Floats
    moe_layers: Floats
    tables: Floats
    in_flight: Floats
    is_last: bool

    @property
    def layers(self) -> Floats:
        return self.dense_layers + self.moe_layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Parameters of one layer and of the tables, scaled to the model's own count.

    ``attention_split``: divided by tensor parallelism; ``attention_whole``: on every rank (norms, latent projections),
    as is the ``router``. ``expert``: one of the ``experts`` routed ones of a layer. ``tables``: all embedding tables;
    ``end``: those of the first or of the last stage.
    """

    attention_split: float
    attention_whole: float
    mlp: float
    shared: float
    router: float
    expert: float
    experts: int
    tables: float
    end: float


def weights_of(shape: Counted) -> Weights:
    """What a given parameter count has beyond the layers lies in the tables; where it has less, layers are thinner.

    Tied tables lie on the first and on the last stage (Megatron-LM keeps a copy there).
    """
    attention, norms = _count(shape.attention, split=True), _count(shape.attention, split=False) + 2 * shape.hidden
    mlp, shared, router = _count(shape.mlp), _count(shape.shared), float(shape.experts * shape.hidden)
    layers = shape.layers * (attention + norms) + shape.dense_layers * mlp + shape.moe_layers * (shared + router)
    one = float(shape.vocabulary * shape.hidden)
    tables = min(max(shape.dense_parameters - layers, one), shape.dense_parameters)
    scale = (shape.dense_parameters - tables) / layers
    routed = shape.moe_layers * shape.experts
    return Weights(
        attention_split=scale * attention,
        attention_whole=scale * norms,
        mlp=scale * mlp,
        shared=scale * shared,
        router=scale * router,
        expert=shape.expert_parameters / routed if routed else 0.0,
        experts=shape.experts,
        tables=tables,
        end=max(tables / 2, min(tables, one)),
    )


def _count(products: tuple[Product, ...], split: bool | None = None) -> float:
    return float(sum(one.weights for one in products if split is None or bool(one.split) is split))


def micro_batches(workload: Workload, candidates: Candidates) -> Floats:
    """Passes that the busiest rank makes in a step."""
    return np.maximum(np.ceil(np.ceil(workload.batch_per_step / candidates.dp) / candidates.micro_batch), 1.0)


def stages(shape: Counted, weights: Weights, candidates: Candidates, passes: Floats) -> tuple[Stage, ...]:
    """The stages that may be the largest. Layers that do not divide evenly make the first stages longer."""
    if not (candidates.pp > 1).any():
        return (_stage(shape, candidates, passes, index=0.0, tables=weights.tables, is_last=True),)
    pp = candidates.pp.astype(np.float64)
    both = np.where(pp > 1, weights.end, weights.tables)
    return (
        _stage(shape, candidates, passes, index=0.0, tables=both, is_last=False),
        _stage(shape, candidates, passes, index=np.minimum(1.0, pp - 1), tables=0.0, is_last=False),
        _stage(shape, candidates, passes, index=pp - 1, tables=both, is_last=True),
    )


def _stage(
    shape: Counted,
    candidates: Candidates,
    passes: Floats,
    *,
    index: Floats | float,
    tables: Floats | float,
    is_last: bool,
) -> Stage:
    whole = np.ceil(shape.layers / candidates.pp)
    layers = np.maximum(np.floor(shape.layers / candidates.pp), 1.0) if is_last else whole
    before = shape.layers - layers if is_last else index * whole
    dense = np.clip(shape.dense_layers - before, 0.0, layers)
    return Stage(
        dense_layers=dense,
        moe_layers=layers - dense,
        tables=np.broadcast_to(tables, layers.shape),
        in_flight=np.minimum(_in_flight(candidates, index), passes),
        is_last=is_last,
    )


def _in_flight(candidates: Candidates, index: Floats | float) -> Floats:
    """1F1B: pp - i micro-batches on stage i. Interleaved: pp v + pp - 1 - 2i chunks of 1/v of its layers.

    So the first stage keeps 1 + (pp - 1) / (pp v) times what it would without a pipeline (Korthikanti et al.,
    2205.05198, section 4.2.3).
    """
    pp, vpp = candidates.pp.astype(np.float64), candidates.vpp.astype(np.float64)
    interleaved = (pp * vpp + pp - 1 - 2 * index) / vpp
    return np.where((vpp > 1) & (pp > 1), interleaved, pp - index)
