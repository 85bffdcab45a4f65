"""Readings of files as bytes: what a worker hands to the one that joins the ranks. Never anything but plain data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import msgspec
import numpy as np

from profiling.analysis import FileReading
from profiling.evidence import Evidence
from profiling.notes import BottleneckCode, Note, NoteCode
from profiling.rank import RankReading

_EVIDENCE = {kind.__name__: kind for kind in get_args(Evidence)}
_CODES = (NoteCode, BottleneckCode)
_StoredNote = tuple[str, dict[str, str | int | float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """A FileReading whose evidence and notes are told apart by name."""

    format: str
    name: str
    ranks: tuple[RankReading, ...]
    evidence: tuple[tuple[str, Any], ...]
    notes: tuple[_StoredNote, ...]


def dumps(files: Sequence[FileReading], notes: Sequence[Note]) -> bytes:
    stored = ([_stored(file) for file in files], [_stored_note(note) for note in notes])
    return msgspec.msgpack.encode(stored, enc_hook=_plain)


def loads(data: bytes) -> tuple[list[FileReading], list[Note]]:
    """Raises ``msgspec.ValidationError`` for bytes that an older version stored."""
    files, notes = msgspec.msgpack.decode(data, type=tuple[list[_Stored], list[_StoredNote]], dec_hook=_object)
    return [_reading(one) for one in files], [_note(one) for one in notes]


def _stored(file: FileReading) -> _Stored:
    return _Stored(
        format=str(file.format),
        name=file.name,
        ranks=file.ranks,
        evidence=tuple((type(found).__name__, found) for found in file.evidence),
        notes=tuple(_stored_note(note) for note in file.notes),
    )


def _reading(stored: _Stored) -> FileReading:
    return FileReading(
        format=stored.format,
        name=stored.name,
        ranks=stored.ranks,
        evidence=tuple(msgspec.convert(value, _EVIDENCE[kind], dec_hook=_object) for kind, value in stored.evidence),
        notes=tuple(_note(one) for one in stored.notes),
    )


def _stored_note(note: Note) -> _StoredNote:
    return str(note.code), dict(note.params)


def _note(stored: _StoredNote) -> Note:
    text, params = stored
    return Note(next(codes(text) for codes in _CODES if text in set(codes)), params)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, value.tobytes()]
    if isinstance(value, np.generic):
        return value.item()
    return dict(value)


def _object(kind: Any, value: Any) -> Any:
    dtype, shape, data = value
    return np.frombuffer(data, dtype=np.dtype(dtype)).reshape(shape)
