"""Arrays found by their keys come whole, however the text is cut into chunks."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.formats.json_arrays import ArrayStream
from profiling.formats.limits import Limits
from profiling.notes import Refusal, RefusalCode

DECODE = msgspec.json.Decoder(list[dict[str, Any]]).decode
VALUES = st.recursive(
    st.integers() | st.booleans() | st.none() | st.text(alphabet='ab"\\{}[],: \n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), max_size=6)


def gathered(stream: ArrayStream) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name, objects in stream.pieces():
        found.setdefault(name, []).extend(objects)
    return found


@given(first=OBJECTS, second=OBJECTS, other=VALUES, step=st.integers(1, 40), indent=st.sampled_from([None, 1]))
def test_any_cut_gives_the_same(first: Any, second: Any, other: Any, step: int, indent: int | None) -> None:
    text = json.dumps({"skip": other, "one": first, "more": {"two": second}, "end": other}, indent=indent).encode()
    chunks = (text[at : at + step] for at in range(0, len(text), step))
    stream = ArrayStream(chunks, {"one": DECODE, "two": DECODE}, Limits())
    assert gathered(stream) == {"one": first, "two": second}
    assert stream.complete


@given(objects=OBJECTS, cut=st.integers(1, 200))
def test_what_stands_before_a_cut_is_kept(objects: Any, cut: int) -> None:
    text = json.dumps({"one": objects}).encode()
    kept = text[: max(9, len(text) - cut)]
    stream = ArrayStream(iter([kept]), {"one": DECODE}, Limits())
    found = gathered(stream).get("one", [])
    assert found == objects[: len(found)]
    assert stream.complete == (found == objects and cut < 2)


def test_an_object_without_end_is_refused() -> None:
    chunks = iter([b'{"one": [{"a": "', *(b"x" * 1000 for _ in range(20))])
    with pytest.raises(Refusal) as caught:
        gathered(ArrayStream(chunks, {"one": DECODE}, Limits(event_bytes=5000)))
    assert caught.value.code is RefusalCode.EVENT_TOO_LONG
