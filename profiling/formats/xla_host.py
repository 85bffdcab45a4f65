"""What the host did in a profile of JAX or TensorFlow, gathered batch by batch."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from profiling.formats.columns import Column, LaunchColumns
from profiling.intervals import NOTHING, Intervals, union
from profiling.timeline import HostSide


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEvents:
    """A batch of host events with usable times: columns of one length, times in ns.

    ``correlation``: id of the work that a call launched, 0 for none. The masks tell what an event is.
    """

    start: NDArray[np.int64]
    duration: NDArray[np.int64]
    correlation: NDArray[np.int64]
    waits: NDArray[np.bool_]
    input: NDArray[np.bool_]
    graphs: NDArray[np.bool_]


@dataclass(slots=True)
class _Stretches:
    """Starts and ends of events of one meaning; they may overlap."""

    starts: Column = field(default_factory=lambda: Column(np.int64))
    ends: Column = field(default_factory=lambda: Column(np.int64))

    def add(self, start: NDArray[np.int64], duration: NDArray[np.int64]) -> None:
        lasting = duration > 0
        self.starts.append(start[lasting])
        self.ends.append((start + duration)[lasting])

    def covered(self) -> Intervals:
        return union(self.starts.values, self.ends.values) if self.starts.size else NOTHING


@dataclass(slots=True)
class HostColumns:
    calls: LaunchColumns = field(default_factory=LaunchColumns)
    has_backward: bool = False
    graph_launches: int = 0
    _launches: int = 0
    _waits: _Stretches = field(default_factory=_Stretches)
    _input: _Stretches = field(default_factory=_Stretches)

    def add(self, events: HostEvents) -> None:
        self.calls.add(events.start, events.correlation)
        called = events.correlation > 0
        self._launches += int((called & ~events.waits).sum())
        self.graph_launches += int((called & events.graphs).sum())
        self._waits.add(events.start[events.waits], events.duration[events.waits])
        self._input.add(events.start[events.input], events.duration[events.input])

    def launched(self, correlation: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Start of the call that launched each row; None where the profile records no calls."""
        return self.calls.starts_of(correlation) if self.calls.ids.size else None

    def side(self) -> HostSide:
        return HostSide(
            launches=self._launches if self.calls.ids.size else None,
            graph_launches=self.graph_launches,
            has_backward=self.has_backward,
            waits=self._waits.covered(),
            input=self._input.covered(),
        )
