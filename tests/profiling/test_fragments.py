"""Fragments are found by their events; of a hundred large captures nothing but numbers stays in memory."""

import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.formats.capture import Capture, Format
from profiling.fragments import Trace, fragments, traces
from profiling.timeline import HostSide, Timeline
from tests.profiling.timelines import Row, timeline

HOST = HostSide(operators=5, launches=5)


def rows(count: int, *, first: int = 0, name: str = "gemm") -> list[Row]:
    return [Row(name, 1000 * number, 500) for number in range(first, first + count)]


def kept(folder: Path, work: list[Row], **changed: Any) -> tuple[Trace, ...]:
    return written(folder, timeline(work, **changed))


def written(folder: Path, line: Timeline) -> tuple[Trace, ...]:
    return traces(Capture(format=Format.KINETO, timelines=(line,)), Path(tempfile.mkdtemp(dir=folder)))


@given(st.integers(2, 200), st.data())
def test_any_half_of_a_capture_is_a_fragment_of_it(count: int, data: st.DataObject) -> None:
    some = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=count // 2, unique=True))
    with tempfile.TemporaryDirectory() as folder:
        whole = kept(Path(folder), rows(count))
        part = kept(Path(folder), [rows(count)[place] for place in some], host=HOST)
        assert fragments([part, whole]) == {0: 1}
        other = kept(Path(folder), [*[rows(count)[place] for place in some[1:]], *rows(1, name="other")], host=HOST)
        assert fragments([whole, other]) == {}


@pytest.mark.parametrize(
    ("small", "large", "found"),
    [
        ({"rank": 0}, {"rank": 0}, {0: 1}),
        ({"rank": 1}, {"rank": 0}, {}),
        ({}, {"rank": 0}, {0: 1}),
    ],
)
def test_only_a_capture_of_the_same_rank_has_fragments(
    tmp_path: Path, small: dict[str, int], large: dict[str, int], found: dict[int, int]
) -> None:
    assert fragments([kept(tmp_path, rows(2), **small), kept(tmp_path, rows(9), **large)]) == found


def test_what_holds_the_work_alone_is_a_fragment_whatever_its_clock(tmp_path: Path) -> None:
    bare, whole = rows(2, first=10_000), {"rank": 0, "world_size": 2, "host": HOST}
    assert fragments([kept(tmp_path, rows(9), **whole), kept(tmp_path, bare, rank=0)]) == {1: 0}
    assert fragments([kept(tmp_path, rows(9), **whole), kept(tmp_path, bare, rank=0, host=HOST)]) == {}


def test_memory_does_not_grow_with_the_captures(tmp_path: Path) -> None:
    count = 200_000
    line: Timeline = timeline(rows(1), rank=0)
    columns = {name: np.repeat(getattr(line, name), count) for name in ("duration_ns", "name_id")}
    many = timeline(rows(1), rank=0, start_ns=np.arange(count) * 1000, **columns)
    few = timeline(rows(70_000), rank=0, host=HOST)
    tracemalloc.start()
    found = [written(tmp_path, line) for line in (many, few) * 20]
    assert set(fragments(found)) == set(range(1, 40, 2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 8 * count


def test_the_caller_hears_of_each_comparison(tmp_path: Path) -> None:
    heard: list[None] = []
    fragments([kept(tmp_path, rows(2)) for _ in range(5)], lambda: heard.append(None))
    assert len(heard) == 5
