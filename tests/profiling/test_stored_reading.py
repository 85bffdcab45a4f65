"""What one worker hands to another comes out as it went in."""

import json
from pathlib import Path

import pytest

from profiling.analysis import FileReading, join_files, read_file
from profiling.document import analysis_document
from profiling.formats.limits import Limits
from profiling.reading import read_captures
from profiling.stored_reading import dumps, loads
from tests.paths import SHARED

pytestmark = pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
FILES = SHARED / "traces" / "files" if SHARED else Path()
KINDS = [
    "kineto-megatron-tp8/megatron_kineto_0.json",
    "nsys-h100-2gpu/mfu_2gpu_after.sqlite",
    "nsys-txt-cs336/2.7b_ctx512_forward_cuda_gpu_kern_sum.txt",
    "ncu-clima/baseline-details.csv",
    "dcgm-h800/dcgmi_dmon_nvlink_8gpu.txt",
    "topo-8xv100-dgx1/topo_8xV100_cube_mesh.txt",
    "nccl-p5-2node/nccl-test-output-v2.22.3-1.log",
    "nccltests-8xa100/nccl_allreduce.log",
    "chakra-megatron-tp8/megatron_et_0.json",
]


def document(files: list[FileReading]) -> object:
    return json.loads(json.dumps(analysis_document(join_files(files)), allow_nan=False))


@pytest.mark.parametrize("name", KINDS)
def test_the_answer_is_the_same(name: str) -> None:
    files, notes = read_captures([FILES / name], Limits(), None, None, keep=read_file)
    again, told = loads(dumps(files, notes))
    assert told == notes
    assert document(again) == document(files)
