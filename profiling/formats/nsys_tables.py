"""Tables of an Nsight Systems export: found under any of their names, with the texts that their rows point to."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.numbers import integers
from profiling.formats.sqlite_file import Database
from profiling.notes import Refusal, RefusalCode

NONE = np.iinfo(np.int64).min
"""An integer that is not there."""
FARTHEST_NS = 1 << 61
_VERSION = re.compile(r"(.+?)_v(\d+)")
_PROCESS_SHIFT = 24
"""A global id is made of hardware, machine, process and, in its lowest 24 bits, thread."""
_PID_MASK = (1 << 24) - 1


@dataclass(slots=True)
class Export:
    """An open export. Names of tables are asked for without their version (``_V2``), in lower case.

    Tables and columns come and go from version to version; what is not there reads as no rows and no values.
    """

    database: Database
    tables: dict[str, str] = field(init=False)
    _texts: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found: dict[str, list[tuple[int, str]]] = {}
        for folded, spelled in self.database.tables(views=False).items():
            match = _VERSION.fullmatch(folded)
            name, version = (match[1], int(match[2][:4])) if match else (folded, 1)
            found.setdefault(name, []).append((version, spelled))
        self.tables = {name: self._newest(versions) for name, versions in found.items()}

    def _newest(self, versions: list[tuple[int, str]]) -> str:
        """The newest of the versions of a table that has rows; the newest where none has."""
        ordered = [spelled for _, spelled in sorted(versions, reverse=True)]
        if len(ordered) == 1:
            return ordered[0]
        return next((one for one in ordered if self.database.has_rows(one)), ordered[0])

    def has(self, table: str) -> bool:
        return table in self.tables

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
        """Columns of some ten thousand rows at a time, each a tuple. Raises Refusal for too many rows."""
        if table not in self.tables:
            return
        rows = 0
        limit = self.database.source.limits.events
        for batch in self.database.batches(self.tables[table], columns):
            rows += len(batch)
            if rows > limit:
                raise Refusal(RefusalCode.TOO_MANY_EVENTS, {"limit": limit})
            yield list(zip(*batch, strict=True))

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The same row by row, for small tables: at most ``limits.rows``."""
        most = self.database.source.limits.rows
        for batch in self.batches(table, columns):
            for row in zip(*batch, strict=True):
                most -= 1
                if most < 0:
                    return
                yield row

    def texts(self, ids: Iterable[Any]) -> dict[int, str]:
        """Texts by their ids in ``StringIds``; those that are not there are left out."""
        wanted = {one for one in ids if type(one) is int}
        missing = wanted - self._texts.keys()
        if missing and "stringids" in self.tables:
            if len(self._texts) > self.database.source.limits.rows:
                self._texts.clear()
            chosen = ",".join(map(str, sorted(missing)))
            characters = self.database.source.limits.name_characters
            for number, text in self.database.rows(
                self.tables["stringids"], ("id", "value"), where=f"WHERE id IN ({chosen})"
            ):
                if type(number) is int and isinstance(text, str):
                    self._texts.setdefault(number, text[:characters])
        return {one: self._texts[one] for one in wanted if one in self._texts}


def times(values: Sequence[Any]) -> NDArray[np.int64]:
    """Times of the capture in ns, ``NONE`` where there is none."""
    return integers(values, missing=NONE, low=-FARTHEST_NS, high=FARTHEST_NS)


def processes(global_ids: Sequence[Any]) -> NDArray[np.int64]:
    """Process, machine and hardware of global process or thread ids; the same for all without one."""
    return integers(global_ids, missing=0, low=NONE + 1) >> _PROCESS_SHIFT


def pid_of(process: int) -> int:
    """The operating system's process id."""
    return process & _PID_MASK
