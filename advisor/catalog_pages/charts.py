"""Charts of the catalog pages. Altair is imported when a chart is drawn: pages start without it."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from advisor.catalog_pages.history import DRAWN, Line, Terms
from advisor.catalog_pages.premium import Kind, Point, Series
from advisor.chart_specs import INK, legend, styled

COLOURS = ["#14508f", "#d55e00", "#0b6b50", "#cc79a7", "#7a5200", "#56b4e9", "#8b93a1", "#f0c24b"]
SHAPES = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "stroke"]


def price_history(lines: Sequence[Line], width: int) -> Any:
    """Price per server-hour over time: level while a source printed it, a mark where it was first seen."""
    import altair as alt

    names = _names([line.terms for line in lines])
    values = [
        {"line": name, "day": day.isoformat(), "price": float(step.price), "is_first": day == step.first}
        for name, line in zip(names, lines, strict=True)
        for step in line.steps
        for day in dict.fromkeys((step.first, step.last))
    ]
    base = alt.Chart(alt.Data(values=values), width=width, height=240)
    x = alt.X("day:T", title=None, axis=_days(alt, width))
    title = _("%(currency)s per server and hour") % {"currency": lines[0].terms.currency}
    y = alt.Y("price:Q", title=title, scale=alt.Scale(zero=True))
    colour, shape = _telling_apart(alt, "line:N", names, width)
    steps = base.mark_line(interpolate="step-after", strokeWidth=2).encode(x=x, y=y, color=colour)
    marks = base.transform_filter("datum.is_first").mark_point(filled=True, size=60, opacity=1)
    return styled(alt.layer(steps, marks.encode(x=x, y=y, color=colour, shape=shape)))


def premium_history(series: Sequence[Series], width: int) -> Any:
    """Premium in % over time: one mark per observation, a line where the same offer was seen again."""
    import altair as alt

    names = [series_name(one) for one in series]
    values = [
        {
            "series": name,
            "offer": "|".join(_same_offer(point)),
            "day": point.seen_on.isoformat(),
            "percent": 100 * point.premium,
        }
        for name, one in zip(names, series, strict=True)
        for point in one.points
    ]
    base = alt.Chart(alt.Data(values=values), width=width, height=300)
    x = alt.X("day:T", title=None, axis=_days(alt, width))
    y = alt.Y("percent:Q", title=_("premium (%)"), scale=alt.Scale(zero=True))
    colour, shape = _telling_apart(alt, "series:N", names, width, columns=1)
    zero = alt.Chart(alt.Data(values=[{"percent": 0}])).mark_rule(color=INK, opacity=0.5).encode(y="percent:Q")
    lines = base.mark_line(strokeWidth=1.5, opacity=0.6).encode(x=x, y=y, color=colour, detail="offer:N")
    marks = base.mark_point(filled=True, size=70, opacity=0.9).encode(x=x, y=y, color=colour, shape=shape)
    return styled(alt.layer(zero, lines, marks))


def series_name(series: Series) -> str:
    """Short enough for a legend on a phone: of the cheaper form only what tells it apart."""
    if series.kind is Kind.LINK:
        return _("%(card)s: bridge over none") % {"card": series.dear.name}
    own = series.dear.name.split()
    rest = " ".join(word for word in series.cheap.name.split() if word not in own)
    return _("%(dear)s over %(cheap)s") % {"dear": series.dear.name, "cheap": rest or series.cheap.name}


def _same_offer(point: Point) -> tuple[str, ...]:
    one = point.dear
    return one.provider, one.tenancy, one.pricing_model, str(one.term_months), one.currency, str(one.gpu_count)


def _names(terms: Sequence[Terms]) -> list[str]:
    """Each line's own words: what all lines share is left out."""
    parts = [(one.region or _("no region"), one.paying, one.tenancy) for one in terms]
    shared = [len({part[place] for part in parts}) == 1 for place in range(3)]
    kept = [[word for word, same in zip(part, shared, strict=True) if word and not same] for part in parts]
    return [
        ", ".join(words) or ", ".join(word for word in part if word) for words, part in zip(kept, parts, strict=True)
    ]


def _telling_apart(alt: Any, field: str, names: list[str], width: int, columns: int | None = None) -> tuple[Any, Any]:
    colours = alt.Scale(domain=names, range=[COLOURS[place % DRAWN] for place in range(len(names))])
    shapes = alt.Scale(domain=names, range=[SHAPES[place % DRAWN] for place in range(len(names))])
    told = legend(alt, width, columns=columns)
    return alt.Color(field, scale=colours, legend=told), alt.Shape(field, scale=shapes, legend=told)


def _days(alt: Any, width: int) -> Any:
    return alt.Axis(format="%Y-%m", tickCount=4 if width < 400 else 8, grid=False, labelOverlap=True)
