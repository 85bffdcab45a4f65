"""What each chart shows, as Altair charts. Altair is imported when a chart is drawn: pages start without it."""

from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from advisor.engine.document import Document
from advisor.figures import duration
from advisor.labels import PARTS, RANK_PARTS, ROLES, name_of
from advisor.parts_table import PartsTable
from advisor.results import Result
from advisor.scaling_tables import servers_of
from catalog.specs import TopologyClass

PART_COLOURS = {
    "compute_s": "#14508f",
    "memory_s": "#56b4e9",
    "copy_s": "#cc79a7",
    "communication_exposed_s": "#d55e00",
    "bubble_s": "#f0c24b",
    "host_s": "#8b93a1",
    "input_s": "#0b6b50",
}
RANK_COLOURS = {
    "compute_us": "#14508f",
    "transfer_us": "#d55e00",
    "waiting_us": "#f0c24b",
    "communication_us": "#e59a6b",
    "copy_us": "#cc79a7",
    "idle_us": "#c3c9d3",
}
ROLE_COLOURS = {"nvlink": "#14508f", "pcie": "#d55e00", "top_offer": "#0b6b50"}
FAMILY_COLOURS = ["#14508f", "#d55e00", "#8b93a1"]
FONT = "system-ui, -apple-system, Segoe UI, Noto Sans, {cjk}, sans-serif"
CJK_FONTS = {"zh-hans": "Noto Sans CJK SC"}
LABELS = 60
"""Width of a common name beside a bar."""
FEW_BARS = 16
_MOST_ON_A_LINEAR_SCALE = 16
INK, QUIET, LINE = "#172033", "#566178", "#d9dfe8"


def breakdown(result: Result, width: int) -> Any:
    """Parts of a step, stacked, one bar per machine."""
    return _stacked(result.parts, width)


def plans(result: Result, width: int, role: str) -> Any:
    """Parts of a step, stacked, one bar for each way of dividing the job that fits on the machine of this role."""
    return _stacked(next(table.parts for table in result.plans if table.role == role), width)


def _stacked(table: PartsTable, width: int) -> Any:
    import altair as alt

    rows, keys = table.rows, table.keys
    longest = max(row.step_s for row in rows)
    unit, title = (1.0, _("seconds per step")) if longest >= 1 else (1000.0, _("milliseconds per step"))
    values = [
        {"where": row.where, "part": str(PARTS[key]), "order": order, "time": unit * (row.parts.get(key) or 0.0)}
        for row in rows
        for order, key in enumerate(keys)
    ]
    totals = [{"where": row.where, "time": unit * row.step_s, "label": duration(row.step_s)} for row in rows]
    scale = alt.Scale(domain=[0, 1.18 * max(total["time"] for total in totals)], nice=False)
    x = alt.X("time:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5, grid=False))
    y = alt.Y("where:N", sort=[row.where for row in rows], title=None, axis=_label_above(alt, width))
    colours = alt.Scale(domain=table.names, range=[PART_COLOURS[key] for key in keys])
    colour = alt.Color("part:N", sort=table.names, scale=colours, legend=legend(alt, width))
    bars = (
        alt.Chart(alt.Data(values=values), width=width, height=alt.Step(46))
        .mark_bar(height={"band": 0.5}, yOffset=8)
        .encode(x=x, y=y, color=colour, order=alt.Order("order:Q"))
    )
    ends = (
        alt.Chart(alt.Data(values=totals))
        .mark_text(align="left", dx=6, dy=8, fontSize=12, color=INK)
        .encode(x=x, y=y, text="label:N")
    )
    return styled(alt.layer(bars, ends))


def ranks(result: Result, width: int) -> Any:
    """Where the time of each captured device goes, one bar per device. Parts that no device has are left out."""
    import altair as alt

    rows = result.captured.bars if result.captured else []
    shown = [key for key in RANK_PARTS if any(row.parts[key] for row in rows)]
    names = [str(RANK_PARTS[key]) for key in shown]
    longest = max(sum(row.parts.values()) for row in rows)
    unit, title = (1.0, _("seconds")) if longest >= 1 else (1000.0, _("milliseconds"))
    values = [
        {"where": row.where, "part": str(RANK_PARTS[key]), "order": order, "time": unit * row.parts[key]}
        for row in rows
        for order, key in enumerate(shown)
    ]
    is_short = len(rows) <= FEW_BARS
    colours = alt.Scale(domain=names, range=[RANK_COLOURS[key] for key in shown])
    chart = (
        alt.Chart(alt.Data(values=values), width=width - LABELS, height=alt.Step(20 if is_short else 13))
        .mark_bar(height={"band": 0.75})
        .encode(
            x=alt.X("time:Q", title=title, axis=alt.Axis(tickCount=5, grid=False)),
            y=alt.Y(
                "where:N", sort=[row.where for row in rows], title=None, axis=_label_beside(alt, 12 if is_short else 10)
            ),
            color=alt.Color("part:N", sort=names, scale=colours, legend=legend(alt, width)),
            order=alt.Order("order:Q"),
        )
    )
    return styled(chart)


def scaling(result: Result, width: int, kind: str) -> Any:
    """Throughput over the number of GPUs, with the 80 % range as a band; open marks need more than one server."""
    import altair as alt

    curves = next(table.curves for table in result.scaling if table.kind == kind)
    values = [_scaling_value(curve, point) for curve in curves for point in curve["points"]]
    colour = alt.Color(
        "curve:N",
        scale=alt.Scale(
            domain=[_curve_name(curve) for curve in curves], range=[ROLE_COLOURS[curve["role"]] for curve in curves]
        ),
        legend=legend(alt, width, columns=1),
    )
    counts = sorted({value["gpus"] for value in values})
    x = alt.X(
        "gpus:Q",
        title=_("GPUs"),
        scale=alt.Scale(type="log", base=2, nice=False),
        axis=alt.Axis(values=counts, format="d", labelOverlap=True),
    )
    rate_scale = alt.Scale(type="log", nice=False) if counts[-1] > _MOST_ON_A_LINEAR_SCALE else alt.Scale(zero=True)
    base = alt.Chart(alt.Data(values=values), width=width, height=260)
    band = base.mark_area(opacity=0.16).encode(
        x=x, y=alt.Y("low:Q", title=_("samples per second"), scale=rate_scale), y2="high:Q", color=colour
    )
    line = base.mark_line(strokeWidth=2.5).encode(x=x, y="rate:Q", color=colour, strokeDash=_dash(alt, curves))
    ends = base.mark_rule(opacity=0.4).encode(x=x, y="low:Q", y2="high:Q", color=colour)
    dots = base.transform_filter("datum.nodes == 1").mark_point(filled=True, size=60, opacity=1)
    rings = base.transform_filter("datum.nodes > 1").mark_point(
        filled=False, size=60, opacity=1, fill="white", strokeWidth=2
    )
    marks = [marks.encode(x=x, y="rate:Q", color=colour) for marks in (dots, rings)]
    return styled(alt.layer(band, ends, line, *marks))


def offers(result: Result, width: int) -> Any:
    """Cost over time to finish for the listed offers: down and left is better. Unbeaten offers carry their rank."""
    import altair as alt

    document = result.document
    ranked = [offer for offer in document["offers"] if offer["rank"] is not None]
    names = [_("NVLink"), _("PCIe"), _("other or one GPU")]
    values = [_offer_value(offer, names) for offer in ranked]
    base = alt.Chart(alt.Data(values=values), width=width, height=280)
    x = alt.X("hours:Q", title=_("hours to finish"), scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6))
    y = alt.Y("cost:Q", title=_("cost to finish (%(currency)s)") % document["goal"], scale=alt.Scale(zero=False))
    points = base.mark_point(filled=True, size=90, opacity=0.9).encode(
        x=x,
        y=y,
        color=alt.Color("link:N", scale=alt.Scale(domain=names, range=FAMILY_COLOURS), legend=legend(alt, width)),
        shape=alt.Shape("link:N", scale=alt.Scale(domain=names, range=["circle", "square", "triangle-up"])),
    )
    text = base.mark_text(dx=9, dy=-6, align="left", fontSize=11, color=INK).encode(x=x, y=y, text="label:N")
    return styled(alt.layer(points, text.transform_filter("datum.label != ''")))


def _scaling_value(curve: Document, point: Document) -> Document:
    samples = point["samples_per_s"] * point["step_s"]
    return {
        "curve": _curve_name(curve),
        "gpus": point["gpus"],
        "nodes": servers_of(point),
        "rate": point["samples_per_s"],
        "low": samples / point["high_s"],
        "high": samples / point["low_s"],
    }


def _offer_value(offer: Document, names: list[str]) -> Document:
    topology = TopologyClass(offer["server"]["topology"])
    link = names[0] if topology.is_nvlink else names[1] if topology.is_pcie else names[2]
    return {
        "hours": offer["time_to_finish_s"] / 3600,
        "cost": float(offer["cost_to_finish"]),
        "link": link,
        "label": "" if offer["dominated"] else str(offer["rank"]),
    }


def _curve_name(curve: Document) -> str:
    return f"{name_of(ROLES, curve['role'])}: {curve['accelerator_name']}"


def _dash(alt: Any, curves: list[Document]) -> Any:
    dashes = {"nvlink": [1, 0], "pcie": [6, 4], "top_offer": [2, 3]}
    scale = alt.Scale(
        domain=[_curve_name(curve) for curve in curves], range=[dashes[curve["role"]] for curve in curves]
    )
    return alt.StrokeDash("curve:N", scale=scale, legend=None)


def _label_above(alt: Any, width: int) -> Any:
    """Names of bars stand above them, so that long ones fit on a narrow screen."""
    return alt.Axis(
        labelAlign="left",
        labelPadding=-4,
        labelOffset=-16,
        labelLimit=width,
        ticks=False,
        domain=False,
        labelFontSize=13 if width > 400 else 12,
    )


def _label_beside(alt: Any, size: int) -> Any:
    return alt.Axis(labelLimit=2 * LABELS, labelFontSize=size, ticks=False, domain=False, labelPadding=6)


def legend(alt: Any, width: int, columns: int | None = None) -> Any:
    """Above the chart, one name a line where it is narrow."""
    return alt.Legend(
        title=None,
        orient="top",
        columns=columns or (1 if width < 400 else 3),
        labelLimit=width,
        symbolSize=90,
        symbolOpacity=1,
        symbolStrokeWidth=0,
        columnPadding=28,
    )


def _font() -> str:
    return FONT.format(cjk=CJK_FONTS.get(get_language(), "Noto Sans CJK TC"))


def styled(chart: Any) -> Any:
    """The look that all charts share."""
    return (
        chart.configure(font=_font(), background="white", padding=8)
        .configure_view(stroke=None)
        .configure_axis(
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            titlePadding=10,
            titleColor=QUIET,
            labelColor=INK,
            gridColor=LINE,
            domainColor=LINE,
            tickColor=LINE,
        )
        .configure_legend(labelFontSize=12, labelColor=INK)
    )
