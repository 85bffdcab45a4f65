"""Timeline: the device work of one rank as numpy columns, and what the host did meanwhile.

Times are integer nanoseconds on the capture's own clock. Unknown integers in columns are ``UNKNOWN`` (-1), which no
valid value takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
from numpy.typing import NDArray

from profiling.intervals import NOTHING, Intervals
from profiling.workload import CollectiveKind

UNKNOWN = -1
COLLECTIVE_KINDS: tuple[CollectiveKind, ...] = tuple(CollectiveKind)
NVIDIA, AMD = "NVIDIA", "AMD"
"""Vendors of devices, spelled as they and the catalogue spell them."""


class WorkKind(IntEnum):
    """``GRAPH``: a CUDA graph recorded as a whole; what ran inside is unknown, but the device was busy."""

    KERNEL = 0
    COPY = 1
    FILL = 2
    PEER_COPY = 3
    GRAPH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Collectives:
    """What is known of the communication kernels, in order of start. All columns have the same shape ``(m,)``.

    ``row`` indexes the timeline; ``kind`` indexes ``COLLECTIVE_KINDS``; ``message_bytes`` as nccl-tests counts.
    ``communicator`` indexes ``communicators``, the names of the process groups; ``sequence`` numbers the calls of one
    communicator, where the capture does. Both are None where the capture names no groups.
    """

    row: NDArray[np.int64]
    kind: NDArray[np.int8]
    message_bytes: NDArray[np.int64]
    group_size: NDArray[np.int32]
    communicator: NDArray[np.int32] | None = None
    sequence: NDArray[np.int64] | None = None
    communicators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSide:
    """Host events of the capture. A count is None where such captures do not record it.

    ``operators``: framework operators; ``launches``: calls that put work on a GPU; ``graph_launches`` those of them
    that launch a whole CUDA graph. ``waits``: when the host waited for a device in a synchronising call;
    ``input``: when it loaded or waited for input data. ``orders_ns``: when it made a stream wait for another, sorted;
    None where that is not recorded.
    """

    operators: int | None = None
    launches: int | None = None
    graph_launches: int = 0
    has_backward: bool = False
    waits: Intervals = NOTHING
    input: Intervals = NOTHING
    orders_ns: NDArray[np.int64] | None = None


class StepSource(StrEnum):
    """What marks the steps of a capture."""

    PROFILER = "profiler"
    RANGES = "ranges"
    REPETITION = "repetition"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpan:
    """One marked iteration as the host saw it."""

    number: int
    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Device work of one rank, sorted by start; columns have shape ``(n,)``, ``n >= 1``.

    ``stream`` numbers the streams of the capture from 0 (their handles may be 64-bit); ``name_id`` indexes ``names``;
    ``launched_ns`` is the start of the host call that launched the work, ``bytes`` the payload of a copy.
    ``device_names`` covers every device that the capture lists, used or not. ``clocks_agree`` is false where kernels
    start before the call that launched them, so that host and device times must not be compared.
    ``steps_from``: what marked ``steps``. ``epoch_ns`` + a time of the capture = Unix time. ``vendor`` of the devices.
    ``flops`` and ``moved_bytes``: work of each row where the capture has the shapes of its operator, else NaN; None
    where it has no shapes at all. ``occupancy_known``: kernels with a usable occupancy. ``incomplete``: the profiler
    lost events, so that all figures are lower bounds. ``idle_known`` is false where device work is missing from the
    capture, lost or never recorded, so that a gap in it need not be idle time.
    """

    rank: int | None
    world_size: int | None
    source: str
    start_ns: NDArray[np.int64]
    duration_ns: NDArray[np.int64]
    device: NDArray[np.int32]
    stream: NDArray[np.int32]
    kind: NDArray[np.int8]
    name_id: NDArray[np.int32]
    names: tuple[str, ...]
    launched_ns: NDArray[np.int64]
    bytes: NDArray[np.int64]
    collectives: Collectives
    host: HostSide
    steps: tuple[StepSpan, ...]
    device_names: Mapping[int, str]
    clocks_agree: bool
    peak_memory_bytes: int | None
    steps_from: StepSource = StepSource.PROFILER
    epoch_ns: int | None = None
    vendor: str | None = None
    flops: NDArray[np.floating] | None = None
    moved_bytes: NDArray[np.floating] | None = None
    occupancy_known: int | None = None
    incomplete: bool = False
    idle_known: bool = True

    @property
    def end_ns(self) -> NDArray[np.int64]:
        return self.start_ns + self.duration_ns

    @property
    def devices(self) -> tuple[int, ...]:
        return tuple(int(device) for device in np.unique(self.device))
