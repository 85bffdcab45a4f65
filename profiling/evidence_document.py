"""Evidence without a timeline as plain data, bounded: the largest rows of a table, and its sums over all of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from profiling.evidence import (
    CollectiveTiming,
    CollectiveTimings,
    DeviceLoad,
    DeviceLoads,
    Evidence,
    ExecutionGraph,
    KernelProfile,
    KernelProfiles,
    KernelSums,
    LinkStates,
    NcclFacts,
    ServingLoad,
    StepSummary,
    SummedKernel,
    Topology,
)
from profiling.kernels import COMMUNICATING, classify
from profiling.timeline import WorkKind

MOST_ROWS = 100
_KERNELS = (WorkKind.KERNEL, WorkKind.GRAPH)
_COPIES = (WorkKind.COPY, WorkKind.FILL)


def evidence_document(name: str, found: Evidence) -> dict[str, Any]:
    """``file``, ``kind`` and what the evidence tells; times in microseconds, bandwidths in GB/s, null where unknown."""
    kind, describe = _DOCUMENTS[type(found)]
    return {"file": name, "kind": kind, **describe(found)}


def _sums(found: KernelSums) -> dict[str, Any]:
    rows = sorted(found.rows, key=lambda row: -row.total_ns)
    return {
        "device": found.device_name,
        "kernels": _count(row for row in rows if row.kind in _KERNELS),
        "kernel_time_sum_us": _total(row for row in rows if row.kind in _KERNELS),
        "comm_time_sum_us": _total(row for row in rows if is_communication(row)),
        "copy_time_sum_us": _total(row for row in rows if row.kind in _COPIES),
        "rows": [
            {"name": row.name, "work": row.kind.name.lower(), "count": row.count, "time_us": row.total_ns / 1000}
            for row in rows[:MOST_ROWS]
        ],
        "rows_total": len(rows),
    }


def is_communication(row: SummedKernel) -> bool:
    """Collective kernels by name, and copies between devices."""
    by_name = row.kind is WorkKind.KERNEL and classify(row.name)[0] in COMMUNICATING
    return by_name or row.kind is WorkKind.PEER_COPY


def _total(rows: Iterable[SummedKernel]) -> float:
    return sum(row.total_ns for row in rows) / 1000


def _count(rows: Iterable[SummedKernel]) -> int | None:
    counts = [row.count for row in rows]
    return None if None in counts else sum(count or 0 for count in counts)


def _profiles(found: KernelProfiles) -> dict[str, Any]:
    rows = sorted(found.kernels, key=lambda row: -(row.duration_s or 0.0))
    return {
        "device": found.device_name,
        "kernels": sum(row.launches for row in rows),
        "rows": [_profile(row) for row in rows[:MOST_ROWS]],
    }


def _profile(row: KernelProfile) -> dict[str, Any]:
    return {
        "name": row.name,
        "launches": row.launches,
        "duration_us": _micro(row.duration_s),
        "sm_pct": _percent(row.compute_fraction),
        "memory_pct": _percent(row.memory_fraction),
        "dram_pct": _percent(row.dram_fraction),
        "tensor_pct": _percent(row.tensor_fraction),
        "dram_bytes": row.dram_bytes,
        "dram_gbs": _giga(row.dram_bytes_per_s),
        "flops": row.flops,
        "gflops_per_s": _giga(row.flops_per_s),
        "bound": row.bound,
    }


def _loads(found: DeviceLoads) -> dict[str, Any]:
    return {
        "gpus": sum(not one.is_slice for one in found.devices),
        "mig_instances": sum(one.is_slice for one in found.devices),
        "rows": [_load(one) for one in found.devices[:MOST_ROWS]],
    }


def _load(one: DeviceLoad) -> dict[str, Any]:
    return {
        "name": one.entity,
        "is_slice": one.is_slice,
        "device": one.device_name,
        "samples": one.samples,
        "utilisation": one.utilisation,
        "memory_utilisation": one.memory_utilisation,
        "graphics_active": one.graphics_active,
        "sm_active": one.sm_active,
        "tensor_active": one.tensor_active,
        "fp64_active": one.fp64_active,
        "fp32_active": one.fp32_active,
        "fp16_active": one.fp16_active,
        "dram_active": one.dram_active,
        "nvlink_tx_gbs": _giga(one.nvlink_tx_bytes_per_s),
        "nvlink_rx_gbs": _giga(one.nvlink_rx_bytes_per_s),
        "pcie_tx_gbs": _giga(one.pcie_tx_bytes_per_s),
        "pcie_rx_gbs": _giga(one.pcie_rx_bytes_per_s),
        "power_w": one.power_w,
        "peak_memory_bytes": one.peak_memory_bytes,
    }


def _topology(found: Topology) -> dict[str, Any]:
    return {
        "gpus": list(found.gpus),
        "nics": list(found.nics),
        "links": dict(found.links),
        "numa": dict(found.numa),
        "nvlink": found.nvlink,
        "full_mesh": found.full_mesh,
        "worst_link": found.worst_link,
    }


def _links(found: LinkStates) -> dict[str, Any]:
    rows = [
        {
            "name": one.entity,
            "device": one.device_name,
            "links": len(one.link_bytes_per_s),
            "active": sum(speed is not None for speed in one.link_bytes_per_s),
            "total_gbs": sum(speed or 0.0 for speed in one.link_bytes_per_s) / 1e9,
        }
        for one in found.devices[:MOST_ROWS]
    ]
    return {"rows": rows}


def _nccl(found: NcclFacts) -> dict[str, Any]:
    return {
        "library": found.library,
        "nccl_version": found.nccl_version,
        "cuda": found.cuda_version,
        "hip": found.hip_version,
        "nranks": found.ranks,
        "nodes": found.nodes,
        "channels": found.channels,
        "transports_intra": list(found.transports_intra),
        "transports_inter": list(found.transports_inter),
        "gdr": found.gpudirect,
        "without_gdr": [list(pair) for pair in found.without_gpudirect[:MOST_ROWS]],
        "without_peer": [list(pair) for pair in found.without_peer[:MOST_ROWS]],
        "nvls": found.nvls,
        "rings": [list(ring) for ring in found.rings[:1]],
        "bus_gbs": _giga(found.bus_bytes_per_s),
        "gpu_gbs": _giga(found.gpu_bytes_per_s),
        "path_intra": found.path_intra,
        "path_inter": found.path_inter,
        "warnings": found.warnings,
    }


def _timings(found: CollectiveTimings) -> dict[str, Any]:
    return {
        "tool": found.tool,
        "nranks": found.ranks,
        "nranks_listed": found.ranks_listed,
        "nodes": found.nodes,
        "device": found.device_name,
        "peak_busbw_gbs": {str(kind): speed / 1e9 for kind, speed in found.peak_bus_bytes_per_s.items()},
        "rows": [_timing(row) for row in found.rows[:MOST_ROWS]],
        "rows_total": len(found.rows),
    }


def _timing(row: CollectiveTiming) -> dict[str, Any]:
    return {
        "collective": row.operation or str(row.kind),
        "message_bytes": row.message_bytes,
        "count": row.calls,
        "time_us": _micro(row.time_s),
        "total_time_us": _micro(row.total_time_s),
        "waiting_us": _micro(row.waiting_s),
        "busbw_gbs": _giga(row.bus_bytes_per_s),
        "in_place_time_us": _micro(row.in_place_time_s),
        "in_place_busbw_gbs": _giga(row.in_place_bus_bytes_per_s),
    }


def _graph(found: ExecutionGraph) -> dict[str, Any]:
    counts = Counter((str(one.kind), one.message_bytes, one.group_size) for one in found.collectives)
    return {
        "rank": found.rank,
        "world_size": found.world_size,
        "operators": found.operators,
        "collectives": len(found.collectives),
        "mm_flops": found.matmul_flops,
        "attention_flops": found.attention_flops,
        "rows": [
            {"collective": kind, "message_bytes": size, "group_size": group, "count": count}
            for (kind, size, group), count in counts.most_common(MOST_ROWS)
        ],
    }


def _step(found: StepSummary) -> dict[str, Any]:
    return {
        "tool": found.tool,
        "device": found.device_type,
        "gpus": found.devices,
        "steps": found.steps,
        "step_us": _micro(found.step_s),
        "input_us": _micro(found.input_s),
        "to_device_us": _micro(found.to_device_s),
        "output_us": _micro(found.output_s),
        "device_compute_us": _micro(found.device_compute_s),
        "device_to_device_us": _micro(found.device_to_device_s),
        "collectives_us": _micro(found.collectives_s),
        "host_compute_us": _micro(found.host_compute_s),
        "launch_us": _micro(found.launch_s),
        "compile_us": _micro(found.compile_s),
        "unknown_us": _micro(found.unknown_s),
        "idle": found.idle_share,
        "half": found.half_share,
        "rows": [{"name": one.name, "share": one.share, "count": one.calls} for one in found.ops[:MOST_ROWS]],
        "rows_total": len(found.ops),
    }


def _serving(found: ServingLoad) -> dict[str, Any]:
    return {
        "engine": found.engine,
        "samples": found.samples,
        "requests": found.requests,
        "rows_per_request": found.rows_per_request,
        "prompt_tokens_per_s": found.prompt_tokens_per_s,
        "generated_tokens_per_s": found.generated_tokens_per_s,
    }


def _micro(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e6


def _giga(value: float | None) -> float | None:
    return None if value is None else value / 1e9


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else 100 * fraction


_DOCUMENTS: Mapping[type, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    KernelSums: ("kernel_sums", _sums),
    KernelProfiles: ("kernel_profiles", _profiles),
    DeviceLoads: ("device_loads", _loads),
    Topology: ("topology", _topology),
    LinkStates: ("link_states", _links),
    NcclFacts: ("nccl_log", _nccl),
    CollectiveTimings: ("collective_timings", _timings),
    ExecutionGraph: ("execution_graph", _graph),
    StepSummary: ("step_summary", _step),
    ServingLoad: ("serving_load", _serving),
}
