"""Samples that nvidia-smi and rocm-smi print: dmon, pmon, queries, and reports."""

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from profiling.evidence import DeviceLoad, DeviceLoads
from profiling.formats.capture import Capture, Format
from profiling.formats.registry import read
from profiling.notes import NoteCode, Refusal, RefusalCode
from tests.paths import SHARED

TRACES = SHARED / "traces" if SHARED else None
MIB = 1 << 20


def _capture(folder: Path, text: str, name: str = "samples.txt") -> Capture:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read(path)


def _devices(capture: Capture) -> dict[str, DeviceLoad]:
    (loads,) = capture.evidence
    assert isinstance(loads, DeviceLoads)
    return {load.entity: load for load in loads.devices}


def _mean(capture: Capture, name: str) -> float:
    loads = [load for load in _devices(capture).values() if getattr(load, name) is not None]
    return sum(getattr(load, name) * load.samples for load in loads) / sum(load.samples for load in loads)


def _published(kind: str) -> list[tuple[str, Mapping[str, Any]]]:
    if TRACES is None:
        return []
    reference = json.loads((TRACES / "reference" / "text_files.json").read_text(encoding="utf-8"))
    return [
        (name, one["result"]) for name, one in reference.items() if isinstance(one, dict) and one.get("kind") == kind
    ]


@pytest.mark.parametrize(
    ("name", "result"), _published("nvidia_smi_query_csv"), ids=lambda value: value if isinstance(value, str) else ""
)
def test_published_means_of_queries(name: str, result: Mapping[str, Any]) -> None:
    assert TRACES is not None
    capture = read(TRACES / name)
    assert capture.format == Format.SMI_QUERY
    assert sum(load.samples for load in _devices(capture).values()) == result["rows"]
    for title, field, factor in (
        ("utilization.gpu", "utilisation", 100),
        ("utilization.memory", "memory_utilisation", 100),
        ("power.draw", "power_w", 1),
    ):
        for key in (title, f"{title} [%]", f"{title} [W]"):
            if key in result:
                assert factor * _mean(capture, field) == pytest.approx(result[key]["mean"], abs=0.01)


@pytest.mark.parametrize(
    ("name", "result"), _published("nvidia_smi_dmon"), ids=lambda value: value if isinstance(value, str) else ""
)
def test_published_means_of_dmon(name: str, result: Mapping[str, Any]) -> None:
    """Rates over PCIe differ: samples beyond any link (2 TB/s) are left out here and counted there."""
    assert TRACES is not None
    capture = read(TRACES / name)
    assert capture.format == Format.SMI_DMON
    for title, field, factor in (("sm", "utilisation", 100), ("mem", "memory_utilisation", 100), ("pwr", "power_w", 1)):
        assert factor * _mean(capture, field) == pytest.approx(result[title]["mean"], abs=0.1)
    assert NoteCode.SAMPLES_IMPOSSIBLE in [note.code for note in capture.notes]


DMON = """# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    fb  rxpci  txpci
# Idx      W      C      C      %      %      %      %    MB   MB/s   MB/s
    0    123     44     50     50     10      0      0  2048      2      1
    1      -     44     50      -      -      0      0     -      -      -
    0    177     44     50    100     30      0      0  1024      4      1
"""


def test_columns_of_dmon(tmp_path: Path) -> None:
    devices = _devices(_capture(tmp_path, DMON))
    assert (devices["GPU0"].power_w, devices["GPU0"].utilisation, devices["GPU0"].memory_utilisation) == (
        150,
        0.75,
        0.2,
    )
    assert (devices["GPU0"].peak_memory_bytes, devices["GPU0"].pcie_rx_bytes_per_s) == (2048 * MIB, 3e6)
    assert (devices["GPU1"].power_w, devices["GPU1"].utilisation, devices["GPU1"].samples) == (None, None, 0)


def test_dmon_with_date_and_time_and_other_columns(tmp_path: Path) -> None:
    text = "#Date       Time        gpu   mclk     sm\n#YYYYMMDD   HH:MM:SS    Idx    MHz      %\n"
    text += " 20260101   12:00:01      3   2619     40\n"
    assert _devices(_capture(tmp_path, text))["GPU3"].utilisation == pytest.approx(0.4)


def test_dmon_as_csv(tmp_path: Path) -> None:
    text = "#gpu, pwr, sm, mem\n#Idx, W, %, %\n0, 100, 50, 10\n"
    assert _devices(_capture(tmp_path, text))["GPU0"].power_w == 100


PMON = """# gpu        pid  type    sm   mem   enc   dec   command
# Idx          #   C/G     %     %     %     %   name
    0       1001     C    30    10     -     -   python secret.py
    0       1002     C    20     5     -     -   x
    1          -     -     -     -     -     -   -
    0       1001     C    50    10     -     -   python secret.py
    0       1002     C    60     5     -     -   x
"""


def test_processes_of_one_moment_are_added_up(tmp_path: Path) -> None:
    capture = _capture(tmp_path, PMON)
    devices = _devices(capture)
    assert devices["GPU0"].utilisation == pytest.approx(0.75)
    assert (devices["GPU0"].samples, devices["GPU1"].utilisation) == (2, None)
    assert "secret" not in repr(capture)


QUERY = "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], power.draw [W]\n"


def test_units_in_cells_and_several_devices(tmp_path: Path) -> None:
    text = QUERY + "2026/01/01 00:00:00.000, 0, NVIDIA A100, 80 %, 40 %, 1000 MiB, 300.5 W\n"
    text += "2026/01/01 00:00:00.000, 1, NVIDIA A100, [N/A], [Not Supported], N/A, [Unknown Error]\n"
    text += QUERY + "2026/01/01 00:00:01.000, 0, NVIDIA A100, 60 %, 20 %, 1200 MiB, 299.5 W\n"
    devices = _devices(_capture(tmp_path, text))
    assert devices["GPU0"].utilisation == pytest.approx(0.7)
    assert (devices["GPU0"].peak_memory_bytes, devices["GPU0"].power_w) == (1200 * MIB, 300)
    assert devices["GPU0"].device_name == "NVIDIA A100"
    unknown = devices["GPU1"]
    assert (unknown.utilisation, unknown.memory_utilisation, unknown.peak_memory_bytes, unknown.power_w) == (None,) * 4


def test_units_in_titles_alone(tmp_path: Path) -> None:
    text = "index, memory.used [MiB], utilization.gpu [%]\n2, 512, 30\n"
    load = _devices(_capture(tmp_path, text))["GPU2"]
    assert (load.peak_memory_bytes, load.utilisation) == (512 * MIB, pytest.approx(0.3))


def test_devices_by_serial_number_are_numbered_and_it_is_not_kept(tmp_path: Path) -> None:
    text = "uuid, utilization.gpu [%]\nGPU-aaaa, 10 %\nGPU-bbbb, 30 %\nGPU-aaaa, 20 %\n"
    capture = _capture(tmp_path, text)
    assert {name: load.utilisation for name, load in _devices(capture).items()} == {
        "GPU0": pytest.approx(0.15),
        "GPU1": pytest.approx(0.3),
    }
    assert "aaaa" not in repr(capture)


def test_a_query_for_one_figure(tmp_path: Path) -> None:
    load = _devices(_capture(tmp_path, "utilization.gpu [%]\n10 %\n[N/A]\n50 %\n"))["GPU0"]
    assert (load.utilisation, load.samples) == (pytest.approx(0.3), 2)


def test_values_without_titles_are_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        _capture(tmp_path, "2026/01/01 00:00:00.000, NVIDIA A100, 80 %, 40 %, 1000 MiB\n")
    assert caught.value.code == RefusalCode.COLUMNS_UNNAMED


def test_many_rows_agree_with_a_plain_mean(tmp_path: Path) -> None:
    rows = [(number % 3, (7 * number) % 101) for number in range(3000)]
    path = tmp_path / "log.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("index", "utilization.gpu"), *rows])
    for entity, load in _devices(read(path)).items():
        values = [value for index, value in rows if entity == f"GPU{index}"]
        assert load.utilisation == pytest.approx(sum(values) / len(values) / 100)
        assert load.samples == len(values)


REPORT = """
==============NVSMI LOG==============

Timestamp                                 : Sat Oct 10 17:02:53 2020
Attached GPUs                             : 1
GPU 00000000:06:00.0
    Product Name                          : NVIDIA A100
    Serial Number                         : 123456789
    PCI
        Tx Throughput                     : 700 KB/s
    FB Memory Usage
        Total                             : 81920 MiB
        Used                              : 50 MiB
    BAR1 Memory Usage
        Used                              : 1 MiB
    Utilization
        {gpu}                               : 37 %
        Memory                            : 6 %
    GPU Power Readings
        Average Power Draw                : 67.03 W
    GPU Memory Power Readings
        Average Power Draw                : 5 W
    Clocks
        Memory                            : 405 MHz
"""

XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd" [<!ENTITY a "aaaaaaaaaa">]>
<nvidia_smi_log>
  <gpu id="00000000:06:00.0">
    <product_name>NVIDIA A100</product_name>
    <mig_devices>
      None
    </mig_devices>
    <serial>123456789</serial>
    <pci>
      <tx_util>700 KB/s</tx_util>
    </pci>
    <fb_memory_usage>
      <used>50 MiB</used>
    </fb_memory_usage>
    <bar1_memory_usage>
      <used>1 MiB</used>
    </bar1_memory_usage>
    <utilization>
      <gpu_util>37 %</gpu_util>
      <memory_util>6 %</memory_util>
    </utilization>
    <gpu_power_readings>
      <power_draw>67.03 W</power_draw>
    </gpu_power_readings>
  </gpu>
</nvidia_smi_log>
"""


@pytest.mark.parametrize(
    "text",
    [REPORT.replace("{gpu}", "Gpu"), REPORT.replace("{gpu}", "GPU"), XML, re.sub(r"\n *", "", XML)],
    ids=["text", "text of newer drivers", "xml", "xml on one line"],
)
def test_reports(tmp_path: Path, text: str) -> None:
    capture = _capture(tmp_path, text)
    assert capture.format == Format.SMI_REPORT
    load = _devices(capture)["GPU0"]
    assert (load.device_name, load.samples) == ("NVIDIA A100", 1)
    assert load.utilisation == pytest.approx(0.37)
    assert load.memory_utilisation == pytest.approx(0.06)
    assert (load.peak_memory_bytes, load.power_w, load.pcie_tx_bytes_per_s) == (50 * MIB, 67.03, 7e5)
    assert "123456789" not in repr(capture)


def test_slices_in_a_report_do_not_count_for_the_card(tmp_path: Path) -> None:
    slice_ = "<mig_device>\n<fb_memory_usage>\n<used>999 MiB</used>\n</fb_memory_usage>\n</mig_device>"
    load = _devices(_capture(tmp_path, XML.replace("None", slice_)))["GPU0"]
    assert load.peak_memory_bytes == 50 * MIB


TABLE = """Mon Jan  5 10:00:0{second} 2026
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.14              Driver Version: 550.54.14      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:04:00.0 Off |                    0 |
| N/A   33C    P0            369W /  700W |     {second}01MiB /  81559MiB |      {second}0%      Default |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H100 80GB HBM3          Off |   00000000:05:00.0 Off |                  N/A |
| 30%   33C    P0            N/A  /  N/A  |       1MiB /  81559MiB |     N/A      Default |
+-----------------------------------------------------------------------------------------+
|    0   N/A  N/A      1234      C   python secret.py                               500MiB |
"""


def test_tables_for_people_in_a_loop(tmp_path: Path) -> None:
    capture = _capture(tmp_path, TABLE.replace("{second}", "4") + TABLE.replace("{second}", "6"))
    assert capture.format == Format.SMI_TABLE
    devices = _devices(capture)
    assert (devices["GPU0"].utilisation, devices["GPU0"].power_w) == (pytest.approx(0.5), 369)
    assert (devices["GPU0"].peak_memory_bytes, devices["GPU0"].samples) == (601 * MIB, 2)
    assert devices["GPU0"].device_name == "NVIDIA H100 80GB HBM3"
    assert (devices["GPU1"].utilisation, devices["GPU1"].power_w) == (None, None)
    assert "secret" not in repr(capture)


def test_rocm_smi(tmp_path: Path) -> None:
    card = {
        "Card series": "Instinct MI300X",
        "GPU use (%)": "80",
        "Average Graphics Package Power (W)": "400.0",
        "VRAM Total Used Memory (B)": "1024",
        "Serial Number": "123456789",
        "GPU memory use (%)": "N/A",
    }
    capture = _capture(tmp_path, json.dumps({"card0": card, "system": {"Driver version": "6"}}))
    assert capture.format == Format.ROCM_SMI
    load = _devices(capture)["GPU0"]
    assert (load.utilisation, load.power_w, load.peak_memory_bytes, load.memory_utilisation) == (0.8, 400, 1024, None)
    assert load.device_name == "Instinct MI300X"
    assert "123456789" not in repr(capture)


def test_what_looks_like_rocm_smi_and_is_damaged_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        _capture(tmp_path, '{"card0": {"GPU use (%)": "80"')
    assert caught.value.code == RefusalCode.NO_ROWS
