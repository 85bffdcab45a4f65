"""Writes one table as an XLSX file, row by row: numbers and dates are such, text is text and never a formula."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import IO

import xlsxwriter

ROWS_LIMIT = 1_048_576
LONGEST_TEXT = 32_767
Cell = str | float | date | None
"""None is an empty cell."""


class TooManyRows(ValueError):
    """A sheet has no room for this many rows."""


def write(file: IO[bytes], name: str, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """A workbook with one sheet; its rows wait in a temporary file, not in memory. Raises TooManyRows."""
    with xlsxwriter.Workbook(file, {"constant_memory": True}) as book:
        sheet = book.add_worksheet(name)
        sheet.freeze_panes(1, 0)
        bold, iso = book.add_format({"bold": True}), book.add_format({"num_format": "yyyy-mm-dd"})
        for column, title in enumerate(header):
            sheet.write_string(0, column, title, bold)
        for count, row in enumerate(rows, start=1):
            if count >= ROWS_LIMIT:
                raise TooManyRows(name)
            for column, cell in enumerate(row):
                if isinstance(cell, str):
                    sheet.write_string(count, column, cell[:LONGEST_TEXT])
                elif isinstance(cell, date):
                    sheet.write_datetime(count, column, cell, iso)
                elif cell is not None:
                    sheet.write_number(count, column, cell)


def text(value: str) -> Cell:
    """What XML cannot carry is written as ``_x0007_`` (ECMA-376 part 1, 22.9.2.19), which ``sheets`` reads."""
    return value or None


def number(value: str) -> Cell:
    """``value``: digits with a point."""
    return float(value) if value else None


def day(value: str) -> Cell:
    """``value``: an ISO date."""
    return date.fromisoformat(value) if value else None
