"""The answer of an analysis as plain data: what `analyze --json` prints and a Run stores."""

from typing import Any

from profiling.analysis import Analysis
from profiling.breakdown import Breakdown
from profiling.messages import sentence
from profiling.notes import Note, Outcome, Refusal
from profiling.workload import MeasuredStep


def analysis_document(analysis: Analysis) -> dict[str, Any]:
    """Everything but the bottleneck, which the classifier adds; times in microseconds, null where unknown."""
    return {
        "format": analysis.format,
        "outcome": str(analysis.outcome),
        "notes": [note_document(note) for note in analysis.notes],
        "ranks": [
            {**rank_document(part), "waiting_us": None if waited is None else waited / 1000}
            for part, waited in zip(analysis.ranks, analysis.waiting_ns, strict=True)
        ],
        "step": _step_document(analysis.workload.measured),
    }


def _step_document(measured: MeasuredStep | None) -> dict[str, Any] | None:
    """The typical step; ``observed`` is null without markers: then it is the whole window."""
    if measured is None:
        return None
    return {"duration_us": measured.step_s * 1e6, "observed": measured.steps_observed}


def refusal_document(refusal: Refusal) -> dict[str, Any]:
    """The answer where there is none: no figures, the reason as code and sentence."""
    return {
        "format": None,
        "outcome": str(Outcome.ERROR),
        "notes": [],
        "ranks": [],
        "step": None,
        "bottleneck": no_bottleneck(),
        "error": {"code": str(refusal.code), "params": dict(refusal.params), "sentence": sentence(refusal)},
    }


def note_document(note: Note) -> dict[str, Any]:
    return {"code": str(note.code), "params": dict(note.params), "sentence": sentence(note)}


def rank_document(part: Breakdown) -> dict[str, Any]:
    return {
        "rank": part.rank,
        "device_index": part.device_index,
        "world_size": part.world_size,
        "device": part.device_name,
        "window_us": part.window_ns / 1000,
        "gpu_busy_us": part.gpu_busy_ns / 1000,
        "compute_us": part.compute_ns / 1000,
        "comm_us": part.comm_ns / 1000,
        "exposed_comm_us": part.exposed_comm_ns / 1000,
        "copy_us": part.copy_ns / 1000,
        "idle_us": part.idle_ns / 1000,
        "kernels": part.kernels,
    }


def no_bottleneck() -> dict[str, Any]:
    """The bottleneck where nothing can be said."""
    return {"label": None, "probabilities": {}, "host_bound": None, "evidence": []}


def bottleneck_document(bottleneck: Any) -> dict[str, Any]:
    """What the classifier says; ``label`` is null where it does not want to decide.

    ``evidence`` opens with the statement that leads; ``host_bound``: it is about the host, copies or waiting.
    """
    return {
        "label": bottleneck.label,
        "probabilities": dict(bottleneck.probabilities),
        "host_bound": bottleneck.host_bound,
        "evidence": [note_document(note) for note in (*bottleneck.evidence, *bottleneck.warnings)],
    }
