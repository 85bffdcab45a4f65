"""Events of the Chrome trace format, and where one ends in the text."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec

_BORDER = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|args|dur|id|bp|s)"\s*:)')
_ANY_BORDER = re.compile(rb"\}\s*,\s*(?=\{)")
_NEAR = 1 << 13


class Event(msgspec.Struct, gc=False):
    """The fields that any reader of these traces needs; arguments stay raw until asked for."""

    ph: Any = None
    cat: str | None = None
    name: str | int | float | None = None
    pid: Any = None
    tid: Any = None
    ts: Any = None
    dur: Any = None
    args: msgspec.Raw = msgspec.Raw()


class Times(msgspec.Struct, gc=False):
    """What of an event a float may not hold. Nothing else is looked at, so that what could be read can be again."""

    ts: Any = None
    dur: Any = None


DecodingFailure = (msgspec.DecodeError, RecursionError, ValueError)
Decoding = Callable[[bytes], list[Any]]
decode_events: Decoding = msgspec.json.Decoder(list[Event]).decode
_decode_exactly = msgspec.json.Decoder(list[Times], float_hook=Decimal).decode
_decode_one = msgspec.json.Decoder(Event).decode


@dataclass(frozen=True, slots=True)
class Batch:
    """Neighbouring events of a file, as they were decoded, and their text."""

    events: list[Any]
    text: bytes

    def with_decimals(self) -> list[Times]:
        """Times of the same events as they are written, for those that a float cannot hold."""
        return _decode_exactly(self.text)


def decoding_error(event: bytes) -> str | None:
    """Why the text is not one event, None if it is."""
    try:
        _decode_one(event)
    except DecodingFailure as error:
        return str(error)
    return None


def likely_ends(text: bytes) -> list[int]:
    """Positions where an event probably ends and another begins, the last one first."""
    for pattern, low in ((_BORDER, max(0, len(text) - _NEAR)), (_BORDER, 0), (_ANY_BORDER, 0)):
        found = [match.start() + 1 for match in pattern.finditer(text, low)]
        if found:
            return found[::-1]
    return []


def split(text: bytes) -> list[bytes]:
    """The text cut at all likely borders, without the commas."""
    borders = [match.end() for match in _BORDER.finditer(text)]
    return [
        text[start:end].rstrip().removesuffix(b",")
        for start, end in zip([0, *borders], [*borders, len(text)], strict=True)
    ]


def duplicate_keys(batch: Batch) -> int:
    """Events that say a key twice, themselves or in their arguments, with different values; the last one counts."""
    try:
        events = json.loads(batch.text.decode("utf-8", errors="replace"), object_pairs_hook=_checked)
    except (ValueError, RecursionError):
        return 0
    return sum(type(event) is _Doubled or type(event.get("args")) is _Doubled for event in events if event)


class _Doubled(dict[str, Any]):
    pass


def _checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: dict[str, Any] = {}
    differ = any(seen.setdefault(name, value) != value for name, value in pairs)
    return _Doubled(found) if differ else found
