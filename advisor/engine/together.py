"""What a step loses because ranks train together: they wait for the slowest, and their processes share a host.

Put on top where a pace is known from another number of GPUs (an anchor) or a model by its totals alone. Of a
transformer that is only described nothing is added: the constants of its software were fitted to runs on many GPUs,
and hold it.
"""

from dataclasses import dataclass

import numpy as np

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates
from advisor.engine.collectives import Floats
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
    late: float = 0.0


ALONE = Together()


def together(workload: Workload, candidates: Candidates, passes: Floats) -> Together:
    """``passes``: micro-batches between two exchanges.

    Where every rank's time of a pass is normal around the same mean, the slowest of n takes about
    sigma x sqrt(2 ln n) longer (expected maximum); over several passes before a barrier their noise averages out.
    """
    if workload.mode is not Mode.TRAINING or (workload.anchor is None and workload.totals is None):
        return ALONE
    gpus = candidates.gpus
    waiting = _noise(workload) * np.sqrt(2 * np.log(gpus)) / np.sqrt(np.maximum(np.ceil(passes), 1.0))
    per_host = candidates.hardware.host.node_gpus
    processes = np.minimum(np.where(per_host > 0, np.minimum(per_host, gpus), gpus), _MOST_PROCESSES)
    return Together(
        work=1.0 + waiting,
        launching=1.0 + constant("host_crowding") * (processes - 1),
        once_s=np.where(gpus > 1, constant("rendezvous_s"), 0.0),
        late=1.0 if workload.totals is not None and workload.totals.family == _TABLES else 0.0,
    )


def _noise(workload: Workload) -> float:
    """Standard deviation of one rank's time for a micro-batch, as a share of it."""
    uneven = workload.totals is not None and workload.totals.family in UNEVEN
    of_stack = _OF_STACK.get(workload.stack or "")
    return constant("skew_uneven" if uneven else "skew_even") + (constant(of_stack) if of_stack else 0.0)
