"""Labels without a timeline: only as sure as the evidence, and none where it cannot tell."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.bottleneck import COMMUNICATION, COMPUTE, HOST, LABELS, MEMORY, WORK_LABELS, Bottleneck
from profiling.bottleneck_messages import FINDINGS
from profiling.coarse import LEAST_SAMPLES, coarse_bottleneck
from profiling.evidence import (
    DeviceLoad,
    DeviceLoads,
    KernelProfile,
    KernelProfiles,
    KernelSums,
    SummedKernel,
    Topology,
)
from profiling.formats.registry import read
from profiling.messages import sentence
from profiling.notes import BottleneckCode
from profiling.timeline import WorkKind
from tests.paths import SHARED

TRACES = SHARED / "traces" if SHARED else None
KINDS = ("nsys-txt", "ncu-clima", "smi-querycsv", "dcgm-h800")


def _loads(*devices: DeviceLoad) -> Bottleneck:
    found = coarse_bottleneck([DeviceLoads(devices=devices)])
    assert found is not None
    return found


def _load(entity: str = "GPU0", samples: int = LEAST_SAMPLES, **figures: float) -> DeviceLoad:
    return DeviceLoad(entity=entity, samples=samples, **figures)  # ty: ignore[invalid-argument-type]


def _sums(launches: int = 50, /, **times: int) -> Bottleneck:
    rows = tuple(
        SummedKernel(name=name, kind=WorkKind.KERNEL, count=launches, total_ns=time) for name, time in times.items()
    )
    found = coarse_bottleneck([KernelSums(device_name=None, rows=rows)])
    assert found is not None
    return found


def test_busy_tensor_cores_mean_compute() -> None:
    found = _loads(_load(utilisation=1.0, sm_active=0.9, tensor_active=0.6, dram_active=0.3))
    assert found.label == found.work_label == COMPUTE
    assert not found.host_bound


def test_a_busy_memory_interface_means_memory() -> None:
    assert _loads(_load(graphics_active=1.0, tensor_active=0.05, dram_active=0.7)).label == MEMORY


def test_a_full_link_means_communication() -> None:
    found = _loads(_load(utilisation=1.0, tensor_active=0.1, dram_active=0.15, nvlink_tx_bytes_per_s=2.3e11))
    assert found.label == COMMUNICATION


def test_units_that_all_rest_tell_nothing() -> None:
    found = _loads(_load(utilisation=1.0, sm_active=0.9, tensor_active=0.05, dram_active=0.02))
    assert found.label is None


def test_utilisation_alone_tells_nothing_of_the_resource() -> None:
    found = _loads(_load(utilisation=0.97))
    assert found.label is None
    assert found.statement.code == BottleneckCode.ONLY_UTILISATION
    assert {found.probabilities[label] for label in WORK_LABELS} == {1 / 3}


def test_a_device_that_mostly_idles_is_host_bound() -> None:
    found = _loads(_load(utilisation=0.04, memory_utilisation=0.01))
    assert (found.label, found.host_bound) == (HOST, True)
    assert found.statement.params == {"percent": 96.0}


def test_memory_that_is_nearly_always_read_means_memory() -> None:
    assert _loads(_load(utilisation=0.98, memory_utilisation=0.85)).label == MEMORY
    assert _loads(_load(utilisation=0.98, memory_utilisation=0.4)).label is None


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_idle_time_never_speaks_against_the_host(one: float, other: float) -> None:
    busy, busier = sorted((one, other))
    assert _loads(_load(utilisation=busy)).probabilities[HOST] >= _loads(_load(utilisation=busier)).probabilities[HOST]


def test_devices_that_the_job_does_not_use_do_not_count() -> None:
    found = _loads(_load(utilisation=0.9), *(_load(f"GPU{number}", utilisation=0.0) for number in range(1, 8)))
    assert not found.host_bound


def test_slices_count_only_where_there_is_no_card() -> None:
    idle = DeviceLoad(entity="GPU-I1", samples=50, is_slice=True, graphics_active=0.01)
    assert _loads(idle).host_bound
    assert not _loads(idle, _load(graphics_active=0.9, dram_active=0.7, tensor_active=0.0)).host_bound


def test_a_glance_is_no_judgement() -> None:
    found = _loads(_load(samples=LEAST_SAMPLES - 1, utilisation=0.0))
    assert (found.label, found.host_bound, found.probabilities) == (None, None, {})
    assert found.statement.code == BottleneckCode.TOO_FEW_SAMPLES


def test_unseen_idle_time_is_said() -> None:
    found = _loads(_load(nvlink_tx_bytes_per_s=1e9))
    assert BottleneckCode.HOST_NOT_TOLD in [note.code for note in found.warnings]


def test_sums_by_family_of_kernel() -> None:
    assert _sums(ampere_bf16_s16816gemm_bf16_128x64=80, vectorized_elementwise_kernel=20).label == COMPUTE
    assert _sums(ampere_bf16_s16816gemm_bf16_128x64=15, vectorized_elementwise_kernel=85).label == MEMORY
    assert _sums(ncclDevKernel_AllReduce_Sum_bf16_RING_LL=95, vectorized_elementwise_kernel=5).label == COMMUNICATION


def test_sums_do_not_tell_of_the_host() -> None:
    found = _sums(ampere_bf16_s16816gemm_bf16_128x64=80)
    assert found.host_bound is None
    assert [note.code for note in found.warnings] == [BottleneckCode.HOST_NOT_TOLD]


def test_a_few_launches_are_no_judgement() -> None:
    found = _sums(3, vector_add=100)
    assert (found.label, found.probabilities) == (None, {})
    assert found.statement.code == BottleneckCode.TOO_FEW_KERNELS


def test_sums_of_kernels_of_unknown_purpose_are_said() -> None:
    assert BottleneckCode.MANY_UNCLASSIFIED in [note.code for note in _sums(set_tendency_cache=100).warnings]


def test_profiles_are_weighted_by_time() -> None:
    kernels = (
        KernelProfile(name="a", duration_s=9e-3, bound="memory"),
        KernelProfile(name="b", duration_s=1e-3, bound="compute"),
        KernelProfile(name="c", duration_s=1e-4, launches=10, bound=None),
    )
    found = coarse_bottleneck([KernelProfiles(device_name=None, kernels=kernels)])
    assert found is not None
    assert found.label == MEMORY
    shares = {note.code: note.params["percent"] for note in found.evidence[1:]}
    assert shares[BottleneckCode.PROFILED_MEMORY_SHARE] == pytest.approx(81.8)
    assert shares[BottleneckCode.PROFILED_LATENCY_SHARE] == pytest.approx(9.1)


def test_kernels_near_no_peak_give_no_label() -> None:
    kernels = (KernelProfile(name="a", duration_s=1.0, bound="latency"),)
    found = coarse_bottleneck([KernelProfiles(device_name=None, kernels=kernels)])
    assert found is not None
    assert found.label is None


def test_a_machine_tells_nothing_of_a_job() -> None:
    topology = Topology(gpus=("GPU0",), nics=(), links={}, numa={}, nvlink=False, full_mesh=False, worst_link=None)
    assert coarse_bottleneck([topology]) is None
    assert coarse_bottleneck([]) is None
    assert coarse_bottleneck([DeviceLoads(devices=(DeviceLoad(entity="GPU0", samples=0),))]) is None


FRACTION = st.none() | st.floats(0, 1)
RATE = st.none() | st.floats(0, 1e12)
DEVICES = st.lists(
    st.builds(
        DeviceLoad,
        entity=st.text(max_size=5),
        samples=st.integers(0, 1000),
        is_slice=st.booleans(),
        utilisation=FRACTION,
        memory_utilisation=FRACTION,
        graphics_active=FRACTION,
        sm_active=FRACTION,
        tensor_active=FRACTION,
        dram_active=FRACTION,
        nvlink_tx_bytes_per_s=RATE,
        pcie_rx_bytes_per_s=RATE,
    ),
    max_size=5,
)


@given(DEVICES)
def test_probabilities_add_up_and_are_never_sure(devices: list[DeviceLoad]) -> None:
    found = coarse_bottleneck([DeviceLoads(devices=tuple(devices))])
    if found is None:
        return
    assert all(sentence(note) for note in (*found.evidence, *found.warnings))
    if not found.probabilities:
        assert found.label is None
        return
    assert set(found.probabilities) == set(LABELS if found.host_bound is not None else WORK_LABELS)
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert max(found.probabilities.values()) <= 0.8
    assert not found.sure
    only_utilisation = all(load.tensor_active is None and load.dram_active is None for load in devices)
    if only_utilisation:
        assert max(found.probabilities[label] for label in WORK_LABELS) <= 0.75


def test_every_finding_has_a_sentence() -> None:
    assert set(BottleneckCode) == set(FINDINGS)


def _labelled() -> list[dict[str, str]]:
    if TRACES is None:
        return []
    with (TRACES / "LABELS.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [
        row
        for row in rows
        if row["slug"].startswith(KINDS) or (row["slug"].startswith("p2pbench") and row["path"].endswith(".csv"))
    ]


@pytest.mark.parametrize("row", _labelled(), ids=lambda row: Path(row["path"]).name)
def test_agrees_with_careful_people(row: dict[str, str]) -> None:
    """First or second label where they are fairly sure; where they are not, nothing that claims to be sure."""
    assert TRACES is not None
    found = coarse_bottleneck(read(TRACES / row["path"]).evidence)
    assert found is not None
    said = "host_idle" if found.label == HOST else found.label
    if row["confidence"] == "high":
        assert said == row["label"]
    elif row["confidence"] == "medium":
        assert said in (None, row["label"], row["second_label"])
    else:
        assert max(found.probabilities.values(), default=0) < 0.6
