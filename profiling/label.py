"""What bounds a job, by the best evidence that its files give: a timeline, else sums or samples."""

from dataclasses import replace

from profiling.analysis import Analysis
from profiling.bottleneck import Bottleneck
from profiling.classifier import classify
from profiling.coarse import coarse_bottleneck
from profiling.notes import BottleneckCode, Note
from profiling.rank import RankReading


def _host_seen(rank: RankReading) -> bool:
    """Captures that never hold operators show the host by its launches."""
    return rank.launches is not None if rank.operators is None else rank.operators > 0


def bottleneck_of(analysis: Analysis) -> Bottleneck | None:
    """None where the files tell of the machine or of copies alone. Whether the host is to blame takes it to be seen."""
    if analysis.features is not None:
        if all(rank.copies_alone for rank in analysis.ranks):
            return None
        found = classify(analysis.features)
        if not all(rank.idle_known for rank in analysis.ranks):
            found = replace(found, warnings=(Note(BottleneckCode.OF_RECORDED_WORK), *found.warnings))
        host_seen = any(_host_seen(rank) for rank in analysis.ranks)
        return found if host_seen else replace(found, host_bound=None)
    return coarse_bottleneck([found for _, found in analysis.evidence])
