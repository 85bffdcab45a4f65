"""What bounds a job, by the best evidence that its files give: a timeline, else sums or samples."""

from profiling.analysis import Analysis
from profiling.bottleneck import Bottleneck
from profiling.classifier import classify
from profiling.coarse import coarse_bottleneck


def bottleneck_of(analysis: Analysis) -> Bottleneck | None:
    """None where the files tell of the machine alone."""
    if analysis.features is not None:
        return classify(analysis.features)
    return coarse_bottleneck([found for _, found in analysis.evidence])
