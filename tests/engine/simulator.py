"""A host and its device, run forward event by event: what a capture of them would show, for any speed of the kernels.

It shares nothing with the replay: here the program is known, there it has to be read off the times.
"""

from dataclasses import dataclass

import numpy as np

from profiling.intervals import union
from profiling.timeline import HostSide
from tests.profiling.timelines import Row, timeline

LAG, PAUSE, CALL = 8_000, 1_500, 6_000
GEMM, ADD, REDUCE = "ampere_sgemm_128x64_nn", "vectorized_elementwise_kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


@dataclass(frozen=True, slots=True)
class Launch:
    name: str
    length: int
    stream: int = 0
    think: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """The stream waits for all that was launched on the other one."""

    stream: int
    other: int


@dataclass(frozen=True, slots=True)
class Synchronise:
    """The host waits for the first stream, as reading a value does."""


def run(program, factor=lambda launch: 1.0):
    """The timeline of a program; ``factor`` of a launch: how much longer its kernel takes."""
    now, free, held, rows, streams, orders, waits = 0, {}, {}, [], [], [], []
    for step in program:
        if isinstance(step, Order):
            orders.append(now)
            held[step.stream] = max(held.get(step.stream, 0), free.get(step.other, 0))
            now += CALL // 3
        elif isinstance(step, Synchronise):
            done = max(now, free.get(0, 0))
            waits.append((now, done + 2_000))
            now = done + 2_000
        else:
            now += step.think
            after = free[step.stream] + PAUSE if step.stream in free else 0
            start = max(now + LAG, after, held.get(step.stream, 0))
            length = max(round(step.length * factor(step)), 1)
            rows.append(Row(step.name, start, length, now))
            streams.append(step.stream)
            free[step.stream] = start + length
            now += CALL
    order = sorted(range(len(rows)), key=lambda at: rows[at].start)
    spans = np.array(waits or [(0, 0)], dtype=np.int64).T
    return timeline(
        [rows[at] for at in order],
        stream=np.array([streams[at] for at in order], dtype=np.int32),
        host=HostSide(
            launches=len(rows), waits=union(spans[0], spans[1]), orders_ns=np.array(sorted(orders), dtype=np.int64)
        ),
    )
