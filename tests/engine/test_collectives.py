"""Collectives and routes against published figures."""

from dataclasses import replace

import numpy as np
import pytest

from advisor.engine.collectives import KINDS, bus_factor, log_times, message_bytes, server_log_times, time_s
from advisor.engine.fabric import GROUPS, route, silicon_family
from catalog.specs import FabricSpec, TopologyClass
from profiling.workload import CollectiveKind
from tests.engine.machines import (
    A100_PCIE,
    A100_SXM,
    ACCELERATORS,
    H100_SXM,
    L40S,
    MI300X,
    NVSWITCH,
    PAIRS,
    PCIE_P2P,
    PCIE_STAGED,
    PCIE_UNKNOWN,
    RTX_3090,
    RTX_PRO_6000,
    UNKNOWN,
    XGMI,
)

LARGE = 512 * 2**20


def seconds(accelerator, fabric, gpus, kind=CollectiveKind.ALL_REDUCE, size=LARGE):
    curves = np.array([[log_times(route(accelerator, fabric, group), group) for group in GROUPS]])
    group, bytes_ = np.array([gpus]), np.array([float(size)])
    return float(time_s(curves, np.array([0]), group, kind, bytes_)[0])


def bus_gb_s(accelerator, fabric, gpus, kind=CollectiveKind.ALL_REDUCE):
    return LARGE * bus_factor(kind, gpus) / seconds(accelerator, fabric, gpus, kind) / 1e9


@pytest.mark.parametrize(
    ("accelerator", "fabric", "gpus", "published", "within"),
    [
        # nccl-tests on HGX boxes (aiconfigurator-core 0.12.0; 222 to 235 and 445 to 480 elsewhere)
        (A100_SXM, NVSWITCH, 8, 222, 0.05),
        (A100_SXM, NVSWITCH, 2, 193, 0.05),
        (H100_SXM, NVSWITCH, 8, 445, 0.05),
        (H100_SXM, NVSWITCH, 4, 350, 0.05),
        # NVLink pairs: the pair is fast, four fall to PCIe (microsoft/vidur)
        (A100_PCIE, PAIRS, 2, 195, 0.1),
        (A100_PCIE, PAIRS, 4, 23.7, 0.05),
        (A100_PCIE, replace(PAIRS, peer_to_peer=None), 4, 23.7, 0.05),
        # PCIe 5, peer copies (aiconfigurator-core 0.12.0)
        (RTX_PRO_6000, PCIE_P2P, 8, 24.7, 0.1),
        # PCIe 4 (SimuMax a100_pcie.json), and without peer copies (L40S box; RTX 3090 derived from sailor)
        (A100_PCIE, PCIE_P2P, 8, 12.5, 0.2),
        (A100_PCIE, PCIE_P2P, 2, 20.9, 0.1),
        (L40S, PCIE_STAGED, 8, 1.45, 0.5),
        (L40S, PCIE_STAGED, 4, 5.2, 0.1),
        (RTX_3090, PCIE_STAGED, 8, 1.7, 0.3),
        # xGMI: two GPUs have one link (stas00/ml-engineering)
        (MI300X, XGMI, 8, 312.9, 0.05),
        (MI300X, XGMI, 2, 47.7, 0.05),
    ],
)
def test_bus_bandwidth_of_the_box(accelerator, fabric, gpus, published, within):
    assert bus_gb_s(accelerator, fabric, gpus) == pytest.approx(published, rel=within)


def test_a_group_of_four_over_pairs_is_slower_than_the_pair():
    assert seconds(A100_PCIE, PAIRS, 4) > 5 * seconds(A100_PCIE, PAIRS, 2)


def test_measured_pairs_say_nothing_of_servers_without_peer_copies_nor_of_eight_gpus():
    assert route(A100_PCIE, replace(PAIRS, peer_to_peer=False), 4).path == "pcie-no-p2p"
    assert route(A100_PCIE, PAIRS, 8).path == "pcie-root"
    assert route(RTX_3090, PAIRS, 4).path == "pcie-root"


def test_a_bridge_of_four_is_not_read_from_four_gpus_in_pairs():
    quads = FabricSpec(topology=TopologyClass.NVLINK_BRIDGE_QUADS, domain_gpus=4, peer_to_peer=True)
    assert bus_gb_s(A100_PCIE, quads, 4) > 5 * bus_gb_s(A100_PCIE, PAIRS, 4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fabric", [NVSWITCH, PCIE_P2P])
def test_bytes_come_back_from_their_time(kind, fabric):
    curves = np.array([log_times(route(A100_SXM, fabric, group), group) for group in GROUPS])
    for size in (2**20, 2**28, 2**38):
        took = seconds(A100_SXM, fabric, 8, kind, size)
        assert message_bytes(curves, 8, kind, took) == pytest.approx(size, rel=1e-6)
    assert message_bytes(curves, 8, kind, 1e-9) == 0


@pytest.mark.parametrize(
    "topology", [TopologyClass.PCIE_ROOT, TopologyClass.PCIE_SWITCH, TopologyClass.NVLINK_BRIDGE_PAIRS]
)
@pytest.mark.parametrize("accelerator", ACCELERATORS, ids=lambda one: one.key)
def test_peer_copies_never_slow_a_collective(accelerator, topology):
    """Of any kind, group and size: measured boxes and laws agree on what is better."""
    allowed, untold, staged = (
        server_log_times(
            tuple(route(accelerator, FabricSpec(topology=topology, peer_to_peer=told), group) for group in GROUPS)
        )
        for told in (True, None, False)
    )
    assert (allowed <= untold + 1e-9).all()
    assert (untold <= staged + 1e-9).all()


def test_direct_links_give_a_pair_a_third_of_four():
    direct = FabricSpec(topology=TopologyClass.NVLINK_DIRECT, domain_gpus=4)
    assert route(A100_SXM, direct, 2).link_bytes_per_s == pytest.approx(100e9)
    assert route(A100_SXM, direct, 4).link_bytes_per_s == pytest.approx(300e9)
    assert route(A100_SXM, direct, 8).path.startswith("pcie")


def test_half_the_lanes_are_half_the_link():
    narrow = FabricSpec(topology=TopologyClass.PCIE_ROOT, peer_to_peer=True, pcie_lanes=8)
    wide = route(L40S, PCIE_P2P, 2).link_bytes_per_s
    assert route(L40S, narrow, 2).link_bytes_per_s == pytest.approx(wide / 2)


def test_cards_of_which_nothing_is_told_span_staged_pcie_to_the_bridge():
    unknown = route(A100_PCIE, UNKNOWN, 2)
    slowest = unknown.bus_bytes_per_s / np.exp(unknown.log_slower)
    assert slowest < route(A100_PCIE, PCIE_STAGED, 2).bus_bytes_per_s
    assert unknown.bus_bytes_per_s * np.exp(unknown.log_faster) > route(A100_PCIE, PAIRS, 2).bus_bytes_per_s
    assert unknown.path == "unknown"


def test_more_cards_than_a_bridge_joins_meet_on_pcie():
    assert route(A100_PCIE, UNKNOWN, 8) == route(A100_PCIE, PCIE_UNKNOWN, 8)
    assert route(L40S, UNKNOWN, 2) == route(L40S, PCIE_UNKNOWN, 2)


def test_modules_of_which_nothing_is_told_sit_on_their_board():
    for gpus in (2, 8):
        unknown, board = route(H100_SXM, UNKNOWN, gpus), route(H100_SXM, NVSWITCH, gpus)
        assert unknown.bus_bytes_per_s == board.bus_bytes_per_s
        assert unknown.log_slower > board.log_slower
    assert route(H100_SXM, UNKNOWN, 2).log_slower > route(H100_SXM, UNKNOWN, 8).log_slower


def test_geforce_cards_have_no_peer_copies_unless_the_server_says_so():
    assert route(RTX_3090, PCIE_UNKNOWN, 4).path == "pcie-no-p2p"
    assert route(L40S, PCIE_UNKNOWN, 4).path == "pcie-likely-p2p"
    assert route(replace(L40S, peer_to_peer_over_pcie=None), PCIE_UNKNOWN, 4).path == "pcie-unknown"
    assert route(RTX_3090, PCIE_P2P, 4).path == "pcie-root"


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_peer_copies_that_are_likely_span_both_kinds_of_server(gpus):
    """The slow side reaches servers without, the fast side the box that was measured with (A100 PCIe, SimuMax)."""
    likely = route(A100_PCIE, PCIE_UNKNOWN, gpus)
    staged = route(A100_PCIE, PCIE_STAGED, gpus).bus_bytes_per_s
    box = {2: 20.9e9, 4: 20.8e9, 8: 12.5e9}[gpus]
    assert likely.bus_bytes_per_s * np.exp(-likely.log_slower) < staged
    assert staged < likely.bus_bytes_per_s < box < likely.bus_bytes_per_s * np.exp(likely.log_faster)


def test_eight_cards_whose_peer_copies_are_not_known_are_nearer_to_those_that_have_them():
    """A100 PCIe measured with peer copies 12.5 GB/s (SimuMax), L40S without 1.45 (aiconfigurator-core)."""
    assert bus_gb_s(A100_PCIE, PCIE_UNKNOWN, 8) == pytest.approx(12.5, rel=0.3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fabric", [NVSWITCH, PCIE_P2P, PAIRS])
@pytest.mark.parametrize("gpus", GROUPS)
def test_more_bytes_never_take_less_time(kind, fabric, gpus):
    times = [seconds(A100_SXM, fabric, gpus, kind, 2**exponent) for exponent in range(0, 40)]
    assert times == sorted(times)


def test_beyond_the_grid_time_grows_with_bytes():
    once, twice = (seconds(H100_SXM, NVSWITCH, 8, size=size) for size in (2**36, 2**37))
    assert twice == pytest.approx(2 * once)


@pytest.mark.parametrize(
    ("key", "family"),
    [
        ("a100-sxm4-80", "a100"),
        ("a100-pcie-40", "a100"),
        ("h100-nvl-94", "h100"),
        ("h200-sxm", "h200"),
        ("v100s-pcie-32", "v100s"),
        ("rtx-3090", "rtx-3090"),
        ("rtx-pro-6000-se", "rtx-pro-6000-se"),
        ("gh200-96", "gh200"),
        ("b60", "b60"),
    ],
)
def test_the_chip_behind_a_key(key, family):
    assert silicon_family(key) == family
