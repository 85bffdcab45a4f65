"""Software stacks: what the same model costs in the hands of different frameworks.

``calibration/stacks.csv`` is written by ``manage.py calibrate`` from published runs; see docs/prediction.md.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

_TABLE = Path(__file__).parent / "calibration" / "stacks.csv"
UNTOLD = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """How a framework runs a model.

    ``host_launch_s``: host time of one layer's launches in one pass. ``elementwise_scale``: traffic of norms,
    activations and residuals over what fused kernels need. ``products_scale``: time of matrix products over the
    measured law. ``gradient_overlap``: share of the last micro-batch that gradient exchange may hide under;
    ``shard_overlap``: share of each micro-batch that gathers and scatters of sharded weights may hide under;
    ``tensor_overlap``, ``expert_overlap``: share of those exchanges that computing hides. ``gradient_bytes``: size of
    a gradient value as exchanged.
    """

    name: str
    title: str
    host_launch_s: float
    elementwise_scale: float
    products_scale: float
    gradient_overlap: float
    shard_overlap: float
    tensor_overlap: float
    expert_overlap: float
    gradient_bytes: float


@cache
def stacks() -> Mapping[str, Stack]:
    """By name; ``*`` is what holds where nothing is told."""
    with _TABLE.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    numbers = [name for name in Stack.__dataclass_fields__ if name not in ("name", "title")]
    return MappingProxyType(
        {
            row["stack"]: Stack(
                name=row["stack"], title=row["title"], **{number: float(row[number]) for number in numbers}
            )
            for row in rows
        }
    )


def stack_of(name: str | None) -> Stack:
    """The stack of this name; one that is not known counts as not told."""
    return stacks().get(name or UNTOLD, stacks()[UNTOLD])


def stack_names() -> tuple[str, ...]:
    """Names that a workload may carry."""
    return tuple(name for name in stacks() if name != UNTOLD)
