"""How wide a tile a matrix kernel computes at once, by its name: a versioned table of patterns, first match wins.

A library takes a narrow tile where few rows (or columns) are to be multiplied, and then each weight that is read is
used a few times only. The patterns are for names in lower case, and each runs in time linear in the name: names come
from strangers.
"""

import csv
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files

from profiling.kernels import TELLING


class Unit(StrEnum):
    """What multiplies: matrix units, the ordinary lanes of FP32, or nothing but a vector is multiplied."""

    TENSOR = "tensor"
    SIMT = "simt"
    VECTOR = "vector"


NARROW: dict[Unit, int] = {Unit.TENSOR: 32, Unit.SIMT: 8}
"""Shorter side of a tile up to which it is narrow.

A tile that is w wide does 2 w operations for each weight it reads: w FLOP/byte in 16 bit, w / 2 in FP32. Matrix units
take a hundred and more to be the limit, lanes of FP32 about ten (``profiling/data/ridges.csv``), so these bounds are
clearly below either.
"""


@dataclass(frozen=True, slots=True)
class Tile:
    """``side``: the shorter one, in rows or columns of the result; 1 where a vector is multiplied."""

    side: int
    unit: Unit

    @property
    def narrow(self) -> bool:
        return self.unit is Unit.VECTOR or self.side <= NARROW[self.unit]


@lru_cache(maxsize=1)
def _rules() -> tuple[tuple[Unit, re.Pattern[str]], ...]:
    _, *table = files("profiling").joinpath("data/kernel_tiles.csv").read_text(encoding="utf-8").splitlines()
    return tuple((Unit(row["unit"]), re.compile(row["pattern"], re.ASCII | re.DOTALL)) for row in csv.DictReader(table))


def tile_of(name: str) -> Tile | None:
    """Tile of a matrix kernel, None where its name does not tell. Only the first ``TELLING`` characters count."""
    return _tile(name[:TELLING].lower())


@lru_cache(maxsize=1 << 12)
def _tile(name: str) -> Tile | None:
    for unit, pattern in _rules():
        match = pattern.search(name)
        if match is None:
            continue
        side = 1 if unit is Unit.VECTOR else min(int(match["m"]), int(match["n"]))
        return Tile(side, unit) if side else None
    return None
