"""What is evaluated in one go: rows of (server, plan), as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from advisor.engine.collectives import Floats, Ints
from advisor.engine.hardware import Hardware
from advisor.engine.plans import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """One row per (server, plan); ``hardware`` has the same rows. ``which[row]`` is the plan's place in ``plans``."""

    hardware: Hardware
    plans: tuple[Plan, ...]
    which: Ints
    dp: Ints
    tp: Ints
    zero_stage: Ints
    micro_batch: Floats
    recompute: Floats

    def __len__(self) -> int:
        return len(self.which)

    @property
    def gpus(self) -> Ints:
        return self.dp * self.tp

    @classmethod
    def of(cls, hardware: Hardware, plans: Sequence[Plan], which: Ints) -> Self:
        """``plans[which[row]]`` on row ``row`` of ``hardware``."""

        def whole(name: str) -> Ints:
            return np.array([getattr(plan, name) for plan in plans], dtype=np.int64)[which]

        return cls(
            hardware=hardware,
            plans=tuple(plans),
            which=which,
            dp=whole("dp"),
            tp=whole("tp"),
            zero_stage=whole("zero_stage"),
            micro_batch=whole("micro_batch").astype(np.float64),
            recompute=whole("recompute").astype(np.float64),
        )

    def take(self, rows: Ints) -> Self:
        """The given rows, in the given order."""
        return self.of(self.hardware.take(rows), self.plans, self.which[rows])

    def passing(self, micro_batch: float) -> Self:
        """The same rows, each with this many samples per rank and pass."""
        return replace(self, micro_batch=np.full(len(self), micro_batch))

    def undivided(self) -> Self:
        """The same rows without tensor parallelism."""
        return replace(self, tp=np.ones_like(self.tp))

    def plan(self, row: int) -> Plan:
        return self.plans[self.which[row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Factors on the speed of each resource: what the sensitivities and ranges are computed with.

    ``communication`` is a number, or one for each row.
    """

    compute: float = 1.0
    memory: float = 1.0
    communication: float | Floats = 1.0
    host: float = 1.0


AS_IS = Speed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Seconds of one step by what they are spent on; ``step_s`` is the sum of all but the hidden communication."""

    compute_s: Floats
    memory_s: Floats
    copy_s: Floats
    communication_exposed_s: Floats
    communication_hidden_s: Floats
    host_s: Floats

    @property
    def step_s(self) -> Floats:
        return self.compute_s + self.memory_s + self.copy_s + self.communication_exposed_s + self.host_s
