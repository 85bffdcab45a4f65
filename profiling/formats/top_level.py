"""The keys of a trace document besides its events."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec

from profiling.formats.json_repair import repaired
from profiling.formats.trace_events import DecodingFailure
from profiling.notes import NoteCode

_POSITION = re.compile(r"trailing characters \(byte (\d+)\)")


@dataclass(frozen=True, slots=True)
class Keys:
    """``error``: why the text could not be read, None if it could."""

    found: dict[str, Any]
    repairs: Counter[NoteCode]
    error: str | None = None


def read_keys(text: bytes, *, ends_file: bool) -> Keys:
    """Keys of the object that the text starts with, mended where needed.

    ``ends_file``: text after the object is no fault of it; it is counted, and not read.
    """
    error = None
    for mending in (False, True):
        repairs: Counter[NoteCode] = Counter()
        source = repaired(text, repairs) if mending else text
        try:
            return Keys(msgspec.json.decode(source), repairs)
        except DecodingFailure as failure:
            error = str(failure)
        end = end_of_document(error)
        if ends_file and end is not None:
            repairs[NoteCode.TEXT_AFTER_END] += 1
            return Keys(msgspec.json.decode(source[:end]), repairs)
    return Keys({}, Counter(), error)


def end_of_document(error: str) -> int | None:
    """Where a whole document ends of which the decoder says that only the text behind it is wrong."""
    match = _POSITION.search(error)
    return int(match[1]) - 1 if match else None
