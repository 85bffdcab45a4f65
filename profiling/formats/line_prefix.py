"""What launchers and container logs put before every line of a program's output.

Only what stands before all of the first lines is taken away, so that nothing of a program's own is: a time as
containers log it, and one label, the same on all lines (``srun -l``, ``mpirun --tag-output``, ``torchrun``, a pod).
Where several ranks have labels, their lines are mixed and stay as they are.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TIME = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)(?: std(?:out|err) [FP])?(?: |$)", re.ASCII
)
_LABEL = re.compile(
    r"(?: {0,6}\d{1,6}:|\[\d{1,6},\d{1,6}\](?:<std(?:out|err)>)?:|\[(?:default|rank)\d{1,6}\]:"
    r"|\[pod/[^\s\]]{1,320}\]) ?",
    re.ASCII,
)
_FEWEST = 3
"""Fewer lines may begin alike by chance."""


@dataclass(frozen=True, slots=True)
class LinePrefix:
    """What each line starts with."""

    timed: bool = False
    label: str = ""

    @classmethod
    def of(cls, lines: Sequence[str]) -> "LinePrefix":
        """What all of these lines start with, blank ones left aside; the last one may be cut and does not count."""
        told = [line for line in lines[:-1] if line.strip()]
        if len(told) < _FEWEST:
            return cls()
        timed = all(_TIME.match(line) for line in told)
        if timed:
            told = [line for line in map(_without_time, told) if line]
        match = _LABEL.match(told[0]) if told else None
        for label in (match[0], match[0].rstrip()) if match else ():
            if all(line.startswith(label) or line == label.rstrip() for line in told):
                return cls(timed, label)
        return cls(timed)

    def __bool__(self) -> bool:
        return self.timed or bool(self.label)

    def cut(self, line: str) -> str:
        """The line without it, where it is there."""
        if self.timed:
            line = _without_time(line)
        return "" if self.label and line == self.label.rstrip() else line.removeprefix(self.label)


def _without_time(line: str) -> str:
    match = _TIME.match(line)
    return line[match.end() :] if match else line
