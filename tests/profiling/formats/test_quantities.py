"""Numbers and units as tools print them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.formats.quantities import (
    Titles,
    bytes_per,
    nanoseconds_per,
    number,
    per_second,
    title_and_unit,
    uses_decimal_comma,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.50", "1234.5"),
        (" 12 ", "12"),
        ("-3", "-3"),
        (".5", "0.5"),
        ("7.", "7"),
        ("1e5", "100000"),
        ("1,234,567", "1234567"),
        ("1'234", "1234"),
        ("1\u202f234,5", "1234.5"),
        ("27.595.520", "27595520"),
        ("21,75", "21.75"),
        ("1.368,40", "1368.4"),
        ("0,123", "0.123"),
        ("1.234", "1.234"),
        ("1,234", "1234"),
    ],
)
def test_numbers(text: str, value: str) -> None:
    assert number(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        ".",
        "n/a",
        "nan",
        "inf",
        "1,2,3",
        "1.2.3",
        "(1, 2, 3)",
        "0x10",
        "1e99",
        "1" * 61,
        "\u0663",
        "1 2",
        "5 us",
    ],
)
def test_no_numbers(text: str) -> None:
    assert number(text) is None


def test_one_number_tells_the_commas_of_a_file() -> None:
    assert uses_decimal_comma(["1,234", "21,75"])
    assert not uses_decimal_comma(["1,234", "1.5", "(1,2)", "a,b"])
    assert (number("1.234", decimal_comma=True), number("1,234", decimal_comma=True)) == (1234, Decimal("1.234"))
    assert number("1,234.5", decimal_comma=True) is None


@given(st.integers(-(10**15), 10**15))
def test_separators_of_thousands_change_nothing(value: int) -> None:
    assert number(f"{value:,}") == value
    assert number(f"{value:,}.25") == number(f"{value}.25")


@given(st.text(max_size=80))
def test_any_text_is_a_finite_number_or_none(text: str) -> None:
    value = number(text)
    assert value is None or (value.is_finite() and abs(value) < Decimal(10) ** 30)


@pytest.mark.parametrize(
    ("title", "split"),
    [
        ("Total Time (ns)", ("Total Time", "ns")),
        ("Time(%)", ("Time", "%")),
        ("power.draw [W]", ("power.draw", "W")),
        ("Compute (SM) Throughput", ("Compute (SM) Throughput", None)),
        ("Name", ("Name", None)),
        ("()", ("()", None)),
    ],
)
def test_units_in_titles(title: str, split: tuple[str, str | None]) -> None:
    assert title_and_unit(title) == split


def test_titles_by_name() -> None:
    titles = Titles.of(["Start (us)", "Name"])
    assert (titles.place("end", "name"), titles.place("end"), titles.unit("start")) == (1, None, "us")
    assert titles.has("name", "start")
    assert not titles.has("name", "end")


@pytest.mark.parametrize(
    ("unit", "time", "size", "rate"),
    [
        ("ns", 1, None, None),
        ("usecond", 1000, None, None),
        ("msec", None, None, None),
        ("s", 10**9, None, None),
        ("MB", None, 10**6, None),
        ("Mbyte", None, 10**6, None),
        ("MiB", None, 1 << 20, None),
        ("bytes", None, 1, None),
        ("Gbyte/s", None, None, 10**9),
        ("GB/s", None, None, 10**9),
        ("MBps", None, None, 10**6),
        ("byte/nsecond", None, None, 10**9),
        ("%", None, None, None),
        ("W", None, None, None),
        (None, None, None, None),
    ],
)
def test_units(unit: str | None, time: int | None, size: int | None, rate: int | None) -> None:
    assert (nanoseconds_per(unit), bytes_per(unit), per_second(unit)) == (time, size, rate)
