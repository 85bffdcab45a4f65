"""Achieved memory bandwidth."""

import pytest

from advisor.engine.calibrated import memory_laws
from advisor.engine.hardware import hardware
from advisor.engine.system import System
from tests.engine.machines import H100_SXM, NVSWITCH, RTX_3090


def test_streaming_is_the_middle_of_what_was_measured():
    """BabelStream on H100 (Azure): copy 2.90, add 2.97, dot 3.18 of 3.35 TB/s; A100 1.61 to 1.75 of 2.039."""
    assert memory_laws()["h100"].streaming == pytest.approx(2.97 / 3.35, abs=0.01)
    assert memory_laws()["a100"].streaming == pytest.approx(1.70 / 2.039, abs=0.01)


def test_kernels_never_beat_the_data_sheet_and_products_read_slower_than_streams():
    for law in memory_laws().values():
        assert 0.5 < law.weights < law.streaming <= 0.95


def test_a_chip_nobody_measured_has_the_middle():
    found = hardware([System(RTX_3090, NVSWITCH), System(H100_SXM, NVSWITCH)], "bf16").memory
    assert found.bytes_per_s[0] == pytest.approx(936e9 * memory_laws()["*"].streaming)
    assert found.weights_bytes_per_s[1] == pytest.approx(3350e9 * memory_laws()["h100"].weights)
