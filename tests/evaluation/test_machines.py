"""On what a row ran: accelerator by name, links by class, network by its text or the reference design."""

import pytest

from advisor.evaluation.gpus import accelerator_of, accelerators
from advisor.evaluation.machines import host_generation, server_of
from advisor.evaluation.refusals import Reason, RowRefused
from catalog.specs import TopologyClass
from tests.evaluation.measured import LLAMA, one


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("H100-SXM5-80GB", "h100-sxm5-80"),
        ("H100-PCIe-80GB", "h100-pcie-80"),
        ("H100 NVL 94GB", "h100-nvl-94"),
        ("H100", "h100-sxm5-96"),
        ("A100-40GB", "a100-sxm4-40"),
        ("A100-SXM4 (memory size not stated)", "a100-sxm4-80"),
        ("NVIDIA A100-PCIe-40GB", "a100-pcie-40"),
        ("V100-SXM2-32GB", "v100-sxm2-32"),
        ("V100-SXM3-32GB", "v100-sxm3-32"),
        ("Tesla P100", "p100-sxm2-16"),
        ("GB300", "gb300"),
        ("B200-SXM-180GB(power limited)", "b200"),
        ("A10G", "a10g"),
        ("RTX 2080 Ti", "rtx-2080-ti"),
        ("GeForce RTX 4090", "rtx-4090"),
        ("4090", "rtx-4090"),
        ("RTX 6000 Ada", "rtx-6000-ada"),
        ("RTX A6000", "rtx-a6000"),
        ("Quadro RTX 6000", "quadro-rtx-6000"),
        ("RTX8000", "quadro-rtx-8000"),
        ("RTX PRO 6000 Blackwell", "rtx-pro-6000-se"),
        ("RTX PRO 6000 Blackwell Workstation", "rtx-pro-6000-ws"),
        ("MI300X", "mi300x"),
        ("Gaudi 2", "gaudi2"),
    ],
)
def test_accelerators_are_found_by_the_names_that_people_write(name, key):
    assert accelerator_of(name).key == key


def test_what_a_name_leaves_open_is_decided_by_the_links():
    assert accelerator_of("A100-80GB", over_pcie=True).key == "a100-pcie-80"
    assert accelerator_of("A100-80GB").key == "a100-sxm4-80"


@pytest.mark.parametrize("name", ["", "GPU", "Riva 128", "H9000-SXM5-80GB"])
def test_other_names_are_unknown(name):
    assert accelerator_of(name) is None


def test_every_accelerator_is_found_by_its_own_key():
    assert all(accelerator_of(key).key == key for key in accelerators())


@pytest.mark.parametrize("key", ["a100-pcie-80", "h100-nvl-94", "rtx-a5000", "mi250x", "l40s", "titan-v", "mi300x"])
def test_an_accelerator_is_found_by_its_makers_name(key):
    assert accelerator_of(accelerators()[key].name).key == key


def test_accelerators_that_stand_for_measurements_alone_have_sources_and_rates():
    own = [spec for spec in accelerators().values() if spec.source.startswith("https://")]
    assert {"p100-sxm2-16", "rtx-2080-ti", "titan-rtx", "v100-sxm3-32"} <= {spec.key for spec in own}
    for spec in own:
        rates = spec.dense_flops_per_s
        assert 1e9 < spec.memory_bytes < 1e12
        assert 1e11 < spec.memory_bandwidth_bytes_per_s < 2e12
        assert max(rates.values()) == rates[max(rates, key=rates.get)] >= rates["fp32"] > 1e12


@pytest.mark.parametrize(
    ("cells", "topology"),
    [
        ({"intra_class": "nvswitch?"}, TopologyClass.NVSWITCH_FULL),
        ({"intra_class": ""}, TopologyClass.NVSWITCH_FULL),
        ({"intra_class": "", "gpu_key": "RTX 3090"}, TopologyClass.PCIE_ROOT),
        ({"intra_class": "nvlink-mesh", "gpu_key": "V100-SXM2-16GB"}, TopologyClass.NVLINK_HYBRID_CUBE_MESH),
        ({"intra_class": "nvlink-mesh", "gpu_key": "GH200-96GB", "gpus_per_node": "4"}, TopologyClass.NVLINK_DIRECT),
        ({"intra_class": "nvlink-bridge", "gpu_key": "RTX 3090"}, TopologyClass.NVLINK_BRIDGE_PAIRS),
        ({"intra_class": "pcie", "intra_interconnect": "PCIe4, PIX"}, TopologyClass.PCIE_SWITCH),
    ],
)
def test_links_by_class(tmp_path, cells, topology):
    assert server_of(one(tmp_path, LLAMA, **cells), 8).fabric.topology is topology


@pytest.mark.parametrize(
    ("text", "generation", "lanes", "peer"),
    [
        ("PCIe4 x16 (EPYC 7F52), P2P off", 4, 16, False),
        ("PCIe5 x8, P2P on (patched driver)", 5, 8, True),
        ("PCIe4, NVLink bridge present but disabled (NCCL_P2P_DISABLE=1), host-staged", 4, None, False),
        ("PCIe Gen 3", 3, None, None),
        ("", None, None, None),
    ],
)
def test_a_pcie_slot_is_read_from_its_text(tmp_path, text, generation, lanes, peer):
    row = one(tmp_path, LLAMA, intra_class="pcie", gpu_key="RTX 5090", intra_interconnect=text)
    fabric = server_of(row, 8).fabric
    assert (fabric.pcie_generation, fabric.pcie_lanes, fabric.peer_to_peer) == (generation, lanes, peer)


@pytest.mark.parametrize(
    ("text", "generation"),
    [
        ("host Intel(R) Xeon(R) Platinum 8480+", 5),
        ("host Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", 3),
        ("host AMD EPYC 7502 32-Core Processor", 4),
        ("host AMD EPYC 7H12 64-Core Processor", 4),
        ("host AMD EPYC 9654", 5),
        ("AMD Ryzen Threadripper PRO 5995WX 64-Cores", 4),
        ("a host", None),
    ],
)
def test_a_host_processor_tells_the_generation_of_its_slots(text, generation):
    assert host_generation(text) == generation


def test_a_slot_is_never_faster_than_the_card(tmp_path):
    row = one(tmp_path, LLAMA, intra_class="pcie", gpu_key="A100-PCIe-80GB", intra_interconnect="PCIe5 host")
    assert server_of(row, 8).fabric.pcie_generation == 4


@pytest.mark.parametrize(
    ("cells", "gigabits", "rdma"),
    [
        ({"inter_interconnect": "8x400 Gb/s NDR (DGX H100 reference)"}, 3200, True),
        ({"inter_interconnect": "4x100 Gb/s RoCE per node"}, 400, True),
        ({"inter_interconnect": "400 Gb/s per GPU RDMA"}, 3200, True),
        ({"inter_interconnect": "1x HDR InfiniBand 200 Gb/s per node"}, 200, True),
        ({"inter_interconnect": "HPE Slingshot 11, 4x 200 Gb/s per node"}, 800, True),
        ({"inter_interconnect": "40 Gb/s per node", "gpu_key": "A10G", "intra_class": "pcie"}, 40, False),
        ({"inter_interconnect": "not stated (DGX reference: 1 NIC/GPU)"}, 3200, True),
        ({"gpu_key": "A100-SXM4-80GB"}, 1600, True),
        ({"gpu_key": "V100-SXM2-16GB", "intra_class": "nvlink-mesh"}, 400, True),
        ({"gpu_key": "B300-SXM"}, 6400, True),
    ],
)
def test_the_network_of_a_server(tmp_path, cells, gigabits, rdma):
    fabric = server_of(one(tmp_path, LLAMA, nodes="2", gpus_total="16", **cells), 16).fabric
    assert fabric.network_bandwidth_bytes_per_s == gigabits * 1e9 / 8
    assert fabric.rdma is rdma


def test_one_server_needs_no_network(tmp_path):
    assert server_of(one(tmp_path, LLAMA), 8).fabric.network_bandwidth_bytes_per_s is None


def test_a_rack_of_72_is_one_domain_as_far_as_the_job_divides(tmp_path):
    row = one(tmp_path, LLAMA, gpu_key="GB300", intra_class="nvl72", gpus_per_node="4", nodes="32", gpus_total="128")
    assert server_of(row, 64).gpu_count == 64
    assert server_of(row, 128).gpu_count == 64
    assert server_of(row, 72).gpu_count == 72


def test_an_accelerator_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(RowRefused) as found:
        server_of(one(tmp_path, LLAMA, gpu_key="Riva 128"), 8)
    assert found.value.reason is Reason.GPU_UNKNOWN
