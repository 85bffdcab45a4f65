"""Collectives of Kineto traces: by the arguments of their kernels, else by the operator that called them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.columns import CollectiveColumns, Column, DeviceColumns, kind_column
from profiling.formats.kineto_args import Args, CollectiveArgs, communicator_of, decoded, kind_of, message_bytes
from profiling.formats.kineto_events import Host
from profiling.formats.numbers import integers
from profiling.timeline import COLLECTIVE_KINDS, UNKNOWN
from profiling.workload import CollectiveKind

_LARGEST_GROUP = 10**6
_COMMUNICATORS = 10_000
_CALLS = 1 << 18
_COLUMNS = ("kind", "message", "group", "communicator", "sequence")


@dataclass(slots=True)
class Communicators:
    """Numbers of the process groups by name; those beyond the limit are unknown."""

    names: dict[str, int] = field(default_factory=dict)

    def number(self, name: str | None) -> int:
        if name is None:
            return UNKNOWN
        if name not in self.names and len(self.names) < _COMMUNICATORS:
            self.names[name] = len(self.names)
        return self.names.get(name, UNKNOWN)


def described(
    args: Sequence[CollectiveArgs], named: Sequence[CollectiveKind | None], communicators: Communicators
) -> CollectiveColumns:
    """What arguments say of collectives; ``named``: what the names of their kernels tell."""
    found = [
        _kind_and_size(one.collective, one.in_elements, one.out_elements, one.dtype, by_name)
        for one, by_name in zip(args, named, strict=True)
    ]
    return CollectiveColumns(
        kind=kind_column([kind for kind, _ in found]),
        message=np.array([size for _, size in found], dtype=np.int64),
        group=integers([one.group_size for one in args], UNKNOWN, low=1, high=_LARGEST_GROUP),
        communicator=np.array([communicators.number(communicator_of(one)) for one in args], dtype=np.int64),
        sequence=integers([one.sequence for one in args], UNKNOWN),
    )


def _kind_and_size(
    collective: Any, in_elements: Any, out_elements: Any, dtype: Any, named: CollectiveKind | None
) -> tuple[CollectiveKind | None, int]:
    try:
        return _known_kind_and_size(collective, in_elements, out_elements, dtype, named)
    except TypeError:
        return named, UNKNOWN


@lru_cache(maxsize=1 << 12, typed=True)
def _known_kind_and_size(
    collective: Any, in_elements: Any, out_elements: Any, dtype: Any, named: CollectiveKind | None
) -> tuple[CollectiveKind | None, int]:
    kind = kind_of(collective) or named
    return kind, message_bytes(in_elements, out_elements, dtype, kind or CollectiveKind.UNKNOWN)


@dataclass(slots=True)
class CalledCollectives:
    """The operators that call collectives (``record_param_comms``), the first ``_CALLS`` of them.

    Kernels without arguments of their own are described by the operator that has the same external id.
    """

    communicators: Communicators = field(default_factory=Communicators)
    _calls: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _rows: Column = field(default_factory=lambda: Column(np.int64))

    def add_rows(self, args: Sequence[Args]) -> None:
        """Communication kernels in order of the file."""
        self._rows.append(integers([external_id(one) for one in args], UNKNOWN))

    def add_operator(self, event: Host) -> Any:
        """Remember a call; returns the rank that it names."""
        args = decoded(event.args, CollectiveArgs)
        if isinstance(args.external_id, int) and args.collective is not None and len(self._calls) < _CALLS:
            one = described([args], [None], self.communicators)
            self._calls.setdefault(args.external_id, tuple(int(getattr(one, name)[0]) for name in _COLUMNS))
        return args.rank

    def complete(self, device: DeviceColumns) -> None:
        """Fill in what the kernels do not say of themselves."""
        columns = [device.column(name if name != "kind" else "collective_kind") for name in _COLUMNS]
        unknown = (COLLECTIVE_KINDS.index(CollectiveKind.UNKNOWN), UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
        for row in np.flatnonzero(_lacking(columns, unknown)).tolist() if self._calls else ():
            call = self._calls.get(int(self._rows.values[row]))
            for column, value, missing in zip(columns, call or (), unknown, strict=False):
                if column[row] == missing:
                    column[row] = value


def _lacking(columns: Sequence[NDArray[Any]], unknown: Sequence[int]) -> NDArray[np.bool_]:
    """Rows without a kind or a size."""
    return (columns[0] == unknown[0]) | (columns[1] == unknown[1])


def external_id(args: Args) -> Any:
    """The operator that caused the work, in the spelling of any age."""
    return args.external_id if args.external_id is not None else args.old_external_id
