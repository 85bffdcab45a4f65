"""The reader of rocmProfileData (.rpd): an SQLite file of operations on GPUs and of the API calls behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiling.formats.capture import Capture, Format
from profiling.formats.lookup import Lookup
from profiling.formats.numbers import MOST_BYTES, integers
from profiling.formats.rocm import RocmCollector, Work, copy_kind
from profiling.formats.sqlite_file import Database
from profiling.notes import Refusal, RefusalCode
from profiling.timeline import UNKNOWN, WorkKind

_NO_WORK = ("barrier", "marker", "internal")
_RANGE_CALLS = frozenset({"UserMarker", "roctx"})
_OPERATORS = "ext_autogradapi"
_STREAM = 80


def is_of(tables: Mapping[str, str]) -> bool:
    return {"rocpd_op", "rocpd_string"} <= tables.keys()


def read_database(database: Database) -> Capture:
    """One Timeline of all operations; times in ns, names and types by the table of strings. Raises Refusal."""
    seen = RocmCollector(database.source.limits)
    tables = database.tables(views=False)
    _read_calls(database, tables, seen)
    _read_operations(database, tables, seen)
    if _OPERATORS in tables:
        seen.operators = sum(len(batch) for batch in database.batches(tables[_OPERATORS], ("api_ptr_id",)))
    line, notes = seen.timeline(database.source.name, database.source.notes)
    return Capture(format=Format.RPD, timelines=(line,), notes=notes)


def _strings(database: Database, tables: Mapping[str, str], used: str) -> dict[int, str]:
    """Strings that the column ``used`` (a query for their ids) names, cut to what a name may have."""
    limits = database.source.limits
    found: dict[int, str] = {}
    for number, text in database.rows(tables["rocpd_string"], ("id", "string"), where=f"WHERE id IN ({used})"):
        if isinstance(number, int):
            found[number] = str(text)[: limits.name_characters]
        if len(found) > limits.names:
            raise Refusal(RefusalCode.TOO_MANY_NAMES, {"limit": limits.names})
    return found


def _read_calls(database: Database, tables: Mapping[str, str], seen: RocmCollector) -> None:
    """HIP calls, and the ranges of the program, which stand among them with their text as argument."""
    if "rocpd_api" not in tables:
        return
    names = _strings(database, tables, "SELECT apiName_id FROM rocpd_api")
    ranges = [number for number, name in names.items() if name in _RANGE_CALLS]
    for batch in database.batches(tables["rocpd_api"], ("id", "start", "end", "apiName_id")):
        ids, start, end = (integers([row[at] for row in batch], UNKNOWN, low=0) for at in range(3))
        calls = [str(names.get(row[3], "")) for row in batch]
        hip = np.array([name.startswith("hip") for name in calls], dtype=bool)
        seen.call([name for name in calls if name.startswith("hip")], start[hip], end[hip], ids[hip])
    for number in ranges[:2]:
        _read_ranges(database, tables, seen, number)


def _read_ranges(database: Database, tables: Mapping[str, str], seen: RocmCollector, call: int) -> None:
    chosen = f"WHERE apiName_id = {call:d}"
    texts = _strings(database, tables, f"SELECT args_id FROM rocpd_api {chosen}")  # noqa: S608
    for batch in database.batches(tables["rocpd_api"], ("start", "end", "args_id"), where=chosen):
        start, end = (integers([row[at] for row in batch], UNKNOWN, low=0) for at in range(2))
        seen.mark([texts.get(row[2], "") for row in batch], start, end)


@dataclass(slots=True)
class _Behind:
    """What the API calls tell of the operations behind them, by id of the call."""

    call_of: Lookup
    operations_of: Lookup
    names: Lookup
    streams: Lookup
    sizes: Lookup
    between: Lookup
    stream_numbers: dict[str, int] = field(default_factory=dict)


def _read_behind(database: Database, tables: Mapping[str, str]) -> _Behind:
    limits = database.source.limits
    behind = _Behind(*(Lookup(limits) for _ in range(6)))
    if "rocpd_api_ops" in tables:
        for batch in database.batches(tables["rocpd_api_ops"], ("api_id", "op_id")):
            call, operation = (integers([row[at] for row in batch], UNKNOWN, low=0) for at in range(2))
            behind.call_of.add(operation, call)
            behind.operations_of.add(call, operation)
    if "rocpd_kernelapi" in tables:
        for batch in database.batches(tables["rocpd_kernelapi"], ("api_ptr_id", "kernelName_id", "stream")):
            call, name = (integers([row[at] for row in batch], UNKNOWN, low=0) for at in range(2))
            behind.names.add(call, name)
            behind.streams.add(call, _numbers(behind.stream_numbers, [row[2] for row in batch]))
    if "rocpd_copyapi" in tables:
        columns = ("api_ptr_id", "size", "srcDevice", "dstDevice", "stream")
        for batch in database.batches(tables["rocpd_copyapi"], columns):
            call, size, giver, taker = (integers([row[at] for row in batch], UNKNOWN, low=0) for at in range(4))
            behind.sizes.add(call, np.where(size <= MOST_BYTES, size, UNKNOWN))
            behind.between.add(call, ((giver != taker) & (giver >= 0) & (taker >= 0)).astype(np.int64))
            behind.streams.add(call, _numbers(behind.stream_numbers, [row[4] for row in batch]))
    return behind


def _numbers(seen: dict[str, int], keys: Sequence[Any]) -> NDArray[np.int64]:
    return np.array([seen.setdefault(str(key)[:_STREAM], len(seen)) for key in keys], dtype=np.int64)


def _read_operations(database: Database, tables: Mapping[str, str], seen: RocmCollector) -> None:
    behind = _read_behind(database, tables)
    used = "SELECT description_id FROM rocpd_op UNION SELECT opType_id FROM rocpd_op"
    if "rocpd_kernelapi" in tables:
        used += " UNION SELECT kernelName_id FROM rocpd_kernelapi"
    strings = _strings(database, tables, used)
    columns = ("id", "gpuId", "queueId", "start", "end", "description_id", "opType_id")
    for batch in database.batches(tables["rocpd_op"], columns):
        _add(batch, strings, behind, seen)


def _add(batch: list[Any], strings: Mapping[int, str], behind: _Behind, seen: RocmCollector) -> None:
    types = [strings.get(row[6], "") for row in batch]
    batch = [row for row, kind in zip(batch, types, strict=True) if not kind.casefold().startswith(_NO_WORK)]
    types = [kind for kind in types if not kind.casefold().startswith(_NO_WORK)]
    if not batch:
        return
    ids, start, end = (integers([row[at] for row in batch], UNKNOWN, low=0) for at in (0, 3, 4))
    call = behind.call_of.of(ids)
    own_names = behind.names.of(call).tolist()
    kinds = np.array([copy_kind(kind) or WorkKind.KERNEL for kind in types], dtype=np.int8)
    between = (kinds == WorkKind.COPY) & (behind.between.of(call) == 1)
    between &= np.array(["DeviceToDevice" in kind for kind in types], dtype=bool)
    stream = behind.streams.of(call).tolist()
    seen.add(
        Work(
            start=start,
            end=end,
            names=[
                strings.get(row[5]) or strings.get(name) or kind
                for row, name, kind in zip(batch, own_names, types, strict=True)
            ],
            kinds=np.where(between, WorkKind.PEER_COPY, kinds).tolist(),
            devices=[row[1] for row in batch],
            streams=[f"queue {row[2]}" if one < 0 else one for row, one in zip(batch, stream, strict=True)],
            correlation=call,
            bytes=_sizes(ids, call, kinds, behind),
        )
    )


def _sizes(ids: NDArray[np.int64], call: NDArray[np.int64], kinds: NDArray[np.int8], behind: _Behind) -> Any:
    """Bytes of copies. A call may be carried out in pieces; its size is that of the first, and the others have none."""
    first = behind.operations_of.of(call) == ids
    return np.where((kinds == WorkKind.COPY) & first, behind.sizes.of(call), UNKNOWN)
