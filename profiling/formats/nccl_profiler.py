"""The JSON of NCCL's example profiler plugin (NCCL 2.23 and later): which collectives were called, of which size.

Source of the fields: NVIDIA/nccl, plugins/profiler/example/print_event.cc. The times of a collective are those of its
call on the host: how long its transfer took is not in them.
"""

import re
from collections.abc import Mapping
from typing import Any

from profiling.formats.capture import Capture, Format
from profiling.formats.json_records import Records
from profiling.formats.nccl_inspector import KINDS, Sums, reading_notes
from profiling.formats.numbers import MOST_BYTES, integer
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode
from profiling.workload import CollectiveKind

_EVENT = re.compile(r'"cat"\s*:\s*"(?:GROUP|COLL|P2P|PROXY|NET|GPU|GROUP_API|COLL_API|P2P_API|KERNEL_LAUNCH)"')
_PHASE = re.compile(r'"ph"\s*:\s*"b"')
_OWN = re.compile(r'"(?:nChannels|SeqNum|CommHash|groupId|groupApiId|GraphCaptured|transSize|StartGpuClk)"')
_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}


def recognises(head: Head) -> bool:
    text = head.text
    return all((text.lstrip()[:1] == "[", _EVENT.search(text), _PHASE.search(text), _OWN.search(text)))


def read(source: Source) -> Capture:
    """Calls by kind and size; no times. Raises Refusal."""
    sums, api, records = Sums(source.limits.rows), Sums(source.limits.rows), Records(source)
    for event in records:
        if event.get("ph") == "b" and event.get("cat") in ("COLL", "P2P"):
            _add(sums, event, "Count", "Datatype")
        elif event.get("ph") == "b" and event.get("cat") in ("COLL_API", "P2P_API"):
            _add(api, event, "count", "datatype")
    chosen = sums if sums.sums else api
    notes = [*reading_notes(records), Note(NoteCode.CALL_TIMES_ONLY)]
    return chosen.capture(Format.NCCL_PROFILER, "NCCL profiler plugin", source, notes)


def _add(sums: Sums, event: Mapping[str, Any], count_key: str, type_key: str) -> None:
    args, name = event.get("args"), event.get("name")
    if not isinstance(args, dict) or not isinstance(name, str):
        return
    name = re.sub(r"^(?:nccl|pnccl)", "", name[:40])
    count, width = integer(args.get(count_key), high=MOST_BYTES), _width(args.get(type_key))
    size = None if count is None or width is None else float(count * width)
    if KINDS.get(name) in (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_TO_ALL):
        size = None
    sums.add(name, size, None, None)


def _width(name: Any) -> int | None:
    """Bytes of an element, by the bits that NCCL's name of the type ends in (``ncclBfloat16``, ``ncclFloat8e4m3``)."""
    if not isinstance(name, str):
        return None
    bare = name[:40].lower().removeprefix("nccl")
    if bare in ("half", "float", "double", "char", "int"):
        return {"half": 2, "float": 4, "double": 8, "char": 1, "int": 4}[bare]
    match = re.fullmatch(r"(?:bfloat|float|uint|int)(8|16|32|64)(?:e\dm\d)?", bare)
    return _BYTES[match[1]] if match else None
