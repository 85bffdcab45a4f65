"""Microseconds as written to integer nanoseconds, exactly."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

INVALID = -np.iinfo(np.int64).max
"""Has an absolute value, larger than that of any time."""
_EXACT_FLOAT_US = 2.0**43
"""Below this a float64 differs by less than half a nanosecond from the three decimals that were written."""
_LARGEST_US = 1 << 52
"""More than a century since 1970."""
_LONGEST = 64


def nanoseconds(values: Sequence[Any], exact: Callable[[], Sequence[Any]]) -> NDArray[np.int64]:
    """Times in ns, ``INVALID`` where a value is no time; shape ``(len(values),)``.

    ``exact()`` returns the same values with floats as ``Decimal``; it is asked only where a float cannot hold them.
    """
    try:
        micro = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return _one_by_one(values if _all_exact(values) else exact())
    if micro.ndim != 1:
        return _one_by_one(values)
    if micro.size == 0:
        return micro.astype(np.int64)
    largest = np.abs(micro).max()
    if not largest < _EXACT_FLOAT_US and not (largest < _LARGEST_US and all(type(value) is int for value in values)):
        return _one_by_one(values if _all_exact(values) else exact())
    if str in set(map(type, values)):
        return _one_by_one(values)
    whole = np.floor(micro)
    return whole.astype(np.int64) * 1000 + np.rint((micro - whole) * 1000).astype(np.int64)


def _all_exact(values: Sequence[Any]) -> bool:
    return not any(type(value) is float and abs(value) >= _EXACT_FLOAT_US for value in values)


def _one_by_one(values: Sequence[Any]) -> NDArray[np.int64]:
    return np.array([_exact_ns(value) for value in values], dtype=np.int64)


def _exact_ns(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return INVALID
    if isinstance(value, str) and len(value) > _LONGEST:
        return INVALID
    try:
        micro = Decimal(value)
        return int((micro * 1000).to_integral_value()) if abs(micro) < _LARGEST_US else INVALID
    except (ArithmeticError, ValueError):
        return INVALID
