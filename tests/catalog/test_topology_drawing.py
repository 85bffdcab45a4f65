"""The drawing shows what the catalog knows, says the same in words, and never draws a guess."""

from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest

from catalog.specs import FabricSpec, TopologyClass
from catalog.topology_drawing import COLOURS, WIDTH, describe, draw
from catalog.topology_words import LineKind

GB = 1e9
# nvidia-smi topo -m on a DGX-1 with V100: links between GPU 0 to 7
DGX_1V = """
 X  NV1 NV1 NV2 NV2 SYS SYS SYS
NV1  X  NV2 NV1 SYS NV2 SYS SYS
NV1 NV2  X  NV2 SYS SYS NV1 SYS
NV2 NV1 NV2  X  SYS SYS SYS NV1
NV2 SYS SYS SYS  X  NV1 NV1 NV2
SYS NV2 SYS SYS NV1  X  NV2 NV1
SYS SYS NV1 SYS NV1 NV2  X  NV2
SYS SYS SYS NV1 NV2 NV1 NV2  X
"""
FULL = FabricSpec(
    topology=TopologyClass.NVSWITCH_FULL,
    domain_gpus=8,
    bandwidth_bytes_per_s=450 * GB,
    peer_bandwidth_bytes_per_s=450 * GB,
    pcie_generation=5,
    pcie_lanes=16,
    pcie_bandwidth_bytes_per_s=63 * GB,
    peer_to_peer=True,
    network_bandwidth_bytes_per_s=400 * GB,
    rdma=True,
)
KNOWN = {"gpu_count": 8, "accelerator_name": "H100 SXM5 80GB", "sockets": 2, "gpus_per_pcie_switch": 2}
PARTIAL = replace(FULL, bandwidth_bytes_per_s=None, peer_bandwidth_bytes_per_s=None, rdma=None, peer_to_peer=None)


def drawn(fabric: FabricSpec = FULL, **known: Any) -> Element:
    return fromstring(draw(fabric, **KNOWN | known))


def strokes(svg: Element, kind: LineKind) -> list[Element]:
    """Lines of a kind in the drawing itself: the key's sample is the last of them."""
    lines = [line for line in svg if line.tag in ("line", "path") and line.get("stroke") == COLOURS[kind]]
    return lines[:-1]


def labels(svg: Element) -> list[str]:
    return [text.text or "" for text in svg.iter("text")]


def count_of(svg: Element, label: str) -> int:
    return labels(svg).count(label)


@pytest.mark.parametrize("topology", TopologyClass)
def test_every_class_and_count_is_a_labelled_picture_that_the_policy_allows(topology: TopologyClass) -> None:
    for gpus, known in product((1, 2, 3, 8, 10, 72), (FULL, FabricSpec(topology=topology))):
        fabric = replace(known, topology=topology)
        svg = drawn(fabric, gpu_count=gpus)
        assert svg.get("role") == "img"
        assert svg.get("aria-labelledby", "").split() == [svg[0].get("id"), svg[1].get("id")]
        assert svg[1].text == describe(fabric, **KNOWN | {"gpu_count": gpus})
        names = {name for element in svg.iter() for name in element.attrib}
        assert not {name for name in names if name in ("style", "class", "href") or name.startswith("on")}
        assert {element.tag for element in svg.iter()} <= {"svg", "title", "desc", "rect", "line", "path", "text"}


def test_a_switch_joins_all_at_the_stated_rates() -> None:
    svg = drawn()
    assert count_of(svg, "NVSwitch") == 1
    assert len(strokes(svg, LineKind.SCALE_UP)) == 8
    assert count_of(svg, "PCIe switch") == 4
    assert len(strokes(svg, LineKind.HOST)) == 8 + 4
    words = describe(FULL, **KNOWN)
    assert "One way 450 GB/s per accelerator, 450 GB/s per pair." in words
    assert "PCIe 5 ×16 to the host: 63 GB/s one way per accelerator." in words
    assert "Network: 3,200 Gbit/s in all (400 GB/s one way), with RDMA." in words
    assert "Copies between accelerators over PCIe: yes." in words


def test_several_domains_have_a_switch_each() -> None:
    assert count_of(drawn(gpu_count=16), "NVSwitch") == 2


@pytest.mark.parametrize(
    ("topology", "gpus", "lines"),
    [
        (TopologyClass.NVLINK_DIRECT, 4, 6),
        (TopologyClass.XGMI_ALL_TO_ALL, 8, 28),
        (TopologyClass.ROCE_ALL_TO_ALL, 8, 28),
        (TopologyClass.NVLINK_BRIDGE_PAIRS, 8, 4),
        (TopologyClass.NVLINK_BRIDGE_QUADS, 8, 12),
        (TopologyClass.ICI_TORUS, 4, 4),
        (TopologyClass.ICI_TORUS, 8, 10),
        (TopologyClass.PCIE_ROOT, 8, 0),
        (TopologyClass.PCIE_SWITCH, 8, 0),
        (TopologyClass.SINGLE, 1, 0),
    ],
)
def test_each_direct_link_is_a_line(topology: TopologyClass, gpus: int, lines: int) -> None:
    svg = drawn(replace(FULL, topology=topology, domain_gpus=None), gpu_count=gpus)
    assert len(strokes(svg, LineKind.SCALE_UP)) == lines


def test_the_cube_mesh_is_the_one_that_the_driver_prints() -> None:
    rows = [line.split() for line in DGX_1V.split("\n") if line]
    links = Counter(cell for number, row in enumerate(rows) for cell in row[number + 1 :])
    fabric = replace(
        FULL,
        topology=TopologyClass.NVLINK_HYBRID_CUBE_MESH,
        bandwidth_bytes_per_s=150 * GB,
        peer_bandwidth_bytes_per_s=25 * GB,
    )
    widths = Counter(line.get("stroke-width") for line in strokes(drawn(fabric), LineKind.SCALE_UP))
    assert sorted(widths.values()) == sorted([links["NV1"], links["NV2"]])
    words = describe(fabric, **KNOWN).split("Two links: ")[1].split(" One link: ")
    for text, kind in zip(words, ("NV2", "NV1"), strict=True):
        said = {pair.strip() for pair in text.split(".")[0].split(",")}
        assert said == {f"{a}–{b}" for a, row in enumerate(rows) for b in range(a + 1, 8) if row[b] == kind}


def test_links_of_a_torus_leave_the_server() -> None:
    torus = replace(FULL, topology=TopologyClass.ICI_TORUS, domain_gpus=4096)
    assert len(strokes(drawn(torus, gpu_count=4), LineKind.SCALE_UP)) == 4 + 8
    assert "up to 4,096 chips" in describe(torus, **KNOWN)


def test_the_rest_of_a_rack_is_named() -> None:
    rack = replace(FULL, topology=TopologyClass.NVL72, domain_gpus=72, pcie_generation=None, pcie_lanes=None)
    svg = drawn(rack, gpu_count=4, gpus_per_pcie_switch=None)
    assert "68 in other servers" in " ".join(labels(svg))
    assert (count_of(svg, "CPU 0"), count_of(svg, "CPU 1")) == (1, 1)
    assert "72 accelerators in one domain, 4 in this server" in describe(rack, **KNOWN | {"gpu_count": 4})


def test_many_accelerators_are_summarised() -> None:
    svg = drawn(replace(FULL, domain_gpus=72), gpu_count=72)
    assert count_of(svg, "72 in one domain") == 1
    assert len(strokes(svg, LineKind.SCALE_UP)) == 1


def test_what_is_not_known_has_a_question_mark_and_no_line() -> None:
    svg = drawn(FabricSpec(topology=TopologyClass.UNKNOWN), sockets=None, gpus_per_pcie_switch=None)
    unknown = {"links between them: ?", "what is between: ?", "CPUs: ?", "Network: ?"}
    assert unknown <= set(labels(svg))
    assert not [line for line in svg if line.get("stroke") == COLOURS[LineKind.SCALE_UP]]
    assert [len(strokes(svg, LineKind.NETWORK))] == [0]
    words = describe(FabricSpec(topology=TopologyClass.UNKNOWN), gpu_count=8, accelerator_name="H100")
    assert "How the accelerators are joined is not known." in words
    assert "Copies between accelerators over PCIe: not known." in words


def test_switches_of_unknown_size_are_not_guessed() -> None:
    svg = drawn(replace(FULL, topology=TopologyClass.PCIE_SWITCH), gpus_per_pcie_switch=None)
    assert count_of(svg, "PCIe switches: ?") == 1
    assert count_of(svg, "PCIe switch") == 0


@pytest.mark.parametrize(
    ("topology", "sockets", "expected"),
    [
        (TopologyClass.PCIE_SWITCH, 2, ["2 CPUs, which one: ?"]),
        (TopologyClass.PCIE_SWITCH, 1, ["1 CPU"]),
        (TopologyClass.PCIE_SWITCH, None, ["CPUs: ?"]),
        (TopologyClass.PCIE_DUAL_ROOT, None, ["CPU 0", "CPU 1"]),
        (TopologyClass.PCIE_SINGLE_ROOT, 2, ["CPU 0", "CPU 1"]),
    ],
)
def test_cpus_are_told_apart_only_where_it_is_known(
    topology: TopologyClass, sockets: int | None, expected: list[str]
) -> None:
    svg = drawn(replace(FULL, topology=topology), sockets=sockets, gpus_per_pcie_switch=4)
    assert [label for label in labels(svg) if "CPU" in label and len(label) < 25 and "." not in label] == expected


def test_all_under_one_cpu_leaves_the_other_bare() -> None:
    def ends(topology: TopologyClass) -> set[bool]:
        svg = drawn(replace(FULL, topology=topology), gpus_per_pcie_switch=4)
        return {float(line.get("x2", "0")) < WIDTH / 2 for line in strokes(svg, LineKind.HOST)[-2:]}

    assert ends(TopologyClass.PCIE_SINGLE_ROOT) == {True}
    assert ends(TopologyClass.PCIE_DUAL_ROOT) == {True, False}


def test_names_are_text_and_ids_are_told_apart() -> None:
    svg = draw(FULL, **KNOWN | {"accelerator_name": '</title><script>alert(1)</script>\x00&"'}, ident="a")
    assert "<script" not in svg
    assert "\x00" not in svg
    assert fromstring(svg)[0].get("id") != drawn(ident="b")[0].get("id")
    assert drawn()[0].get("id") != drawn(gpu_count=4)[0].get("id")


def test_kinds_of_lines_differ_without_colour() -> None:
    svg = drawn()
    looks = {
        (line.get("stroke-width"), line.get("stroke-dasharray"))
        for kind in (LineKind.SCALE_UP, LineKind.HOST, LineKind.NETWORK)
        for line in strokes(svg, kind)
    }
    assert len(looks) == 3


def test_colours_are_legible_on_white_and_on_black() -> None:
    def luminance(colour: str) -> float:
        parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in {colour for colour in COLOURS.values() if colour.startswith("#")}:
        assert 1.05 / (luminance(colour) + 0.05) >= 4.5
        assert (luminance(colour) + 0.05) / (luminance("#121212") + 0.05) >= 3
