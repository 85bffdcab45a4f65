"""Streams of compressed bytes: which kind they are by their first bytes, and bounded decoders for them."""

import bz2
import lzma
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd
from isal import isal_zlib

from profiling.formats.limits import Limits
from profiling.notes import Refusal, RefusalCode

PIECE = 1 << 20
SLICE = 1 << 12
"""Input is handed on in slices, so that what has come out can be compared with what went in."""
_TOO_MUCH_MEMORY = re.compile("memory", re.IGNORECASE)


class Decoder(Protocol):
    """What the decoders of the standard library have in common. ``eof``: the end of this stream was reached."""

    eof: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class Inflate:
    """Deflate with the interface of the others: it keeps what it has not used yet.

    ISA-L's decoder takes a third of the time of zlib's, which is a fifth of that of a whole analysis.
    """

    def __init__(self, wbits: int) -> None:
        self._inner = isal_zlib.decompressobj(wbits=wbits)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


@dataclass(frozen=True, slots=True)
class Compression:
    """One kind of compressed stream. ``starts``: what a stream, also each further one in a file, begins with."""

    name: str
    starts: re.Pattern[bytes]
    decoder: Callable[[Limits], Decoder]


def _zstd(limits: Limits) -> Decoder:
    largest = limits.window_bytes.bit_length() - 1
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: largest})


GZIP = Compression("gzip", re.compile(rb"\x1f\x8b"), lambda limits: Inflate(31))
ZSTD = Compression("zstd", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), _zstd)
XZ = Compression(
    "xz", re.compile(rb"\xfd7zXZ\x00"), lambda limits: lzma.LZMADecompressor(lzma.FORMAT_XZ, limits.window_bytes)
)
BZIP2 = Compression(
    "bzip2", re.compile(rb"BZh[1-9](1AY&SY|\x17\x72\x45\x38\x50\x90)"), lambda limits: bz2.BZ2Decompressor()
)
DEFLATE = Compression("deflate", re.compile(rb"(?!)"), lambda limits: Inflate(-15))
"""As in zip archives: it has no first bytes of its own."""
LONGEST_START = 10


def compression(start: bytes) -> Compression | None:
    """The kind of stream that begins so."""
    return next((kind for kind in (GZIP, ZSTD, XZ, BZIP2) if kind.starts.match(start)), None)


class Damaged(Exception):
    """The stream cannot be decoded any further."""


def decode(decoder: Decoder, data: bytes, limits: Limits) -> Iterator[bytes]:
    """What the next bytes of a stream give, in pieces of at most ``PIECE``.

    Raises Damaged, and Refusal where the stream asks for more memory than ``limits.window_bytes``.
    """
    try:
        while True:
            piece = decoder.decompress(data, PIECE)
            data = b""
            if piece:
                yield piece
            if decoder.eof or len(piece) < PIECE:
                return
    except (isal_zlib.error, lzma.LZMAError, zstd.ZstdError, OSError, EOFError, ValueError) as error:
        if _TOO_MUCH_MEMORY.search(str(error)):
            raise Refusal(RefusalCode.WINDOW_TOO_LARGE, {"limit": limits.window_bytes}) from None
        raise Damaged from error
