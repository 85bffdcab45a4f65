"""Rows of a table file, CSV or XLSX, as text cells by the names of the header; bounded in bytes, rows and columns.

Of a workbook the first sheet counts. Formulas are never evaluated: what the spreadsheet last stored is read.
"""

import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import BinaryIO

from openpyxl import load_workbook
from openpyxl.utils.escape import unescape

from catalog.importers import archives, csv_rows
from catalog.importers.printed import ListUnreadable, UnreadableCode

ROWS_LIMIT, COLUMNS_LIMIT, CELL_LIMIT = 200_000, 100, 32_767
BYTES_LIMIT, STRINGS_LIMIT, PART_LIMIT = 256 * 2**20, 64 * 2**20, 8 * 2**20
"""Unpacked: of the whole workbook, of its table of texts, and of every other part but the sheets."""

Rows = Iterator[tuple[int, dict[str, str] | None]]


def rows_of(file: BinaryIO) -> Rows:
    """Line number and header -> cell of each row, None for a row that does not fit the header.

    Raises ListUnreadable, at once or while rows are taken, where the file as a whole cannot be read.
    """
    if archives.is_zip(file):
        return _workbook_rows(file)
    return csv_rows.rows(file, ())


def _workbook_rows(file: BinaryIO) -> Rows:
    header: list[str] | None = None
    for line, cells in enumerate(_cells(file), start=1):
        if line > ROWS_LIMIT:
            raise ListUnreadable(UnreadableCode.TOO_MANY_ROWS, limit=ROWS_LIMIT)
        if header is None:
            header = csv_rows.header_names(_without_empty_end(cells), ())
        elif any(cells):
            fits = not any(cells[len(header) :])
            yield line, dict(zip(header, _padded(cells, len(header)), strict=True)) if fits else None
    if header is None:
        raise ListUnreadable(UnreadableCode.EMPTY)


def _cells(file: BinaryIO) -> Iterator[list[str]]:
    try:
        _check(file)
        book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        rows = book.worksheets[0].iter_rows(max_row=ROWS_LIMIT + 1, max_col=COLUMNS_LIMIT + 1, values_only=True)
        for line, row in enumerate(rows, start=1):
            cells = [_text(value) for value in row] if any(value is not None for value in row) else []
            _check_size(line, cells)
            yield cells
    except (ListUnreadable, MemoryError):
        raise
    except Exception as error:
        # openpyxl says in a hundred ways that a workbook is not one
        raise ListUnreadable(UnreadableCode.WORKBOOK_BROKEN) from error


def _check(file: BinaryIO) -> None:
    """By the sizes in the archive's own list, which unpacking holds it to."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    if sum(member.file_size for member in members) > BYTES_LIMIT:
        raise ListUnreadable(UnreadableCode.ARCHIVE_TOO_LARGE, limit=BYTES_LIMIT)
    for member in members:
        if member.file_size > max(archives.RATIO_COUNTS_FROM, archives.RATIO_LIMIT * member.compress_size):
            raise ListUnreadable(UnreadableCode.DECOMPRESSION_RATIO, limit=archives.RATIO_LIMIT)
        limit = _part_limit(member.filename)
        if member.file_size > limit:
            raise ListUnreadable(UnreadableCode.ARCHIVE_TOO_LARGE, limit=limit)


def _part_limit(name: str) -> int:
    name = name.lower()
    if "sharedstrings" in name:
        return STRINGS_LIMIT
    whole = name.endswith((".xml", ".rels")) and "worksheets/" not in name
    return PART_LIMIT if whole else BYTES_LIMIT


def _check_size(line: int, cells: Sequence[str]) -> None:
    if any(cells[COLUMNS_LIMIT:]):
        raise ListUnreadable(UnreadableCode.TOO_MANY_COLUMNS, line=line, limit=COLUMNS_LIMIT)
    if any(len(cell) > CELL_LIMIT for cell in cells):
        raise ListUnreadable(UnreadableCode.CELL_TOO_LONG, line=line, limit=CELL_LIMIT)


def _text(value: object) -> str:
    """As one would type it into a CSV file."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _plain(value)
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, timedelta) else unescape(str(value)).replace("\x00", "")


def _plain(number: float) -> str:
    text = format(Decimal(repr(number)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _without_empty_end(cells: Sequence[str]) -> list[str]:
    used = max((place for place, cell in enumerate(cells, start=1) if cell), default=0)
    return list(cells[:used])


def _padded(cells: Sequence[str], width: int) -> list[str]:
    return [*cells[:width], *[""] * (width - len(cells))]
