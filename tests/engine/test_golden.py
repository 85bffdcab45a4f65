"""Whole answers that are known: measured layers of eth-easl/sailor (SOSP'25, MIT), TF32 and FP32, as the reference has
them in facts/sailor_tp_scaling.csv. Tensor parallelism over 8 RTX 3090 on PCIe is slower than one of them, over its
NVLink pair 1.7 times faster.
"""

from dataclasses import replace

import pytest

from advisor.engine.plans import Plan
from advisor.engine.prediction import predict
from profiling.workload import Mode, ModelShape, Workload
from tests.engine.machines import A100_SXM, NVSWITCH, PAIRS, RTX_3090, server

OPT_350M = ModelShape(
    layers=24, hidden=1024, heads=16, vocabulary=50272, sequence_length=2048, ffn_hidden=4096, gated_mlp=False
)
BRIDGED_3090 = server(RTX_3090, replace(PAIRS, peer_to_peer=False))


def speedup(machine, tp, micro_batch=1):
    """Rate of ``tp`` ranks over that of one, at the same micro-batch."""
    job = Workload(
        name="opt-350m",
        mode=Mode.TRAINING,
        precision="tf32",
        batch_per_step=micro_batch,
        micro_batch=micro_batch,
        model=OPT_350M,
        flash_attention=False,
    )
    times = [
        predict(job, server=machine, gpus=ranks, plan=Plan(tp=ranks, micro_batch=micro_batch)).step_s
        for ranks in (1, tp)
    ]
    return times[0] / times[1]


def test_eight_3090_over_pcie_are_slower_than_one():
    """Measured: 0.4."""
    assert speedup(BRIDGED_3090, 8) < 1


def test_a_bridged_pair_of_3090_pays():
    """Measured: 1.74."""
    assert speedup(BRIDGED_3090, 2) == pytest.approx(1.74, rel=0.15)


def test_four_a100_pay():
    """Measured at micro-batch 8: 3.2."""
    assert speedup(server(A100_SXM, NVSWITCH), 4, micro_batch=8) == pytest.approx(3.2, rel=0.15)
