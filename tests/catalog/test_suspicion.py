"""What makes a printed price look wrong."""

from dataclasses import replace
from decimal import Decimal

import pytest
from django.utils import translation

from catalog.importers import suspicion
from catalog.importers.suspicion import Code, Finding, Row, asks_for_a_person, held_back, worth_saying

FINE = Row(price=Decimal(8), currency="USD", gpu_count=4, is_spot=False)
NUMBERS = {"current": 10, "gone": 0, "moved": 0}


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({}, None),
        ({"price": Decimal("0.02")}, None),
        ({"price": Decimal("0.0199")}, Code.PRICE_OUTSIDE),
        ({"price": Decimal(240)}, None),
        ({"price": Decimal("240.01")}, Code.PRICE_OUTSIDE),
        ({"price": Decimal(241), "currency": "CNY"}, None),
        ({"is_spot": True, "on_demand": Decimal(8)}, None),
        ({"is_spot": True, "on_demand": Decimal("7.99")}, Code.SPOT_ABOVE_ON_DEMAND),
        ({"on_demand": Decimal("7.99")}, None),
        ({"old": Decimal("5.72")}, None),
        ({"old": Decimal("5.71")}, Code.PRICE_JUMP),
        ({"old": Decimal("13.4")}, Code.PRICE_JUMP),
        ({"one": Decimal(2)}, None),
        ({"one": Decimal(8)}, Code.PRICE_OF_ONE),
        ({"one": Decimal("0.5")}, Code.PRICE_TWICE_MULTIPLIED),
        ({"one": Decimal(8), "is_spot": True}, None),
        ({"known_count": 4}, None),
        ({"known_count": 8}, Code.COUNT_DIFFERS),
        ({"sizes_doubtful": True}, Code.SIZES_NOT_PLAUSIBLE),
    ],
)
def test_a_row_is_held_back_for_one_reason(values: dict[str, object], code: Code | None) -> None:
    found = held_back(replace(FINE, **values))

    assert (found and found.code) == code


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ({"one": Decimal("1.49")}, []),
        ({"one": Decimal("1.48")}, [Code.SIZE_STEP]),
        ({"one": Decimal("3.08")}, [Code.SIZE_STEP]),
        ({"one": Decimal("1.4"), "is_spot": True}, []),
        ({"memory_bytes": 80 * 10**9, "known_memory_bytes": 81 * 10**9}, []),
        ({"memory_bytes": 80 * 10**9, "known_memory_bytes": 94 * 10**9}, [Code.MEMORY_DIFFERS]),
    ],
)
def test_what_is_only_said(values: dict[str, object], codes: list[Code]) -> None:
    assert [found.code for found in worth_saying(replace(FINE, **values))] == codes


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({}, None),
        ({"providers": {"aws": NUMBERS | {"gone": 3, "moved": 3}}}, None),
        ({"providers": {"aws": NUMBERS | {"gone": 4}}}, Code.MANY_GONE),
        ({"providers": {"aws": NUMBERS | {"moved": 4}}}, Code.MANY_MOVED),
        ({"providers": {"aws": NUMBERS | {"current": 0}}}, Code.FIRST_LIST),
        ({"held": 1}, Code.ROWS_HELD_BACK),
        ({"unknown": 5}, None),
        ({"unknown": 6}, Code.NAMES_UNKNOWN),
    ],
)
def test_a_list_asks_for_a_person(values: dict[str, object], code: Code | None) -> None:
    quiet = {"rows": 100, "held": 0, "unknown": 0, "providers": {"aws": NUMBERS}}

    found = asks_for_a_person(**(quiet | values))

    assert [finding.code for finding in found] == ([code] if code else [])


def test_sentences_hold_the_figures_and_can_be_read_back_from_what_is_stored() -> None:
    found = held_back(replace(FINE, price=Decimal("9.0"), old=Decimal("6")))
    assert found is not None

    stored = suspicion.in_english(found)

    assert stored == "The price went from 6.00 to 9.00 in one step; more than 40 % is looked at first."
    assert suspicion.translated(stored) == stored
    assert suspicion.translated("something else") == "something else"


@pytest.mark.parametrize("code", list(Code))
def test_every_sentence_is_found_again(code: Code) -> None:
    names = {name: f"<{name}>" for name in ("each", "low", "high", "spot", "on_demand", "old", "new", "limit", "price")}
    names |= {name: f"<{name}>" for name in ("count", "one", "printed", "known", "gone", "current", "provider")}
    names |= {name: f"<{name}>" for name in ("moved", "rows", "all")}
    with translation.override("en"):
        sentence = Finding(code, names).sentence

        assert suspicion.translated(sentence) == sentence
