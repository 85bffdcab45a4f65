"""Repairs of the faults that profilers write into their JSON. Every repair is counted, none is guessed.

Only text that a strict parser has refused comes here.
"""

import re
from collections import Counter
from collections.abc import Callable

from profiling.notes import NoteCode

_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_SURROGATE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_STRING = rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)'
"""The last one may be cut."""
_ANY_STRING = re.compile(_STRING, re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_END = rb"(?=\s*[,}\]])"


def _outside_strings(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]:
    """Matches whole strings too, in which group 1 is not set: what looks like a fault in a name is none."""
    return re.compile(_STRING + b"|" + pattern, re.DOTALL | flags)


_NUMBER_WORD = _outside_strings(
    rb"([:,\[]\s*)[+-]?(?:inf(?:inity)?|nan(?:\([a-z0-9]*\))?|1\.#(?:inf|ind|[qs]nan)0*)" + _END, re.IGNORECASE
)
_HUGE = _outside_strings(rb"([:,\[]\s*)-?\d+(?:\.\d+)?[eE]\+?\d{3,}" + _END)
_TOKEN = _outside_strings(rb"(:\s*)(?:0[xX][0-9a-fA-F]+|\(nil\)|N/A|None|True|False|undefined)" + _END)
_MISSING = _outside_strings(rb"(:\s*)(?=[,}])")
_COMMA = _outside_strings(rb",()\s*(?=[\]}])")


def repaired(text: bytes, counts: Counter[NoteCode]) -> bytes:
    """``text`` with the known faults mended; ``counts`` grows by the number of repairs of each kind."""
    text = _utf8(text, counts)
    text = _counted(text, _ESCAPE, _double, NoteCode.ESCAPES_REPAIRED, counts)
    text = _counted(text, _SURROGATE, _replace_lone, NoteCode.NAMES_NOT_UTF8, counts)
    text = _counted(text, _ANY_STRING, _plain, NoteCode.CONTROL_CHARACTERS, counts)
    for pattern, mend, code in (
        (_NUMBER_WORD, _unknown, NoteCode.BARE_NUMBERS),
        (_HUGE, _unknown, NoteCode.BARE_NUMBERS),
        (_TOKEN, _unknown, NoteCode.BARE_TOKENS),
        (_MISSING, _unknown, NoteCode.BARE_TOKENS),
        (_COMMA, _nothing, NoteCode.TRAILING_COMMA),
    ):
        text = _counted(text, pattern, mend, code, counts)
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


def _unknown(match: re.Match[bytes]) -> bytes:
    return match[0] if match[1] is None else match[1] + b"null"


def _nothing(match: re.Match[bytes]) -> bytes:
    return match[0] if match[1] is None else b""
