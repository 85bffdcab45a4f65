"""What happens to files: bytes flipped, cut, spliced and repeated, numbers and words exchanged."""

import re
import sqlite3
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from tests.fuzz.documents import damaged_document, is_document
from tests.fuzz.protobuf import damaged_message, damaged_records, is_message, is_records

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*")
_ODD_NUMBERS = (
    b"0",
    b"-1",
    b"1e400",
    b"NaN",
    b"-Infinity",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"9" * 400,
    b"0.0000000001",
    b'"7"',
    b"null",
    b"",
    b"[]",
    b"\xff",
)
_Draw = Callable[[st.SearchStrategy], object]


@st.composite
def damaged(draw: Callable[..., int], seeds: Sequence[bytes]) -> bytes:
    """One of the files after one to five faults."""
    content = seeds[draw(st.integers(0, len(seeds) - 1))]
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 5)))):
        if content.startswith(b"SQLite format 3") and draw(st.integers(0, 9)):
            content = _cell(draw, content)
        elif is_document(content) and draw(st.integers(0, 2)):
            content = damaged_document(draw, content)
        elif is_message(content) and draw(st.integers(0, 9)):
            content = damaged_message(draw, content)
        elif is_records(content) and draw(st.integers(0, 9)):
            content = damaged_records(draw, content)
        elif content:
            content = draw(st.sampled_from(_FAULTS))(draw, content, seeds)
    return content


def _span(draw: Callable[..., int], content: bytes) -> tuple[int, int]:
    start = draw(st.integers(0, len(content) - 1))
    return start, min(len(content), start + draw(st.sampled_from((1, 2, 8, 60, 1000))))


def _flip(draw: Callable[..., int], content: bytes, seeds: Sequence[bytes]) -> bytes:
    at = draw(st.integers(0, len(content) - 1))
    return content[:at] + bytes([content[at] ^ (1 << draw(st.integers(0, 7)))]) + content[at + 1 :]


def _cut(draw: Callable[..., int], content: bytes, seeds: Sequence[bytes]) -> bytes:
    return content[: draw(st.integers(0, len(content)))]


def _remove(draw: Callable[..., int], content: bytes, seeds: Sequence[bytes]) -> bytes:
    start, end = _span(draw, content)
    return content[:start] + content[end:]


def _overwrite(draw: Callable[..., bytes], content: bytes, seeds: Sequence[bytes]) -> bytes:
    start, end = _span(draw, content)
    return content[:start] + draw(st.binary(max_size=16)) + content[end:]


def _repeat(draw: Callable[..., int], content: bytes, seeds: Sequence[bytes]) -> bytes:
    start, end = _span(draw, content)
    return content[:start] + content[start:end] * draw(st.sampled_from((2, 10, 300))) + content[end:]


def _splice(draw: Callable[..., int], content: bytes, seeds: Sequence[bytes]) -> bytes:
    other = seeds[draw(st.integers(0, len(seeds) - 1))]
    start, end = _span(draw, other)
    at = draw(st.integers(0, len(content)))
    return content[:at] + other[start:end] + content[at:]


def _number(draw: Callable[..., int], content: bytes, seeds: Sequence[bytes]) -> bytes:
    return _exchanged(draw, content, _NUMBER, draw(st.sampled_from(_ODD_NUMBERS)))


def _word(draw: Callable[..., int], content: bytes, seeds: Sequence[bytes]) -> bytes:
    words = _WORD.findall(seeds[draw(st.integers(0, len(seeds) - 1))][:20_000]) or [b""]
    return _exchanged(draw, content, _WORD, words[draw(st.integers(0, len(words) - 1))])


def _exchanged(draw: Callable[..., int], content: bytes, pattern: re.Pattern[bytes], by: bytes) -> bytes:
    """The content with the next match behind a place exchanged, or, half the time, all equal ones."""
    match = pattern.search(content, draw(st.integers(0, len(content) - 1))) or pattern.search(content)
    if match is None:
        return content
    if draw(st.booleans()):
        return content.replace(match[0], by)[: 2 * len(content) + 1000]
    return content[: match.start()] + by + content[match.end() :]


def _lines(draw: Callable[..., int], content: bytes, seeds: Sequence[bytes]) -> bytes:
    lines = content.split(b"\n")
    one, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _cell(draw: Callable[..., int], content: bytes) -> bytes:
    """A database with one cell exchanged, or a column, or a table, taken away."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(content)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if not tables:
            return content
        table = tables[draw(st.integers(0, len(tables) - 1))]
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        column = columns[draw(st.integers(0, len(columns) - 1))]
        kind = draw(st.sampled_from(("cell", "cell", "cell", "cell", "rows", "column", "table")))
        if kind == "table":
            connection.execute(f'DROP TABLE "{table}"')
        elif kind == "column":
            connection.execute(f'ALTER TABLE "{table}" DROP COLUMN "{column}"')
        elif kind == "rows":
            connection.execute(f'INSERT OR IGNORE INTO "{table}" SELECT * FROM "{table}"')
        else:
            row = draw(st.integers(0, 5))
            where = f'rowid IN (SELECT rowid FROM "{table}" LIMIT 1 OFFSET {row})' if row else "1"
            connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = ? WHERE {where}', [draw(_CELLS)])
        connection.commit()
        return connection.serialize()
    except (sqlite3.Error, OverflowError, IndexError, ValueError):
        return content
    finally:
        connection.close()


_CELLS = st.sampled_from(
    (None, 0, -1, 1, 2**31, 2**63 - 1, -(2**63), 0.5, 1e308, float("inf"), "", "gemm", "7", "x" * 5000, b"\xff\x00")
)

_FAULTS = (_flip, _cut, _remove, _overwrite, _repeat, _splice, _number, _number, _word, _lines)
