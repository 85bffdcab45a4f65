"""What waits for what in one step of one rank: the graph that a replay follows with other durations.

Nodes are pieces of device work in order of their end: a call of a collective, or a run of computing kernels and copies
that follow each other on one stream without anything else waiting in between. The host is one line of time with breaks:
each break is a moment when it waited for a node to end.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

NONE: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class StepGraph:
    """``n`` nodes, ``m`` waits between streams, ``b`` breaks of the host. Times in seconds from the start of the step.

    Nodes, columns of shape ``(n,)``. ``work_s`` ``(n, 5)``: device time by class, in the order of ``KernelClass``.
    ``host_copy_s``: of its copies, those to and from the host; copies that do not tell their way are the device's own.
    ``collective``: place in ``MeasuredStep.collectives``, ``NONE`` where the node computes; ``calls``: of that
    collective; ``busy_s``: time as captured. ``gap_s``: pauses between the kernels of a node, which stay. ``before``:
    the node before it on its stream or ``NONE``; ``after_s``: pause between the two (negative where they overlap).
    ``first_*`` and ``last_*``: break after which its first and last kernel were launched (``NONE``: the start of the
    step) and host seconds from there, -inf where the launch is not known. ``tail_s`` of ``tail_class`` (``NONE``: a
    collective): the last kernel.

    Waits: node ``target`` does not start before ``source`` ended, columns of shape ``(m,)``, in order of ``target``.

    Host, columns of shape ``(b,)``: ``reach_s``: host seconds from the break before (the first: from the start of the
    step) until it began to wait; ``waited_for``: the node; ``resume_s``: from that node's end until it went on.

    ``lag_s``: from a launch to the start of a kernel that nothing else holds up. The next step begins ``end_lag_s``
    after the host came ``end_s`` after break ``end_break`` (-inf: at once), and no sooner than all nodes ended.
    ``ahead_s``: when the host launched the first work of this step, < 0 where it ran ahead; NaN where the next step is
    not in the capture.
    """

    work_s: NDArray[np.float64]
    host_copy_s: NDArray[np.float64]
    collective: NDArray[np.int32]
    calls: NDArray[np.int32]
    busy_s: NDArray[np.float64]
    gap_s: NDArray[np.float64]
    before: NDArray[np.int32]
    after_s: NDArray[np.float64]
    first_break: NDArray[np.int32]
    first_s: NDArray[np.float64]
    last_break: NDArray[np.int32]
    last_s: NDArray[np.float64]
    tail_class: NDArray[np.int8]
    tail_s: NDArray[np.float64]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    reach_s: NDArray[np.float64]
    waited_for: NDArray[np.int32]
    resume_s: NDArray[np.float64]
    lag_s: float
    end_break: int
    end_s: float
    end_lag_s: float
    ahead_s: float

    def __len__(self) -> int:
        return len(self.busy_s)
