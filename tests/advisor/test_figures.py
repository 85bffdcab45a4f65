"""Figures as people read them."""

from decimal import Decimal

import pytest
from django.utils.translation import override

from advisor import figures


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (3.2e-6, "3.20 µs"),
        (0.0123456, "12.3 ms"),
        (1.0, "1 s"),
        (119.4, "119 s"),
        (3600, "60 min"),
        (7200.0, "2 h"),
        (1e6, "11.6 days"),
        (0, "0 µs"),
        (1e302, "1.16E297 days"),
        (None, "unknown"),
        (float("nan"), "unknown"),
    ],
)
def test_duration(seconds: float | None, shown: str) -> None:
    assert figures.duration(seconds) == shown


def test_range_has_one_unit() -> None:
    assert figures.duration_range(0.0413, 0.0589) == "41.3 to 58.9 ms"
    assert figures.duration_range(None, 1.0) == "unknown"


@pytest.mark.parametrize(
    ("fraction", "shown"), [(0.41, "+41%"), (-0.051, "-5%"), (1.2598, "+126%"), (0, "+0%"), (None, "unknown")]
)
def test_premium(fraction: float | None, shown: str) -> None:
    assert figures.premium(fraction) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0, "0%"),
        (0.0004, "under 0.1%"),
        (0.0513, "5.1%"),
        (0.41, "41%"),
        (0.997, "99.7%"),
        (0.99999, "99.9%"),
        (1, "100%"),
        (1.1155, "112%"),
        (None, "unknown"),
    ],
)
def test_percent_claims_neither_all_nor_nothing(share: float | None, shown: str) -> None:
    assert figures.percent(share) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("8.45", "$8.45"),
        (Decimal("0.000321"), "$0.000321"),
        ("120000.4", "$120,000"),
        ("0.32", "$0.32"),
        ("0.1384", "$0.138"),
        ("0.00", "$0.00"),
        (None, "unknown"),
    ],
)
def test_money(amount: str | Decimal | None, shown: str) -> None:
    assert figures.money(amount, "USD") == shown


def test_money_names_its_currency_in_every_language() -> None:
    with override("zh-hant"):
        assert figures.money("8.45", "USD") == "US$8.45"
        assert figures.money("300", "JPY") == "¥300"


@pytest.mark.parametrize(
    ("value", "shown"), [(12, "12"), (1234567.0, "1,234,567"), (0.28571, "0.286"), (1234.5, "1,234")]
)
def test_number(value: float, shown: str) -> None:
    assert figures.number(value) == shown
