"""dcgmi dmon as it is printed, cut, annotated by hand, and with counters that someone else held."""

from pathlib import Path

import pytest

from profiling.evidence import DeviceLoad, DeviceLoads
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits
from profiling.formats.registry import read
from profiling.notes import NoteCode, Outcome, Refusal, RefusalCode, outcome_of
from tests.profiling.expected import Row, agrees, rows

HEADER = "#Entity   SMACT        TENSO        DRAMA        NVLTX\nID\n"
FACTS = {
    "sm_active": "sm_active",
    "tensor_active": "tensor_active",
    "dram_active": "dram_active",
    "nvlink_tx_gbs": "nvlink_tx_bytes_per_s",
    "nvlink_rx_gbs": "nvlink_rx_bytes_per_s",
    "pcie_tx_gbs": "pcie_tx_bytes_per_s",
    "pcie_rx_gbs": "pcie_rx_bytes_per_s",
    "gpu_util": "utilisation",
    "power_w": "power_w",
    "fp64_active": "fp64_active",
    "fp32_active": "fp32_active",
    "fp16_active": "fp16_active",
    "gr_active": "graphics_active",
}


def _capture(folder: Path, text: str, limits: Limits | None = None) -> Capture:
    path = folder / "dmon.txt"
    path.write_text(text, encoding="utf-8")
    return read(path, limits)


def _devices(capture: Capture) -> dict[str, DeviceLoad]:
    (loads,) = capture.evidence
    assert isinstance(loads, DeviceLoads)
    return {load.entity: load for load in loads.devices}


@pytest.mark.parametrize("row", rows("dcgm-dmon"), ids=lambda row: row.id)
def test_expected_rows(row: Row) -> None:
    capture = read(row.path)
    assert outcome_of(capture.notes) == Outcome(row.outcome)
    devices = _devices(capture)
    for fact, value in row.facts.items():
        if fact == "gpus":
            assert sum(not load.is_slice for load in devices.values()) == int(value)
        elif fact == "mig_instances":
            assert sum(load.is_slice for load in devices.values()) == int(value)
        else:
            name, _, entity = fact.rstrip("]").partition("[")
            figure = getattr(devices[entity], FACTS[name])
            scale = 1e9 if name.endswith("_gbs") else 1.0
            assert agrees(None if figure is None else figure / scale, value), fact


def test_slices_are_kept_apart_from_cards(tmp_path: Path) -> None:
    rows_ = (
        "GPU 0     0.500        0.400        0.300        10\nGPU-I 0   0.1 0.1 0.1 N/A\nGPU-CI 4  0.2 0.2 0.2 N/A\n"
    )
    devices = _devices(_capture(tmp_path, HEADER + rows_))
    assert {name: load.is_slice for name, load in devices.items()} == {"GPU0": False, "GPU-CI4": True, "GPU-I0": True}
    assert devices["GPU0"].sm_active == 0.5


def test_missing_is_unknown_and_not_zero(tmp_path: Path) -> None:
    capture = _capture(tmp_path, HEADER + "GPU 0     0.500        N/A          0.300        N/A\n" * 2)
    load = _devices(capture)["GPU0"]
    assert (load.tensor_active, load.nvlink_tx_bytes_per_s, load.samples) == (None, None, 2)
    assert [note.code for note in capture.notes] == [NoteCode.COARSE_SAMPLES]


def test_columns_by_numbers_of_the_command_line(tmp_path: Path) -> None:
    text = "> dcgmi dmon -i 0,1 -e 1012,1005,1011 -c 2\nGPU 0   100   0.25   300\nGPU 0   100   0.75   500(0.5KB/s)\n"
    load = _devices(_capture(tmp_path, text))["GPU0"]
    assert (load.nvlink_rx_bytes_per_s, load.dram_active, load.nvlink_tx_bytes_per_s) == (100, 0.5, 400)


def test_a_header_that_changes_its_columns(tmp_path: Path) -> None:
    text = "# Entity  SMACT  DRAMA\n    Id\n GPU 0    0.5  0.2\n# Entity  DRAMA  FP64A\n GPU 0    0.4  0.7\n"
    load = _devices(_capture(tmp_path, text))["GPU0"]
    assert load.dram_active == pytest.approx(0.3)
    assert (load.sm_active, load.fp64_active, load.samples) == (0.5, 0.7, 2)


def test_titles_and_units_of_old_and_new_releases(tmp_path: Path) -> None:
    text = (
        "#Entity   GPUTL   MCUTL   FBUSD   POWER   dcgm_fi_prof_sm_util_ratio  PCITX\nID                    MB      W\n"
        "GPU 3     80      40      1024    250.5   0.5                         1000\n"
    )
    load = _devices(_capture(tmp_path, text))["GPU3"]
    assert load.utilisation == pytest.approx(0.8)
    assert load.memory_utilisation == pytest.approx(0.4)
    assert (load.peak_memory_bytes, load.power_w, load.sm_active) == (1 << 30, 250.5, 0.5)
    assert load.pcie_tx_bytes_per_s == 1000


def test_cells_with_blanks_are_found_by_the_place_of_their_title(tmp_path: Path) -> None:
    text = "#Entity   DVNAM                SMACT\nID\nGPU 0     NVIDIA H100 80GB     0.5\n"
    assert _devices(_capture(tmp_path, text))["GPU0"].sm_active == 0.5


def test_a_row_that_was_cut_does_not_count(tmp_path: Path) -> None:
    text = HEADER + "GPU 0     0.500        0.400        0.300        10\nGPU 0     0.9  0.4"
    assert _devices(_capture(tmp_path, text))["GPU0"].sm_active == 0.5


@pytest.mark.parametrize("busy", ["GPUTL", "POWER", "GRACT"])
def test_counters_that_someone_else_held_are_unknown(tmp_path: Path, busy: str) -> None:
    value = {"GPUTL": "99", "POWER": "350.0", "GRACT": "0.9"}[busy]
    text = f"#Entity  {busy}  SMACT  TENSO  DRAMA  NVLTX\nID\nGPU 0  {value}  0.000  0.000  0.000  0\n"
    capture = _capture(tmp_path, text)
    load = _devices(capture)["GPU0"]
    assert (load.tensor_active, load.sm_active, load.dram_active, load.nvlink_tx_bytes_per_s) == (None,) * 4
    assert NoteCode.COUNTERS_NOT_MEASURED in [note.code for note in capture.notes]
    assert outcome_of(capture.notes) == Outcome.WARN


def test_memory_at_rest_under_busy_multiprocessors_is_a_zero(tmp_path: Path) -> None:
    capture = _capture(tmp_path, "#Entity  GPUTL  SMACT  DRAMA\nID\nGPU 0  99  0.900  0.000\n")
    assert _devices(capture)["GPU0"].dram_active == 0.0


def test_zeros_of_an_idle_device_are_zeros(tmp_path: Path) -> None:
    capture = _capture(tmp_path, "#Entity  GPUTL  SMACT  POWER\nID\nGPU 0  0  0.000  70.1\n")
    assert _devices(capture)["GPU0"].sm_active == 0.0
    assert NoteCode.COUNTERS_NOT_MEASURED not in [note.code for note in capture.notes]


def test_what_no_device_reaches_is_unknown(tmp_path: Path) -> None:
    text = "#Entity  SMACT  PCIRX\nID\nGPU 0  0.5  9e12\nGPU 0  1.002  1000\n"
    capture = _capture(tmp_path, text)
    load = _devices(capture)["GPU0"]
    assert (load.pcie_rx_bytes_per_s, load.sm_active) == (1000, 0.75)
    assert [note.params for note in capture.notes if note.code == NoteCode.SAMPLES_IMPOSSIBLE] == [{"count": 1}]


def test_no_rows_is_said(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        _capture(tmp_path, HEADER)
    assert caught.value.code == RefusalCode.NO_ROWS


def test_devices_are_limited(tmp_path: Path) -> None:
    text = HEADER + "".join(f"GPU {number}  0.1 0.1 0.1 1\n" for number in range(4))
    with pytest.raises(Refusal) as caught:
        _capture(tmp_path, text, Limits(devices=3))
    assert caught.value.code == RefusalCode.TOO_MANY_DEVICES


def test_inside_markdown_with_crlf(tmp_path: Path) -> None:
    text = "# Notes\r\n\r\n```\r\n" + (HEADER + "GPU 1  0.5  0.1  0.2  7\n").replace("\n", "\r\n") + "```\r\ntext\r\n"
    capture = _capture(tmp_path, text)
    assert capture.format == Format.DCGM_DMON
    assert _devices(capture)["GPU1"].nvlink_tx_bytes_per_s == 7
