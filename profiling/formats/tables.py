"""Tables in text: header rows are found by content, between whatever else a program printed."""

import csv
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from profiling.formats.limits import Limits
from profiling.notes import Refusal, RefusalCode

IsHeader = Callable[[Sequence[str]], bool]

_DELIMITERS = (",", ";", "\t")
_FEWEST_TITLES = 2
_LINES_OF_A_CELL = 64
"""A quoted cell may hold line ends, such as advice in prose; a quote that stays open longer is a stray one."""


@dataclass(frozen=True, slots=True)
class Table:
    """Titles, and the rows below them until the next header. ``rows`` is read once, before the next table is asked for.

    Rows have the width of the titles: short ones are filled with empty cells, what is too long is cut.
    """

    titles: tuple[str, ...]
    rows: Iterator[list[str]]

    def place(self, *titles: str) -> int | None:
        """Column of the first of these titles that is there, in any case."""
        folded = [title.casefold() for title in self.titles]
        return next((folded.index(title.casefold()) for title in titles if title.casefold() in folded), None)

    def records(self) -> Iterator[dict[str, str]]:
        """The rows by title; the first of equal titles counts."""
        titles = tuple(reversed(self.titles))
        for row in self.rows:
            yield dict(zip(titles, reversed(row), strict=True))


def tables(lines: Iterable[str], is_header: IsHeader, limits: Limits, most: int | None = None) -> Iterator[Table]:
    """Every table whose titles ``is_header`` takes, in order. Cells come without quotes and without blanks around.

    Lines before the first header, blank lines, and lines with fewer than half of the cells of their header are passed
    over. Raises Refusal for more than ``most`` (``limits.rows``) rows in all.
    """
    reading = _Reading(deque(), iter(lines), is_header, limits.line_characters, most or limits.rows)
    while reading.find_header():
        table = Table(reading.titles, reading.rows())
        yield table
        deque(table.rows, maxlen=0)


def header_in(lines: Iterable[str], is_header: IsHeader) -> bool:
    """Whether any of these lines is a header that ``is_header`` takes."""
    return any(_titles(line, is_header) is not None for line in lines)


def cells_of(line: str, delimiter: str = ",") -> list[str]:
    """Cells of one line of CSV, without quotes and without blanks around."""
    try:
        rows = list(csv.reader([line.replace("\x00", "")], delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        return []
    return [cell.strip() for cell in rows[0]] if rows else []


def _titles(line: str, is_header: IsHeader) -> tuple[str, tuple[str, ...]] | None:
    """The delimiter and the titles of a header line."""
    for delimiter in _DELIMITERS:
        if line.count(delimiter) >= _FEWEST_TITLES - 1:
            cells = cells_of(line.removeprefix("\ufeff"), delimiter)
            if len(cells) >= _FEWEST_TITLES and is_header(cells):
                return delimiter, tuple(cells)
    return None


@dataclass(slots=True)
class _Reading:
    """Where reading has got to. ``waiting`` lines were looked at and not used."""

    waiting: deque[str]
    lines: Iterator[str]
    is_header: IsHeader
    longest: int
    most: int
    seen: int = 0
    delimiter: str = ","
    titles: tuple[str, ...] = ()
    found: bool = False

    def find_header(self) -> bool:
        """Go to the next header; False at the end."""
        while not self.found and (line := self._next()) is not None:
            header = _titles(line, self.is_header)
            if header is not None:
                self.delimiter, self.titles = header
                self.found = True
        found, self.found = self.found, False
        return found

    def rows(self) -> Iterator[list[str]]:
        """Rows until the next header or the end."""
        width = len(self.titles)
        while (line := self._next()) is not None:
            cells = cells_of(line, self.delimiter)
            if len(cells) >= _FEWEST_TITLES and self.is_header(cells):
                self.titles, self.found = tuple(cells), True
                return
            if len(cells) < width and line.count('"') % 2:
                cells = self._over_lines(line) or cells
            if 2 * len(cells) < width or not any(cells):
                continue
            self.seen += 1
            if self.seen > self.most:
                raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": self.most})
            yield cells[:width] + [""] * (width - len(cells))

    def _next(self) -> str | None:
        return self.waiting.popleft() if self.waiting else next(self.lines, None)

    def _over_lines(self, line: str) -> list[str] | None:
        """Cells of a row that goes on in the next lines, None where its quote is never closed."""
        more: list[str] = []
        length = len(line)
        while len(more) < _LINES_OF_A_CELL and length <= self.longest:
            following = self._next()
            if following is None:
                break
            more.append(following)
            length += len(following)
            if following.count('"') % 2:
                return cells_of(" ".join(chain([line], more)), self.delimiter)
        self.waiting.extendleft(reversed(more))
        return None
