"""What reading one file gives, whatever its format."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from profiling.evidence import Evidence
from profiling.formats.source import Head, Source
from profiling.notes import Note
from profiling.timeline import Timeline


class Format(StrEnum):
    KINETO = "kineto"
    CHROME_TRACE = "chrome-trace"
    XLA_TRACE = "xla-trace"
    XPLANE = "xplane"
    TF_PROFILER_PAGE = "tf-profiler-page"
    NSYS_SQLITE = "nsys-sqlite"
    NSYS_STATS = "nsys-stats-csv"
    NCU = "ncu-csv"
    ROCPROF = "rocprof-csv"
    ROCPROF_V3 = "rocprofv3-csv"
    ROCPROF_V3_JSON = "rocprofv3-json"
    ROCPD = "rocpd"
    RPD = "rpd"
    DCGM_DMON = "dcgm-dmon"
    DCGM_PROMETHEUS = "dcgm-prometheus"
    SMI_DMON = "nvidia-smi-dmon"
    SMI_QUERY = "nvidia-smi-csv"
    SMI_TOPOLOGY = "nvidia-smi-topo"
    SMI_NVLINK = "nvidia-smi-nvlink"
    SMI_REPORT = "nvidia-smi-q"
    SMI_TABLE = "nvidia-smi"
    ROCM_SMI = "rocm-smi-json"
    NCCL_LOG = "nccl-log"
    NCCL_TESTS = "nccl-tests"
    NCCL_TESTS_JSON = "nccl-tests-json"
    NCCL_INSPECTOR = "nccl-inspector"
    NCCL_PROFILER = "nccl-profiler"
    SERVING_LOG = "serving-log"
    DEEPSPEED_COMMS = "deepspeed-comms"
    PYTORCH_ET = "pytorch-et"
    CHAKRA_ET = "chakra-et"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What one file holds: a Timeline per rank, or other evidence, and what the user must know about the reading."""

    format: Format
    timelines: tuple[Timeline, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[Note, ...] = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Reader:
    """One format. ``recognises`` looks at the first bytes alone; ``read`` raises Refusal.

    ``read_together``: the same for several files, where one run of the tool writes several that belong together.
    """

    format: Format
    recognises: Callable[[Head], bool]
    read: Callable[[Source], Capture]
    read_together: Callable[[Sequence[Source]], Capture] | None = None
