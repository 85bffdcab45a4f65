"""Fields of DCGM by number, by the titles of ``dcgmi dmon`` and by the names of its macros, old and new.

Numbers, units and meanings: ``dcgm_fields.h``; DCGM 4.6 renamed the macros and kept the numbers.
"""

from dataclasses import dataclass

from profiling.formats.device_samples import MIB


@dataclass(frozen=True, slots=True)
class DcgmField:
    """``load``: the field of DeviceLoad that it fills; ``factor``: from its unit to that field's."""

    number: int
    title: str
    tag: str
    macros: tuple[str, ...]
    load: str
    factor: float = 1.0


_FIELDS = (
    DcgmField(155, "POWER", "power_usage", ("DEV_POWER_USAGE", "DEV_BOARD_POWER_WATTS"), "power_w"),
    DcgmField(203, "GPUTL", "gpu_utilization", ("DEV_GPU_UTIL", "DEV_GPU_UTIL_RATIO"), "utilisation", 0.01),
    DcgmField(
        204, "MCUTL", "mem_copy_utilization", ("DEV_MEM_COPY_UTIL", "DEV_MEM_COPY_UTIL_RATIO"),
        "memory_utilisation", 0.01,
    ),
    DcgmField(252, "FBUSD", "fb_used", ("DEV_FB_USED",), "peak_memory_bytes", MIB),
    DcgmField(
        1001, "GRACT", "gr_engine_active", ("PROF_GR_ENGINE_ACTIVE", "PROF_GR_ENGINE_UTIL_RATIO"), "graphics_active"
    ),
    DcgmField(1002, "SMACT", "sm_active", ("PROF_SM_ACTIVE", "PROF_SM_UTIL_RATIO"), "sm_active"),
    DcgmField(
        1004, "TENSO", "tensor_active", ("PROF_PIPE_TENSOR_ACTIVE", "PROF_TENSOR_UTIL_RATIO"), "tensor_active"
    ),
    DcgmField(1005, "DRAMA", "dram_active", ("PROF_DRAM_ACTIVE", "PROF_DRAM_UTIL_RATIO"), "dram_active"),
    DcgmField(1006, "FP64A", "fp64_active", ("PROF_PIPE_FP64_ACTIVE", "PROF_FP64_UTIL_RATIO"), "fp64_active"),
    DcgmField(1007, "FP32A", "fp32_active", ("PROF_PIPE_FP32_ACTIVE", "PROF_FP32_UTIL_RATIO"), "fp32_active"),
    DcgmField(1008, "FP16A", "fp16_active", ("PROF_PIPE_FP16_ACTIVE", "PROF_FP16_UTIL_RATIO"), "fp16_active"),
    DcgmField(1009, "PCITX", "pcie_tx_bytes", ("PROF_PCIE_TX_BYTES",), "pcie_tx_bytes_per_s"),
    DcgmField(1010, "PCIRX", "pcie_rx_bytes", ("PROF_PCIE_RX_BYTES",), "pcie_rx_bytes_per_s"),
    DcgmField(1011, "NVLTX", "nvlink_tx_bytes", ("PROF_NVLINK_TX_BYTES",), "nvlink_tx_bytes_per_s"),
    DcgmField(1012, "NVLRX", "nvlink_rx_bytes", ("PROF_NVLINK_RX_BYTES",), "nvlink_rx_bytes_per_s"),
)  # fmt: skip

_BLANK = 140737488355328.0
"""``DCGM_FP64_BLANK``: this and more stands for "no value" in doubles, and in 64-bit integers too."""

_BY_NAME = {
    name.casefold(): one
    for one in _FIELDS
    for name in (str(one.number), one.title, one.tag, *(f"DCGM_FI_{macro}" for macro in one.macros))
}


def dcgm_field(name: str) -> DcgmField | None:
    """The field by its number, title, tag or macro, in any case; None for one that says nothing of the load."""
    return _BY_NAME.get(name.casefold())


def converted(field: DcgmField, value: float | None) -> float | None:
    """A value in the unit of DeviceLoad; None for DCGM's stand-ins for no value."""
    return None if value is None or value >= _BLANK else value * field.factor
