"""Throughput over GPU counts, in one server and over several."""

from dataclasses import replace
from itertools import pairwise

import pytest

from advisor.engine.document import document
from advisor.engine.scaling import MOST_GPUS, Scaling, curves
from advisor.engine.step import job_of
from advisor.engine.system import System
from catalog.specs import FabricSpec, TopologyClass
from tests.engine.machines import (
    A100_PCIE,
    A100_SXM,
    H100_SXM,
    L40S,
    NVSWITCH,
    PCIE_P2P,
    TRACED,
    TRAINING_7B,
    TRAINING_SMALL,
)
from tests.engine.test_advice import answer


def curves_of(job, accelerator, fabric, node_gpus=8, traced=None):
    system = System(accelerator, fabric, node_gpus)
    return {one.kind: one for one in curves(job_of(job, traced), [("top_offer", system)])}


def joined(fabric, gbit, rdma=True):
    return replace(fabric, network_bandwidth_bytes_per_s=gbit / 8 * 1e9, rdma=rdma)


def per_gpu(point):
    return point.prediction.samples_per_s / point.prediction.gpus


@pytest.mark.parametrize("fabric", [PCIE_P2P, joined(PCIE_P2P, 100)])
@pytest.mark.parametrize("accelerator", [H100_SXM, A100_PCIE, L40S])
@pytest.mark.parametrize("job", [TRAINING_7B, TRAINING_SMALL])
def test_efficiency_is_against_the_best_up_to_there(job, accelerator, fabric):
    for drawn in curves_of(job, accelerator, fabric).values():
        best = 0.0
        for point in drawn.points:
            best = max(best, per_gpu(point))
            assert point.efficiency == pytest.approx(per_gpu(point) / best)
            assert 0 < point.efficiency <= 1
        assert all(one.prediction.gpus < other.prediction.gpus for one, other in pairwise(drawn.points))


def test_a_small_count_that_recomputes_is_no_base():
    """A 7B in Adam needs 108 GB of states: on two GPUs of 86 GB it recomputes, on eight it does not have to."""
    drawn = curves_of(replace(TRAINING_7B, batch_per_step=16), H100_SXM, NVSWITCH)[Scaling.STRONG]
    first, last = drawn.points[0], drawn.points[-1]
    assert (first.prediction.gpus, first.prediction.plan.recompute) == (2, "full")
    assert last.prediction.plan.recompute == "none"
    assert per_gpu(last) > per_gpu(first)
    assert first.efficiency == 1


def test_strong_scaling_keeps_the_batch_and_weak_scaling_that_of_each_gpu():
    found = curves_of(TRAINING_7B, H100_SXM, joined(NVSWITCH, 3200))
    strong, weak = (found[kind].points for kind in Scaling)
    assert strong[0] == weak[0]
    assert {point.prediction.samples_per_step for point in strong} == {64}
    each = 64 / weak[0].prediction.gpus
    assert {point.prediction.samples_per_step / point.prediction.gpus for point in weak} == {each}
    assert weak[-1].efficiency > strong[-1].efficiency


def test_several_servers_are_drawn_where_their_network_is_stated():
    known, unknown = (curves_of(TRAINING_SMALL, H100_SXM, one) for one in (joined(NVSWITCH, 3200), NVSWITCH))
    shown = [(point.prediction.gpus, point.servers) for point in known[Scaling.STRONG].points]
    assert shown == [(1, 1), (2, 1), (4, 1), (8, 1), (16, 2), (32, 4), (64, 8)]
    assert shown[-1][0] == MOST_GPUS
    assert [point.prediction.gpus for point in unknown[Scaling.STRONG].points] == [1, 2, 4, 8]
    assert [point.prediction.gpus for point in unknown[Scaling.WEAK].points] == [1, 2, 4, 8]


def test_servers_of_any_size_are_drawn_up_to_all_of_it():
    ten = curves_of(TRAINING_SMALL, L40S, joined(PCIE_P2P, 100), node_gpus=10)[Scaling.STRONG]
    shown = [(point.prediction.gpus, point.servers) for point in ten.points]
    assert shown == [(1, 1), (2, 1), (4, 1), (8, 1), (10, 1), (20, 2), (40, 4)]
    rack = FabricSpec(topology=TopologyClass.NVL72, domain_gpus=72)
    four = curves_of(TRAINING_SMALL, H100_SXM, rack, node_gpus=4)[Scaling.STRONG]
    assert [point.servers for point in four.points] == [1, 1, 1, 2, 4, 8, 16]


def test_a_faster_network_never_scales_worse():
    job = replace(TRAINING_7B, batch_per_step=256)
    slow, fast = (curves_of(job, H100_SXM, joined(NVSWITCH, gbit))[Scaling.STRONG] for gbit in (100, 3200))
    for one, other in zip(slow.points, fast.points, strict=True):
        assert other.prediction.step_s <= one.prediction.step_s * (1 + 1e-9)
    assert slow.pays_until <= fast.pays_until
    assert slow.points[-1].efficiency < fast.points[-1].efficiency


def test_a_trace_keeps_the_batch_of_each_gpu():
    found = curves_of(TRACED, A100_SXM, NVSWITCH, traced=A100_SXM)
    assert list(found) == [Scaling.WEAK]
    assert {point.prediction.samples_per_step / point.prediction.gpus for point in found[Scaling.WEAK].points} == {256}


def test_the_document_has_every_point_with_its_servers():
    advice = answer()
    for curve, shown in zip(advice.scaling, document(advice)["scaling"], strict=True):
        assert (shown["role"], shown["kind"], shown["pays_until"]) == (curve.role, curve.kind, curve.pays_until)
        found = [(point["gpus"], point["nodes"], point["efficiency"]) for point in shown["points"]]
        assert found == [(point.prediction.gpus, point.servers, point.efficiency) for point in curve.points]
