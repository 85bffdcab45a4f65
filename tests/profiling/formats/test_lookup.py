"""Lookups answer like a dictionary that keeps the first value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.formats.limits import Limits
from profiling.formats.lookup import Lookup
from profiling.notes import Refusal, RefusalCode

PAIRS = st.lists(st.tuples(st.integers(-3, 20), st.integers(0, 2**62)), max_size=20)


@given(batches=st.lists(PAIRS, max_size=4), wanted=st.lists(st.integers(-5, 25)))
def test_like_a_dictionary(batches: list[list[tuple[int, int]]], wanted: list[int]) -> None:
    lookup, known = Lookup(Limits()), {}
    for batch in batches:
        for key, value in batch:
            known.setdefault(key, value)
        columns = np.array(batch, dtype=np.int64).reshape(-1, 2)
        lookup.add(columns[:, 0], columns[:, 1])
    expected = [known.get(key, -1) if key >= 0 else -1 for key in wanted]
    assert lookup.of(np.array(wanted, dtype=np.int64)).tolist() == expected


def test_more_than_the_limit_is_refused() -> None:
    lookup = Lookup(Limits(events=3))
    with pytest.raises(Refusal) as caught:
        lookup.add(np.arange(4), np.arange(4))
    assert caught.value.code is RefusalCode.TOO_MANY_EVENTS
