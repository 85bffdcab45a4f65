"""Topology matrices as drivers, shells and people print them."""

import json
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.evidence import LinkStates, Topology
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits
from profiling.formats.registry import read
from profiling.notes import NoteCode, Outcome, Refusal, RefusalCode, outcome_of
from tests.paths import SHARED
from tests.profiling.expected import Row, rows

TRACES = SHARED / "traces" if SHARED else None
MATRIX = (
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV4\tPIX\t0-31\t0\t\tN/A\nGPU1\tNV4\t X \tSYS\t32-63\t1\t\tN/A\nNIC0\tPIX\tSYS\t X \t\t\t\n"
)


def _capture(folder: Path, text: str, limits: Limits | None = None) -> Capture:
    path = folder / "topo.txt"
    path.write_text(text, encoding="utf-8")
    return read(path, limits)


def _topologies(capture: Capture) -> list[Topology]:
    return [one for one in capture.evidence if isinstance(one, Topology)]


def _only(folder: Path, text: str) -> Topology:
    (topology,) = _topologies(_capture(folder, text))
    return topology


@pytest.mark.parametrize("row", rows("nvidia-smi-topo"), ids=lambda row: row.id)
def test_expected_rows(row: Row) -> None:
    capture = read(row.path)
    assert outcome_of(capture.notes) == Outcome(row.outcome)
    (topology,) = _topologies(capture)
    for fact, value in row.facts.items():
        name, _, key = fact.rstrip("]").partition("[")
        assert _fact(topology, name, key) == value, fact


def _fact(topology: Topology, name: str, key: str) -> str:
    if name in ("gpus", "nics"):
        return str(len(getattr(topology, name)))
    if name == "link":
        return topology.links[key]
    if name == "numa":
        node = topology.numa[key]
        return "unknown" if node is None else str(node)
    if name in ("nvlink", "full_mesh"):
        return str(getattr(topology, name)).lower()
    assert name == "worst_link"
    return topology.worst_link or "unknown"


def _published() -> list[tuple[str, Mapping[str, Any]]]:
    if TRACES is None:
        return []
    reference = json.loads((TRACES / "reference" / "text_files.json").read_text(encoding="utf-8"))
    return [(name, one) for name, one in reference.items() if name.startswith("files/") and one.get("kind") == "topo"]


@pytest.mark.parametrize(("name", "reference"), _published(), ids=lambda value: value if isinstance(value, str) else "")
def test_published_matrices(name: str, reference: Mapping[str, Any]) -> None:
    assert TRACES is not None
    found = _topologies(read(TRACES / name))
    assert len(found) == len(reference["result"])
    for topology, expected in zip(found, reference["result"], strict=True):
        assert len(topology.gpus) == expected["gpus"]
        pairs = Counter(topology.links[f"{one}-{other}"] for one, other in combinations(topology.gpus, 2))
        assert pairs == expected["pairs"]


def test_tabs_affinities_and_adapters(tmp_path: Path) -> None:
    topology = _only(tmp_path, MATRIX)
    assert topology.links == {"GPU0-GPU1": "NV4", "GPU0-NIC0": "PIX", "GPU1-NIC0": "SYS"}
    assert topology.numa == {"GPU0": 0, "GPU1": 1}
    assert (topology.nvlink, topology.full_mesh, topology.worst_link) == (True, True, "NV4")
    assert topology.nics == ("NIC0",)


@pytest.mark.parametrize("escape", ["\x1b", "^[", ""], ids=["as printed", "spelled out", "lost"])
def test_terminal_codes_and_blank_lines(tmp_path: Path, escape: str) -> None:
    text = f"{escape}[4m" + MATRIX.replace("ID\n", f"ID{escape}[0m\n").replace("\n", "\n \n")
    assert _only(tmp_path, text).links["GPU0-GPU1"] == "NV4"


def test_affinities_in_columns_of_blanks(tmp_path: Path) -> None:
    text = (
        "        GPU0    GPU1    mlx5_0  CPU Affinity    NUMA Affinity\n"
        "GPU0     X      PHB     NODE                    1\nGPU1    PHB      X      NODE    0-7,16-23       N/A\n"
        "mlx5_0  NODE    NODE     X\n"
    )
    topology = _only(tmp_path, text)
    assert topology.numa == {"GPU0": 1, "GPU1": None}
    assert topology.nics == ("mlx5_0",)
    assert (topology.nvlink, topology.worst_link) == (False, "PHB")


def test_several_nodes_for_one_device_are_unknown(tmp_path: Path) -> None:
    assert _only(tmp_path, MATRIX.replace("0-31\t0\t", "0-31\t0-1\t")).numa["GPU0"] is None


def test_each_matrix_of_a_file_counts(tmp_path: Path) -> None:
    second = MATRIX.replace("NV4", "SYS")
    capture = _capture(tmp_path, f"# A\n{MATRIX}\n# B\n```\n{second}```\n")
    assert [one.worst_link for one in _topologies(capture)] == ["NV4", "SYS"]


def test_links_of_a_cube_mesh_are_no_full_mesh(tmp_path: Path) -> None:
    text = "\tGPU0\tGPU1\tGPU2\nGPU0\tX\tNV1\tSYS\nGPU1\tNV1\tX\tNV2\nGPU2\tSYS\tNV2\tX\n"
    topology = _only(tmp_path, text)
    assert (topology.nvlink, topology.full_mesh, topology.worst_link) == (True, False, "SYS")


def test_a_pair_that_is_contradicted_is_left_out_and_told(tmp_path: Path) -> None:
    capture = _capture(tmp_path, MATRIX.replace("GPU1\tNV4", "GPU1\tSYS"))
    (topology,) = _topologies(capture)
    assert "GPU0-GPU1" not in topology.links
    assert (topology.full_mesh, topology.worst_link) == (False, None)
    assert [note.params for note in capture.notes if note.code == NoteCode.VALUES_MISSING] == [{"count": 1}]


def test_a_cut_matrix_keeps_the_pairs_that_are_told(tmp_path: Path) -> None:
    text = "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV1\tSYS\nGPU1\tNV1\t X \tN"
    topology = _only(tmp_path, text)
    assert topology.links == {"GPU0-GPU1": "NV1", "GPU0-GPU2": "SYS"}
    assert topology.worst_link is None


def test_words_that_open_like_a_header_are_no_matrix(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        _capture(tmp_path, "GPU0 is broken\nGPU1 works\n")
    assert caught.value.code == RefusalCode.TEXT_FILE


def test_the_state_of_links_is_read_along(tmp_path: Path) -> None:
    text = MATRIX + "\nGPU 0: NVIDIA A100 (UUID: GPU-x)\n\t Link 0: 25 GB/s\n"
    capture = _capture(tmp_path, text)
    assert capture.format == Format.SMI_TOPOLOGY
    (states,) = (one for one in capture.evidence if isinstance(one, LinkStates))
    assert states.devices[0].link_bytes_per_s == (25e9,)


def test_devices_are_limited(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        _capture(tmp_path, MATRIX, Limits(devices=2))
    assert caught.value.code == RefusalCode.TOO_MANY_DEVICES


@given(st.integers(2, 16), st.data())
def test_any_symmetric_matrix_is_read_back(count: int, data: st.DataObject) -> None:
    import tempfile

    links = {
        pair: data.draw(st.sampled_from(["NV1", "NV18", "PIX", "PXB", "PHB", "NODE", "SYS"]))
        for pair in combinations(range(count), 2)
    }
    separator = data.draw(st.sampled_from(["\t", "    "]))
    names = [f"GPU{number}" for number in range(count)]
    lines = [separator + separator.join(names)]
    for row in range(count):
        cells = [" X " if row == column else links[min(row, column), max(row, column)] for column in range(count)]
        lines.append(separator.join([names[row], *cells]))
    with tempfile.TemporaryDirectory() as folder:
        topology = _only(Path(folder), "\n".join(lines))
    assert topology.links == {f"GPU{one}-GPU{other}": link for (one, other), link in links.items()}
    assert topology.full_mesh == all(link.startswith("NV") for link in links.values())
