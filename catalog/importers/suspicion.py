"""What makes a printed price look wrong: held back until somebody has looked, or only said.

Prices are per hour of the whole server unless a name says ``each``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

USD_EACH = (Decimal("0.005"), Decimal(60))
"""Nothing dearer than 54 USD per accelerator and hour was seen in any list (Azure, GB200)."""
MOST_CHANGE = Decimal("0.4")
SIZE_STEP = Decimal("0.35")
"""Large hosts of AWS and Azure cost up to 30 % more per accelerator than small ones; more is rare."""
MIXED_UP = Decimal("0.05")
MEMORY_SLACK = 0.1
MOST_GONE = 0.3
MOST_MOVED = 0.3
MOST_UNKNOWN = 0.05
GIGA = 10**9


class Code(StrEnum):
    """The first seven hold a row back, the next two are only said, the rest ask for a person before the whole list."""

    PRICE_OUTSIDE = "price-outside"
    SPOT_ABOVE_ON_DEMAND = "spot-above-on-demand"
    PRICE_JUMP = "price-jump"
    PRICE_OF_ONE = "price-of-one"
    PRICE_TWICE_MULTIPLIED = "price-twice-multiplied"
    COUNT_DIFFERS = "count-differs"
    SIZES_NOT_PLAUSIBLE = "sizes-not-plausible"
    SIZE_STEP = "size-step"
    MEMORY_DIFFERS = "memory-differs"
    FIRST_LIST = "first-list"
    ROWS_HELD_BACK = "rows-held-back"
    MANY_GONE = "many-gone"
    MANY_MOVED = "many-moved"
    NAMES_UNKNOWN = "names-unknown"


SENTENCES: Mapping[Code, str | Promise] = {
    Code.PRICE_OUTSIDE: _(
        "%(each)s USD per accelerator and hour is outside %(low)s to %(high)s: is it of one accelerator, or in cents?"
    ),
    Code.SPOT_ABOVE_ON_DEMAND: _(
        "The spot price %(spot)s is above the on-demand price %(on_demand)s of the same server."
    ),
    Code.PRICE_JUMP: _(
        "The price went from %(old)s to %(new)s in one step; more than %(limit)s %% is looked at first."
    ),
    Code.PRICE_OF_ONE: _(
        "%(price)s for %(count)s accelerators is what a server with one costs (%(one)s): is it the price of one?"
    ),
    Code.PRICE_TWICE_MULTIPLIED: _(
        "%(each)s per accelerator is %(count)s times what one costs alone (%(one)s): is it multiplied twice?"
    ),
    Code.COUNT_DIFFERS: _("The list prints %(printed)s accelerators, the catalog has %(known)s in this server."),
    Code.SIZES_NOT_PLAUSIBLE: _("The row prints a number of CPUs or a memory that no server has."),
    Code.SIZE_STEP: _(
        "With %(count)s accelerators each costs %(each)s, alone %(one)s: more than %(limit)s %% apart. "
        "Large servers may cost more."
    ),
    Code.MEMORY_DIFFERS: _(
        "The list prints %(printed)s GB per accelerator, the catalog has %(known)s GB for this server."
    ),
    Code.FIRST_LIST: _("The catalog has no prices of this source yet."),
    Code.ROWS_HELD_BACK: _("Rows that look wrong and would be held back: %(count)s."),
    Code.MANY_GONE: _("%(gone)s of %(current)s offers of %(provider)s are no longer in the list."),
    Code.MANY_MOVED: _("%(moved)s of %(current)s prices of %(provider)s differ from those in the catalog."),
    Code.NAMES_UNKNOWN: _("%(rows)s of %(all)s rows print accelerators that nobody has decided on yet."),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """``params`` fill the sentence; plain values, so that a report can keep them."""

    code: Code
    params: Mapping[str, object] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """In the reader's language."""
        return str(SENTENCES[self.code]) % self.params


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``on_demand``: of the same server in the same list. ``one``: the least that a server with one such accelerator
    costs in the same region under the same way of paying. ``old``: in the catalog, from the same source.
    """

    price: Decimal
    currency: str
    gpu_count: int
    is_spot: bool
    on_demand: Decimal | None = None
    one: Decimal | None = None
    old: Decimal | None = None
    known_count: int | None = None
    memory_bytes: int | None = None
    known_memory_bytes: int | None = None
    sizes_doubtful: bool = False


def held_back(row: Row) -> Finding | None:
    """The first reason not to publish this row unseen."""
    if row.known_count is not None and row.known_count != row.gpu_count:
        return Finding(Code.COUNT_DIFFERS, {"printed": row.gpu_count, "known": row.known_count})
    if row.sizes_doubtful:
        return Finding(Code.SIZES_NOT_PLAUSIBLE)
    return _outside(row) or _spot(row) or _mixed_up(row) or _jump(row)


def worth_saying(row: Row) -> list[Finding]:
    """What somebody may want to know of a row that is fine to publish."""
    found = []
    each = row.price / row.gpu_count
    if _compares_sizes(row) and row.one is not None and abs(each / row.one - 1) > SIZE_STEP:
        params = {"count": row.gpu_count, "each": money(each), "one": money(row.one), "limit": int(SIZE_STEP * 100)}
        found.append(Finding(Code.SIZE_STEP, params))
    printed, known = row.memory_bytes, row.known_memory_bytes
    if printed and known and abs(printed - known) > MEMORY_SLACK * known:
        params = {"printed": round(printed / GIGA), "known": round(known / GIGA)}
        found.append(Finding(Code.MEMORY_DIFFERS, params))
    return found


def asks_for_a_person(
    *, rows: int, held: int, unknown: int, providers: Mapping[str, Mapping[str, int]]
) -> list[Finding]:
    """Why a list is not applied without a person.

    ``unknown``: rows with names nobody has seen yet. ``providers``: key -> ``current``, ``gone``, ``moved`` offers.
    """
    found = []
    if not any(numbers["current"] for numbers in providers.values()):
        found.append(Finding(Code.FIRST_LIST))
    if held:
        found.append(Finding(Code.ROWS_HELD_BACK, {"count": held}))
    for provider, numbers in sorted(providers.items()):
        current = numbers["current"]
        if numbers["gone"] > MOST_GONE * current:
            params = {"gone": numbers["gone"], "current": current, "provider": provider}
            found.append(Finding(Code.MANY_GONE, params))
        if numbers["moved"] > MOST_MOVED * current:
            params = {"moved": numbers["moved"], "current": current, "provider": provider}
            found.append(Finding(Code.MANY_MOVED, params))
    if unknown > MOST_UNKNOWN * rows:
        found.append(Finding(Code.NAMES_UNKNOWN, {"rows": unknown, "all": rows}))
    return found


def in_english(finding: Finding) -> str:
    """The sentence as it is stored with an offer."""
    with translation.override("en"):
        return finding.sentence


def translated(stored: str) -> str:
    """A stored sentence in the reader's language; what is not one of ours is given back as it is."""
    with translation.override("en"):
        patterns = [(code, _pattern(str(sentence))) for code, sentence in SENTENCES.items()]
    for code, pattern in patterns:
        match = pattern.fullmatch(stored)
        if match:
            return Finding(code, match.groupdict()).sentence
    return stored


def money(amount: Decimal) -> str:
    """Without the zeros of the column's six decimals, but cents at least."""
    text = f"{amount:.6f}".rstrip("0")
    whole, _dot, cents = text.partition(".")
    return f"{whole}.{cents:0<2}"


def _outside(row: Row) -> Finding | None:
    low, high = USD_EACH
    each = row.price / row.gpu_count
    if row.currency != "USD" or low <= each <= high:
        return None
    return Finding(Code.PRICE_OUTSIDE, {"each": money(each), "low": str(low), "high": str(high)})


def _spot(row: Row) -> Finding | None:
    if not row.is_spot or row.on_demand is None or row.price <= row.on_demand:
        return None
    return Finding(Code.SPOT_ABOVE_ON_DEMAND, {"spot": money(row.price), "on_demand": money(row.on_demand)})


def _mixed_up(row: Row) -> Finding | None:
    if not _compares_sizes(row) or row.one is None:
        return None
    if _near(row.price, row.one):
        params = {"price": money(row.price), "count": row.gpu_count, "one": money(row.one)}
        return Finding(Code.PRICE_OF_ONE, params)
    each = row.price / row.gpu_count
    if _near(each, row.one * row.gpu_count):
        params = {"each": money(each), "count": row.gpu_count, "one": money(row.one)}
        return Finding(Code.PRICE_TWICE_MULTIPLIED, params)
    return None


def _jump(row: Row) -> Finding | None:
    if row.old is None or abs(row.price - row.old) <= MOST_CHANGE * row.old:
        return None
    params = {"old": money(row.old), "new": money(row.price), "limit": int(MOST_CHANGE * 100)}
    return Finding(Code.PRICE_JUMP, params)


def _compares_sizes(row: Row) -> bool:
    """Spot prices of small and large servers move apart for good reasons."""
    return row.gpu_count > 1 and not row.is_spot


def _near(value: Decimal, target: Decimal) -> bool:
    return abs(value - target) <= MIXED_UP * target


def _pattern(sentence: str) -> re.Pattern[str]:
    pieces = re.split(r"%\((\w+)\)s", sentence.replace("%%", "%"))
    quoted = [f"(?P<{piece}>.+?)" if place % 2 else re.escape(piece) for place, piece in enumerate(pieces)]
    return re.compile("".join(quoted))
