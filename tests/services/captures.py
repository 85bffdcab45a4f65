"""Captures made for these tests alone."""

import gzip
from pathlib import Path

STEP_NS = 10_000_000
KERNELS = 200


def long_capture(path: Path, *, steps: int) -> Path:
    """One rank with ``steps`` marked steps of 200 kernels each: about 70 kB of JSON a step, to keep a reader busy."""
    with gzip.open(path, "wt", compresslevel=1) as out:
        out.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],\n')
        out.write('"distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [\n')
        for step in range(steps):
            out.write("".join(_events(step)))
        out.write('{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}}], "traceName": "long"}\n')
    return path


def _events(step: int) -> list[str]:
    begin = step * STEP_NS
    marker = f'"name": "ProfilerStep#{step}", "pid": 9, "tid": 9, {_times(begin, STEP_NS)}'
    lines = [f'{{"ph": "X", "cat": "user_annotation", {marker}}},\n']
    for place in range(KERNELS):
        number = step * KERNELS + place
        launch = f'"pid": 9, "tid": 9, {_times(begin + place * 40_000, 5_000)}, "args": {{"correlation": {number}}}'
        lines.append(f'{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", {launch}}},\n')
        args = f'"args": {{"device": 0, "stream": 7, "correlation": {number}, "grid": [128, {place}, 1]}}'
        work = f'"pid": 0, "tid": 7, {_times(begin + place * 40_000 + 10_000, 30_000)}, {args}'
        lines.append(f'{{"ph": "X", "cat": "kernel", "name": "ampere_bf16_s16816gemm_bf16_128x128", {work}}},\n')
    return lines


def _times(start_ns: int, duration_ns: int) -> str:
    return f'"ts": {start_ns / 1000:.3f}, "dur": {duration_ns / 1000:.3f}'
