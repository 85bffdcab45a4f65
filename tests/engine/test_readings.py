"""Transfer or waiting: what a capture of one rank proves, and what it does not."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.advise import advise
from advisor.engine.cost import Goal
from advisor.engine.explain import EngineCode, EngineRefusal, VerdictCode
from advisor.engine.fabric import usual_fabric
from advisor.engine.plans import GPU_COUNTS, legal_plans
from advisor.engine.prediction import predict
from advisor.engine.step import job_of
from catalog.specs import TopologyClass
from profiling.analysis import analyse
from profiling.generate import write
from profiling.notes import Refusal
from profiling.sample_capture import sample_capture
from profiling.workload import CollectiveKind, CollectiveWork, KernelClass, KernelWork, Mode
from tests.engine.accelerators import of_device, shipped
from tests.engine.machines import (
    A100_PCIE,
    A100_SXM,
    ACCELERATORS,
    FABRICS,
    NVSWITCH,
    PCIE_P2P,
    PCIE_STAGED,
    TODAY,
    offer,
    server,
    traced_jobs,
    with_measured,
)
from tests.paths import SHARED

KERNELS = (
    KernelWork(kernel_class=KernelClass.MATMUL, busy_s=0.4, launches=1000),
    KernelWork(kernel_class=KernelClass.MEMORY, busy_s=0.1, launches=1000),
)


def one_rank(message_bytes, seconds=0.5, calls=10, gpus=8, **rest):
    """Half a second of computing, then all-reduces that nothing hides."""
    work = CollectiveWork(
        kind=CollectiveKind.ALL_REDUCE,
        calls=calls,
        message_bytes=message_bytes,
        group_size=gpus,
        busy_s=seconds,
        exposed_s=seconds,
    )
    step_s = 0.5 + seconds
    return with_measured(kernels=KERNELS, collectives=(work,), gpu_count=gpus, step_s=step_s, idle_s=0.0, **rest)


def on(job, accelerator=A100_SXM, fabric=NVSWITCH, traced=A100_SXM, gpus=8):
    return predict(job, traced_accelerator=traced, server=server(accelerator, fabric), gpus=gpus)


def codes(found):
    return [note.code for note in found.notes]


def test_time_that_the_bytes_do_not_explain_stays_on_the_same_server():
    """Ten all-reduces of 100 MB take 8 ms on an HGX A100 (229 GB/s), not 500: the rest waited, whatever the links."""
    found = on(one_rank(1e8))
    assert found.step_s == pytest.approx(1.0, rel=0.01)
    assert found.evidence == "calibrated"
    assert EngineCode.TRANSFER_UNVERIFIED in codes(found)


def test_longer_transfers_use_up_waiting_whose_cause_is_open():
    """1.75 x 1 GB over 12.5 GB/s are 0.14 s on eight A100 over PCIe, within the half second that waited for somebody
    who may have launched late; that it stays on top of them lies in the range."""
    slow = on(one_rank(1e8), A100_PCIE, PCIE_P2P)
    assert slow.parts.communication_exposed_s == pytest.approx(0.5, rel=0.1)
    assert slow.high_s > 0.5 + 0.5 + 0.14


def test_a_host_that_launched_late_is_no_reason_for_faster_links():
    """All of half a second waited for a late host: transfers that take longer come out of it, shorter ones go to it."""
    late = one_rank(1e8, waiting_s=0.48, late_launch_s=0.48)
    there, slow = on(late), on(late, A100_PCIE, PCIE_P2P)
    assert slow.step_s == pytest.approx(there.step_s, rel=0.06)
    computing = one_rank(1e8, waiting_s=0.48, late_launch_s=0.0)
    assert on(computing, A100_PCIE, PCIE_P2P).step_s > slow.step_s + 0.1


@pytest.mark.parametrize("late_s", [None, 0.0, 0.2, 0.48])
def test_faster_links_never_make_a_step_longer(late_s):
    job = one_rank(1e8, waiting_s=0.48, late_launch_s=late_s)
    steps = [on(job, A100_PCIE, fabric).step_s for fabric in (NVSWITCH, PCIE_P2P, PCIE_STAGED)]
    assert steps == sorted(steps)


def test_bytes_that_explain_the_time_are_an_anchor():
    """Ten all-reduces of 1 GB at 229 GB/s take 0.076 s."""
    found = on(one_rank(1e9, seconds=0.077))
    assert found.evidence == "anchored"
    assert EngineCode.TRANSFER_UNVERIFIED not in codes(found)


def test_one_rank_without_sizes_may_have_moved_nothing():
    """The range over PCIe reaches from waiting that stays to all of it at a twentieth of the speed."""
    found = on(one_rank(None), A100_PCIE, PCIE_P2P)
    assert found.low_s < 1.0
    assert found.high_s > 0.5 + 0.5 * 10
    assert found.step_s < 0.5 + 0.5 * 10
    assert EngineCode.TRANSFER_UNVERIFIED in codes(found)


def test_sizes_or_all_ranks_settle_it():
    for job in (one_rank(1e9, seconds=0.077), one_rank(None, waiting_s=0.1)):
        assert not job_of(job, A100_SXM).unverified
    assert job_of(one_rank(None), A100_SXM).unverified


def test_nvlink_is_not_sold_to_a_job_that_may_only_wait():
    """Break-even from all of the time as transfer is over +300 %; from none of it, nothing."""
    offers = (
        offer("sxm", 20, on=server(A100_SXM, key="one/sxm")),
        offer("pcie", 15, on=server(A100_PCIE, PCIE_STAGED, key="one/pcie")),
    )
    verdict = advise(one_rank(None), accelerator=A100_SXM, offers=offers, goal=Goal(as_of=TODAY, steps=1)).verdict
    assert verdict.low < 0.05
    assert verdict.high > 3
    assert verdict.code is VerdictCode.NO_CLEAR_WINNER


def test_transfers_faster_than_the_links_are_thought_to_be_lie_in_the_range():
    """1.75 x 10 GB in half a second are 35 GB/s: more than eight A100 over PCIe reach anywhere."""
    found = on(one_rank(1e9), A100_PCIE, usual_fabric(A100_PCIE), traced=A100_PCIE)
    assert found.step_s > 1.0 > found.low_s
    assert found.evidence == "calibrated"


def test_a_slow_link_of_the_capture_is_not_taken_for_waiting():
    """Where nobody knows whether GPUs may copy to each other, a time in the range of the links is transfer: NVSwitch
    then takes most of it away, and it may be that it does not."""
    slow = one_rank(1e8, seconds=0.4)
    there = on(slow, A100_SXM, NVSWITCH, traced=A100_PCIE)
    assert there.parts.communication_exposed_s < 0.1
    assert there.high_s > 0.6


@pytest.mark.parametrize(
    ("key", "topology"),
    [
        ("a100-sxm4-80", TopologyClass.NVSWITCH_FULL),
        ("v100-sxm2-32", TopologyClass.NVLINK_HYBRID_CUBE_MESH),
        ("gb200", TopologyClass.NVL72),
        ("gh200-96", TopologyClass.NVL72),
        ("mi300x", TopologyClass.XGMI_ALL_TO_ALL),
        ("gaudi3", TopologyClass.ROCE_ALL_TO_ALL),
        ("tpu-v5p", TopologyClass.ICI_TORUS),
        ("a100-pcie-80", TopologyClass.PCIE_ROOT),
        ("mi210", TopologyClass.PCIE_ROOT),
        ("rtx-3090", TopologyClass.PCIE_ROOT),
        ("l4", TopologyClass.PCIE_ROOT),
    ],
)
def test_where_an_accelerator_usually_sits(key, topology):
    assert usual_fabric(shipped()[key]).topology is topology


def holds_the_measured_step(workload, accelerator):
    measured = workload.measured
    machine = server(accelerator, usual_fabric(accelerator))
    found = predict(workload, traced_accelerator=accelerator, server=machine, gpus=measured.gpu_count)
    return found.low_s <= measured.step_s <= found.high_s


@settings(max_examples=150)
@given(traced_jobs(), st.sampled_from(sorted(shipped())))
def test_every_capture_lies_in_its_own_prediction(job, key):
    """The measured configuration on the hardware that it was measured on."""
    accelerator = shipped()[key]
    if legal_plans(job, 8) and job.precision in accelerator.dense_flops_per_s:
        assert holds_the_measured_step(replace(job, model=None), accelerator)


def test_the_sample_capture_lies_in_its_own_prediction(tmp_path):
    for spec in (sample_capture(), replace(sample_capture(), device_name="AMD Instinct MI300X")):
        write(spec, tmp_path / "rank0.json")
        workload = analyse([tmp_path / "rank0.json"]).workload
        assert workload.measured.gpu_count == 8
        assert holds_the_measured_step(workload, of_device(spec.device_name))


CAPTURES = sorted((SHARED / "traces" / "files").glob("kineto-*/*.json*")) if SHARED else []
MEGATRON = "kineto-megatron-tp8"


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
def test_real_captures_of_several_gpus_lie_in_their_own_predictions():
    sets = [[path] for path in CAPTURES if path.stat().st_size < 3e6]
    sets.append([path for path in CAPTURES if path.parent.name == MEGATRON])
    checked = 0
    for paths in sets:
        try:
            workload = analyse(paths).workload
        except Refusal:
            continue
        measured = workload.measured
        accelerator = of_device(measured.device_name)
        if accelerator and measured.gpu_count in GPU_COUNTS[1:]:
            assert holds_the_measured_step(workload, accelerator), paths
            checked += 1
    assert checked >= 5


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
def test_one_of_eight_ranks_that_waited_does_not_sell_nvlink():
    """88 % of these ranks' communication is waiting (aligned over all eight)."""
    workload = analyse([SHARED / "traces" / "files" / MEGATRON / "megatron_kineto_2.json"]).workload
    offers = (
        offer("sxm", 20, on=server(A100_SXM, key="one/sxm")),
        offer("pcie", 15, on=server(A100_PCIE, PCIE_P2P, key="one/pcie")),
    )
    verdict = advise(workload, accelerator=A100_SXM, offers=offers, goal=Goal(as_of=TODAY, steps=1)).verdict
    assert verdict.code is VerdictCode.NO_CLEAR_WINNER
    assert EngineCode.TRANSFER_UNVERIFIED in codes(verdict.pcie)


BOTH_SIDES = (
    offer("sxm", 20, on=server(A100_SXM, key="one/sxm")),
    offer("pcie", 15, on=server(A100_PCIE, PCIE_P2P, key="one/pcie")),
)


def without_exchange(**changes):
    step = {"kernels": KERNELS, "collectives": (), "step_s": 0.5, "idle_s": 0.0}
    return replace(with_measured(**{"gpu_count": 1, **step}), batch_per_step=64, **changes)


def test_gradients_that_nobody_captured_are_said_to_be_assumed():
    """7e9 parameters of 2 bytes: the range over PCIe holds half and twice of it."""
    job = without_exchange(parameters=7e9, peak_memory_bytes=20e9)
    eight = on(job, A100_PCIE, PCIE_P2P, traced=A100_PCIE)
    assert EngineCode.GRADIENTS_ASSUMED in codes(eight)
    assert eight.evidence == "calibrated"
    assert on(job, A100_PCIE, PCIE_P2P, traced=A100_PCIE, gpus=1).evidence == "anchored"
    shown = eight.parts.communication_exposed_s
    assert eight.high_s > eight.step_s + 0.9 * shown
    assert eight.low_s < eight.step_s - 0.4 * shown


@pytest.mark.parametrize("gpus", [1, 8])
def test_links_are_not_judged_by_an_exchange_that_nobody_knows(gpus):
    job = without_exchange(parameters=None, peak_memory_bytes=20e9)
    job = replace(job, measured=replace(job.measured, gpu_count=gpus))
    advice = advise(job, accelerator=A100_SXM, offers=BOTH_SIDES, goal=Goal(as_of=TODAY, steps=1))
    assert advice.verdict is None
    assert advice.verdict_notes[0].code is VerdictCode.ONE_GPU_CAPTURED


def test_replicas_that_serve_are_said_to_be_assumed():
    job = without_exchange(parameters=None, peak_memory_bytes=20e9, mode=Mode.INFERENCE)
    assert EngineCode.REPLICAS_ASSUMED in codes(on(job))


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
def test_waiting_for_two_hosts_that_launched_late_does_not_stay_on_slower_links():
    """Two of these eight ranks are launch-bound, and 88 % of the exchange waits for them (aligned over all ranks):
    slower links use that time first, so that NVLink is worth far less than transfer on top of waiting would say."""
    workload = analyse([SHARED / "traces" / "files" / MEGATRON]).workload
    step = workload.measured
    assert step.late_launch_s > 0.8 * step.waiting_s
    goal = Goal(as_of=TODAY, steps=1)
    found = advise(workload, accelerator=A100_SXM, offers=BOTH_SIDES, goal=goal).verdict
    on_top = replace(workload, measured=replace(step, graph=None, late_launch_s=0.0))
    assert (
        found.break_even < 0.6 * advise(on_top, accelerator=A100_SXM, offers=BOTH_SIDES, goal=goal).verdict.break_even
    )
    assert found.nvlink.bottleneck == "host"


@pytest.mark.parametrize("kernels", [(), (replace(KERNELS[0], busy_s=0.0),)])
def test_a_capture_of_nothing_but_communication_is_refused(kernels):
    job = one_rank(1e9)
    empty = replace(job, measured=replace(job.measured, kernels=kernels))
    with pytest.raises(EngineRefusal) as refused:
        on(empty, gpus=1)
    assert refused.value.code is EngineCode.CAPTURE_WITHOUT_WORK


def numbers(found):
    parts = [getattr(found.parts, name) for name in type(found.parts).__slots__]
    own = (found.step_s, found.low_s, found.high_s, found.link_low, found.link_high, found.samples_per_step)
    return [*parts, *own, *found.sensitivities.values()]


SPARSE = st.sampled_from((0.0, 1e-9, 0.3))


@settings(max_examples=100)
@given(
    st.sampled_from(ACCELERATORS),
    st.sampled_from(FABRICS),
    st.sampled_from((1, 2, 8, 64)),
    st.sampled_from(GPU_COUNTS),
    st.tuples(SPARSE, SPARSE, SPARSE, SPARSE),
    st.sampled_from((None, 0.0, 1e9)),
    st.sampled_from((None, 0.0, 0.2)),
    st.sampled_from(tuple(CollectiveKind)),
)
def test_what_leaves_the_engine_is_finite(accelerator, fabric, captured, gpus, seconds, size, waiting, kind):
    kernel_s, copy_s, idle_s, exchange_s = seconds
    copies = replace(KERNELS[1], kernel_class=KernelClass.COPY, busy_s=copy_s)
    work = replace(one_rank(size).measured.collectives[0], kind=kind, group_size=None)
    job = with_measured(
        gpu_count=captured,
        kernels=(replace(KERNELS[0], busy_s=kernel_s), copies),
        idle_s=idle_s,
        collectives=(replace(work, busy_s=exchange_s, exposed_s=exchange_s),),
        step_s=sum(seconds),
        waiting_s=waiting,
    )
    try:
        found = on(job, accelerator, fabric, gpus=gpus)
    except EngineRefusal:
        return
    assert all(-inf < value < inf for value in numbers(found))
    assert 0 < found.low_s <= found.step_s <= found.high_s


def test_more_ranks_than_one_server_are_read_against_the_network():
    """64 GPUs: their exchange crossed servers, at up to a twentieth of the links within one."""
    job = one_rank(1e8, seconds=0.1, gpus=64)
    eight = predict(job, traced_accelerator=A100_SXM, server=server(A100_SXM), gpus=8)
    assert eight.parts.communication_exposed_s < 0.02
