"""Which kernel is what: a versioned table of name patterns, first match wins.

The patterns are for names in lower case, and each runs in time linear in the name: names come from strangers. A
``collective`` of ``named`` in the table is taken from the first word of the name that tells of one.
"""

import csv
import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from profiling.workload import CollectiveKind, KernelClass

TELLING = 256


class Family(IntEnum):
    """``UNKNOWN``: no pattern of the table matches; counted as other work, and reported as unclassified.

    ``COMMUNICATION``: kernels that move data between devices, those that compute on it as well (a fused all-reduce and
    normalisation). A matrix kernel that communicates as it goes is ``MATMUL``.

    ``WAITING``: communication kernels that move no data but wait for their peers.
    """

    UNKNOWN = 0
    MATMUL = 1
    ATTENTION = 2
    MEMORY = 3
    COMMUNICATION = 4
    COPY = 5
    OTHER = 6
    WAITING = 7


COMMUNICATING = (Family.COMMUNICATION, Family.WAITING)

CLASS_OF: dict[Family, KernelClass] = {
    Family.MATMUL: KernelClass.MATMUL,
    Family.ATTENTION: KernelClass.ATTENTION,
    Family.MEMORY: KernelClass.MEMORY,
    Family.OTHER: KernelClass.OTHER,
    Family.UNKNOWN: KernelClass.OTHER,
}
"""Class of each computing family, in the order in which overlapping time is assigned."""


_VERSION, *_TABLE = files("profiling").joinpath("data/kernel_families.csv").read_text(encoding="utf-8").splitlines()
_NAMED = "named"

FAMILIES_VERSION = int(_VERSION.removeprefix("# version "))
"""Version of the table; a capture analysed with another one may get other classes."""

_COLLECTIVES: tuple[tuple[CollectiveKind, str], ...] = (
    (CollectiveKind.REDUCE_SCATTER, r"reduce[_-]?scatter"),
    (CollectiveKind.ALL_REDUCE, r"all[_-]?reduce|multimem_one_?shot_reduce"),
    (CollectiveKind.ALL_GATHER, r"all[_-]?gather"),
    (CollectiveKind.ALL_TO_ALL, r"all[_-]?to[_-]?all|dispatch|combine"),
    (CollectiveKind.BROADCAST, r"broadcast"),
    (CollectiveKind.SEND_RECV, r"send_?recv|(?<![a-z])send|(?<![a-z])recv|permute"),
)
_ANY_COLLECTIVE = re.compile("|".join(f"({pattern})" for _, pattern in _COLLECTIVES))


@dataclass(frozen=True, slots=True)
class Rule:
    """``collective``: None for all but communication; ``named`` where the name of the kernel tells which one it is."""

    family: Family
    collective: CollectiveKind | None
    named: bool
    pattern: re.Pattern[str]
    source: str

    def collective_of(self, name: str) -> CollectiveKind | None:
        if not self.named:
            return self.collective
        found = _ANY_COLLECTIVE.search(name)
        return _COLLECTIVES[(found.lastindex or 1) - 1][0] if found else CollectiveKind.UNKNOWN


@lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    return tuple(
        Rule(
            family=Family[row["family"].upper()],
            collective=CollectiveKind(row["collective"]) if row["collective"] not in ("", _NAMED) else None,
            named=row["collective"] == _NAMED,
            pattern=re.compile(row["pattern"], re.ASCII | re.DOTALL),
            source=row["source"],
        )
        for row in csv.DictReader(_TABLE)
    )


def classify(name: str) -> tuple[Family, CollectiveKind | None]:
    """Family of a kernel name, and which collective it carries out where it is communication.

    Only the first ``TELLING`` characters count; template arguments far behind tell of types, not of the work.
    """
    return _classified(name[:TELLING].lower())


@lru_cache(maxsize=1 << 16)
def _classified(name: str) -> tuple[Family, CollectiveKind | None]:
    for rule in rules():
        if rule.pattern.search(name):
            return rule.family, rule.collective_of(name)
    return Family.UNKNOWN, None


@lru_cache(maxsize=2)
def families(names: tuple[str, ...]) -> NDArray[np.int8]:
    """Family of each name, shape ``(len(names),)``, not to be changed; asked for once per device of a timeline."""
    return np.array([classify(name)[0] for name in names], dtype=np.int8)


_PRECISIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("fp8", re.compile(r"e4m3|e5m2|fp8|_f8|mxfp4|e2m1|nvfp4", re.IGNORECASE)),
    ("bf16", re.compile(r"bf16|bfloat16|_BBS_|_B_BS_|_BB_|DF16b", re.IGNORECASE)),
    ("fp16", re.compile(r"fp16|f16|half|h884|h1688|h16816|hgemm|hcudnn|_HHS_|_HH_", re.IGNORECASE)),
    ("tf32", re.compile(r"tf32|s1688gemm|s16816gemm|s1688fprop|s1688", re.IGNORECASE)),
    ("fp32", re.compile(r"sgemm|scudnn|f32|float|_SB_|_S_", re.IGNORECASE)),
)


def precision_of(name: str) -> str | None:
    """Number format that a matrix kernel's name tells of, None where it tells of none."""
    return next((precision for precision, pattern in _PRECISIONS if pattern.search(name)), None)
