"""How much of a file a reader may use up. Every limit is named in the refusal that it causes."""

from collections.abc import Callable
from dataclasses import dataclass, field

from profiling.notes import Refusal, RefusalCode

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """``ratio`` applies once ``ratio_after`` bytes are out: small files of repeated events compress further.

    ``seconds`` needs a clock from the caller. ``metadata_bytes`` bounds what stands before and after the events,
    ``blank_bytes`` what is read over before the first of either, ``names`` the different names of device work,
    ``devices`` the devices and the processes that it runs in: each is analysed by itself. ``line_characters`` bounds a
    line of text, ``rows`` the rows of tables that are kept, ``members`` and ``layers`` archives.
    """

    bytes_out: int = 16 << 30
    ratio: int = 200
    ratio_after: int = 16 * MIB
    depth: int = 64
    events: int = 60_000_000
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


@dataclass(slots=True, kw_only=True)
class Watch:
    """The caller's side of a long read: hears of progress, lends its clock.

    ``progress(done, total)`` counts bytes of the file as stored; ``clock()`` returns seconds from any origin.
    """

    limits: Limits
    progress: Callable[[int, int], None] | None = None
    clock: Callable[[], float] | None = None
    deadline: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.clock is not None and self.limits.seconds is not None:
            self.deadline = self.clock() + self.limits.seconds

    def expired(self) -> bool:
        """True when time is up."""
        return self.deadline is not None and self.clock is not None and self.clock() > self.deadline

    def at(self, done: int, total: int) -> None:
        """Report progress; refuse when time is up."""
        if self.progress is not None:
            self.progress(done, total)
        if self.expired():
            raise Refusal(RefusalCode.TOO_SLOW, {"limit": self.limits.seconds or 0, "done": done, "total": total})
