"""The answer of an analysis as plain data: what `analyze --json` prints and a Run stores."""

from typing import Any

from profiling.analysis import Analysis
from profiling.breakdown import Breakdown
from profiling.collectives import CollectiveRow
from profiling.evidence_document import evidence_document
from profiling.idle import IdleCauses
from profiling.kernels import FAMILIES_VERSION
from profiling.messages import sentence
from profiling.notes import Note, Outcome, Refusal
from profiling.rank import DeviceReading, RankReading
from profiling.rates import ClassRate


def analysis_document(analysis: Analysis) -> dict[str, Any]:
    """Everything but the bottleneck, which the classifier adds; times in microseconds, null where unknown."""
    return {
        "format": analysis.format,
        "outcome": str(analysis.outcome),
        "kernel_families_version": FAMILIES_VERSION,
        "notes": [note_document(note) for note in analysis.notes],
        "ranks": [
            rank_document(rank, device, waited)
            for rank, waited in zip(analysis.ranks, analysis.waiting_ns, strict=True)
            for device in rank.devices
        ],
        "step": _step_document(analysis),
        "collectives": [collective_document(row) for row in analysis.collectives],
        "evidence": [evidence_document(name, found) for name, found in analysis.evidence],
    }


def _step_document(analysis: Analysis) -> dict[str, Any] | None:
    """The typical step; ``observed`` is null without markers: then it is the whole window."""
    if analysis.workload is None or analysis.workload.measured is None:
        return None
    measured = analysis.workload.measured
    return {"duration_us": measured.step_s * 1e6, "observed": measured.steps_observed}


def refusal_document(refusal: Refusal) -> dict[str, Any]:
    """The answer where there is none: no figures, the reason as code and sentence."""
    return {
        "format": None,
        "outcome": str(Outcome.ERROR),
        "notes": [],
        "ranks": [],
        "step": None,
        "collectives": [],
        "evidence": [],
        "bottleneck": no_bottleneck(),
        "error": {"code": str(refusal.code), "params": dict(refusal.params), "sentence": sentence(refusal)},
    }


def note_document(note: Note) -> dict[str, Any]:
    return {"code": str(note.code), "params": dict(note.params), "sentence": sentence(note)}


def rank_document(rank: RankReading, device: DeviceReading, waited_ns: int | None) -> dict[str, Any]:
    """One device of one rank. A rank's waiting cannot be given to one of several devices, nor can its steps."""
    part, alone = device.whole, len(rank.devices) == 1
    return {
        "rank": part.rank,
        "device_index": part.device_index,
        "world_size": part.world_size,
        "device": part.device_name,
        "gpu_vendor": rank.vendor,
        "gpus_visible": rank.gpus_visible,
        "devices_used": len(rank.devices),
        **_lengths(part, hidden=rank.copies_alone, idle_known=rank.idle_known),
        "kernels": part.kernels,
        "kernel_time_sum_us": device.kernel_sum_ns / 1000,
        "comm_wait_us": device.waiting_kernels_ns / 1000,
        "waiting_us": _us(waited_ns if alone else None),
        "ptop_bytes": device.peer_bytes,
        "overlap_pct": 100 * part.hidden_comm_ns / part.comm_ns if part.comm_ns else None,
        "streams": device.streams,
        "concurrency_max": device.concurrency,
        "linked_kernels": device.linked_kernels,
        "launch_delay_us": _us(device.launch_delay_ns),
        "occupancy_pct_known_kernels": rank.occupancy_known,
        "host_ops": rank.operators,
        "launches": rank.launches,
        "first_gpu_event_unix_us": _us(rank.first_unix_ns),
        "unclassified_share": _share(device.region.unclassified_ns, device.region.kernel_ns),
        "idle_by_cause": _idle(device.idle, idle_known=rank.idle_known),
        "rates": [_rate(one) for one in device.rates],
        **_steps(rank, part.device_index),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _idle(causes: IdleCauses, *, idle_known: bool) -> dict[str, float | None]:
    """The known causes and the unknown rest add up to the idle time; all is null where that is."""
    return {
        "launch_bound_us": _us(causes.launch_bound_ns),
        "synchronisation_us": _us(causes.synchronisation_ns),
        "input_us": _us(causes.input_ns),
        "unknown_us": _us(causes.unknown_ns if idle_known else None),
    }


def _rate(one: ClassRate) -> dict[str, Any]:
    return {
        "kernel_class": str(one.kernel_class),
        "busy_us": one.busy_s * 1e6,
        "flops": one.flops,
        "bytes": one.moved_bytes,
        "flops_per_s": one.flops_per_s,
        "bytes_per_s": one.bytes_per_s,
        "covered": one.covered,
    }


def _steps(rank: RankReading, device: int) -> dict[str, Any]:
    """``steps`` counts marked ones; without markers the step is one of those that repeat, or unknown.

    Work per step is that of the device that is busiest in it, and unknown for the others.
    """
    steps = rank.steps
    known = steps.source is not None
    spread = steps.spread
    return {
        "steps": steps.observed,
        "steps_repeated": steps.repeated,
        "steps_from": None if steps.source is None else str(steps.source),
        "steady_steps": steps.steady,
        "step_time_us": _us(rank.step_parts.window_ns if known else None),
        "gpu_busy_us_per_step": _us(
            rank.step_parts.gpu_busy_ns if known and rank.step_parts.device_index == device else None
        ),
        "step_p10_us": _us(None if spread is None else spread.p10_ns),
        "step_p90_us": _us(None if spread is None else spread.p90_ns),
        "step_variation": None if spread is None else spread.variation,
        "slowest_step_ratio": None if spread is None else spread.slowest_ratio,
    }


def _lengths(part: Breakdown, *, hidden: bool, idle_known: bool) -> dict[str, float | None]:
    """``hidden``: the file holds copies alone, so that only these are known. Work may be missing: no idle time then."""
    known = {"window_us": part.window_ns, "copy_us": part.copy_ns, "copy_only_us": part.copy_only_ns}
    others = {
        "gpu_busy_us": part.gpu_busy_ns,
        "compute_us": part.compute_ns,
        "comm_us": part.comm_ns,
        "exposed_comm_us": part.exposed_comm_ns,
        "idle_us": part.idle_ns if idle_known else None,
    }
    return {name: length / 1000 for name, length in known.items()} | {
        name: None if hidden else _us(length) for name, length in others.items()
    }


def _us(length_ns: int | None) -> float | None:
    return None if length_ns is None else length_ns / 1000


def collective_document(row: CollectiveRow) -> dict[str, Any]:
    return {
        "kind": str(row.kind),
        "group_size": row.group_size,
        "message_bytes": row.message_bytes,
        "calls": row.calls,
        "time_us": row.busy_s * 1e6,
        "transfer_us": None if row.transfer_s is None else row.transfer_s * 1e6,
        "busbw_gbs": None if row.bus_bytes_per_s is None else row.bus_bytes_per_s / 1e9,
    }


def no_bottleneck() -> dict[str, Any]:
    """The bottleneck where nothing can be said."""
    return {
        "label": None,
        "sure": False,
        "probabilities": {},
        "host_bound": None,
        "work_label": None,
        "evidence": [],
    }


def bottleneck_document(bottleneck: Any) -> dict[str, Any]:
    """What the classifier says; ``label`` is null where it does not want to decide.

    ``evidence`` opens with the statement that leads; ``work_label``: what bounds the GPUs' own work.
    """
    return {
        **no_bottleneck(),
        "label": bottleneck.label,
        "sure": bottleneck.sure,
        "probabilities": dict(bottleneck.probabilities),
        "host_bound": bottleneck.host_bound,
        "work_label": bottleneck.work_label,
        "evidence": [note_document(note) for note in (*bottleneck.evidence, *bottleneck.warnings)],
    }
