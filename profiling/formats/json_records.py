"""JSON objects one after another: a line each, written over several lines, glued, or in one array."""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from profiling.formats.source import Source
from profiling.notes import Refusal, RefusalCode

_BETWEEN = re.compile(r"[\s,\[\]\x00]*")
_NEXT = re.compile(r"\n[ \t,\[]{0,100}\{")
_SHARE_LOST = 0.5
_LOST = 100
"""More than so many, and more than that share, unreadable objects: the file is not what it seems."""
_UNFINISHED = 64
"""A parser that stops so near to the end of the text stops for want of text."""


@dataclass(slots=True)
class Records:
    """Iterates the objects of a file, in memory bounded by the longest.

    ``lost``: those that cannot be read; ``cut``: the file ends inside one. Raises Refusal for one that is longer than
    the limit, and for a file of which most cannot be read.
    """

    source: Source
    read: int = 0
    lost: int = 0
    cut: bool = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rest, limits = "", self.source.limits
        utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        for chunk in self.source.chunks():
            rest = yield from self._objects(rest + utf8.decode(chunk))
            if len(rest) > limits.event_bytes:
                raise Refusal(RefusalCode.EVENT_TOO_LONG, {"limit": limits.event_bytes})
            if self.read > limits.events:
                raise Refusal(RefusalCode.TOO_MANY_EVENTS, {"limit": limits.events})
        self.cut = bool(rest.strip())
        if not self.read and self.lost:
            self._refuse(0)

    def _objects(self, text: str) -> Iterator[dict[str, Any]]:
        """Objects of the text; returns what is left, which starts at an object that may go on."""
        decoder, place = json.JSONDecoder(), 0
        while (place := _after(_BETWEEN, text, place)) < len(text):
            try:
                one, place = decoder.raw_decode(text, place)
            except (ValueError, RecursionError) as error:
                if _is_unfinished(error, text):
                    return text[place:]
                place = self._resume(text, place)
                continue
            if isinstance(one, dict):
                self.read += 1
                yield one
        return ""

    def _resume(self, text: str, place: int) -> int:
        """Where the next object starts behind one that is damaged."""
        self.lost += 1
        if self.lost > _LOST + _SHARE_LOST * self.read:
            self._refuse(place)
        following = _NEXT.search(text, place + 1)
        return len(text) if following is None else following.end() - 1

    def _refuse(self, place: int) -> None:
        raise Refusal(RefusalCode.INVALID_JSON, {"detail": "objects", "byte": place})


def _after(pattern: re.Pattern[str], text: str, place: int) -> int:
    match = pattern.match(text, place)
    return match.end() if match else place


def _is_unfinished(error: ValueError | RecursionError, text: str) -> bool:
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or len(text) - error.pos < _UNFINISHED
