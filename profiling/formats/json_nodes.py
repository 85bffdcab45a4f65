"""Nodes of a graph in JSON, one by one: cut where a node starts, so that a damaged one costs only itself.

PyTorch's observer writes nodes by hand and loses commas and braces now and then (pytorch/pytorch#126703).
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec

from profiling.formats.json_repair import repaired
from profiling.formats.limits import Limits
from profiling.formats.top_level import end_of_document
from profiling.formats.trace_events import DecodingFailure
from profiling.notes import NoteCode, Refusal, RefusalCode

_SEPARATORS = b", \t\r\n"


@dataclass(slots=True)
class NodeStream:
    """``start`` matches where a node begins; ``node`` is its type. Public fields are final once ``nodes`` is used up.

    ``complete`` is false where the text ends inside a node or before the list is closed.
    """

    chunks: Iterator[bytes]
    start: re.Pattern[bytes]
    node: Any
    limits: Limits
    repairs: Counter[NoteCode] = field(default_factory=Counter)
    complete: bool = False

    def nodes(self) -> Iterator[list[Any]]:
        """Nodes in order of the file, in batches. Raises Refusal where one is longer than an event may be."""
        decoder = msgspec.json.Decoder(self.node)
        many = msgspec.json.Decoder(list[self.node])
        buffer = b""
        for chunk in self.chunks:
            buffer += chunk
            starts = [match.start() for match in self.start.finditer(buffer)]
            if len(starts) > 1:
                pieces = [buffer[low:high].rstrip(_SEPARATORS) for low, high in pairwise(starts)]
                yield self._decoded(pieces, decoder, many)
            if starts:
                buffer = buffer[starts[-1] :]
            if len(buffer) > self.limits.event_bytes:
                raise Refusal(RefusalCode.EVENT_TOO_LONG, {"limit": self.limits.event_bytes})
        if self.start.match(buffer):
            yield self._last(buffer, decoder)

    def _decoded(self, pieces: list[bytes], decoder: Any, many: Any) -> list[Any]:
        try:
            return many.decode(b"[" + b",".join(pieces) + b"]") if pieces else []
        except DecodingFailure:
            found = [self._one(piece, decoder)[0] for piece in pieces]
        self.repairs[NoteCode.EVENTS_UNREADABLE] += found.count(None)
        return [node for node in found if node is not None]

    def _last(self, text: bytes, decoder: Any) -> list[Any]:
        """The last node, where it is whole, and what follows it."""
        node, behind = self._one(text, decoder)
        if node is None:
            return []
        self.complete = b"]" in text[behind:]
        return [node]

    def _one(self, text: bytes, decoder: Any) -> tuple[Any, int]:
        """A node that may have text behind it, mended where needed; None where it cannot be read."""
        for mending in (False, True):
            repairs: Counter[NoteCode] = Counter()
            source = repaired(text, repairs) if mending else text
            for _ in range(2):
                try:
                    node = decoder.decode(source)
                except DecodingFailure as error:
                    end = end_of_document(str(error))
                    if end is None:
                        break
                    source = source[:end]
                else:
                    self.repairs += repairs
                    return node, len(source)
        return None, len(text)
