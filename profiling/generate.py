"""Small Kineto captures with exactly known figures, from a frozen description.

The layout is plain: kernels and copies run one after another on one stream, each after its gap; a collective starts
on a second stream once the kernel it waits for has ended and the collective before it. Every figure of the capture
follows from :func:`placed`.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPUTE_STREAM, COMMUNICATION_STREAM = 7, 20
_LAUNCH_LEAD_NS = 20_000
_LAUNCH_STEP_NS = 7_000
_CALL_NS = 4_500
_BASE_NS = 1_767_189_312_000_000_000
_ORIGIN_NS = 2_000_000_000_000
_PROCESS = 4242


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel of a step. ``gap_ns``: idle time before it; ``operator``: the framework operator that launches it."""

    name: str
    duration_ns: int
    gap_ns: int = 0
    operator: str = "aten::op"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One copy of a step, in order with the kernels."""

    name: str
    duration_ns: int
    bytes: int
    gap_ns: int = 0
    operator: str = "aten::to"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One collective of a step; it may start when the work item number ``after`` has ended."""

    name: str
    kernel_name: str
    duration_ns: int
    elements: int
    dtype: str
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSpec:
    """What one rank's capture holds: the same step ``steps`` times, ``pause_ns`` idle after each."""

    work: tuple[Kernel | Copy, ...]
    collectives: tuple[Collective, ...] = ()
    steps: int = 3
    pause_ns: int = 0
    rank: int = 0
    world_size: int = 1
    device_name: str = "NVIDIA A100-SXM4-80GB"
    device_memory_bytes: int = 85_899_345_920
    step_markers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One row of device work, where it runs; times in ns."""

    item: Kernel | Copy | Collective
    step: int
    start_ns: int
    launch_ns: int

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.item.duration_ns


def placed(spec: CaptureSpec) -> list[Placed]:
    """All device work of the capture in order of start."""
    rows: list[Placed] = []
    begin = _ORIGIN_NS
    for step in range(spec.steps):
        mine = [*_on_compute_stream(spec, step, begin)]
        mine += _on_communication_stream(spec, step, mine)
        rows += mine
        begin = max((row.end_ns for row in mine), default=begin) + spec.pause_ns
    return sorted(rows, key=lambda row: (row.start_ns, row.item.name))


def _on_compute_stream(spec: CaptureSpec, step: int, begin: int) -> Iterator[Placed]:
    clock = begin
    for place, item in enumerate(spec.work):
        start = clock + item.gap_ns
        launch = begin - _LAUNCH_LEAD_NS + place * _LAUNCH_STEP_NS
        row = Placed(item=item, step=step, start_ns=start, launch_ns=min(launch, start - _CALL_NS))
        clock = row.end_ns
        yield row


def _on_communication_stream(spec: CaptureSpec, step: int, mine: list[Placed]) -> list[Placed]:
    rows: list[Placed] = []
    for item in spec.collectives:
        gate = mine[item.after]
        start = max(gate.end_ns, rows[-1].end_ns if rows else 0)
        rows.append(Placed(item=item, step=step, start_ns=start, launch_ns=gate.launch_ns + _CALL_NS))
    return rows


def document(spec: CaptureSpec) -> dict[str, Any]:
    """The capture as the profiler would write it."""
    return {
        "schemaVersion": 1,
        "deviceProperties": [
            {"id": index, "name": spec.device_name, "totalGlobalMem": spec.device_memory_bytes}
            for index in range(min(8, spec.world_size))
        ],
        "cuda_runtime_version": 12040,
        "distributedInfo": {"backend": "nccl", "rank": spec.rank, "world_size": spec.world_size},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": _BASE_NS,
        "traceEvents": list(_events(spec)),
        "traceName": f"rank{spec.rank}.json",
    }


def write(spec: CaptureSpec, path: Path) -> None:
    """Write a capture; gzip where the name ends in .gz. The same spec gives the same bytes."""
    text = json.dumps(document(spec), separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def _events(spec: CaptureSpec) -> Iterator[dict[str, Any]]:
    device = spec.rank % 8
    yield {"ph": "M", "name": "process_name", "pid": _PROCESS, "tid": 0, "ts": 0, "args": {"name": "python"}}
    yield {"ph": "M", "name": "process_labels", "pid": device, "tid": 0, "ts": 0, "args": {"labels": f"GPU {device}"}}
    rows = placed(spec)
    if spec.step_markers:
        yield from _markers(spec, rows)
    for number, row in enumerate(rows, start=1):
        yield _host_event("cpu_op", _operator(row), row.launch_ns - 1000, _CALL_NS + 2500, {"External id": number})
        yield _host_event("cuda_runtime", _call(row), row.launch_ns, _CALL_NS, {"correlation": number, "cbid": 211})
        yield _device_event(spec, row, device, number)


def _markers(spec: CaptureSpec, rows: list[Placed]) -> Iterator[dict[str, Any]]:
    """Step markers on the host, each from just before its first launch to the next one."""
    opens = [min(row.launch_ns for row in rows if row.step == step) - 2000 for step in range(spec.steps)]
    last_end = max(row.end_ns for row in rows) + spec.pause_ns - _LAUNCH_LEAD_NS
    for step, (start, end) in enumerate(zip(opens, [*opens[1:], max(last_end, opens[-1] + 1)], strict=True)):
        yield _host_event("user_annotation", f"ProfilerStep#{step + 5}", start, end - start, {"External id": 0})


def _operator(row: Placed) -> str:
    return "record_param_comms" if isinstance(row.item, Collective) else row.item.operator


def _call(row: Placed) -> str:
    match row.item:
        case Copy():
            return "cudaMemcpyAsync"
        case Collective():
            return "cudaLaunchKernelExC"
        case _:
            return "cudaLaunchKernel"


def _host_event(cat: str, name: str, start_ns: int, duration_ns: int, args: dict[str, Any]) -> dict[str, Any]:
    return _complete(cat, name, _PROCESS, _PROCESS, start_ns, duration_ns, args)


def _device_event(spec: CaptureSpec, row: Placed, device: int, number: int) -> dict[str, Any]:
    stream = COMMUNICATION_STREAM if isinstance(row.item, Collective) else COMPUTE_STREAM
    args: dict[str, Any] = {"device": device, "context": 1, "stream": stream, "correlation": number}
    cat, name = "kernel", row.item.name
    if isinstance(row.item, Copy):
        cat, args["bytes"] = "gpu_memcpy", row.item.bytes
    if isinstance(row.item, Collective):
        name = row.item.kernel_name
        args |= {
            "Collective name": row.item.name,
            "In msg nelems": row.item.elements,
            "Out msg nelems": row.item.elements,
            "Group size": spec.world_size,
            "dtype": row.item.dtype,
        }
    return _complete(cat, name, device, stream, row.start_ns, row.item.duration_ns, args)


def _complete(
    cat: str, name: str, pid: int, tid: int, start_ns: int, duration_ns: int, args: dict[str, Any]
) -> dict[str, Any]:
    times = {"ts": start_ns / 1000, "dur": duration_ns / 1000}
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, **times, "args": args}
