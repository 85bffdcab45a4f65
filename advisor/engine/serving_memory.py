"""Bytes of a served model on one GPU: weights in their own width, keys and values of every request in flight."""

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates
from advisor.engine.collectives import Floats
from advisor.engine.shapes import Counted, bytes_per_value, counted
from profiling.workload import Workload

SERVING_LOG_HALFWIDTH = 0.05
"""ln half-width of what a model that serves needs: weights and cache are counted, and engines size the cache by what
the rest leaves."""

_SCALED_BITS = {"fp8": 8.0, "fp4": 4.5}


def weight_bytes_per_value(workload: Workload) -> float:
    """A stored weight: as told, else as the precision; four bits carry half a bit of scales (NVFP4, AWQ, GPTQ)."""
    if workload.weight_bits is not None:
        return (workload.weight_bits + (0.5 if workload.weight_bits < 8 else 0.0)) / 8
    return _SCALED_BITS.get(workload.precision, 8.0 * bytes_per_value(workload.precision)) / 8


def is_narrow(workload: Workload) -> bool:
    """Whether engines keep the cache in 8 bit: published fp8 and fp4 checkpoints say so."""
    return workload.precision in _SCALED_BITS


def cached_bytes_per_token(workload: Workload, shape: Counted, candidates: Candidates) -> Floats:
    """Keys and values that one token leaves on one rank that holds all layers.

    Key heads are divided over tensor-parallel ranks, at least one on each; a latent is kept by every rank.
    """
    width = 1 if is_narrow(workload) else bytes_per_value(workload.precision)
    heads = max(shape.kv_width // shape.head_dim, 1)
    latent = workload.model is not None and workload.model.kv_latent is not None
    shards = np.ones(len(candidates)) if latent else np.minimum(candidates.tp, heads)
    return shape.layers * shape.kv_values * width / shards


def request_bytes(workload: Workload, shape: Counted, candidates: Candidates) -> Floats:
    """Cache of one request at its longest, on one GPU of its replica; a window caps what its layers keep."""
    length = shape.sequence + workload.output_tokens
    near = min(shape.window, length) if shape.window else length
    kept = (shape.layers - shape.windowed_layers) * length + shape.windowed_layers * near
    return cached_bytes_per_token(workload, shape, candidates) * kept / shape.layers / candidates.pp


def weights_bytes(workload: Workload, shape: Counted, candidates: Candidates) -> Floats:
    """Weights on one GPU: experts over the larger of both groups, the rest over tensor ranks; embeddings stay wide."""
    width = weight_bytes_per_value(workload)
    table = shape.vocabulary * shape.hidden
    wide = min(
        (1 if workload.model is not None and workload.model.tied_embeddings else 2) * table, shape.dense_parameters
    )
    dense = (shape.dense_parameters - wide) * width + wide * bytes_per_value(workload.precision)
    over = np.maximum(candidates.ep, candidates.tp)
    return (dense / candidates.tp + shape.expert_parameters * width / over) / candidates.pp


def serving_bytes(workload: Workload, candidates: Candidates) -> Floats:
    """Weights, cache of ``micro_batch`` requests in flight and the working set of one chunk, per GPU."""
    if workload.model is None:
        raise ValueError("serving needs a model shape")
    shape = counted(workload.model, workload.parameters)
    cache = request_bytes(workload, shape, candidates) * candidates.micro_batch
    return weights_bytes(workload, shape, candidates) + cache + _working_bytes(workload, shape, candidates)


def most_requests(workload: Workload, candidates: Candidates) -> Floats:
    """Requests in flight that a replica's memory holds, as engines reckon it: a share of what the weights leave.

    At least one, at most what engines admit; whole requests.
    """
    if workload.model is None:
        raise ValueError("serving needs a model shape")
    shape = counted(workload.model, workload.parameters)
    rest = candidates.hardware.memory.capacity_bytes - constant("context_bytes")
    rest = rest - weights_bytes(workload, shape, candidates) - _working_bytes(workload, shape, candidates)
    fitting = constant("serving_cache_share") * rest / request_bytes(workload, shape, candidates)
    return np.clip(np.floor(fitting), 1.0, constant("serving_most_requests"))


def _working_bytes(workload: Workload, shape: Counted, candidates: Candidates) -> Floats:
    """Activations of one chunk of prompts, or of one decode pass, whichever is larger."""
    rows = np.minimum(candidates.micro_batch * shape.sequence, constant("serving_chunk_tokens"))
    rows = np.maximum(rows, candidates.micro_batch)
    inner = max(shape.up_width + shape.ffn, 4 * shape.hidden)
    logits = 4.0 * candidates.micro_batch * shape.vocabulary / candidates.tp
    return rows * bytes_per_value(workload.precision) * (4 * shape.hidden + inner / candidates.tp) + logits
