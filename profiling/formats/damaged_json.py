"""Events out of damaged text: repaired as a whole, else one by one, and every loss counted."""

import re
from collections import Counter
from dataclasses import dataclass

from profiling.formats.json_repair import repaired
from profiling.formats.limits import Limits
from profiling.formats.trace_events import Batch, Decoding, DecodingFailure, decode_events, decoding_error, split
from profiling.notes import NoteCode, Refusal, RefusalCode

_REJOIN = 32
_BROKEN_SHARE = 0.1
_CLOSE = re.compile(rb"\}[\s,]*\](?=\s*[,}])")
_CLOSES_TRIED = 8
_MARK = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)
"""A string may be cut: without its end each quote in it would be tried as another string's start."""


@dataclass(frozen=True, slots=True)
class Mended:
    """``cut``: the text ended inside an event, which is left out and not counted as lost.

    ``fault``: what is wrong with the text, where some of it is lost.
    """

    batch: Batch
    repairs: Counter[NoteCode]
    cut: bool
    fault: Refusal | None = None


def mend(piece: bytes, limits: Limits, offset: int, decode: Decoding = decode_events) -> Mended:
    """Events of a piece of text that starts at an event, ``offset`` bytes into the document.

    Refuses text that is mostly unreadable.
    """
    refuse_second_document(piece, allowed=0)
    repairs: Counter[NoteCode] = Counter()
    text = repaired(b"[" + piece + b"]", repairs)
    try:
        return Mended(Batch(decode(text), text), repairs, cut=False)
    except RecursionError:
        refuse_depth(piece, limits, offset)
        raise Refusal(RefusalCode.INVALID_JSON, {"detail": "nesting", "byte": offset}) from None
    except DecodingFailure as error:
        detail = str(error)
    repairs.clear()
    good, lost, cut = _sorted_out(split(piece), repairs)
    fault = invalid_json(detail, offset - 1) if lost or cut else None
    if fault is not None and lost > max(1, _BROKEN_SHARE * (len(good) + lost)):
        raise fault
    repairs[NoteCode.EVENTS_UNREADABLE] += lost
    text = b"[" + b",".join(good) + b"]"
    return Mended(Batch(decode(text), text), repairs, cut, fault)


def _sorted_out(parts: list[bytes], repairs: Counter[NoteCode]) -> tuple[list[bytes], int, bool]:
    """Readable events, how many parts are lost, and whether the text ends inside an event.

    Each part is mended by itself: a stray quote turns text and strings of all that follow it around. A border inside
    an event tears it apart; such parts are put together again. ``repairs`` grows by those of the events that are kept.
    """
    tallies: list[Counter[NoteCode]] = [Counter() for _ in parts]
    parts = [repaired(part, tally) for part, tally in zip(parts, tallies, strict=True)]
    good: list[bytes] = []
    at = lost = 0
    while at < len(parts):
        event, last, error = _joined(parts, at)
        if error is None:
            good.append(event)
            repairs.update(sum(tallies[at:last], Counter()))
            at = last
        elif "truncated" in error and last == len(parts):
            return good, lost, True
        else:
            lost += 1
            at += 1
    return good, lost, False


def _joined(parts: list[bytes], at: int) -> tuple[bytes, int, str | None]:
    """The shortest run of parts from ``at`` that is an event or never will be; its end; why it is none."""
    for last in range(at + 1, min(at + _REJOIN, len(parts)) + 1):
        event = b",".join(parts[at:last])
        error = decoding_error(event)
        if error is None or "truncated" not in error:
            break
    return event, last, error


def close_of_array(body: bytes, limits: Limits) -> int | None:
    """Position of the bracket that ends the events, in damaged text that runs to the end of the file.

    What follows must read like the rest of the document, and what precedes must end with a whole event.
    """
    found = [match.end() - 1 for match in _CLOSE.finditer(body)]
    for end in found[::-1][:_CLOSES_TRIED]:
        tail = b"{" + body[end + 1 :].strip(b" \t\r\n\x00").removeprefix(b",")
        if tail != b"{}" and decoding_error(repaired(tail, Counter())) is not None:
            continue
        try:
            if not mend(body[:end], limits, 0).cut:
                return end
        except Refusal:
            continue
    return None


def refuse_second_document(text: bytes, *, allowed: int, key: bytes = b"schemaVersion") -> None:
    """Refuse text in which a key that a document has once stands more often than allowed."""
    if len(re.findall(rb'"' + key + rb'"\s*:', text)) > allowed:
        raise Refusal(RefusalCode.TWO_DOCUMENTS)


def invalid_json(error: str, offset: int) -> Refusal:
    """What the decoder says of text that starts ``offset`` bytes into the document, with the place in the document."""
    reason, _, place = error.removeprefix("JSON is malformed: ").partition(" (byte ")
    within = place.removesuffix(")")
    return Refusal(
        RefusalCode.INVALID_JSON, {"detail": reason[:80], "byte": offset + int(within) if within.isdigit() else offset}
    )


def refuse_depth(text: bytes, limits: Limits, offset: int = 0) -> None:
    """Refuse text that nests deeper than the limit anywhere; strings do not count."""
    depth = 0
    for match in _MARK.finditer(text):
        mark = match[0]
        if mark in (b"[", b"{"):
            depth += 1
            if depth > limits.depth:
                raise Refusal(RefusalCode.TOO_DEEP, {"limit": limits.depth, "byte": offset + match.start()})
        elif mark in (b"]", b"}"):
            depth -= 1
