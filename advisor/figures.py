"""Numbers as people read them: three significant digits, a unit, the reader's language. Unknown is said, never 0."""

import math
from collections.abc import Sequence
from decimal import Decimal

from babel import Locale, UnknownLocaleError
from babel.numbers import format_currency, format_decimal, format_scientific, get_currency_precision
from django.utils.translation import get_language, gettext, gettext_lazy

Number = int | float | Decimal

_DURATIONS = (
    (1e-3, 1e-6, gettext_lazy("%(value)s µs")),
    (1.0, 1e-3, gettext_lazy("%(value)s ms")),
    (120.0, 1.0, gettext_lazy("%(value)s s")),
    (7200.0, 60.0, gettext_lazy("%(value)s min")),
    (48 * 3600.0, 3600.0, gettext_lazy("%(value)s h")),
    (math.inf, 86400.0, gettext_lazy("%(value)s days")),
)
_BYTES = (
    (2**10, 1, gettext_lazy("%(value)s B")),
    (2**20, 2**10, gettext_lazy("%(value)s KiB")),
    (2**30, 2**20, gettext_lazy("%(value)s MiB")),
    (math.inf, 2**30, gettext_lazy("%(value)s GiB")),
)
_ABSURD = 1e15
"""From here on digits are no longer written out: what a stranger's file claims may have hundreds."""
_Scale = Sequence[tuple[float, float, str]]


def number(value: Number | None, digits: int = 3) -> str:
    """``digits`` significant digits, grouped as the language does; whole numbers keep all of theirs."""
    if not _known(value):
        return unknown()
    if abs(value) >= _ABSURD:
        return format_scientific(float(value), format="0.##E0", locale=_locale())
    if float(value).is_integer():
        return format_decimal(int(value), format="#,##0", locale=_locale())
    decimals = max(digits - 1 - _magnitude(value), 0)
    pattern = "#,##0." + "0" * min(decimals, 12) if decimals else "#,##0"
    return format_decimal(round(float(value), decimals), format=pattern, locale=_locale())


def duration(seconds: Number | None) -> str:
    """From microseconds to days."""
    return _scaled(seconds, _DURATIONS)


def duration_range(low: Number | None, high: Number | None) -> str:
    """Both ends in the unit of the larger one."""
    if not _known(low) or not _known(high):
        return unknown()
    _, unit, text = _pick(high, _DURATIONS)
    ends = gettext("%(low)s to %(high)s") % {"low": _rough(low / unit), "high": _rough(high / unit)}
    return text % {"value": ends}


def size(count: Number | None) -> str:
    """Bytes, binary units."""
    return _scaled(count, _BYTES)


def gigabytes_per_s(value: Number | None) -> str:
    """Decimal, as data sheets give bandwidths."""
    return gettext("%(value)s GB/s") % {"value": number(value)} if _known(value) else unknown()


def tera(value: Number | None, unit: str) -> str:
    """``unit`` is one that no language translates, such as FLOP/s."""
    return f"{number(value)} T{unit}" if _known(value) else unknown()


def percent(fraction: Number | None) -> str:
    """A share in percent; one decimal near 0 and near 100, so that neither is claimed where it is not so."""
    if not _known(fraction):
        return unknown()
    if 0 < fraction < 0.0005:
        return gettext("under %(value)s") % {"value": format_decimal(0.001, format="0.0%", locale=_locale())}
    near_an_end = 0 < fraction < 0.0995 or 0.995 <= fraction < 1
    pattern = "#,##0.0%" if near_an_end else "#,##0%"
    shown = min(float(fraction), 0.999) if fraction < 1 else float(fraction)
    return format_decimal(shown, format=pattern, locale=_locale())


def premium(fraction: Number | None) -> str:
    """A difference in whole percent, with its sign."""
    if not _known(fraction):
        return unknown()
    return format_decimal(float(fraction), format="+#,##0%;-#,##0%", locale=_locale())


def factor(value: Number | None) -> str:
    """A speed-up: two decimals."""
    return format_decimal(float(value), format="0.00", locale=_locale()) if _known(value) else unknown()


def money(amount: Number | str | None, currency: str) -> str:
    """An amount in its currency; small amounts keep three significant digits."""
    value = None if amount is None else Decimal(str(amount))
    if not _known(value):
        return unknown()
    decimals = get_currency_precision(currency)
    if 0 < abs(value) < 1:
        given = -int(value.normalize().as_tuple().exponent)
        decimals = max(decimals, min(given, 2 - _magnitude(value)))
    if abs(value) >= 1000:
        decimals = 0
    pattern = "¤#,##0" + ("." + "0" * min(decimals, 10) if decimals else "")
    return format_currency(value, currency, format=pattern, locale=_locale(), currency_digits=False)


def money_range(low: Number | str | None, high: Number | str | None, currency: str) -> str:
    """Both ends with their currency."""
    if low is None or high is None:
        return unknown()
    return gettext("%(low)s to %(high)s") % {"low": money(low, currency), "high": money(high, currency)}


def unknown() -> str:
    return gettext("unknown")


def _scaled(value: Number | None, scale: _Scale) -> str:
    if not _known(value):
        return unknown()
    _, unit, text = _pick(value, scale)
    return text % {"value": number(_trim(float(value) / unit))}


def _pick(value: Number, scale: _Scale) -> tuple[float, float, str]:
    return next(row for row in scale if abs(value) < row[0])


def _rough(value: Number) -> str:
    return number(_trim(float(value)))


def _trim(value: float) -> float:
    """Three significant digits, so that 12.0000001 is a whole number."""
    return 0.0 if value == 0 else round(value, 2 - _magnitude(value))


def _magnitude(value: Number) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _known(value: Number | None) -> bool:
    return value is not None and math.isfinite(value)


def _locale() -> Locale:
    language = get_language() or "en"
    try:
        return Locale.parse(language, sep="-")
    except (UnknownLocaleError, ValueError):
        return Locale("en")
