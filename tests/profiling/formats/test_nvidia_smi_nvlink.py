"""The state of links: speeds, inactive ones, and the driver's sentence for none."""

from pathlib import Path

import pytest

from profiling.evidence import LinkedDevice, LinkStates
from profiling.formats.capture import Format
from profiling.formats.registry import read
from profiling.notes import Refusal

GPU = "GPU {0}: NVIDIA H100 80GB HBM3 (UUID: GPU-3f2b1c)\n"


def _devices(folder: Path, text: str) -> tuple[LinkedDevice, ...]:
    path = folder / "nvlink.txt"
    path.write_text(text, encoding="utf-8")
    capture = read(path)
    assert capture.format == Format.SMI_NVLINK
    assert "3f2b1c" not in repr(capture)
    (states,) = capture.evidence
    assert isinstance(states, LinkStates)
    return states.devices


def test_speeds_and_inactive_links(tmp_path: Path) -> None:
    text = (
        GPU.format(1) + "\t Link 0: 26.562 GB/s\n\n\t Link 1: <inactive>\n" + GPU.format(0) + "\t Link 0: 26.562 GB/s\n"
    )
    first, second = _devices(tmp_path, text)
    assert (first.entity, first.link_bytes_per_s) == ("GPU0", (26.562e9,))
    assert (second.entity, second.device_name, second.link_bytes_per_s) == (
        "GPU1",
        "NVIDIA H100 80GB HBM3",
        (26.562e9, None),
    )


def test_no_active_link_is_told_as_none(tmp_path: Path) -> None:
    text = GPU.format(0) + "NVML: Unable to retrieve NVLink information as all links are inActive\n"
    (device,) = _devices(tmp_path, text)
    assert device.link_bytes_per_s == ()


def test_capabilities_below_do_not_take_speeds_away(tmp_path: Path) -> None:
    text = GPU.format(0) + "\t Link 0: 25 GB/s\n" + GPU.format(0) + "\t Link 0, P2P is supported: true\n"
    assert _devices(tmp_path, text)[0].link_bytes_per_s == (25e9,)


def test_a_list_of_devices_tells_nothing_of_links(tmp_path: Path) -> None:
    with pytest.raises(Refusal):
        _devices(tmp_path, GPU.format(0) + GPU.format(1))
