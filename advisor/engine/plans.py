"""Ways of dividing a job over the GPUs of one server."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache
from itertools import product
from math import ceil
from operator import attrgetter
from typing import Any

from advisor.engine.explain import EngineCode, EngineRefusal
from advisor.engine.shapes import counted
from profiling.workload import CollectiveKind, MeasuredStep, Mode, Workload

GPU_COUNTS = (1, 2, 4, 8)
"""GPU counts that are predicted inside one server, up to what it has."""

_LARGEST_MICRO_BATCH = 64
_LARGEST_OF_SMALL_SAMPLES = 4096
_MOST_REQUESTS = 2048
"""Requests under way on one replica that serves (TensorRT-LLM's default of max_batch_size)."""


class Recompute(StrEnum):
    """Activations computed again in the backward pass: none, those of the attention core, whole layers."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Plan:
    """``dp`` x ``cp`` x ``tp`` x ``pp`` ranks; neighbours are tensor-parallel first, then context, data, pipeline.

    ``ep``: ranks that the experts of a layer are divided over; they are taken from tp x cp x dp and add none.
    ``vpp``: model chunks of each pipeline stage (1 = not interleaved). ``zero_stage`` 0 replicates, 1 shards the
    optimizer, 2 the gradients as well, 3 everything (FSDP). ``micro_batch``: samples per rank and forward pass,
    ``accumulation`` passes a step; 0 micro-batch = as captured. ``captured``: the capture's own layout, which is not
    data-parallel alone; its ranks count as ``dp``.
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    ep: int = 1
    cp: int = 1
    vpp: int = 1
    zero_stage: int = 0
    micro_batch: int = 0
    accumulation: int = 1
    recompute: Recompute = Recompute.NONE
    captured: bool = False

    @property
    def gpus(self) -> int:
        return self.dp * self.tp * self.pp * self.cp

    @property
    def label(self) -> str:
        """Short name, the same in every language: ``dp4 tp2 pp2x5 zero1 mb8 x2 rc``."""
        if self.captured:
            return "captured"
        parts = [f"dp{self.dp}"]
        parts += [f"{name}{size}" for name, size in (("tp", self.tp), ("cp", self.cp), ("ep", self.ep)) if size > 1]
        parts += [f"pp{self.pp}" + (f"x{self.vpp}" if self.vpp > 1 else "") if self.pp > 1 else ""]
        parts += [
            f"zero{self.zero_stage}" if self.zero_stage else "",
            f"mb{self.micro_batch}" if self.micro_batch else "",
        ]
        parts += [f"x{self.accumulation}" if self.accumulation > 1 else "", _RECOMPUTE_LABELS[self.recompute]]
        return " ".join(part for part in parts if part)


_RECOMPUTE_LABELS = {Recompute.NONE: "", Recompute.SELECTIVE: "rc-sel", Recompute.FULL: "rc"}

_IN_ORDER = attrgetter(*(item.name for item in fields(Plan)))
_PLAN_TYPES = {item.name: item.type for item in fields(Plan)}
_LARGEST = 1_000_000
_LAST_ZERO_STAGE = 3


def legal_plans(workload: Workload, gpus: int) -> tuple[Plan, ...]:
    """Every plan of this job on ``gpus`` GPUs that the search tries; empty where the job cannot be divided so.

    A described job keeps its global batch (strong scaling); a traced one keeps what each GPU did in the capture
    (weak scaling). A buyer's own plan may be any that ``plans_like`` accepts.
    """
    if workload.measured is not None:
        return tuple(_traced_plans(workload, workload.measured, gpus)) if gpus in GPU_COUNTS else ()
    return _ways_to_divide(workload, gpus)


@lru_cache(maxsize=128)
def _ways_to_divide(workload: Workload, gpus: int) -> tuple[Plan, ...]:
    """Of a described job; one answer asks for the same count many times."""
    return tuple(sorted(_described_plans(workload, gpus), key=_IN_ORDER))


def plans_like(workload: Workload, plan: Plan) -> tuple[Plan, ...]:
    """The plan that the buyer gave, with every micro-batch if none was given; empty where the job cannot follow it.

    A given micro-batch may be any that the ranks can fill.
    """
    if workload.measured is not None:
        return tuple(one for one in legal_plans(workload, plan.gpus) if _layout(one) == _layout(plan))
    if plan.captured or not _divides(workload, plan) or workload.batch_per_step < plan.dp:
        return ()
    if plan.micro_batch:
        return (plan,) if plan.micro_batch <= ceil(workload.batch_per_step / plan.dp) else ()
    return tuple(
        replace(plan, micro_batch=size, accumulation=ceil(workload.batch_per_step / (plan.dp * size)))
        for size in _micro_batches(workload, plan.dp)
    )


def _layout(plan: Plan) -> tuple[int, int, int, Recompute, bool]:
    return plan.dp, plan.tp, plan.zero_stage, plan.recompute, plan.captured


_ENDS = 2
"""Embedding and loss, which Megatron-Core may count as layers of the first and the last stage."""


def _divides(workload: Workload, plan: Plan) -> bool:
    """Whether the model can be cut so: heads and layers come out whole, experts spread evenly."""
    if workload.model is None:
        return plan.tp == plan.pp == plan.cp == plan.ep == plan.vpp == 1
    shape = counted(workload.model)
    kv_heads = workload.model.kv_heads or workload.model.heads
    heads = shape.heads % plan.tp == 0 and shape.ffn % plan.tp == 0
    divides_kv = kv_heads % plan.tp == 0 or plan.tp % kv_heads == 0
    stages = plan.pp * plan.vpp <= shape.layers + _ENDS and (plan.pp > 1 or plan.vpp == 1)
    context = shape.sequence % plan.cp == 0
    experts = (shape.experts % plan.ep == 0 if shape.experts else plan.ep == 1) and (
        plan.dp * plan.tp * plan.cp
    ) % plan.ep == 0
    return heads and divides_kv and stages and context and experts


def plan_from_json(document: Any) -> Plan:
    """A plan from a plain object, strictly; EngineRefusal (``plan_invalid``) names the field that is wrong."""
    if not isinstance(document, Mapping):
        raise EngineRefusal(EngineCode.PLAN_INVALID, field="plan")
    for name, value in document.items():
        if not _is_valid(name, value):
            raise EngineRefusal(EngineCode.PLAN_INVALID, field=str(name)[:40])
    again = document.get("recompute", Recompute.NONE)
    return Plan(**{**document, "recompute": _BY_FLAG.get(again) or Recompute(again)})


_BY_FLAG = {False: Recompute.NONE, True: Recompute.FULL}
_AT_LEAST_ONE = frozenset({"dp", "tp", "pp", "ep", "cp", "vpp", "accumulation"})


def _is_valid(name: Any, value: Any) -> bool:
    """``recompute`` also takes true (whole layers) and false."""
    if name == "recompute":
        return type(value) is bool or (type(value) is str and value in set(Recompute))
    kind = _PLAN_TYPES.get(name)
    most = _LAST_ZERO_STAGE if name == "zero_stage" else _LARGEST
    return type(value) is kind and (1 if name in _AT_LEAST_ONE else 0) <= value <= most


_TENSOR, _STAGES, _CONTEXT = (1, 2, 4, 8), (1, 2, 4, 8, 16), (1, 2, 4, 8)
_LONG_CONTEXT = 8192
"""Tokens of a sequence from which the search divides it, and the least that a rank keeps of it."""


def _described_plans(workload: Workload, gpus: int) -> Iterator[Plan]:
    """Layouts x sharding x recomputation x micro-batch. Training stages are searched with small micro-batches alone."""
    for layout in _layouts(workload, gpus):
        for micro_batch in _micro_batches(workload, layout.dp):
            accumulation = ceil(workload.batch_per_step / (layout.dp * micro_batch))
            staged = layout.pp > 1 and workload.mode is Mode.TRAINING
            if staged and (micro_batch > _LARGEST_STAGED or accumulation < layout.pp):
                continue
            sized = {"micro_batch": micro_batch, "accumulation": accumulation}
            for zero_stage, recompute in product(_zero_stages(workload, layout), _recompute(workload)):
                yield replace(layout, **sized, zero_stage=zero_stage, recompute=recompute)


_LARGEST_STAGED = 4


def _layouts(workload: Workload, gpus: int) -> Iterator[Plan]:
    for tp, pp, cp in product(_TENSOR, _STAGES, _context_degrees(workload)):
        if gpus % (tp * pp * cp):
            continue
        for ep in _expert_degrees(workload, gpus // pp):
            for vpp in _chunks(workload, pp):
                plan = Plan(dp=gpus // (tp * pp * cp), tp=tp, pp=pp, ep=ep, cp=cp, vpp=vpp)
                if _divides(workload, plan):
                    yield plan


def _context_degrees(workload: Workload) -> tuple[int, ...]:
    """Long training sequences may be divided; the rest need not be."""
    if workload.model is None or workload.mode is not Mode.TRAINING:
        return (1,)
    sequence = workload.model.sequence_length
    return tuple(cp for cp in _CONTEXT if cp == 1 or sequence >= _LONG_CONTEXT * cp)


def _expert_degrees(workload: Workload, ranks: int) -> Iterator[int]:
    """1, and powers of two that divide both the experts and the ranks of a stage."""
    experts = workload.model.experts if workload.model else None
    degree = 1
    while degree <= ranks and (degree == 1 or (experts and experts % degree == 0)):
        if ranks % degree == 0:
            yield degree
        degree *= 2


def _chunks(workload: Workload, pp: int) -> Iterable[int]:
    """Interleaved stages where two chunks come out whole; serving gains nothing from them."""
    even = workload.model is not None and workload.model.layers % (pp * 2) == 0
    return (1, 2) if pp > 1 and even and workload.mode is Mode.TRAINING else (1,)


def _largest_micro_batch(workload: Workload) -> int:
    if workload.mode is Mode.INFERENCE and workload.output_tokens:
        return _MOST_REQUESTS
    return _LARGEST_MICRO_BATCH if workload.model is not None else _LARGEST_OF_SMALL_SAMPLES


def _micro_batches(workload: Workload, dp: int) -> Iterator[int]:
    """Powers of two, each made even: nine samples in three passes are 3 + 3 + 3, not 4 + 4 + 1.

    Requests fill what memory the weights leave, so sizes half-way between are tried for them as well.
    """
    per_rank = ceil(workload.batch_per_step / dp)
    if workload.batch_per_step < dp:
        return
    if workload.micro_batch is not None:
        if workload.micro_batch <= per_rank:
            yield workload.micro_batch
        return
    largest = min(per_rank, _largest_micro_batch(workload))
    powers = [2**exponent for exponent in range(largest.bit_length())]
    if workload.output_tokens:
        powers += [power * 3 // 2 for power in powers[1:] if power * 3 // 2 <= largest]
    yield from sorted({ceil(per_rank / ceil(per_rank / size)) for size in powers})


def _zero_stages(workload: Workload, plan: Plan) -> Iterable[int]:
    """ZeRO-2 and 3 exchange after every micro-batch, so they are not searched under pipeline stages."""
    if workload.mode is not Mode.TRAINING or plan.dp * plan.cp == 1:
        return (0,)
    return (0, 1) if plan.pp > 1 else (0, 1, 2, 3)


def _recompute(workload: Workload) -> Iterable[Recompute]:
    """The attention core is worth computing again only where its scores are written to memory."""
    if workload.mode is not Mode.TRAINING:
        return (Recompute.NONE,)
    if workload.recompute_activations:
        return (Recompute.FULL,)
    if workload.flash_attention or workload.model is None:
        return (Recompute.NONE, Recompute.FULL)
    return tuple(Recompute)


def _traced_plans(workload: Workload, measured: MeasuredStep, gpus: int) -> Iterator[Plan]:
    if not is_data_parallel(workload, measured):
        if gpus == measured.gpu_count:
            yield Plan(dp=gpus, captured=True)
        return
    if gpus == measured.gpu_count or _can_resize(workload, measured, gpus):
        for tp in _TENSOR:
            plan = Plan(dp=max(gpus // tp, 1), tp=tp)
            if gpus % tp == 0 and _divides(workload, plan):
                yield plan


def _can_resize(workload: Workload, measured: MeasuredStep, gpus: int) -> bool:
    """Whether the capture or the description says what another number of GPUs would exchange."""
    if gpus == 1 or measured.collectives or workload.mode is Mode.INFERENCE:
        return True
    return workload.parameters is not None or workload.model is not None


def is_data_parallel(workload: Workload, measured: MeasuredStep) -> bool:
    """Whether what the captured ranks exchanged is what data-parallel ranks exchange, so that their number may change.

    Replicas that serve exchange nothing; ranks that train exchange gradients and sharded weights, all with all.
    """
    talks = [work for work in measured.collectives if work.group_size != 1]
    if workload.mode is Mode.INFERENCE:
        return not talks
    return all(work.kind in _DATA_PARALLEL and work.group_size in (None, measured.gpu_count) for work in talks)


_DATA_PARALLEL = frozenset(CollectiveKind) - {CollectiveKind.SEND_RECV, CollectiveKind.ALL_TO_ALL}
