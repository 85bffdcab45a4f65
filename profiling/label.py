"""What bounds a job, by the best evidence that its files give: a timeline, else sums or samples."""

from dataclasses import replace

from profiling.analysis import Analysis
from profiling.bottleneck import Bottleneck
from profiling.classifier import classify
from profiling.coarse import coarse_bottleneck
from profiling.notes import BottleneckCode, Note


def bottleneck_of(analysis: Analysis) -> Bottleneck | None:
    """None where the files tell of the machine or of copies alone."""
    if analysis.features is None:
        return coarse_bottleneck([found for _, found in analysis.evidence])
    if all(rank.copies_alone for rank in analysis.ranks):
        return None
    idle_known = all(rank.idle_known for rank in analysis.ranks)
    found = classify(analysis.features, idle_known=idle_known)
    if idle_known:
        return found
    return replace(found, warnings=(Note(BottleneckCode.OF_RECORDED_WORK), *found.warnings))
