"""Figures in templates: humanised text, full precision in the element's value and title."""

import re
from datetime import date
from functools import partial

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from advisor import figures, labels
from advisor.bottleneck_view import gain
from advisor.figures import Number
from profiling.bottleneck_messages import RESOURCES

register = template.Library()

_ADDRESS = re.compile(r"(https?://[^\s;,)]+)")

register.filter("number", figures.number)
register.filter("percent", figures.percent)
register.filter("premium", figures.premium)
register.filter("factor", figures.factor)
register.filter("size", figures.size)
register.filter("gigabytes_per_s", figures.gigabytes_per_s)
register.filter("tera", figures.tera)
register.filter("gain", gain)

for _name, _names in {
    "topology_name": labels.TOPOLOGIES,
    "pricing_name": labels.PRICING,
    "objective_name": labels.OBJECTIVES,
    "evidence_name": labels.EVIDENCE,
    "resource_name": RESOURCES,
    "mode_name": labels.MODES,
    "fit_name": labels.FITS,
    "outcome_name": labels.OUTCOMES,
    "basis_name": labels.PRICE_BASES,
}.items():
    register.filter(_name, partial(labels.name_of, _names))


@register.filter
def linked(source: str) -> SafeString:
    """A source as it stands, its addresses as links."""
    pieces = [
        (format_html('<a href="{}" rel="nofollow noopener">{}</a>', piece, piece) if place % 2 else piece,)
        for place, piece in enumerate(_ADDRESS.split(source))
    ]
    return format_html_join("", "{}", pieces)


@register.filter
def day(iso: str) -> date | None:
    """An ISO date of a document, to be formatted as the language does."""
    return date.fromisoformat(iso) if iso else None


@register.simple_tag
def seen(iso: str | None, precision: str | None) -> str:
    """A date no more exact than it is known; an answer that does not say how exact knows the day."""
    if not iso:
        return figures.unknown()
    return iso[:4] if precision == "year" else iso


@register.simple_tag
def duration(seconds: Number | None) -> SafeString:
    return _figure(seconds, figures.duration(seconds), "s")


@register.simple_tag
def microseconds(count: Number | None) -> SafeString:
    """A duration that the document has in microseconds."""
    return _figure(count, figures.duration(None if count is None else count / 1e6), "µs")


@register.simple_tag
def microseconds_range(low: Number | None, high: Number | None) -> str:
    """Two durations that the document has in microseconds."""
    if low is None or high is None:
        return figures.unknown()
    return figures.duration_range(low / 1e6, high / 1e6)


@register.simple_tag
def duration_range(low: Number | None, high: Number | None) -> str:
    return figures.duration_range(low, high)


@register.simple_tag
def money(amount: Number | str | None, currency: str) -> SafeString:
    return _figure(amount, figures.money(amount, currency), currency)


@register.simple_tag
def money_range(low: str | None, high: str | None, currency: str) -> str:
    return figures.money_range(low, high, currency)


def _figure(value: Number | str | None, shown: str, unit: str) -> SafeString:
    if value is None:
        return format_html('<span class="unknown">{}</span>', shown)
    return format_html('<data value="{}" title="{} {}">{}</data>', value, value, unit, shown)
