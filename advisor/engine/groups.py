"""Time of a collective among the ranks of a group, wherever the group lies.

Ranks are numbered so that neighbours are tensor-parallel, then context-, data- and pipeline-parallel (``plans.Plan``).
A group has ``size`` ranks that lie ``stride`` apart; all groups of that kind talk at the same time.
"""

import numpy as np

from advisor.engine.candidates import Candidates, Speed
from advisor.engine.collectives import Floats, Ints, group_index, time_s
from profiling.workload import CollectiveKind


def collective_s(
    candidates: Candidates, kind: CollectiveKind, message_bytes: Floats, *, size: Ints, stride: Ints, speed: Speed
) -> Floats:
    """Seconds of one call, per row; groups of one take none.

    Over PCIe a group spans everything between its first and last rank, and the ``stride`` groups beside it cross the
    same root at the same time. Measured on an A100 PCIe box: 20.8 GB/s falls to 7.3 with two such groups, 20.9 to 3.9
    with four (SimuMax a100_pcie.json).
    """
    link = candidates.hardware.link
    near_s = time_s(link.curves, link.server, size, kind, message_bytes)
    span = size * stride
    crossing = link.shared[np.arange(len(candidates)), group_index(span)] > 0
    traffic = (1 - 1 / size) / np.maximum(1 - 1 / span, 0.5)
    far_s = time_s(link.curves, link.server, span, kind, message_bytes) * traffic * stride
    return np.where(crossing & (stride > 1), far_s, near_s) / speed.communication
