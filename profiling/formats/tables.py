"""Tables in text: header rows are found by content, between whatever else a program printed.

A table is CSV, or its columns are aligned over a rule of dashes below the titles, as tools print them on a terminal.
"""

import csv
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from profiling.formats.limits import Limits
from profiling.notes import Refusal, RefusalCode

IsHeader = Callable[[Sequence[str]], bool]
Columns = tuple[slice, ...]
"""Places of the cells in the lines of a table with aligned columns."""

_DELIMITERS = (",", ";", "\t")
_FEWEST_TITLES = 2
_WIDEST = 1 << 14
_LINES_OF_A_CELL = 64
"""A quoted cell may hold line ends, such as advice in prose; a quote that stays open longer is a stray one."""
_MOST_STRAYS = 100
"""Where there are more, quotes mean nothing, and looking for their ends would take time for nothing."""


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

    def column(self, title: str) -> int:
        """Column of a title that is there."""
        return [one.casefold() for one in self.titles].index(title.casefold())


def tables(lines: Iterable[str], is_header: IsHeader, limits: Limits, most: int | None = None) -> Iterator[Table]:
    """Every table whose titles ``is_header`` takes, in order. Cells come without quotes and without blanks around.

    Lines before the first header, blank lines, and lines with one cell or fewer than half of the cells of their header
    are passed over; a table with aligned columns ends at a blank line. Raises Refusal for more than ``most``
    (``limits.rows``) rows in all.
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


def ruled_columns(line: str) -> Columns | None:
    """Columns over a rule, ``-----  ---  ------``; the last one is open to the right. None where this is no rule."""
    if len(line) > _WIDEST or line.strip("- ") or "---" not in line:
        return None
    starts = [place for place, one in enumerate(line) if one == "-" and line[place - 1 : place] != "-"]
    if len(starts) < _FEWEST_TITLES:
        return None
    ends = [line.find(" ", start) for start in starts[:-1]]
    return (*(slice(start, end) for start, end in zip(starts, ends, strict=False)), slice(starts[-1], None))


def cut(line: str, columns: Columns) -> list[str]:
    """Cells of a line by their places; nothing where text stands between the columns."""
    gaps = pairwise(columns)
    if line[: columns[0].start].strip() or any(line[left.stop : right.start].strip() for left, right in gaps):
        return []
    return [line[column].strip() for column in columns]


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
    """Where reading has got to. ``waiting`` lines were looked at and not used; ``above`` is the line before the last.

    ``columns`` where the table's columns are aligned.
    """

    waiting: deque[str]
    lines: Iterator[str]
    is_header: IsHeader
    longest: int
    most: int
    seen: int = 0
    above: str = ""
    delimiter: str = ","
    columns: Columns | None = None
    titles: tuple[str, ...] = ()
    found: bool = False
    strays: int = 0

    def find_header(self) -> bool:
        """Go to the next header; False at the end."""
        while not self.found and (line := self._next()) is not None:
            header = _titles(line, self.is_header)
            if header is not None:
                self.delimiter, self.titles = header
                self.columns, self.found = None, True
            else:
                self._look_for_rule(line)
        found, self.found = self.found, False
        return found

    def rows(self) -> Iterator[list[str]]:
        """Rows until the next header or the end."""
        width = len(self.titles)
        while (line := self._next()) is not None:
            if self._look_for_rule(line) or (self.columns and not line.strip()):
                return
            cells = cut(line, self.columns) if self.columns else cells_of(line, self.delimiter)
            if len(cells) >= _FEWEST_TITLES and self.is_header(cells):
                self.titles, self.found = tuple(cells), True
                return
            if len(cells) < width and line.count('"') % 2 and not self.columns and self.strays < _MOST_STRAYS:
                cells = self._over_lines(line) or cells
            if len(cells) < max(_FEWEST_TITLES, width / 2) or not any(cells):
                continue
            self.seen += 1
            if self.seen > self.most:
                raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": self.most})
            yield cells[:width] + [""] * (width - len(cells))

    def _look_for_rule(self, line: str) -> bool:
        """True where the line is the rule below titles, which are then remembered."""
        columns = ruled_columns(line) if "---" in line else None
        titles = cut(self.above, columns) if columns else []
        self.above = line
        if not titles or not self.is_header(titles):
            return False
        self.columns, self.titles, self.found = columns, tuple(titles), True
        return True

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
        self.strays += 1
        return None
