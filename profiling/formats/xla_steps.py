"""Steps of JAX and TensorFlow profiles: marked by the host where it does so, else by the device's own rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from profiling.timeline import UNKNOWN, StepSpan

_LINKED_ENOUGH = 0.5


@dataclass(frozen=True, slots=True)
class MarkedStep:
    """``device``: whose row of steps it stands in, None for the host."""

    device: int | None
    number: int
    start_ns: int
    end_ns: int


def step_spans(
    marked: Sequence[MarkedStep], start: NDArray[np.int64], launched: NDArray[np.int64] | None
) -> tuple[StepSpan, ...]:
    """Steps in order of start, as the host saw them.

    ``start`` and ``launched`` of all device work; without launches the rows of the device are taken as they stand. A
    row of the device spans the work of a step: the step itself lasts until the next one opens, and on the host it
    opened when the first of that work was launched.
    """
    host = [step for step in marked if step.device is None]
    rows = _until_the_next([step for step in marked if step.device is not None])
    linked = launched is not None and float((launched != UNKNOWN).mean()) >= _LINKED_ENOUGH
    chosen = host if (host and linked) or not rows else rows
    if chosen is rows and linked and launched is not None:
        chosen = [_as_launched(step, start, launched) for step in rows]
    spans = [StepSpan(number=step.number, start_ns=step.start_ns, end_ns=step.end_ns) for step in chosen]
    return tuple(sorted(spans, key=lambda span: span.start_ns))


def _until_the_next(rows: list[MarkedStep]) -> list[MarkedStep]:
    rows = sorted(rows, key=lambda step: (step.device or 0, step.start_ns))
    found = []
    for step, following in pairwise([*rows, None]):
        if step is None:
            continue
        joined = following and (following.device, following.number) == (step.device, step.number + 1)
        found.append(replace(step, end_ns=following.start_ns) if following and joined else step)
    return found


def _as_launched(step: MarkedStep, start: NDArray[np.int64], launched: NDArray[np.int64]) -> MarkedStep:
    inside = launched[(start >= step.start_ns) & (start < step.end_ns) & (launched != UNKNOWN)]
    if not inside.size:
        return step
    first = int(inside.min())
    return replace(step, start_ns=first, end_ns=first + step.end_ns - step.start_ns)
