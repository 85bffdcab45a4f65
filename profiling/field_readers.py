"""Single values of an untrusted JSON document, each read strictly: another type or range is a WorkloadError."""

from collections.abc import Callable
from math import isfinite
from typing import Any

from profiling.workload_errors import WorkloadCode, WorkloadError

LONGEST_TEXT = 200


def number_field(low: float, high: float) -> Callable[[Any, str], float]:
    """Reads a finite number in the range."""

    def read(value: Any, pointer: str) -> float:
        number = isinstance(value, int) or (isinstance(value, float) and isfinite(value))
        if isinstance(value, bool) or not number:
            raise WorkloadError(WorkloadCode.NOT_A_NUMBER, pointer)
        if not low <= value <= high:
            raise WorkloadError(WorkloadCode.OUT_OF_RANGE, pointer, low=f"{low:,.10g}", high=f"{high:,.10g}")
        return float(value)

    return read


def whole_field(low: int, high: int) -> Callable[[Any, str], int]:
    """Reads a whole number in the range; 4.0 is one."""

    def read(value: Any, pointer: str) -> int:
        number = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not number:
            raise WorkloadError(WorkloadCode.NOT_A_WHOLE_NUMBER, pointer)
        if not low <= value <= high:
            raise WorkloadError(WorkloadCode.OUT_OF_RANGE, pointer, low=low, high=high)
        return int(value)

    return read


def text_field(value: Any, pointer: str) -> str:
    """Reads printable text."""
    if not isinstance(value, str) or not 0 < len(value.strip()) <= LONGEST_TEXT or not value.isprintable():
        raise WorkloadError(WorkloadCode.NOT_TEXT, pointer, longest=LONGEST_TEXT)
    return value.strip()


def boolean_field(value: Any, pointer: str) -> bool:
    """Reads true or false."""
    if not isinstance(value, bool):
        raise WorkloadError(WorkloadCode.NOT_A_BOOLEAN, pointer)
    return value


def choice_field(*choices: str) -> Callable[[Any, str], str]:
    """Reads one of these words."""

    def read(value: Any, pointer: str) -> str:
        if not isinstance(value, str) or value not in choices:
            raise WorkloadError(WorkloadCode.NOT_A_CHOICE, pointer, choices=", ".join(choices))
        return value

    return read
