"""One pass of tokens through the layers of a served model: a decode iteration, or a chunk of prompts.

Serving differs from training where few rows meet a large weight: a product then takes as long as its weight takes to
be read, so the bits of a weight, the experts that a pass touches and the launches between short kernels decide.
Everything is per rank and row; arrays are one value per candidate.
"""

from dataclasses import dataclass

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates, Speed
from advisor.engine.collectives import Floats
from advisor.engine.groups import collective_s, crosses_host
from advisor.engine.serving_memory import cached_bytes_per_token, is_narrow, weight_bytes_per_value
from advisor.engine.shapes import Counted, Product, bytes_per_value
from profiling.workload import CollectiveKind, Workload

EAGER_STACKS = frozenset({"litgpt", "transformers"})
"""Stacks that launch every kernel from Python, one by one, with the 4-bit kernels of bitsandbytes.

Serving engines replay captured graphs.
"""

_KERNELS_A_LAYER = 9.0
"""Norms, products, rotation, attention, activation and what quantises between them, where kernels are fused."""

_KERNELS_OF_ROUTING = 5.0
"""Choice of experts, sorting, copying rows out and back, beside the two products."""

_COPIES = 4.0
"""Each chosen row is written for its expert, read, written by it and read again where answers meet."""

_LARGEST_MESSAGE = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Seconds of one pass by what bounds them; ``gaps_s``: between kernels that are too short to hide a launch."""

    compute_s: Floats
    memory_s: Floats
    communication_s: Floats
    gaps_s: Floats

    @property
    def total_s(self) -> Floats:
        return self.compute_s + self.memory_s + self.communication_s + self.gaps_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What goes through the layers in one pass, per replica of the attention.

    ``rows``: tokens; ``logits``: tokens whose next one is wanted; ``full_context`` and ``near_context``: cached tokens
    that each of them reads in a layer with full attention and in one with a window; ``cached``: sequences whose cache
    is read (a chunk of prompts reads its own keys from fast memory: 0).
    """

    rows: Floats
    logits: Floats
    full_context: Floats
    near_context: Floats
    cached: Floats


def pass_s(workload: Workload, shape: Counted, candidates: Candidates, tokens: Tokens, speed: Speed) -> Pass:
    """One pass through all layers, as if one rank per tensor-parallel group held them all."""
    found = [_dense(workload, shape, candidates, tokens, speed), _attention(workload, shape, candidates, tokens, speed)]
    found.append(_elementwise(workload, shape, candidates, tokens, speed))
    kernels = shape.layers * _KERNELS_A_LAYER + shape.moe_layers * _KERNELS_OF_ROUTING
    if shape.moe_layers:
        found.append(_routing(workload, shape, candidates, tokens, speed))
        found.append(_experts(workload, shape, candidates, tokens, speed))
    return Pass(
        compute_s=sum(compute for compute, _ in found),
        memory_s=sum(memory for _, memory in found),
        communication_s=_exchange_s(workload, shape, candidates, tokens, speed),
        gaps_s=np.full(len(candidates), kernels * _gap_s(workload) / speed.host),
    )


def _gap_s(workload: Workload) -> float:
    """Least time of a kernel in a captured graph; narrow products have one more before them that quantises."""
    return constant("serving_narrow_kernel_gap_s" if is_narrow(workload) else "serving_kernel_gap_s")


def _rate(workload: Workload, candidates: Candidates, speed: Speed) -> Floats:
    compute = candidates.hardware.compute
    return compute.peak_flops_per_s * speed.compute


def _bandwidth(candidates: Candidates, speed: Speed) -> Floats:
    return candidates.hardware.memory.bytes_per_s * speed.memory


def _bound(arithmetic: Floats, traffic: Floats) -> tuple[Floats, Floats]:
    """The longer of the two, as compute or as memory time."""
    longer = arithmetic >= traffic
    return np.where(longer, arithmetic, 0.0), np.where(longer, 0.0, traffic)


def _product(
    workload: Workload,
    candidates: Candidates,
    speed: Speed,
    m: Floats,
    sides: tuple[Floats | float, Floats | float],
    *,
    weight_bytes: float,
    count: Floats | float = 1.0,
    tile: float | None = None,
) -> tuple[Floats, Floats]:
    """``count`` products of ``m`` rows with weights ``sides`` = (n, k), by the shape law of the chip.

    ``tile``: rows that a kernel for many small products pads to, where it is not the chip's own.
    """
    n, k = sides
    law = candidates.hardware.compute
    padded = law.m0 if tile is None else np.minimum(law.m0, tile)
    slowdown = np.maximum(law.c0 + padded / m + law.n0 / n + law.k0 / k, 1.0 / law.max_utilisation)
    arithmetic = 2 * m * n * k / _rate(workload, candidates, speed) * slowdown
    values = bytes_per_value(workload.precision) * m * (n + k)
    reading = candidates.hardware.memory.weights_bytes_per_s * speed.memory * _read_share(workload)
    traffic = n * k * weight_bytes / reading + values / _bandwidth(candidates, speed)
    compute, memory = _bound(arithmetic, traffic)
    return compute * count, memory * count


def _read_share(workload: Workload) -> float:
    """What narrow weights reach of the rate at which 16-bit weights are read."""
    narrow = weight_bytes_per_value(workload)
    if narrow > 1:
        return 1.0
    if narrow == 1:
        return constant("serving_read_share_8")
    return constant("serving_read_share_nf4" if workload.stack in EAGER_STACKS else "serving_read_share_4")


def _dense(
    workload: Workload, shape: Counted, candidates: Candidates, tokens: Tokens, speed: Speed
) -> tuple[Floats, Floats]:
    """All weights but the routed experts; the logits are kept in 16 bit also where the rest is narrower."""
    width = weight_bytes_per_value(workload)
    layers = [(one, shape.layers) for one in shape.attention] + [(one, shape.dense_layers) for one in shape.mlp]
    layers += [(one, shape.moe_layers) for one in shape.shared]
    found = [
        _product(workload, candidates, speed, tokens.rows, _sides(one, candidates), weight_bytes=width, count=count)
        for one, count in layers
        if count
    ]
    logits = (shape.vocabulary / candidates.tp, float(shape.hidden))
    wide = float(bytes_per_value(workload.precision))
    found.append(_product(workload, candidates, speed, tokens.logits, logits, weight_bytes=wide))
    return sum(compute for compute, _ in found), sum(memory for _, memory in found)


def _sides(product: Product, candidates: Candidates) -> tuple[Floats | float, Floats | float]:
    n = product.n / candidates.tp if product.split == "n" else float(product.n)
    k = product.k / candidates.tp if product.split == "k" else float(product.k)
    return n, k


def _experts(
    workload: Workload, shape: Counted, candidates: Candidates, tokens: Tokens, speed: Speed
) -> tuple[Floats, Floats]:
    """Routed experts: of E experts, T tokens that choose k each at random touch E (1 - (1 - k/E)^T)."""
    ep = candidates.ep
    rows = tokens.rows * np.maximum(ep / candidates.tp, 1.0)
    chosen = shape.experts_per_token / shape.experts
    touched = np.maximum(shape.experts / ep * (1 - (1 - chosen) ** rows), 1.0)
    each = rows * shape.experts_per_token / ep / touched
    sliced = np.maximum(candidates.tp / ep, 1.0)
    busiest = constant("serving_expert_slowdown") * np.where(ep > 1, constant("serving_expert_imbalance"), 1.0)
    found = []
    for one in shape.expert:
        sides = (one.n / sliced, float(one.k)) if one.split == "n" else (float(one.n), one.k / sliced)
        found.append(
            _product(
                workload,
                candidates,
                speed,
                np.maximum(each, 1.0),
                sides,
                weight_bytes=weight_bytes_per_value(workload),
                count=shape.moe_layers * touched * busiest,
                tile=constant("serving_expert_tile"),
            )
        )
    return sum(compute for compute, _ in found), sum(memory for _, memory in found)


def _routing(
    workload: Workload, shape: Counted, candidates: Candidates, tokens: Tokens, speed: Speed
) -> tuple[Floats, Floats]:
    """Rows on their way to their experts and back: scattered copies, far below the rate of streaming."""
    rows = tokens.rows * np.maximum(candidates.ep / candidates.tp, 1.0) / candidates.ep
    traffic = _COPIES * rows * shape.experts_per_token * shape.hidden * bytes_per_value(workload.precision)
    rate = _bandwidth(candidates, speed) * constant("serving_scatter_share")
    return np.zeros(len(candidates)), shape.moe_layers * traffic / rate


def _attention(
    workload: Workload, shape: Counted, candidates: Candidates, tokens: Tokens, speed: Speed
) -> tuple[Floats, Floats]:
    """Scores and values against what is cached: its bytes are read once for each sequence, or the products take longer.

    Latent attention works on the latent itself while decoding (DeepSeek-V2, 2405.04434, absorbed form).
    """
    far, near = shape.layers - shape.windowed_layers, shape.windowed_layers
    seen = far * tokens.full_context + near * tokens.near_context
    model = workload.model
    latent = model is not None and model.kv_latent is not None
    decoded = tokens.cached > 0
    absorbed = shape.heads * (2.0 * shape.kv_values)
    width = np.where(decoded & latent, absorbed, shape.query_width + shape.value_width) / candidates.tp
    flops = 2 * tokens.rows * seen * width
    law = candidates.hardware.compute
    arithmetic = flops / (law.attention_peak_flops_per_s * constant("serving_attention_utilisation") * speed.compute)
    read = tokens.cached * seen / shape.layers * cached_bytes_per_token(workload, shape, candidates)
    return _bound(arithmetic, read / _bandwidth(candidates, speed))


def _elementwise(
    workload: Workload, shape: Counted, candidates: Candidates, tokens: Tokens, speed: Speed
) -> tuple[Floats, Floats]:
    """Norms and residuals on every rank, rotation and activation divided; sampling sweeps the logits in 32 bit."""
    ffn = shape.up_width if shape.dense_layers else 0
    routed = shape.experts_per_token * sum(one.n for one in shape.expert if one.split == "n")
    shared = sum(one.n for one in shape.shared if one.split == "n")
    inner = shape.dense_layers * ffn + shape.moe_layers * (routed + shared)
    divided = (inner * 1.5 + shape.layers * 2 * (shape.query_width + 2 * shape.kv_width)) / candidates.tp
    values = 6.0 * shape.layers * shape.hidden + divided
    sampled = 4 * 4.0 * tokens.logits * shape.vocabulary / candidates.tp
    traffic = bytes_per_value(workload.precision) * tokens.rows * values + sampled
    return np.zeros(len(candidates)), traffic / _bandwidth(candidates, speed)


def _exchange_s(workload: Workload, shape: Counted, candidates: Candidates, tokens: Tokens, speed: Speed) -> Floats:
    """Two all-reduces a layer among tensor-parallel ranks; experts' tokens out and back; pipeline stages' hand-over."""
    size = tokens.rows * shape.hidden * bytes_per_value(workload.precision)
    reduced = 2 * shape.layers * _all_reduce_s(candidates, size, speed)
    outside = np.where(candidates.ep > candidates.tp, candidates.ep, 1)
    routed = np.zeros(len(candidates))
    if shape.moe_layers and (outside > 1).any():
        copies = outside * (1 - (1 - 1 / outside) ** shape.experts_per_token)
        one = np.ones_like(outside)
        group = {"size": outside, "stride": one, "speed": speed}
        narrow = min(weight_bytes_per_value(workload) / bytes_per_value(workload.precision), 1.0)
        quantised = narrow if is_narrow(workload) else 1.0
        routed = collective_s(candidates, CollectiveKind.ALL_TO_ALL, size * copies * quantised, **group)
        routed = routed + collective_s(candidates, CollectiveKind.ALL_TO_ALL, size * copies, **group)
    handed = collective_s(
        candidates,
        CollectiveKind.SEND_RECV,
        size / candidates.tp,
        size=np.minimum(candidates.pp, 2),
        stride=candidates.tp * candidates.cp * candidates.dp,
        speed=speed,
    )
    return reduced + shape.moe_layers * routed + candidates.pp * handed


def _all_reduce_s(candidates: Candidates, size: Floats, speed: Speed) -> Floats:
    """The faster of the library's and, over links that are not shared, a kernel in which each rank reads all others.

    Such kernels take 3 to 8 us where NCCL takes 6 to 27 (H100, A100, B200 with 2 to 8 GPUs, custom_allreduce_perf of
    aiconfigurator-core 0.12.0). Where ranks meet on PCIe they gain nothing over the measured curves.
    """
    group = {"size": candidates.tp, "stride": np.ones_like(candidates.tp), "speed": speed}
    library_s = collective_s(candidates, CollectiveKind.ALL_REDUCE, size, **group)
    large = np.full(len(candidates), _LARGEST_MESSAGE)
    per_byte = collective_s(candidates, CollectiveKind.ALL_REDUCE, large, **group) / _LARGEST_MESSAGE
    at_once_s = constant("serving_one_shot_s") / speed.communication + size * per_byte * candidates.tp / 2
    link = candidates.hardware.link
    alone = ~crosses_host(link, candidates.tp)
    return np.where(alone & (candidates.tp > 1), np.minimum(library_s, at_once_s), library_s)
