"""Integers by id, from a table that is read once and asked often."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from profiling.formats.columns import Column
from profiling.formats.limits import Limits
from profiling.notes import Refusal, RefusalCode
from profiling.timeline import UNKNOWN


@dataclass(slots=True)
class Lookup:
    """Filled batch by batch, then asked; memory 16 bytes per id, twice that while the ids are put in order."""

    limits: Limits
    _ids: Column = field(default_factory=lambda: Column(np.int64))
    _values: Column = field(default_factory=lambda: Column(np.int64))
    _sorted: bool = True

    def add(self, ids: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        self._sorted = self._sorted and self._ids.size == 0 and bool((ids[1:] > ids[:-1]).all())
        self._ids.append(ids)
        self._values.append(values)
        if self._ids.size > self.limits.events:
            raise Refusal(RefusalCode.TOO_MANY_EVENTS, {"limit": self.limits.events})

    def of(self, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first value of each id, ``UNKNOWN`` where there is none; ids below 0 are none."""
        found = np.full(wanted.shape, UNKNOWN, dtype=np.int64)
        if self._ids.size == 0:
            return found
        self._sort()
        ids, values = self._ids.values, self._values.values
        place = np.minimum(np.searchsorted(ids, wanted), ids.size - 1)
        hit = (ids[place] == wanted) & (wanted >= 0)
        found[hit] = values[place[hit]]
        return found

    def _sort(self) -> None:
        if not self._sorted:
            ids, first = np.unique(self._ids.values, return_index=True)
            values = self._values.values[first]
            self._ids, self._values = Column(np.int64), Column(np.int64)
            self._ids.append(ids)
            self._values.append(values)
            self._sorted = True
