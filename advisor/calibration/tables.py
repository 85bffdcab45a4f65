"""Reading measurements and writing tables."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path

DATA = Path(__file__).parent / "data"


def rows(name: str) -> Iterator[dict[str, str]]:
    """The rows of one file of measurements."""
    with (DATA / name).open(newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def written(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """CSV with line feeds only, so that every system writes the same bytes."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return text.getvalue()
