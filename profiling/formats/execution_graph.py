"""What graphs without times add up to, whichever tool wrote them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from profiling.evidence import ExecutionGraph, SizedCollective
from profiling.formats.limits import Limits
from profiling.formats.operator_flops import attention_flops, matmul_flops
from profiling.notes import Refusal, RefusalCode

LARGEST_GROUP = 10**6


@dataclass(slots=True)
class GraphSums:
    """``operators`` counts what was executed; a sum of FLOPs is None until an operator of its kind has shapes."""

    limits: Limits
    operators: int = 0
    collectives: list[SizedCollective] = field(default_factory=list)
    matmul_flops: int | None = None
    attention_flops: int | None = None
    rank: int | None = None
    world_size: int | None = None

    def add_operator(self, name: str, shapes: Sequence[Any]) -> None:
        self.operators += 1
        if self.operators > self.limits.events:
            raise Refusal(RefusalCode.TOO_MANY_EVENTS, {"limit": self.limits.events})
        if (flops := matmul_flops(name, shapes)) is not None:
            self.matmul_flops = (self.matmul_flops or 0) + flops
        elif (flops := attention_flops(name, shapes)) is not None:
            self.attention_flops = (self.attention_flops or 0) + flops

    def add_collective(self, collective: SizedCollective) -> None:
        self.collectives.append(collective)
        if len(self.collectives) > self.limits.rows:
            raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": self.limits.rows})

    def evidence(self) -> ExecutionGraph:
        return ExecutionGraph(
            rank=self.rank,
            world_size=self.world_size,
            operators=self.operators,
            collectives=tuple(self.collectives),
            matmul_flops=self.matmul_flops,
            attention_flops=self.attention_flops,
        )
