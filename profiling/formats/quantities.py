"""Numbers and units as tools print them for people: ``1,234.50 us``, ``Total Time (ns)``, ``27.595.520``, ``Mbyte``."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

_EXPONENT = r"(?P<exponent>e[+-]?\d{1,2})?"
_POINT = re.compile(
    r"(?P<whole>[+-]?(\d{1,3}(,\d{3}){1,8}|\d{0,24}))(\.(?P<decimals>\d{0,24}))?" + _EXPONENT, re.IGNORECASE | re.ASCII
)
_COMMA = re.compile(
    r"(?P<whole>[+-]?(\d{1,3}(\.\d{3}){1,8}|\d{0,24}))(,(?P<decimals>\d{0,24}))?" + _EXPONENT, re.IGNORECASE | re.ASCII
)
_SURELY_COMMA = re.compile(
    r"[+-]?(\d{1,3}(\.\d{3}){1,8},\d{1,24}|\d{1,3}(\.\d{3}){2,8}|\d{1,24},(\d{1,2}|\d{4,24})|(0|\d{4,24}),\d{1,24})",
    re.ASCII,
)
_LONGEST = 60
_TITLE = re.compile(r"(?P<name>[^()\[\]]{1,200})[(\[](?P<unit>[^()\[\]]{1,30})[)\]]")
_PREFIXES = {"": 0, "k": 3, "m": 6, "g": 9, "t": 12, "p": 15}
_BINARY_PREFIXES = {"ki": 1, "mi": 2, "gi": 3, "ti": 4}
_TIMES = {
    "ns": 1, "nsecond": 1, "nanosecond": 1, "us": 10**3, "usecond": 10**3, "µs": 10**3, "μs": 10**3,
    "microsecond": 10**3, "ms": 10**6, "msecond": 10**6, "millisecond": 10**6, "s": 10**9, "sec": 10**9,
    "second": 10**9,
}  # fmt: skip
_MOST = Decimal(10) ** 30


def number(text: str, *, decimal_comma: bool = False) -> Decimal | None:
    """A finite number, exact, thousands separators taken out; None where it is none (``n/a``, ``nan``, words).

    With one kind of separator, a comma parts thousands and a point decimals, unless the digits forbid it or
    ``decimal_comma`` says that it is the other way round.
    """
    text = _bare(text)
    pattern = _COMMA if decimal_comma or _SURELY_COMMA.fullmatch(text) else _POINT
    match = pattern.fullmatch(text)
    if match is None or not any(one.isdigit() for one in text):
        return None
    whole = match["whole"].replace(",", "").replace(".", "")
    try:
        value = Decimal(f"{whole}.{match['decimals'] or '0'}{match['exponent'] or ''}")
    except InvalidOperation:
        return None
    return value if abs(value) < _MOST else None


def _bare(text: str) -> str:
    """Without blanks and the separators of thousands that cannot be mistaken; nothing where it is too long."""
    text = text.strip()
    return "" if len(text) > _LONGEST else text.replace("\u202f", "").replace("\xa0", "").replace("'", "")


def uses_decimal_comma(texts: Iterable[str]) -> bool:
    """Whether any of these numbers, of one file, can only be read with a comma before the decimals."""
    return any(_SURELY_COMMA.fullmatch(_bare(text)) is not None for text in texts)


def title_and_unit(title: str) -> tuple[str, str | None]:
    """``Total Time (ns)`` is ``("Total Time", "ns")``, ``power.draw [W]`` alike; a title without unit has None."""
    match = _TITLE.fullmatch(title.strip())
    return (match["name"].strip(), match["unit"].strip()) if match else (title.strip(), None)


@dataclass(frozen=True, slots=True)
class Titles:
    """Titles of a table in lower case without their units, and the units."""

    names: tuple[str, ...]
    units: tuple[str | None, ...]

    @classmethod
    def of(cls, titles: Sequence[str]) -> "Titles":
        split = [title_and_unit(title) for title in titles]
        return cls(tuple(name.casefold() for name, _ in split), tuple(unit for _, unit in split))

    def has(self, *names: str) -> bool:
        return all(name in self.names for name in names)

    def place(self, *names: str) -> int | None:
        """Column of the first of these names that is there."""
        return next((self.names.index(name) for name in names if name in self.names), None)

    def unit(self, name: str) -> str | None:
        """Unit of a column that is there."""
        return self.units[self.names.index(name)]


def nanoseconds_per(unit: str | None) -> int | None:
    """1000 for ``us`` and ``usecond``; None for what is no unit of time."""
    folded = (unit or "").strip().casefold()
    return _TIMES.get(folded, _TIMES.get(folded.removesuffix("s")))


def bytes_per(unit: str | None) -> int | None:
    """1000000 for ``MB`` and ``Mbyte``, 1048576 for ``MiB``; None for what is no unit of size."""
    folded = (unit or "").strip().casefold().removesuffix("s")
    prefix = folded.removesuffix("byte") if folded.endswith("byte") else folded.removesuffix("b")
    if prefix == folded:
        return None
    if prefix in _BINARY_PREFIXES:
        return 1 << (10 * _BINARY_PREFIXES[prefix])
    return 10 ** _PREFIXES[prefix] if prefix in _PREFIXES else None


def per_second(unit: str | None) -> int | None:
    """Units of a rate in base units per second: ``Gbyte/s``, ``GB/s``, ``MBps``; ``byte/nsecond`` too."""
    amount, slash, time = (unit or "").strip().partition("/")
    if not slash and amount.casefold().endswith("ps"):
        amount, time = amount[:-2], "s"
    size, nanoseconds = bytes_per(amount), nanoseconds_per(time)
    return size * 10**9 // nanoseconds if size and nanoseconds else None
