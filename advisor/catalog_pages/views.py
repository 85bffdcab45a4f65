"""Catalog pages: each view checks the address, asks for one page's content, and renders."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from advisor.catalog_pages import charts, server_page
from advisor.catalog_pages.browse import BrowseFilter, conditions_of, results_of
from advisor.catalog_pages.choices import Choices
from advisor.catalog_pages.compare import LEAST, MOST, BadSelection, comparison_of
from advisor.catalog_pages.form_layout import sections_of
from advisor.catalog_pages.history import drawn_of
from advisor.catalog_pages.premium_page import PremiumPage, kept_series
from advisor.charts import NARROW, WIDE, as_svg, kept
from catalog.selectors import current_revision

WIDTHS = {"wide": WIDE, "narrow": NARROW}
CHART_HEADERS = {"Cache-Control": "private, max-age=3600", "Vary": "Cookie, Accept-Language"}


@require_safe
def browse(request: HttpRequest) -> HttpResponse:
    """All state is in the address; fields that were left empty are taken out of it."""
    query = request.GET.copy()
    filled = {name: [one for one in values if one.strip()] for name, values in query.lists()}
    if any(len(filled[name]) < len(values) for name, values in query.lists()):
        for name, values in filled.items():
            query.setlist(name, values)
        return redirect(f"{request.path}?{query.urlencode()}" if any(filled.values()) else request.path)
    found = BrowseFilter(query, Choices.load())
    if not found.form.is_valid():
        context = {"form": found.form, "sections": sections_of(found)}
        return render(request, "advisor/catalog/browse.html", context, status=422)
    context = {
        "form": found.form,
        "sections": sections_of(found),
        "results": results_of(found, query.get("page"), timezone.now().date()),
        "conditions": conditions_of(found, query),
    }
    return render(request, "advisor/catalog/browse.html", context)


@require_safe
def server(request: HttpRequest, provider: str, sku: str) -> HttpResponse:
    found = server_page.server_or_none(provider, sku)
    if found is None:
        raise Http404
    content = server_page.ServerPage.of(found, timezone.now().date())
    return render(request, "advisor/catalog/server.html", {"page": content, "server": found})


@require_safe
def price_chart(request: HttpRequest, provider: str, sku: str, width: str) -> HttpResponse:
    found = server_page.server_or_none(provider, sku)
    if found is None or width not in WIDTHS:
        raise Http404
    lines = drawn_of(server_page.history(found))
    if not lines:
        raise Http404
    key = f"price:{found.pk}:{current_revision()}:{width}"
    return _svg(kept(key, lambda: as_svg(charts.price_history(lines, WIDTHS[width]))))


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    keys = request.GET.getlist("server")
    context: dict[str, object] = {"least": LEAST, "most": MOST, "keys": keys}
    if not keys:
        return render(request, "advisor/catalog/compare.html", context)
    try:
        context["comparison"] = comparison_of(keys)
    except BadSelection as problem:
        return render(request, "advisor/catalog/compare.html", context | {"problem": str(problem)}, status=422)
    return render(request, "advisor/catalog/compare.html", context)


@require_safe
def premium(request: HttpRequest) -> HttpResponse:
    return render(request, "advisor/catalog/premium.html", {"page": PremiumPage.of(kept_series())})


@require_safe
def premium_chart(request: HttpRequest, width: str) -> HttpResponse:
    series = kept_series()
    if width not in WIDTHS or not series:
        raise Http404
    key = f"premium:{current_revision()}:{width}"
    return _svg(kept(key, lambda: as_svg(charts.premium_history(series, WIDTHS[width]))))


def _svg(drawn: bytes) -> HttpResponse:
    return HttpResponse(drawn, content_type="image/svg+xml", headers=CHART_HEADERS)
