"""Step of a job that serves: the prompts of a batch of requests, then their answers token by token.

One step is the whole batch of ``batch_per_step`` requests. Data-parallel replicas divide it; each keeps ``micro_batch``
requests in flight and takes the others as places become free, so that a replica works through full rounds and one
that is not full. In each round the prompts go through in chunks, then every iteration gives each request one token.
Without answers (``output_tokens`` 0) only the prompts are worked through. Context parallelism is not used.
"""

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import AS_IS, Candidates, Parts, Speed
from advisor.engine.collectives import Floats
from advisor.engine.roofs import under_roofs
from advisor.engine.serving_pass import EAGER_STACKS, Pass, Tokens, pass_s
from advisor.engine.shapes import Counted, counted
from profiling.workload import Mode, Workload

_FLOOR_POWER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Seconds by what they are spent on, one value per candidate."""

    compute_s: Floats
    memory_s: Floats
    communication_s: Floats
    bubble_s: Floats
    host_s: Floats

    @property
    def total_s(self) -> Floats:
        return self.compute_s + self.memory_s + self.communication_s + self.bubble_s + self.host_s

    def times(self, factor: Floats | float) -> Self:
        return type(self)(**{item.name: getattr(self, item.name) * factor for item in fields(self)})

    def paced(self, pace: float) -> Self:
        """All but the exchanges, this much longer."""
        return replace(self.times(pace), communication_s=self.communication_s)

    def plus(self, other: Self) -> Self:
        return type(self)(**{item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(self)})


def is_served(workload: Workload) -> bool:
    """Whether these formulas apply: a described transformer that is not trained."""
    return workload.mode is Mode.INFERENCE and workload.model is not None and workload.measured is None


def serving_parts(workload: Workload, candidates: Candidates, speed: Speed = AS_IS, pace: float = 1.0) -> Parts:
    """One step, by parts; one row per candidate.

    ``pace``: time of everything but the exchanges, as measured on an anchor, over what the formulas say.
    """
    shape = _shape(workload)
    requests = np.maximum(np.ceil(workload.batch_per_step / candidates.dp), 1.0)
    in_flight = np.minimum(candidates.micro_batch, requests)
    rounds = np.floor(requests / in_flight)
    rest = requests - rounds * in_flight
    spent = _round(workload, shape, candidates, in_flight, speed).times(rounds)
    if (rest > 0).any():
        last = _round(workload, shape, candidates, np.maximum(rest, 1.0), speed)
        spent = spent.plus(last.times(np.where(rest > 0, 1.0, 0.0)))
    spent, nothing = spent.paced(pace), np.zeros(len(candidates))
    parts = Parts(
        compute_s=spent.compute_s,
        memory_s=spent.memory_s,
        copy_s=nothing,
        communication_exposed_s=spent.communication_s,
        communication_hidden_s=nothing,
        bubble_s=spent.bubble_s,
        host_s=spent.host_s,
        input_s=nothing,
    )
    return under_roofs(workload, parts, candidates, speed)


def token_times(
    workload: Workload, candidates: Candidates, speed: Speed = AS_IS, pace: float = 1.0
) -> tuple[Floats, Floats]:
    """Seconds to the first token and per token after it, with ``micro_batch`` requests in flight on each replica.

    First token: the prompts of all of them, arriving together. Per token: mean over the answer; 0 without answers.
    """
    shape = _shape(workload)
    requests = np.maximum(np.ceil(workload.batch_per_step / candidates.dp), 1.0)
    in_flight = np.minimum(candidates.micro_batch, requests)
    first_s = _prompts(workload, shape, candidates, in_flight, speed).paced(pace).total_s
    if workload.output_tokens < 2:
        return first_s, np.zeros(len(candidates))
    return first_s, _iteration(workload, shape, candidates, in_flight, speed).paced(pace).total_s


def _shape(workload: Workload) -> Counted:
    if workload.model is None:
        raise ValueError("serving needs a model shape")
    return counted(workload.model, workload.parameters)


def _round(workload: Workload, shape: Counted, candidates: Candidates, requests: Floats, speed: Speed) -> Spent:
    """``requests`` requests together: their prompts, whose pass gives the first token, then the other tokens."""
    spent = _prompts(workload, shape, candidates, requests, speed)
    if workload.output_tokens < 2:
        return spent
    one = _iteration(workload, shape, candidates, requests, speed)
    return spent.plus(one.times(float(workload.output_tokens - 1)))


def _prompts(workload: Workload, shape: Counted, candidates: Candidates, requests: Floats, speed: Speed) -> Spent:
    """Prompts in chunks; pipeline stages work on different chunks, so that only filling the pipeline is idle."""
    total = requests * shape.sequence
    rows = np.minimum(total, constant("serving_chunk_tokens"))
    chunks = total / rows
    seen = shape.context(shape.sequence)
    each = np.full(len(candidates), seen / shape.layers)
    tokens = Tokens(
        rows=rows, logits=rows / shape.sequence, full_context=each, near_context=each, cached=np.zeros(len(candidates))
    )
    one = pass_s(workload, shape, candidates, tokens, speed)
    working = _working(workload, shape, candidates, one, rows / shape.sequence, speed)
    return _pipelined(working, candidates, chunks, candidates.pp - 1.0)


def _iteration(workload: Workload, shape: Counted, candidates: Candidates, requests: Floats, speed: Speed) -> Spent:
    """One token for each request, mean over the answer.

    Pipeline stages pass as many groups of requests around as there are stages, so each pass has fewer rows, and a
    single request keeps one stage busy at a time.
    """
    groups = np.minimum(requests, candidates.pp)
    rows = requests / groups
    first, last = float(shape.sequence), float(shape.sequence + workload.output_tokens)
    tokens = Tokens(
        rows=rows,
        logits=rows,
        full_context=np.full(len(candidates), (first + last) / 2),
        near_context=np.full(len(candidates), _mean_window(shape, first, last)),
        cached=rows,
    )
    one = pass_s(workload, shape, candidates, tokens, speed)
    working = _working(workload, shape, candidates, one, rows, speed)
    return _pipelined(working, candidates, groups, candidates.pp - groups)


def _mean_window(shape: Counted, first: float, last: float) -> float:
    """Mean of min(window, context) while the context grows from ``first`` to ``last``."""
    if not shape.window or shape.window >= last:
        return (first + last) / 2
    if shape.window <= first or last == first:
        return float(min(shape.window, first))
    growing = (first + shape.window) / 2 * (shape.window - first)
    return (growing + shape.window * (last - shape.window)) / (last - first)


def _working(
    workload: Workload, shape: Counted, candidates: Candidates, one: Pass, requests: Floats, speed: Speed
) -> Spent:
    """A pass with what the host adds: the fourth-power mean of GPU and host time, less the GPU time.

    Every pipeline stage schedules the requests of its pass, and hands the tokens of each on to the other stages, which
    nothing hides; eager stacks also launch every layer from Python.
    """
    scheduling = constant("serving_pass_host_s") + constant("serving_request_host_s") * requests
    launching = _eager_s(shape, candidates) if workload.stack in EAGER_STACKS else 0.0
    waited = (candidates.pp * scheduling + launching) / speed.host
    busy = one.total_s
    host_s = (busy**_FLOOR_POWER + waited**_FLOOR_POWER) ** (1 / _FLOOR_POWER) - busy
    relayed = candidates.pp * (candidates.pp - 1) * requests * constant("serving_relay_s")
    host_s = host_s + relayed / speed.host
    return Spent(
        compute_s=one.compute_s,
        memory_s=one.memory_s,
        communication_s=one.communication_s,
        bubble_s=np.zeros(len(candidates)),
        host_s=one.gaps_s + host_s,
    )


def _eager_s(shape: Counted, candidates: Candidates) -> Floats:
    """Launching a pass from Python; both exchanges of a layer among tensor-parallel ranks are waited for."""
    exchanges = np.where(candidates.tp > 1, 2 * constant("serving_eager_exchange_s"), 0.0)
    return shape.layers * (constant("serving_eager_layer_s") + exchanges)


def _pipelined(one: Spent, candidates: Candidates, passes: Floats, idle: Floats) -> Spent:
    """``passes`` passes of a stage, each a ``pp``-th of the whole; ``idle``: stage times without work."""
    share = one.times(passes / candidates.pp)
    return Spent(
        compute_s=share.compute_s,
        memory_s=share.memory_s,
        communication_s=share.communication_s,
        bubble_s=one.total_s * idle / candidates.pp,
        host_s=share.host_s,
    )
