"""What is evaluated in one go: rows of (server, plan), as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Self

import numpy as np

from advisor.engine.collectives import Floats, Ints
from advisor.engine.hardware import Hardware
from advisor.engine.plans import Plan, Recompute

_DEGREES = ("dp", "tp", "pp", "ep", "cp", "vpp", "zero_stage")
_NUMBERS = attrgetter(*_DEGREES, "micro_batch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """One row per (server, plan); ``hardware`` has the same rows. ``which[row]`` is the plan's place in ``plans``."""

    hardware: Hardware
    plans: tuple[Plan, ...]
    which: Ints
    dp: Ints
    tp: Ints
    pp: Ints
    ep: Ints
    cp: Ints
    vpp: Ints
    zero_stage: Ints
    micro_batch: Floats
    recompute: Floats
    recompute_attention: Floats

    def __len__(self) -> int:
        return len(self.which)

    @property
    def gpus(self) -> Ints:
        return self.dp * self.tp * self.pp * self.cp

    @classmethod
    def of(cls, hardware: Hardware, plans: Sequence[Plan], which: Ints) -> Self:
        """``plans[which[row]]`` on row ``row`` of ``hardware``.

        ``recompute``: 1 where whole layers are computed again; ``recompute_attention``: 1 where the attention core is,
        alone or with its layer.
        """
        numbers = np.array([_NUMBERS(plan) for plan in plans], dtype=np.int64).reshape(len(plans), -1)
        columns = dict(zip((*_DEGREES, "micro_batch"), numbers.T, strict=True))
        own = {name: column[which] for name, column in columns.items()}
        full = np.array([plan.recompute is Recompute.FULL for plan in plans], dtype=np.float64)
        core = np.array([plan.recompute is not Recompute.NONE for plan in plans], dtype=np.float64)
        return cls(
            hardware=hardware,
            plans=tuple(plans),
            which=which,
            **{**own, "micro_batch": own["micro_batch"].astype(np.float64)},
            recompute=full[which],
            recompute_attention=core[which],
        )

    def take(self, rows: Ints) -> Self:
        """The given rows, in the given order."""
        columns = ("which", *_DEGREES, "micro_batch", "recompute", "recompute_attention")
        own = {name: getattr(self, name)[rows] for name in columns}
        return replace(self, hardware=self.hardware.take(rows), **own)

    def once_per_chip(self) -> tuple[Self, Ints]:
        """One row for each plan and chip, and the place among them of every row.

        What a chip does by itself does not depend on how its server is joined.
        """
        compute, memory = self.hardware.compute.chip, self.hardware.memory.chip
        mixed = (compute != memory).any()
        _, chip = _numbered(compute * (int(memory.max()) + 1) + memory if mixed else compute)
        rows, place = _numbered(chip * len(self.plans) + self.which)
        return self.take(rows), place

    def passing(self, micro_batch: float) -> Self:
        """The same rows, each with this many samples per rank and pass."""
        return replace(self, micro_batch=np.full(len(self), micro_batch))

    def undivided(self) -> Self:
        """The same rows without tensor parallelism."""
        return replace(self, tp=np.ones_like(self.tp))

    def plan(self, row: int) -> Plan:
        return self.plans[self.which[row]]


def _numbered(keys: Ints) -> tuple[Ints, Ints]:
    """A place for each distinct key, in order of the keys: a row that has it, and for every row the place of its key.

    Keys are small numbers from 0 on: this takes no sorting.
    """
    row_of = np.full(int(keys.max(initial=-1)) + 1, -1, dtype=np.int64)
    row_of[keys] = np.arange(len(keys))
    present = row_of >= 0
    return row_of[present], (np.cumsum(present) - 1)[keys]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Factors on the speed of each resource: what the sensitivities and ranges are computed with.

    ``communication`` is a number, or one for each row.
    """

    compute: float = 1.0
    memory: float = 1.0
    communication: float | Floats = 1.0
    host: float = 1.0
    input: float = 1.0


AS_IS = Speed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Seconds of one step by what they are spent on; ``step_s`` is the sum of all but the hidden communication.

    ``bubble_s``: pipeline stages without work. ``host_s``: launching that the GPU waits for. ``input_s``: waiting for
    the next batch.
    """

    compute_s: Floats
    memory_s: Floats
    copy_s: Floats
    communication_exposed_s: Floats
    communication_hidden_s: Floats
    bubble_s: Floats
    host_s: Floats
    input_s: Floats

    @property
    def step_s(self) -> Floats:
        shown = self.compute_s + self.memory_s + self.copy_s + self.communication_exposed_s
        return shown + self.bubble_s + self.host_s + self.input_s
