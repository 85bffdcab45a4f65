"""What bounds a job, by the best evidence that its files give: a timeline, else sums or samples."""

from dataclasses import replace

from profiling.analysis import Analysis
from profiling.bottleneck import Bottleneck
from profiling.classifier import classify
from profiling.coarse import coarse_bottleneck


def bottleneck_of(analysis: Analysis) -> Bottleneck | None:
    """None where the files tell of the machine alone. Whether the host is to blame takes its operators to tell."""
    if analysis.features is not None:
        found = classify(analysis.features)
        host_seen = any(rank.operators != 0 for rank in analysis.ranks)
        return found if host_seen else replace(found, host_bound=None)
    return coarse_bottleneck([found for _, found in analysis.evidence])
