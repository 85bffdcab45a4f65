"""How much of a file a reader may use up. Every limit is named in the refusal that it causes."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from profiling.notes import Refusal, RefusalCode

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """``bytes_out`` and ``ratio`` hold for an upload with all archives in it together; ``ratio`` applies once
    ``ratio_after`` bytes are out: small files of repeated events compress further.

    ``seconds`` needs a clock from the caller. ``metadata_bytes`` bounds what stands before and after the events,
    ``blank_bytes`` what is read over before the first of either, ``names`` the different names of device work,
    ``devices`` the devices and the processes that it runs in: each is analysed by itself. ``line_characters`` bounds a
    line of text and a cell of a database, ``rows`` the rows of tables that are kept, ``members`` the files in archives,
    ``layers`` how deep compression and archives may be nested, ``window_bytes`` the memory that a decoder may ask for.
    """

    bytes_out: int = 16 << 30
    ratio: int = 200
    ratio_after: int = 16 * MIB
    depth: int = 64
    events: int = 20_000_000
    event_bytes: int = 8 * MIB
    metadata_bytes: int = 16 * MIB
    blank_bytes: int = MIB
    names: int = 20_000
    devices: int = 512
    seconds: float | None = None
    name_characters: int = 1000
    line_characters: int = MIB
    rows: int = 200_000
    members: int = 2000
    layers: int = 4
    window_bytes: int = 128 * MIB


@dataclass(slots=True)
class Tally:
    """What one upload has come to so far: ``out`` bytes unpacked for files that are done, ``members`` of archives."""

    out: int = 0
    members: int = 0


@dataclass(slots=True, kw_only=True)
class Watch:
    """The caller's side of a long read: hears of progress, lends its clock and a folder for temporary files.

    ``progress(done, total)`` counts bytes of the upload as stored; ``clock()`` returns seconds from any origin.
    ``span``: for a file in an archive, the stored bytes of the upload that it takes, of ``whole``.
    """

    limits: Limits
    progress: Callable[[int, int], None] | None = None
    clock: Callable[[], float] | None = None
    scratch: Path | None = None
    tally: Tally = field(default_factory=Tally)
    span: tuple[int, int] | None = None
    whole: int = 0
    deadline: float | None = None

    def __post_init__(self) -> None:
        if self.deadline is None and self.clock is not None and self.limits.seconds is not None:
            self.deadline = self.clock() + self.limits.seconds

    def expired(self) -> bool:
        """True when time is up."""
        return self.deadline is not None and self.clock is not None and self.clock() > self.deadline

    def at(self, done: int, total: int) -> None:
        """Report progress in the file; refuse when time is up."""
        if self.progress is not None:
            self.progress(self.stored(done, total), self.whole or total)
        if self.expired():
            raise Refusal(RefusalCode.TOO_SLOW, {"limit": self.limits.seconds or 0, "done": done, "total": total})

    def stored(self, done: int, total: int) -> int:
        """A place in the file, counted in stored bytes of the upload."""
        if self.span is None:
            return done
        start, end = self.span
        return start + (end - start) * done // max(total, 1)

    def within(self, start: int, end: int, total: int) -> "Watch":
        """The watch over one file of an archive that lies between two places of it."""
        return replace(self, span=(self.stored(start, total), self.stored(end, total)), whole=self.whole or total)

    def quiet(self) -> "Watch":
        """The same without reports of progress."""
        return replace(self, progress=None)

    def refuse_unpacked(self, out: int, *, stored: int, after: int) -> None:
        """Refuse ``out`` bytes unpacked from the first ``stored`` bytes of the upload where that is too much."""
        limits, taken = self.limits, max(stored, 1)
        if out > limits.bytes_out:
            raise Refusal(RefusalCode.TOO_MANY_BYTES, {"limit": limits.bytes_out})
        if out > after and out > limits.ratio * taken:
            params = {"limit": limits.ratio, "seen": out // taken, "bytes": out}
            raise Refusal(RefusalCode.DECOMPRESSION_RATIO, params)
