"""Columns of a table's file and what reading one yields: rows of values, or sentences about the cells at fault."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

from catalog.cells import BadCell, Curve, Kind, Text

REMEMBERED, SHORT = 2**14, 80
"""Short cells of which the reading is kept: most repeat from row to row."""
PROBLEMS_LIMIT = 50

Values = dict[str, object]
Cells = Mapping[str, str]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Column:
    """``name``: the value that it gives, a column of the model or one that ``Layout.join`` makes such from.

    ``fills``: the columns of the model that come of it. ``paths``: lookups that it is written from, by ``printed``
    where they are several. ``empty``: what an empty cell means; ``hidden``: that value is written as an empty cell.
    """

    header: str
    name: str
    kind: Kind
    fills: tuple[str, ...]
    paths: tuple[str, ...]
    printed: Callable[..., object] = lambda value: value
    model_field: models.Field | None = None
    positive: bool = False
    required: bool = False
    empty: object = None
    hidden: bool = False

    def read(self, cell: str) -> object:
        """The value in base units. Raises BadCell with one sentence."""
        text = cell if isinstance(self.kind, Text) else cell.strip()
        if not text:
            if self.required:
                raise BadCell(_("This cell may not be empty."))
            return self.empty() if callable(self.empty) else self.empty
        value = self.kind.read(text)
        if self.positive and value == 0:
            raise BadCell(_("This number must be above zero; leave the cell empty where it is not known."))
        if self.model_field is not None:
            self._validate(value)
        return value

    def write(self, *values: object) -> str:
        """The shortest text that ``read`` takes for the value of these ``paths``."""
        value = self.printed(*values)
        return "" if value is None or (self.hidden and not value) else self.kind.write(value)

    def _validate(self, value: object) -> None:
        try:
            self.model_field.run_validators(value)  # type: ignore[union-attr]
        except ValidationError as error:
            raise BadCell(" ".join(error.messages)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """One row of a file. ``values``: every column of the model -> plain value, references as natural keys.

    ``named``: those that the file has columns for; the others have their defaults.
    """

    line: int
    key: str
    values: Mapping[str, object]
    named: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellProblem:
    """What is wrong with a cell, or with the whole row where ``column`` is empty; ``str()`` names the place too."""

    line: int
    column: str
    sentence: str

    def __str__(self) -> str:
        place = {"line": self.line, "column": self.column, "problem": self.sentence}
        if self.column:
            return _("Line %(line)s, column %(column)s: %(problem)s") % place
        return _("Line %(line)s: %(problem)s") % place


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns of one table's file, in order. ``join`` makes columns of the model from what the cells say.

    ``key``: the natural key of such values. ``order``: lookups by which rows are sorted in a file.
    """

    columns: tuple[Column, ...]
    order: tuple[str, ...]
    key: Callable[[Values], str]
    join: Callable[[Values], Values] = lambda values: values
    headers: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "headers", tuple(column.header for column in self.columns))

    def parsed(
        self, rows: Iterable[tuple[int, Cells | None]], given: Cells | None = None
    ) -> Iterator[FileRow | CellProblem]:
        """Each row in turn, or what is wrong with its cells; after a bad header nothing more.

        ``rows``: line number and header -> cell, None for a row that does not fit the header. ``given``: header ->
        what counts where the file has no such column or an empty cell in it.
        """
        reader: _Reader | None = None
        for line, cells in rows:
            if cells is None:
                sentence = _("The row has more or fewer cells than the header. Check its commas and quotes.")
                yield CellProblem(line=line, column="", sentence=sentence)
                continue
            if reader is None:
                problems = self._header_problems([*cells, *(given or {})])
                if problems:
                    yield from problems
                    return
                reader = _Reader(self, list(cells), given or {})
            if any(cells.values()):
                yield from reader.read(line, cells)

    def _header_problems(self, headers: Sequence[str]) -> list[CellProblem]:
        unknown = [header for header in headers if header not in self.headers][:PROBLEMS_LIMIT]
        missing = [c.header for c in self.columns if c.required and c.header not in headers]
        said = [(header[:SHORT], self._not_a_column(header)) for header in unknown]
        said += [(header, _("This column is missing. Add it.")) for header in missing]
        return [CellProblem(line=1, column=header, sentence=sentence) for header, sentence in said]

    def _not_a_column(self, header: str) -> str:
        if not header:
            return _("A column has no name. Name it, or remove it.")
        near = difflib.get_close_matches(header[:SHORT], self.headers, n=1)
        if near:
            return _("The table has no such column. Did you mean %(column)s?") % {"column": near[0]}
        return _("The table has no such column. Remove it, or check its name.")


class _Reader:
    """Reads the rows of one file; knows the keys that it has met."""

    def __init__(self, layout: Layout, headers: Sequence[str], given: Cells) -> None:
        here = [c for c in layout.columns if c.header in headers or c.header in given]
        self._layout, self._given = layout, given
        self._columns = here
        self._named = frozenset(name for column in here for name in column.fills)
        self._absent = {c.name: c.read("") for c in layout.columns if c not in here}
        self._lines: dict[str, int] = {}

    def read(self, line: int, cells: Cells) -> list[FileRow | CellProblem]:
        values = dict(self._absent)
        problems: list[FileRow | CellProblem] = []
        for column in self._columns:
            cell = cells.get(column.header) or self._given.get(column.header, "")
            try:
                values[column.name] = _read(column, cell)
            except BadCell as error:
                problems.append(CellProblem(line=line, column=column.header, sentence=str(error)))
        return problems or [self._row(line, values)]

    def _row(self, line: int, values: Values) -> FileRow | CellProblem:
        try:
            joined = self._layout.join(values)
        except BadCell as error:
            return CellProblem(line=line, column="", sentence=str(error))
        key = self._layout.key(joined)
        before = self._lines.setdefault(key, line)
        if before != line:
            sentence = _("It names the same row as line %(line)s. Remove one of them.") % {"line": before}
            return CellProblem(line=line, column="", sentence=sentence)
        return FileRow(line=line, key=key, values=joined, named=self._named)


class FileRefused(Exception):
    """A file with cells that cannot be read; ``str()`` names each of the first, one a line. ``more``: the rest."""

    def __init__(self, name: str, problems: Sequence[CellProblem], more: int = 0) -> None:
        super().__init__(name, problems, more)
        self.name, self.problems, self.more = name, tuple(problems), more

    def __str__(self) -> str:
        lines = [f"{self.name}: {problem}" for problem in self.problems]
        if self.more:
            lines.append(_("… and %(count)s more problems.") % {"count": self.more})
        return "\n".join(lines)


def accepted(name: str, parsed: Iterable[FileRow | CellProblem]) -> list[FileRow]:
    """All rows of the file ``name``. Raises FileRefused, after reading all, where something is wrong with any."""
    rows: list[FileRow] = []
    problems: list[CellProblem] = []
    more = 0
    for entry in parsed:
        if isinstance(entry, FileRow):
            rows.append(entry)
        elif len(problems) < PROBLEMS_LIMIT:
            problems.append(entry)
        else:
            more += 1
    if problems:
        raise FileRefused(name, problems, more)
    return rows


def _read(column: Column, cell: str) -> object:
    # a list could be changed by whoever gets it
    if len(cell) > SHORT or isinstance(column.kind, Curve):
        return column.read(cell)
    return _remembered(column, cell)


@lru_cache(maxsize=REMEMBERED)
def _remembered(column: Column, cell: str) -> object:
    return column.read(cell)
