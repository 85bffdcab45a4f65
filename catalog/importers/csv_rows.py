"""Rows of a CSV file by the names of its header, in bounded memory, and the numbers in their cells."""

import csv
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import BinaryIO

from catalog.importers.printed import ListUnreadable, UnreadableCode

LINE_LIMIT = 100_000
LINES_OF_ONE_ROW = 50
NAME_LIMIT, PLACE_LIMIT = 80, 60
"""Longest name of a server or accelerator, and of a region, that the catalog keeps."""
NUMBER_LENGTH = 40
LARGEST_PRICE = Decimal(10**7)
PRICE_STEP = Decimal("0.000001")
LARGEST_COUNT = 10_000
PARTS_OF_ONE_ACCELERATOR = 16
"""Sold fractions are 1/8, 1/6, 1/4, 1/3, 1/2; printed with two or three decimals."""

Row = dict[str, str]


class NotANumber(ValueError):
    """A cell that should hold a number holds something else."""


def rows(file: BinaryIO, required: Sequence[str]) -> Iterator[tuple[int, Row | None]]:
    """The line number and cells of each row; None for a row with more or fewer cells than the header.

    Raises ListUnreadable where the file as a whole is not a CSV file with the ``required`` columns.
    """
    lines = _Lines(file)
    reader = csv.reader(lines)
    header = header_names(next(_records(reader, lines), None), required)
    width = len(header)
    for cells in _records(reader, lines):
        if cells:
            yield reader.line_num, dict(zip(header, cells, strict=True)) if len(cells) == width else None


def too_long(names: Sequence[str], places: Sequence[str]) -> str:
    """The beginning of the first name or place that is longer than the catalog keeps, "" where none is."""
    long = [name for name in names if len(name) > NAME_LIMIT] + [place for place in places if len(place) > PLACE_LIMIT]
    return long[0][:NAME_LIMIT] if long else ""


def price(cell: str) -> Decimal | None:
    """Money per hour, None where the cell is empty or 0. Raises NotANumber."""
    value = _decimal(cell)
    if not value:
        return None
    if value > LARGEST_PRICE:
        raise NotANumber(cell)
    exponent = value.as_tuple().exponent
    rounded = value.quantize(PRICE_STEP) if isinstance(exponent, int) and exponent < -6 else value
    return rounded or None


def count(cell: str) -> Fraction | None:
    """How many accelerators, None where the cell is empty or 0. Raises NotANumber."""
    value = _decimal(cell)
    return _fraction(value) if value else None


def size(cell: str, unit: int = 1) -> int | None:
    """A whole number of units, None where it is not printed, 0 or unreadable: sizes are no reason to lose a price."""
    try:
        value = _decimal(cell)
    except NotANumber:
        return None
    whole = round(value * unit) if value and value < LARGEST_PRICE else 0
    return whole or None


@lru_cache(maxsize=256)
def _fraction(value: Decimal) -> Fraction:
    if value > LARGEST_COUNT:
        raise NotANumber(str(value))
    fraction = Fraction(value).limit_denominator(PARTS_OF_ONE_ACCELERATOR)
    if not fraction:
        raise NotANumber(str(value))
    return fraction


def _decimal(cell: str) -> Decimal | None:
    text = cell.strip()
    if len(text) > NUMBER_LENGTH:
        raise NotANumber(text)
    return _short_decimal(text)


@lru_cache(maxsize=8192)
def _short_decimal(text: str) -> Decimal | None:
    if not text:
        return None
    if "_" in text:
        raise NotANumber(text)
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise NotANumber(text) from error
    if not value.is_finite() or value < 0 or abs(value.adjusted()) > NUMBER_LENGTH:
        raise NotANumber(text)
    return value


class _Lines:
    """Lines of text, each of bounded length; ``taken`` counts those since it was last set to 0."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._number = 0
        self.taken = 0

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self._file.readline(LINE_LIMIT + 1)
        if not line:
            raise StopIteration
        self._number += 1
        self.taken += 1
        if len(line) > LINE_LIMIT:
            raise ListUnreadable(UnreadableCode.LINE_TOO_LONG, line=self._number, limit=LINE_LIMIT)
        if self.taken > LINES_OF_ONE_ROW:
            raise ListUnreadable(UnreadableCode.CSV_SYNTAX, line=self._number)
        try:
            text = line.decode("utf-8-sig" if self._number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ListUnreadable(UnreadableCode.ENCODING) from error
        return text.replace("\x00", "")


def _records(reader: "csv._reader", lines: _Lines) -> Iterator[list[str]]:
    while True:
        lines.taken = 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ListUnreadable(UnreadableCode.CSV_SYNTAX, line=reader.line_num) from error
        yield cells


def header_names(cells: list[str] | None, required: Sequence[str]) -> list[str]:
    """The names of the columns. Raises ListUnreadable where they are none, lack a ``required`` one, or repeat."""
    names = [cell.strip() for cell in cells or []]
    if not any(names):
        raise ListUnreadable(UnreadableCode.EMPTY)
    missing = [name for name in required if name not in names]
    if missing:
        raise ListUnreadable(UnreadableCode.BAD_HEADER, missing=", ".join(missing), seen=_shown(",".join(names)))
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice:
        raise ListUnreadable(UnreadableCode.COLUMN_TWICE, column=_shown(twice))
    return names


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text[:80])
