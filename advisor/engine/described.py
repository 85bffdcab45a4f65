"""Step of a job that is known by its description: its demand, as its software runs it."""

from dataclasses import replace

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates, Parts, Speed
from advisor.engine.collectives import Floats
from advisor.engine.demand import Demand, demand_of
from advisor.engine.exchanges import Exchange, gradient_exchange, no_exchange, overlapped
from advisor.engine.kernels import Work
from advisor.engine.roofs import under_roofs
from advisor.engine.stacks import Stack, stack_of
from advisor.engine.together import ALONE, Together, together
from profiling.workload import Workload

_FLOOR_POWER = 4


def described_parts(workload: Workload, candidates: Candidates, speed: Speed, pace: float = 1.0) -> Parts:
    """One step of a described job, by parts; one row per candidate.

    ``pace``: time of everything but the exchanges, as measured on an anchor, over what the formulas say.
    """
    stack = stack_of(workload.stack)
    chip = candidates.hardware.compute.training_scale
    demand = demand_of(workload, candidates, speed, stack)
    ranks = together(workload, candidates, demand.passes)
    parts = composed(demand, stack, chip, pace, host_speed=speed.host, ranks=ranks)
    return with_input(workload, under_roofs(workload, parts, candidates, speed), candidates, speed)


def composed(
    demand: Demand,
    stack: Stack,
    chip: Floats | float,
    pace: Floats | float = 1.0,
    host_speed: float = 1.0,
    ranks: Together = ALONE,
) -> Parts:
    """One step of this demand. ``chip``: time of products and attention in long runs over the laws of short ones.

    ``ranks``: what is lost because several work on it.
    """
    passes, whole = demand.passes, np.ceil(demand.passes)
    work = _work(demand, stack, chip).times(pace * ranks.work)
    launching_s = demand.layer_launches * stack.host_launch_s + demand.expert_launches * stack.expert_launch_s
    inside = _inside(demand, stack, work.total_s)
    shown_s = inside.exposed_s + demand.handover_s
    busy_s = passes * (work.total_s + shown_s)
    host_s = _floored(busy_s, whole * launching_s * pace * ranks.launching / host_speed) - busy_s
    micro_s = (busy_s + host_s) / whole
    gradients = _gradients(demand, stack, micro_s, whole, ranks.late)
    update = demand.update.times(pace * ranks.work)
    return Parts(
        compute_s=passes * work.compute_s,
        memory_s=passes * work.memory_s + update.memory_s,
        copy_s=np.zeros(len(passes)),
        communication_exposed_s=passes * shown_s + gradients.exposed_s,
        communication_hidden_s=passes * inside.hidden_s + gradients.hidden_s,
        bubble_s=(demand.pp - 1) / demand.vpp * micro_s,
        host_s=host_s + ranks.once_s / host_speed,
        input_s=np.zeros(len(passes)),
    )


def _work(demand: Demand, stack: Stack, chip: Floats | float) -> Work:
    pieces = demand.pieces
    products = pieces.products.times(stack.products_scale * chip)
    attention = pieces.attention.times(stack.attention_scale * chip)
    experts = pieces.experts.times(stack.expert_scale * chip)
    return products + experts + attention + pieces.elementwise.times(stack.elementwise_scale) + pieces.routing


def _inside(demand: Demand, stack: Stack, compute_s: Floats) -> Exchange:
    """Exchanges inside the layers of one micro-batch."""
    found = overlapped(demand.tensor_s, stack.tensor_overlap, compute_s)
    found += overlapped(demand.context_s, constant("context_overlap"), compute_s)
    found += overlapped(demand.expert_s, stack.expert_overlap, compute_s)
    return found + overlapped(demand.lookup_s, 0.0, compute_s)


def _floored(busy_s: Floats, launching_s: Floats) -> Floats:
    """The fourth-power mean of GPU and host time: whichever is longer, and a little of both where they are close."""
    return (busy_s**_FLOOR_POWER + launching_s**_FLOOR_POWER) ** (1 / _FLOOR_POWER)


def _gradients(demand: Demand, stack: Stack, micro_s: Floats, passes: Floats, late: Floats | float) -> Exchange:
    found = no_exchange(len(passes))
    for times in demand.gradients:
        found += gradient_exchange(
            times,
            zero_stage=demand.zero_stage,
            pp=demand.pp,
            overlap=stack.gradient_overlap,
            micro_s=micro_s,
            passes=passes,
            late=late,
        )
    return found


def with_input(workload: Workload, parts: Parts, candidates: Candidates, speed: Speed) -> Parts:
    """Where the host takes longer to prepare a batch than the GPUs to work through it, they wait for the rest.

    The servers prepare the batch together, on all their cores; what a server is not known to have does not slow it.
    """
    pipeline = workload.input_pipeline
    if pipeline is None or pipeline.cpu_s_per_sample is None:
        return parts
    host = candidates.hardware.host
    servers = np.where(host.node_gpus > 0, np.ceil(candidates.gpus / np.maximum(host.node_gpus, 1)), 1)
    loading_s = workload.batch_per_step * pipeline.cpu_s_per_sample / (host.cpu_cores * servers) / speed.input
    waiting_s = np.maximum(np.nan_to_num(loading_s) - parts.step_s, 0.0)
    return replace(parts, input_s=waiting_s)
