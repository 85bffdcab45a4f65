"""Charts of an answer as SVG: drawn on the server, kept in the cache, without any request to another host."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.core.cache import cache
from django.utils.translation import get_language
from redis.exceptions import RedisError

from advisor import chart_specs
from advisor.labels import ROLES
from advisor.models import Study
from advisor.results import Result
from advisor.scaling_tables import CHART_NAMES

log = logging.getLogger(__name__)

WIDE, NARROW = 660, 290
KEPT_FOR_S = 24 * 3600
_LOOK = "3"

CHARTS: Mapping[str, Callable[[Result, int], Any]] = {
    "breakdown": chart_specs.breakdown,
    **{name: partial(chart_specs.scaling, kind=kind) for kind, name in CHART_NAMES.items()},
    "offers": chart_specs.offers,
    "ranks": chart_specs.ranks,
    **{f"plans-{role}": partial(chart_specs.plans, role=role) for role in ROLES},
}
_NARROW = "-narrow"
NAMES = frozenset(CHARTS) | {name + _NARROW for name in CHARTS}


def has(result: Result, name: str) -> bool:
    """Whether ``name`` is a chart that has something to draw in this result."""
    captured = result.captured
    there = {
        "breakdown": bool(result.parts),
        **{table.chart: True for table in result.scaling},
        "offers": result.has_ranked,
        "ranks": captured is not None and bool(captured.bars),
        **{table.chart: bool(table.parts) for table in result.plans},
    }
    return there.get(name.removesuffix(_NARROW), False)


def cached(study: Study, name: str) -> bytes:
    """The chart ``name`` (one of ``NAMES``) in the active language; drawn now where the cache lacks it or is away."""
    key = f"{study.pk}:{study.engine_version}:{study.catalog_revision}:{name}"
    return kept(key, lambda: draw(Result.of(study), name))


def kept(key: str, draw_now: Callable[[], bytes]) -> bytes:
    """The chart of this key in the active language; drawn now where the cache lacks it or is away."""
    whole = f"chart:{_LOOK}:{key}:{get_language()}"
    try:
        found = cache.get(whole)
    except (RedisError, OSError):
        log.warning("the cache does not answer; charts are drawn on each request")
        return draw_now()
    if found is None:
        found = draw_now()
        cache.set(whole, found, KEPT_FOR_S)
    return found


def draw(result: Result, name: str) -> bytes:
    """One chart of a result as SVG."""
    return as_svg(CHARTS[name.removesuffix(_NARROW)](result, NARROW if name.endswith(_NARROW) else WIDE))


def as_svg(chart: Any) -> bytes:
    """An Altair chart as SVG."""
    import altair
    import vl_convert

    # an empty list of allowed hosts: drawing never leaves this machine
    return vl_convert.vegalite_to_svg(
        chart.to_dict(), vl_version=altair.SCHEMA_VERSION.rpartition(".")[0], allowed_base_urls=[]
    ).encode()
