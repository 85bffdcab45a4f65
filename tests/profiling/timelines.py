"""Small timelines for tests: one rank, its rows in order of start."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from profiling.timeline import UNKNOWN, Collectives, HostSide, Timeline, WorkKind


@dataclass(frozen=True, slots=True)
class Row:
    """Work on a device; ``launched`` is the start of the host call that launched it."""

    name: str
    start: int
    length: int
    launched: int = UNKNOWN
    device: int = 0
    kind: WorkKind = WorkKind.KERNEL


def timeline(rows: Sequence[Row], **changed: Any) -> Timeline:
    """Without host events, collectives or markers unless they are given by the name of the field."""
    ordered = sorted(rows, key=lambda row: row.start)
    names = tuple(dict.fromkeys(row.name for row in ordered))
    nothing = np.zeros(0, dtype=np.int64)
    size = len(ordered)
    values: dict[str, Any] = {
        "rank": None,
        "world_size": None,
        "source": "test",
        "start_ns": _column([row.start for row in ordered]),
        "duration_ns": _column([row.length for row in ordered]),
        "device": np.array([row.device for row in ordered], dtype=np.int32),
        "stream": np.zeros(size, dtype=np.int32),
        "kind": np.array([row.kind for row in ordered], dtype=np.int8),
        "name_id": np.array([names.index(row.name) for row in ordered], dtype=np.int32),
        "names": names,
        "launched_ns": _column([row.launched for row in ordered]),
        "bytes": np.full(size, UNKNOWN, dtype=np.int64),
        "collectives": Collectives(
            row=nothing,
            kind=nothing.astype(np.int8),
            message_bytes=nothing,
            group_size=nothing.astype(np.int32),
        ),
        "host": HostSide(),
        "steps": (),
        "device_names": {},
        "clocks_agree": True,
        "peak_memory_bytes": None,
    }
    return Timeline(**(values | changed))


def _column(values: Sequence[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)
