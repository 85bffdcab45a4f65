"""What a step loses because ranks train together: they wait for the slowest, and their processes share a host.

Put on top where a pace is known from another number of GPUs (an anchor) or a model by its totals alone. Of a
transformer that is only described nothing is added: the constants of its software were fitted to runs on many GPUs,
and hold it.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates
from advisor.engine.collectives import Floats, Ints
from profiling.workload import Mode, Workload

UNEVEN = frozenset({"speech", "transformer-encdec", "gnn", "detection-in-regions"})
"""Families (``ModelTotals.family``) whose samples differ in length or number of parts, so that no two batches are
alike. Recurrent translators are not among them: they batch sentences of one length over all ranks."""
_TABLES = "recommender"
"""The family whose weights are almost all in tables of its first layer: the last to get their gradients."""
_OF_STACK = {"tensorflow": "skew_tensorflow"}
_MOST_PROCESSES = 8
"""Processes on a host up to which crowding was measured; more are taken as so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """``work``, ``launching``: factors on GPU work and on launching, over those of a rank alone; ``once_s``: host time
    of a step. Per row. ``late``: share of the gradients that are there only when the backward pass has ended.
    """

    work: Floats | float = 1.0
    launching: Floats | float = 1.0
    once_s: Floats | float = 0.0
    late: Floats | float = 0.0


ALONE = Together()


def together(workload: Workload, candidates: Candidates, passes: Floats) -> Together:
    """``passes``: micro-batches between two exchanges."""
    if workload.mode is not Mode.TRAINING or (workload.anchor is None and workload.totals is None):
        return ALONE
    per_host = candidates.hardware.host.node_gpus
    return losses(
        candidates.gpus,
        processes=np.where(per_host > 0, np.minimum(per_host, candidates.gpus), candidates.gpus),
        passes=passes,
        noise=_noise(workload),
        crowding=constant("host_crowding"),
        rendezvous_s=constant("rendezvous_s"),
        late=1.0 if is_late(workload) else 0.0,
    )


def losses(
    gpus: Ints,
    *,
    processes: Ints,
    passes: Floats,
    noise: Floats | float,
    crowding: float,
    rendezvous_s: float,
    late: Floats | float,
) -> Together:
    """``noise``: standard deviation of one rank's time for a micro-batch, as a share of it.

    Where every rank's time of a pass is normal around the same mean, the slowest of n takes ``slowest(n)`` of it
    longer; over several passes before a barrier their noise averages out.
    """
    waiting = noise * slowest(gpus) / np.sqrt(np.maximum(np.ceil(passes), 1.0))
    return Together(
        work=1.0 + waiting,
        launching=1.0 + crowding * (np.minimum(processes, _MOST_PROCESSES) - 1),
        once_s=np.where(gpus > 1, rendezvous_s, 0.0),
        late=late,
    )


def slowest(ranks: Ints) -> Floats:
    """Expected maximum of so many standard normal values: 0.59 of 2, 1.4 of 8 (Blom 1958), 0 of 1."""
    counts, place = np.unique(ranks, return_inverse=True)
    known = [NormalDist().inv_cdf((count - 0.375) / (count + 0.25)) for count in counts.tolist()]
    return np.array(known)[place]


def is_uneven(workload: Workload) -> bool:
    return workload.totals is not None and workload.totals.family in UNEVEN


def is_late(workload: Workload) -> bool:
    """Whether no gradient to speak of is there before the backward pass has ended."""
    return workload.totals is not None and workload.totals.family == _TABLES


def _noise(workload: Workload) -> float:
    of_stack = _OF_STACK.get(workload.stack or "")
    own = constant("skew_uneven" if is_uneven(workload) else "skew_even")
    return own + (constant(of_stack) if of_stack else 0.0)
