"""What is wrong with a typed price, in a sentence that says what is right."""

from datetime import date, timedelta
from decimal import Decimal

from django.utils.translation import gettext as _

from catalog import facts


def range_problem(price: Decimal, currency: str, gpus: int) -> str | None:
    """A price of a whole server for one hour that no list prints, in any currency whose rough rate is known."""
    rate = facts.PER_USD.get(currency)
    if rate is None:
        return None
    slack = 1 if currency == "USD" else facts.RATE_SLACK
    low, high = (bound * Decimal(str(rate)) for bound in facts.USD_PER_GPU_HOUR)
    if low / slack * gpus <= price <= high * slack * gpus:
        return None
    return _(
        "%(each)s %(currency)s per accelerator and hour is outside %(low)s to %(high)s. "
        "Enter the price of the whole server (%(gpus)s accelerators) for one hour, and check the currency."
    ) % {"each": f"{price / gpus:.4f}", "currency": currency, "low": f"{low:.4g}", "high": f"{high:.5g}", "gpus": gpus}


def on_demand_problem(price: Decimal, pricing_model: str, gpus: int, on_demand: Decimal) -> str | None:
    """``on_demand``: what the same server costs on demand, in the same region and currency."""
    if pricing_model == "spot" and price > on_demand:
        return _("A spot price above the on-demand price (%(price)s) cannot be right.") % {"price": on_demand}
    if gpus > 1 and abs(price * gpus / on_demand - 1) < Decimal("0.03"):
        return _(
            "This looks like the price of one accelerator: the on-demand price of the server is %(price)s, "
            "%(gpus)s times as much."
        ) % {"price": on_demand, "gpus": gpus}
    if gpus > 1 and abs(price / gpus / on_demand - 1) < Decimal("0.03"):
        return _("This looks multiplied twice: the on-demand price of the whole server is %(price)s.") % {
            "price": on_demand
        }
    return None


def currency_problem(currency: str) -> str | None:
    """What is wrong with a currency's code, or None. Empty is another check's business."""
    code = currency.strip().upper()
    if not code or currency in facts.CURRENCIES:
        return None
    right = facts.NOT_CURRENCIES.get(code) or (code if code in facts.CURRENCIES else None)
    if right:
        return _("Write %(right)s: currencies are named by the three capital letters of ISO 4217.") % {"right": right}
    return _("%(typed)s is no currency of ISO 4217. Examples: USD, EUR, TWD, CNY, JPY.") % {"typed": currency[:10]}


def date_problem(observed_on: date, today: date) -> str | None:
    """What is wrong with a price's date, or None. Somewhere it is already the day after ``today`` (UTC)."""
    if observed_on <= today + timedelta(days=1):
        return None
    return _("%(typed)s has not come yet. Enter the day on which the price was seen.") % {"typed": observed_on}


def release_problem(before: str, after: str) -> str | None:
    """Why a price that is held back cannot simply be given another status, or None. Both are kinds of OfferStatus."""
    if before != "quarantined" or after == before:
        return None
    return _("Release or refuse this price on the page of held-back prices: that also ends the price it replaces.")
