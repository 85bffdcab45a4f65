"""Honest ranges: 80 %, multiplicative, by how well a prediction is supported.

Two errors are told apart. That of computing time depends on the evidence for the accelerator and is shared by all
servers that carry it; that of the links depends on the box and acts only through the communication that shows.
"""

import numpy as np

from advisor.engine.calibrated import Evidence, log_halfwidth
from advisor.engine.candidates import Candidates, Speed
from advisor.engine.collectives import Floats, group_index
from advisor.engine.fabric import silicon_family
from advisor.engine.hardware import gemm_law, has_training_runs, running_dtype
from advisor.engine.serving import is_served
from advisor.engine.step import Job, step_parts
from catalog.specs import AcceleratorSpec
from profiling.workload import Mode

ESTIMATED_BYTES_HALFWIDTH = 0.7
"""ln range of a message size inferred from the time that it took on links that the capture does not name."""


def evidence(job: Job, accelerator: AcceleratorSpec, gpus: int) -> Evidence:
    """How well this job's time on so many of these accelerators is supported.

    What the capture exchanged is no anchor where transfer over the likely links does not explain it.
    """
    found = _of_chip(job, accelerator)
    if job.traced is None:
        return found
    if job.traced.key == accelerator.key:
        return Evidence.ANCHORED if gpus == 1 or _is_anchor(job) else Evidence.CALIBRATED
    return max(found, _of_chip(job, job.traced), key=lambda level: level.rank)


def _of_chip(job: Job, accelerator: AcceleratorSpec) -> Evidence:
    """Calibrated: training runs of this silicon in this precision were met, or, for a capture, its kernels measured.

    A model known by its totals alone is nowhere calibrated.
    """
    dtype = running_dtype(accelerator, job.workload.precision) or job.workload.precision
    law = gemm_law(accelerator, dtype).evidence
    if law not in ("measured", "borrowed"):
        return Evidence.SPEC_SHEET
    if job.workload.totals is not None:
        return Evidence.UNCALIBRATED
    described = job.workload.measured is None and job.workload.mode is Mode.TRAINING
    known = has_training_runs(accelerator, dtype) if described else law == "measured"
    return Evidence.CALIBRATED if known else Evidence.UNCALIBRATED


def _is_anchor(job: Job) -> bool:
    """Whether what the captured GPUs exchanged is known, or nothing is to be exchanged."""
    return job.is_explained and not (job.exchange_assumed and job.workload.mode is Mode.TRAINING)


def link_halfwidth(job: Job, candidates: Candidates, widths: Floats, network: Floats) -> Floats:
    """ln half-width, on one side, of the time of this candidate's collectives.

    ``widths``: ``[server, group]`` inside a server, ``network``: ``[row]`` between servers; the wider of both counts
    where the GPUs lie in several.
    """
    link = candidates.hardware.link
    reach = link.domain_gpus
    own = widths[link.server, group_index(np.minimum(candidates.gpus, reach))]
    own = np.where(candidates.gpus > reach, np.maximum(own, network), own)
    extra = ESTIMATED_BYTES_HALFWIDTH if job.estimated_bytes else 0.0
    return np.where(candidates.gpus > 1, np.hypot(own, extra), 0.0)


def link_range(job: Job, candidates: Candidates, step_s: Floats) -> tuple[Floats, Floats]:
    """ln(step) below and above the middle (both >= 0) if only the exchanges are other than thought.

    Links may be better or worse, and what the capture exchanged may be read otherwise: each reading lies within.
    """
    link = candidates.hardware.link
    faster = np.exp(link_halfwidth(job, candidates, link.log_faster, link.network_log_faster))
    slower = np.exp(-link_halfwidth(job, candidates, link.log_slower, link.network_log_slower))
    better, worse = (step_parts(job, candidates, Speed(communication=factor)).step_s for factor in (faster, slower))
    read = [step_parts(other, candidates).step_s for other in job.readings()]
    least, most = np.min([step_s, *read], axis=0), np.max([step_s, *read], axis=0)
    below = np.hypot(np.maximum(np.log(step_s / better), 0.0), np.log(step_s / least))
    above = np.hypot(np.maximum(np.log(worse / step_s), 0.0), np.log(most / step_s))
    return below, above


def _kind(job: Job) -> str:
    """Which errors a job's width comes from: those of training, of serving, of serving models with experts."""
    if not is_served(job.workload):
        return "step"
    model = job.workload.model
    return "serving_experts" if model is not None and model.experts else "serving"


def step_halfwidth(job: Job, levels: list[Evidence]) -> Floats:
    kind = _kind(job)
    return np.array([log_halfwidth(level, kind) for level in levels], dtype=np.float64)


def ratio_halfwidth(one: tuple[str, Evidence], other: tuple[str, Evidence]) -> float:
    """ln half-width of the ratio of two predictions of the same job, links apart: most of the error is shared.

    Each is (accelerator key, evidence). Two forms of one chip err alike, whatever the evidence for the chip.
    """
    if one[0] == other[0]:
        return log_halfwidth(Evidence.ANCHORED, "ratio")
    if silicon_family(one[0]) == silicon_family(other[0]):
        return log_halfwidth(Evidence.CALIBRATED, "ratio")
    worst = max(Evidence.CALIBRATED, one[1], other[1], key=lambda level: level.rank)
    return log_halfwidth(worst, "ratio")
