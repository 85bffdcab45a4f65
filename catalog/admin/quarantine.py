"""Prices that are held back because they look wrong: each beside what it is measured against, to release or refuse."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from catalog.admin.import_form import one_line
from catalog.admin.import_report import percent, signed
from catalog.admin.words import sentences
from catalog.changes import ChangesRefused, VersionConflict
from catalog.importers import decisions
from catalog.importers.suspicion import money, translated
from catalog.models import Offer
from catalog.models.offer import OfferStatus
from catalog.specs import PricingModel

ON_A_PAGE = 50
REASON_LENGTH = 100
"""What the history keeps of a reason."""
MOST_SENTENCES = 10
HEAVY = ("import_job__report", "import_job__undo", "import_job__error_detail")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """``before``: live price of the same source and place; ``on_demand``: of the same server, region and tenancy."""

    offer: Offer
    why: str
    before: Decimal | None
    on_demand: Decimal | None

    @property
    def price(self) -> str:
        return money(self.offer.price_per_hour)

    @property
    def price_each(self) -> str:
        return money(self.offer.price_per_gpu_hour)

    @property
    def before_said(self) -> str:
        return "" if self.before is None else money(self.before)

    @property
    def on_demand_said(self) -> str:
        return "" if self.on_demand is None else money(self.on_demand)

    @property
    def change(self) -> str:
        return _against(self.offer.price_per_hour, self.before)

    @property
    def share(self) -> str:
        return _against(self.offer.price_per_hour, self.on_demand)


def view(site: AdminSite) -> Callable[..., HttpResponse]:
    """``?import=ID`` and ``?provider=KEY`` narrow it down."""

    @require_http_methods(["GET", "HEAD", "POST"])
    def held_back(request: HttpRequest) -> HttpResponse:
        if not request.user.has_perm("catalog.view_offer"):
            raise PermissionDenied
        may_decide = request.user.has_perm("catalog.publish_catalog")
        if request.method == "POST":
            if not may_decide:
                raise PermissionDenied
            return _decide(request)
        found = _narrowed(request)
        page = Paginator(found, ON_A_PAGE).get_page(request.GET.get("p"))
        context = {
            **site.each_context(request),
            "title": _("Held-back prices"),
            "page": page,
            "rows": _beside_others(page.object_list),
            "providers": _providers(),
            "provider": one_line(request.GET.get("provider", ""), 40),
            "of_import": _import_id(request),
            "may_decide": may_decide,
            "reason_length": REASON_LENGTH,
        }
        return TemplateResponse(request, "admin/catalog/quarantine/held_back.html", context)

    return held_back


def _narrowed(request: HttpRequest) -> QuerySet[Offer]:
    found = Offer.objects.filter(status=OfferStatus.QUARANTINED)
    if provider := one_line(request.GET.get("provider", ""), 40):
        found = found.filter(server__provider__key=provider)
    if job := _import_id(request):
        found = found.filter(import_job=job)
    related = found.select_related("server__provider", "server__accelerator", "import_job").defer(*HEAVY)
    return related.order_by("server__provider__key", "server__sku", "region", "zone", "pricing_model", "pk")


def _import_id(request: HttpRequest) -> UUID | None:
    try:
        return UUID(request.GET.get("import", ""))
    except ValueError:
        return None


def _providers() -> list[dict[str, Any]]:
    """With held-back prices, and how many; to choose from."""
    held = Offer.objects.filter(status=OfferStatus.QUARANTINED).order_by()
    counted = held.values("server__provider__key", "server__provider__name").annotate(count=Count("pk"))
    return [
        {"key": row["server__provider__key"], "name": row["server__provider__name"], "count": row["count"]}
        for row in counted.order_by("server__provider__name")
    ]


def _beside_others(offers: Iterable[Offer]) -> list[Held]:
    """Each with the live prices that it is measured against; one query for all."""
    held = list(offers)
    live = Offer.objects.filter(
        server__in={offer.server_id for offer in held},
        region__in={offer.region for offer in held},
        status__in=[OfferStatus.LIVE, OfferStatus.STALE],
    )
    before: dict[tuple, Decimal] = {}
    on_demand: dict[tuple, Decimal] = {}
    for offer in live.order_by("observed_on", "pk").defer("printed", "field_sources", "notes"):
        before[_same_offer(offer)] = offer.price_per_hour
        if offer.pricing_model == PricingModel.ON_DEMAND:
            on_demand[_same_server(offer)] = offer.price_per_hour
    return [
        Held(
            offer=offer,
            why=translated(offer.quarantine_reason),
            before=before.get(_same_offer(offer)),
            on_demand=None if offer.pricing_model == PricingModel.ON_DEMAND else on_demand.get(_same_server(offer)),
        )
        for offer in held
    ]


def _same_offer(offer: Offer) -> tuple:
    return (*_same_server(offer), offer.zone, offer.pricing_model, offer.term_months, offer.source)


def _same_server(offer: Offer) -> tuple:
    return offer.server_id, offer.region, offer.tenancy, offer.currency


def _against(price: Decimal, other: Decimal | None) -> str:
    return signed(percent(str(other), str(price))) if other else ""


def _decide(request: HttpRequest) -> HttpResponse:
    """One button decides on the marked prices, one beside each price on that alone."""
    wanted, one = _wanted(request.POST)
    reason = one_line(request.POST.get("reason", ""), REASON_LENGTH)
    pks = one or [value for value in request.POST.getlist("offer") if _is_number(value)]
    if not pks or wanted is None:
        messages.error(request, _("Mark the prices that you decide on, or use the buttons beside one of them."))
    elif not reason:
        messages.error(request, _("Enter a reason: it is kept in the history. Nothing was changed."))
    else:
        _carry_out(request, Offer.objects.filter(pk__in=pks), wanted, reason)
    return HttpResponseRedirect(request.get_full_path())


def _wanted(data: Mapping[str, Any]) -> tuple[str | None, list[str]]:
    for decision in ("release", "refuse"):
        one = data.get(f"{decision}_one", "")
        if _is_number(one):
            return decision, [one]
        if data.get("decision") == decision:
            return decision, []
    return None, []


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def _carry_out(request: HttpRequest, offers: QuerySet[Offer], decision: str, reason: str) -> None:
    found = list(offers.filter(status=OfferStatus.QUARANTINED).select_related("server__provider"))
    act = decisions.release if decision == "release" else decisions.refuse
    try:
        revision = act(found, request.user, reason)
    except ChangesRefused as refusal:
        messages.error(request, _("Nothing was changed. Refuse these prices, or correct them first:"))
        for sentence in sentences(refusal.refused)[:MOST_SENTENCES]:
            messages.error(request, sentence)
        return
    except VersionConflict:
        messages.error(request, _("Somebody else has just decided on one of these prices. Nothing was changed."))
        return
    if revision is None:
        messages.warning(request, _("Somebody else has already decided on these prices."))
        return
    messages.success(request, _done(decision, len(found), revision))


def _done(decision: str, count: int, revision: int) -> str:
    if decision == "release":
        words = ngettext("%(count)s price released.", "%(count)s prices released.", count)
    else:
        words = ngettext("%(count)s price refused.", "%(count)s prices refused.", count)
    return f"{words % {'count': count}} " + _("The catalog is now revision %(number)s.") % {"number": revision}
