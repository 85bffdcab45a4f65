"""Integers of any spelling, as files print them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_INT, _NONE = {int}, {type(None)}
_OUT = -(2**63)
_DIGITS = 32
"""Longer text is no number of a profiler, and Python refuses to convert some thousand digits."""
MOST_BYTES = 1 << 50
"""A message, a copy or a memory of more than a pebibyte cannot be true."""
MOST_CALLS = 1 << 40
"""Nor can that many calls of one kernel."""


def integer(value: Any, low: int = 0, high: int = 2**63 - 1) -> int | None:
    """An integer in range, also one printed as text or float; else None."""
    if isinstance(value, str):
        try:
            value = int(value) if len(value) <= _DIGITS else None
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if low <= value <= high else None


def integers(values: Sequence[Any], missing: int, low: int = 0, high: int = 2**63 - 1) -> NDArray[np.int64]:
    """A column of integers of any spelling; ``missing`` where a value is none or out of range (``low`` from 0 on)."""
    types = set(map(type, values))
    if types <= _NONE:
        return np.full(len(values), missing, dtype=np.int64)
    if types <= _INT | _NONE:
        try:
            column = np.array(values if types == _INT else [_OUT if one is None else one for one in values], np.int64)
        except OverflowError:
            return _one_by_one(values, missing, low, high)
        fits = (column >= low) & (column <= high)
        return column if fits.all() else np.where(fits, column, missing)
    return _one_by_one(values, missing, low, high)


def _one_by_one(values: Sequence[Any], missing: int, low: int, high: int) -> NDArray[np.int64]:
    found = [integer(value, low, high) for value in values]
    return np.array([missing if value is None else value for value in found], dtype=np.int64)
