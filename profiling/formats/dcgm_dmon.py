"""``dcgmi dmon``: columns named in a header that repeats, or by the command line where the header was cut off.

Rows of GPU instances and compute instances (MIG) are kept apart: a slice is not to be compared with a card.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from profiling.formats.capture import Capture, Format
from profiling.formats.dcgm_fields import DcgmField, converted, dcgm_field
from profiling.formats.device_samples import DeviceSamples, figure, reading_notes
from profiling.formats.source import Head, Source

KIND = "dcgmi dmon output"

_HEADER = re.compile(r"\s{0,80}#\s{0,8}Entity\b")
_COMMAND = re.compile(r"\bdcgmi\s{1,8}dmon\b[^\n]{0,400}?\s(?:-e|--field-id)[ =]?\s{0,8}([\w,]{1,2000})", re.ASCII)
_ROW = re.compile(r"\s{0,80}(GPU|GPU-I|GPU-CI)\s{1,8}(\d{1,6})\s", re.ASCII)
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class _Columns:
    """``starts``: where each title starts in its line; empty where only the command line names the columns."""

    fields: tuple[DcgmField | None, ...]
    starts: tuple[int, ...]

    def cells(self, line: str, behind: int) -> Sequence[str | None] | None:
        """One cell per column, of what stands behind the name of the device; None for a row that was cut."""
        words = [(match.start(), match[0]) for match in _WORD.finditer(line, behind)]
        if len(words) == len(self.fields):
            return [word for _, word in words]
        if len(words) < len(self.fields) or not self.starts:
            return None
        cells: list[str | None] = [None] * len(self.fields)
        for start, word in words:
            column = bisect_right(self.starts, start) - 1
            if column >= 0 and cells[column] is None:
                cells[column] = word
        return cells


def recognises(head: Head) -> bool:
    """A header of dmon, or its command line with rows of devices below."""
    if any(_HEADER.match(line) for line in head.lines):
        return True
    return _COMMAND.search(head.text) is not None and any(_ROW.match(line) for line in head.lines)


def read(source: Source) -> Capture:
    """Means per device. Raises Refusal where no row of a device can be read."""
    samples = DeviceSamples(source.limits)
    columns: _Columns | None = None
    rows = 0
    for line in source.lines():
        columns = _columns(line) or columns
        row = _ROW.match(line)
        cells = columns.cells(line, row.end() - 1) if row and columns else None
        if row is None or columns is None or cells is None:
            continue
        rows += 1
        values = {
            one.load: converted(one, figure(cell or "")) for one, cell in zip(columns.fields, cells, strict=True) if one
        }
        samples.add(row[1] + row[2], values, is_slice=row[1] != "GPU")
    evidence, notes = samples.evidence(KIND)
    return Capture(format=Format.DCGM_DMON, evidence=(evidence,), notes=(*reading_notes(source, rows), *notes))


def _columns(line: str) -> _Columns | None:
    header = _HEADER.match(line)
    if header:
        words = list(_WORD.finditer(line, header.end()))
        return _Columns(tuple(dcgm_field(word[0]) for word in words), tuple(word.start() for word in words))
    command = _COMMAND.search(line[:4096])
    if command:
        return _Columns(tuple(dcgm_field(name) for name in command[1].split(",") if name), ())
    return None
