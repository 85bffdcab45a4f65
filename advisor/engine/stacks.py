"""Software stacks: what the same model costs in the hands of different frameworks.

``calibration/stacks.csv`` is written by ``manage.py calibrate`` from published runs; see docs/prediction.md.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from advisor.engine.calibrated import Era
from advisor.engine.hardware import Hardware, hardware
from advisor.engine.system import System
from profiling.workload import Mode, Workload

_TABLE = Path(__file__).parent / "calibration" / "stacks.csv"
UNTOLD = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """How a framework runs a model.

    ``products_scale``, ``expert_scale`` (routed experts), ``attention_scale``: time of these kernels over the measured
    laws. ``elementwise_scale``: traffic of norms, activations and residuals over what fused kernels need.
    ``host_launch_s``: host time of one layer's launches in one pass; ``expert_launch_s``: what a layer with experts
    takes beside it. ``gradient_overlap``: share of the last micro-batch that gradient exchange may hide under;
    ``tensor_overlap``, ``expert_overlap``: share of those exchanges that computing hides. ``gradient_bytes``: size of a
    gradient value as exchanged. ``attention_era``: which attention kernels it ships.
    """

    name: str
    title: str
    products_scale: float
    expert_scale: float
    attention_scale: float
    elementwise_scale: float
    host_launch_s: float
    expert_launch_s: float
    gradient_overlap: float
    tensor_overlap: float
    expert_overlap: float
    gradient_bytes: float
    attention_era: Era


@cache
def stacks() -> Mapping[str, Stack]:
    """By name; ``*`` is what holds where nothing is told."""
    with _TABLE.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    numbers = [name for name in Stack.__dataclass_fields__ if name not in ("name", "title", "attention_era")]
    return MappingProxyType(
        {
            row["stack"]: Stack(
                name=row["stack"],
                title=row["title"],
                attention_era=Era(row["attention_era"]),
                **{number: float(row[number]) for number in numbers},
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


def hardware_of(workload: Workload, systems: Sequence[System]) -> Hardware:
    """These systems as this job runs on them: its precision, and the attention kernels of its software."""
    served = workload.mode is Mode.INFERENCE
    era = Era.CURRENT if served else stack_of(workload.stack).attention_era
    return hardware(systems, workload.precision, era)
