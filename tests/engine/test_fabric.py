"""Groups wherever they lie: inside a server, over a rack, across servers. Published figures and laws."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.candidates import AS_IS, Candidates, Speed
from advisor.engine.groups import collective_s
from advisor.engine.hardware import hardware
from advisor.engine.network import domain_gpus, network_is_known
from advisor.engine.plans import Plan
from advisor.engine.system import System
from catalog.specs import FabricSpec, TopologyClass
from profiling.workload import CollectiveKind
from tests.engine.machines import (
    A100_PCIE,
    A100_SXM,
    H100_SXM,
    MI300X,
    NVSWITCH,
    PCIE_P2P,
    PCIE_STAGED,
    RTX_3090,
    XGMI,
    _accelerator,
)

H200 = _accelerator("h200-sxm", "SXM5", 150, 4800, 989.4, 66.9, 450, 5)
B200 = _accelerator("b200-sxm", "SXM6", 191, 8000, 2250, 80, 900, 5)
GB200 = _accelerator("gb200", "superchip", 197, 8000, 2500, 80, 900, 5)
V100 = _accelerator("v100-sxm2-16", "SXM2", 17, 900, 125, 15.7, 150, 3)
GAUDI2 = replace(_accelerator("gaudi2", "OAM", 103, 2450, 432, 20, 262.5, 4), scaleup_kind="roce")
NVL72 = FabricSpec(topology=TopologyClass.NVL72, domain_gpus=72)
MESH = FabricSpec(topology=TopologyClass.NVLINK_HYBRID_CUBE_MESH, domain_gpus=8)
PAIRS_3090 = FabricSpec(topology=TopologyClass.NVLINK_BRIDGE_PAIRS, domain_gpus=2, peer_to_peer=False)
ROCE = FabricSpec(topology=TopologyClass.ROCE_ALL_TO_ALL, domain_gpus=8)
MIB, GIB = 2.0**20, 2.0**30

ALL_REDUCE, ALL_GATHER = CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER
KINDS = [kind for kind in CollectiveKind if kind is not CollectiveKind.UNKNOWN]


def over(fabric, gigabit_per_s, rdma=True):
    """The fabric with NICs of so many Gbit/s a server."""
    return replace(fabric, network_bandwidth_bytes_per_s=gigabit_per_s * 1e9 / 8, rdma=rdma)


def times(systems, kind, message_bytes, size, stride=1, speed=AS_IS):
    """Seconds on every system; the other arguments are numbers, or one for each system."""
    rows = np.arange(len(systems))
    candidates = Candidates.of(hardware(systems, "bf16"), (Plan(),), 0 * rows)
    messages, sizes, strides = (np.broadcast_to(value, rows.shape) for value in (message_bytes, size, stride))
    return collective_s(candidates, kind, messages.astype(float), size=sizes, stride=strides, speed=speed)


def seconds(system, kind, message_bytes, size, stride=1):
    return float(times([system], kind, message_bytes, size, stride)[0])


def bus_gb_s(system, message_bytes, size, kind=ALL_REDUCE, stride=1):
    once = 2 if kind is ALL_REDUCE else 1
    return once * (size - 1) / size * message_bytes / seconds(system, kind, message_bytes, size, stride) / 1e9


@pytest.mark.parametrize(
    ("system", "gpus", "message_bytes", "published", "within"),
    [
        # two servers: ring or tree on DGX A100 (NVIDIA/nccl#1576), tree where the switch reduces (coreweave/nccl-tests
        # #92; two p5 servers with EFA, aws on EKS)
        (System(A100_SXM, over(NVSWITCH, 1600), 8), 16, 8 * GIB, 192, 0.05),
        (System(H100_SXM, over(NVSWITCH, 3200), 8), 16, 8 * GIB, 440.6, 0.1),
        (System(H100_SXM, over(NVSWITCH, 3200), 8), 16, 16 * GIB, 487, 0.05),
        (System(B200, over(NVSWITCH, 3200), 8), 16, 8 * GIB, 690, 0.05),
        # more: rings (three servers of A100 with four HDR NICs, NVIDIA/nccl-tests#119; four p5en servers,
        # stas00/ml-engineering; domains of 4 and 8 GB200, NVIDIA/nccl#1801), trees at 1984 GPUs (NVIDIA/nccl-tests#283)
        (System(A100_SXM, over(NVSWITCH, 800), 8), 24, 128 * MIB, 96, 0.15),
        (System(H200, over(NVSWITCH, 3200), 8), 32, 4 * GIB, 364.9, 0.05),
        (System(GB200, over(NVSWITCH, 1600), 4), 12, 16 * GIB, 196.9, 0.05),
        (System(GB200, over(NVSWITCH, 3200), 8), 24, 16 * GIB, 393.6, 0.05),
        (System(H200, over(NVSWITCH, 3200), 8), 1984, 512 * MIB, 350, 0.15),
        # sockets over 100 Gbit/s (NVIDIA/nccl#450: 4 to 6 GB/s)
        (System(V100, over(MESH, 100, rdma=False), 8), 32, 128 * MIB, 5, 0.3),
        # one rack is one domain (coreweave/nccl-tests#43)
        (System(GB200, over(NVL72, 1600), 4), 72, 8 * GIB, 835, 0.15),
    ],
)
def test_bus_bandwidth_across_servers(system, gpus, message_bytes, published, within):
    assert bus_gb_s(system, message_bytes, gpus) == pytest.approx(published, rel=within)


@pytest.mark.parametrize(
    ("system", "gpus", "published", "within"),
    [
        # sizes that are no power of two (VIA-Research/vTrain trace/a100, trace/v100)
        (System(A100_SXM, NVSWITCH), 3, 203, 0.12),
        (System(A100_SXM, NVSWITCH), 6, 226, 0.12),
        (System(V100, MESH), 3, 45.1, 0.05),
        (System(V100, MESH), 5, 37.1, 0.05),
        # eight RTX 3090 with bridged pairs, derived from measured layers (eth-easl/sailor): pair, four, eight
        (System(RTX_3090, PAIRS_3090), 2, 33, 0.3),
        (System(RTX_3090, PAIRS_3090), 4, 4.75, 0.1),
        (System(RTX_3090, PAIRS_3090), 8, 1.7, 0.25),
        # a pair of MI300X has one link (stas00/ml-engineering)
        (System(MI300X, XGMI), 2, 47.7, 0.05),
    ],
)
def test_bus_bandwidth_in_a_server(system, gpus, published, within):
    assert bus_gb_s(system, 512 * MIB, gpus) == pytest.approx(published, rel=within)


def test_a_pair_in_a_box_of_all_to_all_links_has_one_of_them():
    pair, box = (bus_gb_s(System(GAUDI2, ROCE), GIB, gpus) for gpus in (2, 8))
    assert 6 < box / pair < 8


def test_send_receive_is_that_of_a_pair_however_many_stages():
    pair, stages = (seconds(System(MI300X, XGMI), CollectiveKind.SEND_RECV, 64 * MIB, size) for size in (2, 8))
    assert stages == pytest.approx(pair)


def test_four_modules_with_direct_links_send_over_a_third_of_their_links():
    """72 of 100 GB/s between two of four A100 (NVIDIA/nccl-tests#331)."""
    direct = FabricSpec(topology=TopologyClass.NVLINK_DIRECT, domain_gpus=4)
    took = seconds(System(A100_SXM, direct), CollectiveKind.SEND_RECV, GIB, 2)
    assert GIB / took / 1e9 == pytest.approx(72, rel=0.1)


def test_groups_of_one_take_no_time():
    assert (times([System(A100_SXM, NVSWITCH, 8)] * 3, ALL_REDUCE, MIB, 1, [1, 8, 64]) == 0).all()


def test_an_unstated_network_is_never_guessed():
    system = System(H100_SXM, NVSWITCH, 8)
    assert network_is_known(system, 8) and not network_is_known(system, 16)
    assert network_is_known(system._replace(fabric=over(NVSWITCH, 3200)), 16)
    assert np.isinf(seconds(system, ALL_REDUCE, MIB, 16))
    assert np.isfinite(seconds(system, ALL_REDUCE, MIB, 8))


def test_a_system_that_says_nothing_of_its_servers_is_one_server():
    assert network_is_known(System(H100_SXM, NVSWITCH), 1024)


def test_a_rack_is_one_domain_of_many_servers():
    rack = System(GB200, NVL72, 4)
    assert domain_gpus(rack) == 72
    assert network_is_known(rack, 72) and not network_is_known(rack, 76)
    trays = System(GB200, over(NVSWITCH, 1600), 4)
    assert seconds(rack, ALL_REDUCE, GIB, 64) < seconds(trays, ALL_REDUCE, GIB, 64) / 3


def test_a_group_that_does_not_divide_its_servers_straddles_two():
    """Six tensor-parallel ranks on servers of eight: the second group has two here and four there."""
    systems = [System(H100_SXM, over(NVSWITCH, 3200), 8)] * 2
    plans = (Plan(tp=6, dp=4), Plan(tp=4, dp=6))
    candidates = Candidates.of(hardware(systems, "bf16"), plans, np.arange(2))
    message, stride = np.full(2, 64 * MIB), np.ones(2, dtype=np.int64)
    six, four = collective_s(candidates, ALL_REDUCE, message, size=candidates.tp, stride=stride, speed=AS_IS)
    assert six > 1.2 * seconds(systems[0], ALL_REDUCE, 64 * MIB, 6)
    assert four == pytest.approx(seconds(systems[0], ALL_REDUCE, 64 * MIB, 4))


def test_groups_of_a_server_share_its_nics():
    """Eight groups of one rank a server: each has an eighth of what one group of all ranks has."""
    system = System(A100_SXM, over(NVSWITCH, 100), 8)
    alone, beside = (bus_gb_s(system, 8 * GIB, size, ALL_GATHER, stride) for size, stride in ((32, 1), (4, 8)))
    assert alone / beside == pytest.approx(8, rel=0.02)


@pytest.mark.parametrize(("size", "stride", "published"), [(4, 2, 7.65), (2, 4, 4.0)])
def test_groups_beside_each_other_share_the_pcie_of_their_host(size, stride, published):
    """All-gather of data-parallel groups beside tensor-parallel ones (SimuMax a100_pcie.json, dp_fixed_bw)."""
    found = bus_gb_s(System(A100_PCIE, PCIE_P2P), GIB, size, ALL_GATHER, stride)
    assert found == pytest.approx(published, rel=0.2)
    assert found < bus_gb_s(System(A100_PCIE, PCIE_P2P), GIB, size, ALL_GATHER) / 2


def test_all_to_all_sends_what_does_not_stay_over_the_nic_of_each_rank():
    system = System(H100_SXM, over(NVSWITCH, 3200), 8)
    took = seconds(system, CollectiveKind.ALL_TO_ALL, 8 * GIB, 32)
    assert 8 * GIB * (1 - 8 / 32) / took == pytest.approx(0.95 * 50e9, rel=0.01)


def test_send_receive_between_servers_has_one_share_of_the_nics():
    system = System(H100_SXM, over(NVSWITCH, 3200), 8)
    assert GIB / seconds(system, CollectiveKind.SEND_RECV, GIB, 4, 8) == pytest.approx(0.95 * 50e9, rel=0.01)


def test_gathering_over_many_servers_is_bound_by_the_way_around():
    """A ring passes every rank: at 2,048 GPUs a gather of 64 MiB takes over four times what its bytes take."""
    system = System(A100_SXM, over(NVSWITCH, 1600), 8)
    assert seconds(system, ALL_GATHER, 64 * MIB, 2048) > 4 * 64 * MIB / 190e9


def test_sockets_are_slower_than_rdma_and_what_is_not_told_lies_between():
    systems = [System(A100_SXM, over(NVSWITCH, 200, rdma), 8) for rdma in (True, None, False)]
    found = times(systems, ALL_REDUCE, GIB, 32)
    assert found[0] < found[1] < found[2]


@pytest.mark.parametrize("rdma", [True, False, None])
def test_the_range_of_a_network_has_two_sides(rdma):
    link = hardware([System(A100_SXM, over(NVSWITCH, 200, rdma), 8)], "bf16").link
    assert link.network_log_slower[0] > 0 and link.network_log_faster[0] > 0


SYSTEMS = (
    System(A100_SXM, over(NVSWITCH, 1600), 8),
    System(H100_SXM, over(NVSWITCH, 3200), 8),
    System(GB200, over(NVL72, 1600), 4),
    System(A100_PCIE, over(PCIE_P2P, 100, rdma=False), 8),
    System(RTX_3090, over(PCIE_STAGED, 10, rdma=None), 4),
    System(MI300X, over(XGMI, 3200), 8),
)
exponents = st.integers(0, 11)
messages = st.floats(1.0, 2.0**36)


@given(st.sampled_from(SYSTEMS), st.sampled_from(KINDS), messages, st.floats(1.0, 8.0), st.integers(1, 2048), exponents)
def test_more_bytes_never_take_less_time(system, kind, message, more, size, exponent):
    once, again = times([system] * 2, kind, [message, message * more], size, 2**exponent)
    assert again >= once * (1 - 1e-9)


@given(st.sampled_from(SYSTEMS), st.sampled_from(KINDS), messages, st.floats(1.0, 16.0), st.integers(1, 2048))
def test_a_faster_network_never_takes_longer(system, kind, message, more, size):
    rate = system.fabric.network_bandwidth_bytes_per_s
    faster = system._replace(fabric=replace(system.fabric, network_bandwidth_bytes_per_s=rate * more))
    slow, fast = times([system, faster], kind, message, size)
    assert fast <= slow * (1 + 1e-9)


@given(st.sampled_from(SYSTEMS), messages, st.integers(2, 256), st.integers(2, 4))
def test_nobody_beats_the_nics(system, message, servers, kinds):
    """A gather brings to each server what it does not have, through its NICs."""
    size = servers * domain_gpus(system)
    rate = system.fabric.network_bandwidth_bytes_per_s * domain_gpus(system) / system.node_gpus
    assert seconds(system, ALL_GATHER, message, size) >= message * (1 - 1 / servers) / rate


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(SYSTEMS), messages, st.integers(1, 600), exponents), min_size=2, max_size=8))
def test_a_row_does_not_depend_on_the_others(rows):
    systems, message, size, exponent = zip(*rows, strict=True)
    stride = [2**one for one in exponent]
    together = times(systems, ALL_REDUCE, message, size, stride)
    alone = [seconds(*one) for one in zip(systems, [ALL_REDUCE] * len(rows), message, size, stride, strict=True)]
    assert together == pytest.approx(alone)


@given(st.sampled_from(SYSTEMS), st.sampled_from(KINDS), messages, st.integers(2, 64), st.floats(0.5, 2.0))
def test_time_goes_with_the_speed_of_communication(system, kind, message, size, factor):
    usual = times([system], kind, message, size)
    assert times([system], kind, message, size, speed=Speed(communication=factor)) == pytest.approx(usual / factor)
