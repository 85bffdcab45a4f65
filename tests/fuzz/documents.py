"""JSON damaged value by value, so that it stays JSON and what lies around the damage can still be read."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

_ODD = (
    *(None, True, 0, -1, 7, 0.5, 1e308, -(2**63), 2**63 - 1, 2**64, 10**400, float("nan"), float("inf")),
    *("", "7", "-1", "nan", "1e400", "9" * 400, "0x7", "\x00", "é", "x" * 3000, [], {}, [[]], {"": {}}, [None, "a", 1]),
)
_DEEPER = 5
"""Of so many values all but one are looked into rather than changed themselves."""


def is_document(content: bytes) -> bool:
    """True for what seems to be JSON, whole or by the line."""
    return content[:1] in (b"{", b"[")


def damaged_document(draw: Callable[..., int], content: bytes) -> bytes:
    """The document with one of its values changed, taken away or doubled; of several by the line, one of them."""
    whole = _decoded(content)
    if whole is not None:
        return _encoded(_with_damage(draw, whole))
    lines = content.split(b"\n")
    place = draw(st.integers(0, len(lines) - 1))
    one = _decoded(lines[place])
    return (
        content if one is None else b"\n".join([*lines[:place], _encoded(_with_damage(draw, one)), *lines[place + 1 :]])
    )


def _with_damage(draw: Callable[..., int], value: Any) -> Any:
    if not isinstance(value, dict | list) or not value or not draw(st.integers(0, _DEEPER)):
        return _ODD[draw(st.integers(0, len(_ODD) - 1))]
    places = list(value) if isinstance(value, dict) else range(len(value))
    place = places[draw(st.integers(0, len(places) - 1))]
    fault = draw(st.integers(0, 9))
    if fault == 0:
        del value[place]
    elif fault == 1 and isinstance(value, dict):
        value[f"{place}2"] = value.pop(place)
    elif fault == 1:
        value += [value[place]] * draw(st.sampled_from((1, 50)))
    else:
        value[place] = _with_damage(draw, value[place])
    return value


def _decoded(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
