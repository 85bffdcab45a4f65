"""One cell of a table file, both ways: text as people type it -> value in base units -> the shortest text of it.

Numbers are written as the shortest digits that read back to the same value, never with an exponent.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from typing import Protocol

from django.utils.translation import gettext as _

NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?|\.[0-9]+", re.ASCII)
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
NUMBER_LENGTH = 40
SHOWN = 60
POINT = ("collective", "gpus", "bytes", "bus_gb_per_s", "source")
EXAMPLE = '[{"collective": "all_reduce", "gpus": 8, "bytes": null, "bus_gb_per_s": 480, "source": "nccl-tests"}]'
GIGA = Decimal(10**9)
_QUOTED = re.compile('[",\r\n]')
_EXACT = Context(prec=80)
_ROUNDED = [Context(prec=digits) for digits in range(1, 41)]


class BadCell(ValueError):
    """The cell cannot be read; ``str()`` is a sentence that says what is wrong and what to enter."""


class Kind(Protocol):
    """How the values of a column are printed. An empty cell never gets here: what it means stands in the column."""

    def read(self, text: str) -> object:
        """Raises BadCell."""

    def write(self, value: object) -> str: ...


@dataclass(frozen=True, slots=True)
class Text:
    """Any text, or one of the ``words`` where there are some."""

    words: tuple[str, ...] = ()

    def read(self, text: str) -> str:
        if self.words and text not in self.words:
            words = ", ".join(word for word in self.words if word)
            raise BadCell(_("“%(typed)s” is not known here; enter one of: %(words)s.") % _typed(text, words=words))
        return text

    def write(self, value: object) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer of base units. Without a unit the cell is a whole number, with one it is rounded to base units."""

    unit: Decimal = Decimal(1)

    def read(self, text: str) -> int:
        number = _number(text)
        if self.unit == 1 and number != number.to_integral_value():
            raise BadCell(_("“%(typed)s” is not a whole number.") % _typed(text))
        return self._of(number)

    def write(self, value: object) -> str:
        exact = _EXACT.divide(Decimal(int(value)), self.unit)  # type: ignore[call-overload]
        return _shortest(exact, lambda number: self._of(number) == value)

    def _of(self, number: Decimal) -> int:
        return int(_EXACT.multiply(number, self.unit).to_integral_value())


@dataclass(frozen=True, slots=True)
class Real:
    """A float of base units."""

    unit: Decimal = Decimal(1)

    def read(self, text: str) -> float:
        return self._of(_number(text))

    def write(self, value: object) -> str:
        exact = _EXACT.divide(Decimal(repr(float(value))), self.unit)  # type: ignore[arg-type]
        return _shortest(exact, lambda number: self._of(number) == value)

    def _of(self, number: Decimal) -> float:
        return float(_EXACT.multiply(number, self.unit))


@dataclass(frozen=True, slots=True)
class Money:
    """A Decimal as it is printed, without zeros at its end."""

    def read(self, text: str) -> Decimal:
        return Decimal(_plain(_number(text)))

    def write(self, value: object) -> str:
        return _plain(value)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class YesNo:
    def read(self, text: str) -> bool:
        if text.lower() not in ("yes", "no"):
            raise BadCell(
                _("“%(typed)s” is not clear: enter yes or no, or nothing where it is not known.") % _typed(text)
            )
        return text.lower() == "yes"

    def write(self, value: object) -> str:
        return "yes" if value else "no"


@dataclass(frozen=True, slots=True)
class Day:
    def read(self, text: str) -> date:
        try:
            if DAY.fullmatch(text):
                return date.fromisoformat(text)
        except ValueError:
            pass
        raise BadCell(_("“%(typed)s” is no date: enter year, month and day, as in 2026-11-30.") % _typed(text))

    def write(self, value: object) -> str:
        return value.isoformat()  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Curve:
    """Measured points as JSON; bus bandwidth in GB/s in the file, in bytes per second in the catalog."""

    def read(self, text: str) -> list[dict[str, object]]:
        try:
            points = json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
            return [_point(point) for point in _list(points)]
        except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
            raise BadCell(
                _("This is no list of measured points. Enter JSON, as in %(example)s.") % {"example": EXAMPLE}
            ) from None

    def write(self, value: object) -> str:
        points = [_printed_point(point) for point in value]  # type: ignore[attr-defined]
        return json.dumps(points, ensure_ascii=False)


def csv_line(cells: Iterable[str]) -> str:
    """One line of a CSV file, quoted only where needed. Python's writer leaves a lone carriage return unquoted."""
    quoted = (f'"{cell.replace(chr(34), chr(34) * 2)}"' if _QUOTED.search(cell) else cell for cell in cells)
    return ",".join(quoted) + "\n"


def _list(points: object) -> list[dict[str, object]]:
    if not isinstance(points, list):
        raise ValueError(points)
    return points


def _point(point: Mapping[str, object]) -> dict[str, object]:
    if set(point) != set(POINT):
        raise ValueError(point)
    rate = float(_EXACT.multiply(Decimal(str(point["bus_gb_per_s"])), GIGA))
    plain = {name: point[name] for name in POINT if name != "bus_gb_per_s"}
    return plain | {"bus_bytes_per_s": rate}


def _printed_point(point: Mapping[str, object]) -> dict[str, object]:
    rate = Real(GIGA).write(point["bus_bytes_per_s"])
    printed = {**point, "bus_gb_per_s": float(rate) if "." in rate else int(rate)}
    return {name: printed[name] for name in POINT}


def _no_constant(name: str) -> object:
    raise ValueError(name)


def _number(text: str) -> Decimal:
    if len(text) <= NUMBER_LENGTH and NUMBER.fullmatch(text):
        return Decimal(text)
    if re.fullmatch(r"[0-9]+,[0-9]+", text, re.ASCII):
        raise BadCell(_("“%(typed)s” has a comma: enter the number with a point, as in 14.06.") % _typed(text))
    raise BadCell(
        _("“%(typed)s” is not a number. Enter digits with a point, without unit, as in 14.06.") % _typed(text)
    )


def _typed(text: str, **more: str) -> dict[str, str]:
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[:SHOWN])
    return {"typed": shown + ("…" if len(text) > SHOWN else ""), **more}


def _shortest(exact: Decimal, reads_back: Callable[[Decimal], bool]) -> str:
    rounded = (context.plus(exact) for context in _ROUNDED)
    return _plain(next((number for number in rounded if reads_back(number)), exact))


def _plain(number: Decimal) -> str:
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
