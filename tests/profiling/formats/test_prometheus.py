"""What dcgm-exporter serves: several scrapes, several machines, slices, and labels that are nobody's business."""

from pathlib import Path

import pytest

from profiling.evidence import DeviceLoads
from profiling.formats.capture import Capture, Format
from profiling.formats.registry import read
from profiling.notes import Refusal, RefusalCode

LABELS = (
    'gpu="{gpu}",UUID="{uuid}",device="nvidia{gpu}",modelName="NVIDIA H100",Hostname="secret-host",pod="secret-pod"'
)


def _line(name: str, value: str, gpu: int = 0, uuid: str = "GPU-a", more: str = "") -> str:
    return f"{name}{{{LABELS.format(gpu=gpu, uuid=uuid)}{more}}} {value}\n"


def _capture(folder: Path, text: str) -> Capture:
    path = folder / "metrics.prom"
    path.write_text(text, encoding="utf-8")
    return read(path)


def _loads(capture: Capture) -> DeviceLoads:
    (loads,) = capture.evidence
    assert isinstance(loads, DeviceLoads)
    return loads


def test_scrapes_become_means(tmp_path: Path) -> None:
    text = "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
    for used, active in ((80, 0.5), (60, 0.7)):
        text += _line("DCGM_FI_DEV_GPU_UTIL", str(used)) + _line("DCGM_FI_PROF_SM_ACTIVE", f"{active} 1700000000000")
        text += _line("DCGM_FI_DEV_FB_USED", str(10 * used)) + _line("DCGM_FI_DEV_SM_CLOCK", "1980")
    capture = _capture(tmp_path, text)
    assert capture.format == Format.DCGM_PROMETHEUS
    (load,) = _loads(capture).devices
    assert (load.entity, load.device_name, load.samples) == ("GPU0", "NVIDIA H100", 2)
    assert load.utilisation == pytest.approx(0.7)
    assert load.sm_active == pytest.approx(0.6)
    assert load.peak_memory_bytes == 800 * (1 << 20)


def test_new_names_of_the_same_fields(tmp_path: Path) -> None:
    text = _line("DCGM_FI_PROF_TENSOR_UTIL_RATIO", "0.25") + _line("DCGM_FI_DEV_GPU_UTIL_RATIO", "50")
    (load,) = _loads(_capture(tmp_path, text)).devices
    assert (load.tensor_active, load.utilisation) == (0.25, 0.5)


def test_the_same_number_on_two_machines_is_two_devices(tmp_path: Path) -> None:
    text = _line("DCGM_FI_PROF_DRAM_ACTIVE", "0.2") + _line("DCGM_FI_PROF_DRAM_ACTIVE", "0.6", uuid="GPU-b")
    assert {load.entity: load.dram_active for load in _loads(_capture(tmp_path, text)).devices} == {
        "GPU0": 0.2,
        "GPU0.2": 0.6,
    }


def test_slices_are_kept_apart(tmp_path: Path) -> None:
    slices = ',GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"'
    text = _line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "0.2", more=slices) + _line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "0.9")
    assert [(load.entity, load.is_slice) for load in _loads(_capture(tmp_path, text)).devices] == [
        ("GPU0", False),
        ("GPU0/GI7", True),
    ]


def test_no_host_and_no_pod_is_kept(tmp_path: Path) -> None:
    assert "secret" not in repr(_capture(tmp_path, _line("DCGM_FI_DEV_GPU_UTIL", "5")))


@pytest.mark.parametrize("value", ["9223372036854775794", "140737488355328", "NaN", "+Inf"])
def test_stand_ins_for_no_value_are_unknown(tmp_path: Path, value: str) -> None:
    text = _line("DCGM_FI_DEV_POWER_USAGE", value) + _line("DCGM_FI_DEV_GPU_UTIL", "5")
    assert _loads(_capture(tmp_path, text)).devices[0].power_w is None


def test_labels_with_quotes_and_braces(tmp_path: Path) -> None:
    text = _line("DCGM_FI_DEV_GPU_UTIL", "5", more=',note="a \\"} 99"')
    assert _loads(_capture(tmp_path, text)).devices[0].utilisation == pytest.approx(0.05)


def test_series_without_devices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        _capture(tmp_path, 'DCGM_FI_DEV_GPU_UTIL{gpu="0" 5\n')
    assert caught.value.code == RefusalCode.NO_ROWS
