"""What must hold of a plan's memory whatever the constants are."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from advisor.engine.candidates import Candidates
from advisor.engine.hardware import hardware
from advisor.engine.memory import allocated_bytes, need_bytes
from advisor.engine.plans import Plan, Recompute
from advisor.engine.system import System
from profiling.workload import Mode, ModelShape, Workload
from tests.engine.machines import A100_SXM, NVSWITCH
from tests.engine.test_memory import candidates

DEGREES = st.sampled_from((1, 2, 4, 8))


@st.composite
def models(draw):
    experts = draw(st.sampled_from((None, 8, 64)))
    heads = draw(st.sampled_from((8, 32)))
    return ModelShape(
        layers=draw(st.sampled_from((16, 32, 64))),
        hidden=128 * heads,
        heads=heads,
        kv_heads=draw(st.sampled_from((None, 8))),
        vocabulary=draw(st.sampled_from((32000, 128256))),
        sequence_length=draw(st.sampled_from((1024, 4096, 32768))),
        gated_mlp=draw(st.booleans()),
        attention_window=draw(st.sampled_from((None, 1024))),
        windowed_layers=8,
        experts=experts,
        experts_per_token=2 if experts else None,
        expert_ffn=512 if experts else None,
        dense_layers=draw(st.sampled_from((0, 2))) if experts else 0,
    )


@st.composite
def jobs(draw, mode=None):
    return Workload(
        name="drawn",
        mode=mode or draw(st.sampled_from(Mode)),
        precision=draw(st.sampled_from(("fp32", "bf16", "fp8"))),
        batch_per_step=4096,
        model=draw(models()),
        lora_rank=draw(st.sampled_from((None, None, 16))),
        weight_bits=draw(st.sampled_from((None, None, 4))),
        flash_attention=draw(st.booleans()),
        stack=draw(st.sampled_from((None, "megatron-core", "torch-compile"))),
    )


@st.composite
def plans(draw, **fixed):
    sizes = {name: draw(DEGREES) for name in ("dp", "tp", "pp", "cp", "ep")}
    plan = Plan(
        **{
            **sizes,
            "zero_stage": draw(st.integers(0, 3)),
            "micro_batch": draw(st.sampled_from((1, 2))),
            "recompute": draw(st.sampled_from(Recompute)),
            **fixed,
        }
    )
    assume((plan.dp * plan.tp * plan.cp) % plan.ep == 0)
    return plan


LAWS = settings(max_examples=80, deadline=None)
ROUNDING = 1 + 1e-9


def both(workload, one, other):
    return allocated_bytes(workload, candidates(one, other))


@LAWS
@given(jobs(), plans(), st.sampled_from(("dp", "tp", "pp", "cp")))
def test_more_ranks_never_need_more_each(workload, plan, axis):
    """Context parallelism is not used to serve; FSDP with a first pipeline stage keeps weights and gradients whole;
    stages with dense layers before those with experts are unlike each other.
    """
    assume(not (axis == "cp" and workload.mode is Mode.INFERENCE))
    assume(not (axis == "pp" and plan.pp == 1 and plan.zero_stage >= 2))
    assume(not (axis == "pp" and workload.model.dense_layers))
    less, more = both(workload, plan, replace(plan, **{axis: 2 * getattr(plan, axis)}))
    assert more <= less * ROUNDING


@LAWS
@given(jobs(mode=Mode.TRAINING), plans())
def test_experts_shared_out_need_less(workload, plan):
    ranks = plan.dp * plan.tp * plan.cp
    assume(ranks % (2 * plan.ep) == 0)
    less, more = both(workload, plan, replace(plan, ep=2 * plan.ep))
    assert more <= less * ROUNDING


@LAWS
@given(jobs(mode=Mode.TRAINING), plans(pp=1), st.integers(0, 2))
def test_sharding_more_never_needs_more(workload, plan, stage):
    """Stage 3 scatters the gradients of all experts of a layer at once; all of it may be more than it saves."""
    assume(stage < 2 or workload.model.experts is None)
    less, more = both(workload, replace(plan, zero_stage=stage), replace(plan, zero_stage=stage + 1))
    assert more <= less * ROUNDING


@LAWS
@given(jobs(), plans())
def test_recomputing_more_never_needs_more(workload, plan):
    order = (Recompute.NONE, Recompute.SELECTIVE, Recompute.FULL)
    needs = allocated_bytes(workload, candidates(*(replace(plan, recompute=again) for again in order)))
    assert (np.diff(needs) <= needs[0] * 1e-9).all()


@LAWS
@given(jobs(), plans())
def test_larger_samples_need_more(workload, plan):
    less, more = both(workload, plan, replace(plan, micro_batch=2 * plan.micro_batch))
    assert more > less
    longer = replace(workload, model=replace(workload.model, sequence_length=2 * workload.model.sequence_length))
    assert allocated_bytes(longer, candidates(plan))[0] >= less


@LAWS
@given(jobs(), plans())
def test_the_driver_sees_more_than_is_allocated(workload, plan):
    rows = candidates(plan)
    assert need_bytes(workload, rows)[0] > allocated_bytes(workload, rows)[0] > 0


@LAWS
@given(jobs(), st.lists(plans(), min_size=2, max_size=5, unique=True))
def test_rows_do_not_touch_each_other(workload, some):
    """Many rows of few plans, in any order, need what each of them needs alone."""
    which = np.array([place for place in range(len(some)) for _ in range(3)])[::-1]
    rows = hardware([System(A100_SXM, NVSWITCH)], "bf16").take(np.zeros(len(which), dtype=np.int64))
    found = need_bytes(workload, Candidates.of(rows, some, which))
    alone = [need_bytes(workload, candidates(plan))[0] for plan in some]
    assert found == pytest.approx(np.array(alone)[which], rel=1e-12)
