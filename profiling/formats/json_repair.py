"""Repairs of the faults that profilers write into their JSON. Every repair is counted, none is guessed.

Only text that a strict parser has refused comes here.
"""

import re
from collections import Counter
from collections.abc import Callable

from profiling.notes import NoteCode

_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_SURROGATE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_END = rb"(?=\s*[,}\]])"
_NUMBER_WORD = re.compile(rb"([:,\[]\s*)[+-]?(?:inf(?:inity)?|nan(?:\([a-z0-9]*\))?)" + _END, re.IGNORECASE)
_HUGE = re.compile(rb"([:,\[]\s*)-?\d+(?:\.\d+)?[eE]\+?\d{3,}" + _END)
_TOKEN = re.compile(rb"(:\s*)(?:0[xX][0-9a-fA-F]+|\(nil\)|N/A|None|True|False|undefined)" + _END)
_MISSING = re.compile(rb"(:\s*)(?=[,}])")
_COMMA = re.compile(rb",\s*(?=[\]}])")


def repaired(text: bytes, counts: Counter[NoteCode]) -> bytes:
    """``text`` with the known faults mended; ``counts`` grows by the number of repairs of each kind."""
    text = _utf8(text, counts)
    text = _counted(text, _ESCAPE, _double, NoteCode.ESCAPES_REPAIRED, counts)
    text = _counted(text, _SURROGATE, _replace_lone, NoteCode.NAMES_NOT_UTF8, counts)
    text = _counted(text, _STRING, _plain, NoteCode.CONTROL_CHARACTERS, counts)
    for pattern, code in (
        (_NUMBER_WORD, NoteCode.BARE_NUMBERS),
        (_HUGE, NoteCode.BARE_NUMBERS),
        (_TOKEN, NoteCode.BARE_TOKENS),
        (_MISSING, NoteCode.BARE_TOKENS),
    ):
        text, count = pattern.subn(rb"\1null", text)
        counts[code] += count
    text, count = _COMMA.subn(b"", text)
    counts[NoteCode.TRAILING_COMMA] += count
    return text


def _utf8(text: bytes, counts: Counter[NoteCode]) -> bytes:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        mended = text.decode("utf-8", errors="replace")
        counts[NoteCode.NAMES_NOT_UTF8] += sum("\ufffd" in part for part in re.findall(r'"[^"]*"', mended))
        return mended.encode("utf-8")
    return text


def _counted(
    text: bytes,
    pattern: re.Pattern[bytes],
    mend: Callable[[re.Match[bytes]], bytes],
    code: NoteCode,
    counts: Counter[NoteCode],
) -> bytes:
    changed = 0

    def replace(match: re.Match[bytes]) -> bytes:
        nonlocal changed
        new = mend(match)
        changed += new is not match[0] and new != match[0]
        return new

    text = pattern.sub(replace, text)
    counts[code] += changed
    return text


def _double(match: re.Match[bytes]) -> bytes:
    return b"\\\\" if len(match[0]) == 1 else match[0]


def _replace_lone(match: re.Match[bytes]) -> bytes:
    return match[0] if len(match[0]) == 12 else b"\\ufffd"


def _plain(match: re.Match[bytes]) -> bytes:
    return _CONTROL.sub(b" ", match[0]) if _CONTROL.search(match[0]) else match[0]
