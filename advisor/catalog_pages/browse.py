"""Which servers a buyer sees: the filters of the page, the order, and one page of results.

Prices are of one currency at a time. Queries, whatever the catalog's size: three for the choices, then the matching
servers in order, those of the page, and their cheapest offers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import django_filters
from django import forms
from django.core.paginator import Page, Paginator
from django.db.models import Case, F, Max, Min, OuterRef, QuerySet, Subquery, When
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from advisor.catalog_pages.ages import age_words
from advisor.catalog_pages.choices import Choices, topology_groups
from advisor.catalog_pages.facts import confidence_name, least_sure
from advisor.catalog_pages.links import link_words, pair_column, pair_words
from advisor.catalog_pages.sources import Note, Notes
from catalog.filters import USUAL_CURRENCY, ServerFilter, pair_bandwidth, total_memory
from catalog.models import Fabric, Offer, Server
from catalog.models.server import ProviderKind

PAGE_SIZE = 25
SORTS = (
    ("price_per_gpu_hour", _("price per GPU-hour")),
    ("price_per_hour", _("price per server-hour")),
    ("memory", _("most memory in all")),
    ("bandwidth", _("most bandwidth between a pair")),
    ("age", _("newest price")),
    ("name", _("name")),
)


class BrowseFilter(ServerFilter):
    """The filters as a form of the page. What is chosen from is loaded once, for checking and for showing."""

    sort = django_filters.ChoiceFilter(choices=SORTS, method="left_to_the_query", label=_("Order"))

    def __init__(self, data: QueryDict, choices: Choices) -> None:
        super().__init__(data, queryset=Server.objects.all())
        for name in LEFT_OUT:
            del self.filters[name]
        for name, one in self.filters.items():
            if isinstance(one, django_filters.ChoiceFilter) and name not in CHECKBOXES:
                one.extra["empty_label"] = None if name == "sort" else _("any")
        self._fit_fields(choices)

    def _fit_fields(self, choices: Choices) -> None:
        fields = self.form.fields
        fields["accelerator"].choices = choices.accelerators
        fields["provider"].choices = choices.providers
        fields["country"].choices = choices.countries
        fields["topology"].choices = topology_groups()
        for name in CHECKBOXES:
            fields[name].widget = forms.CheckboxSelectMultiple(choices=fields[name].choices)
        fields["vendor"].widget = forms.Select(choices=[("", _("any")), *((one, one) for one in choices.vendors)])
        fields["currency"].widget.attrs |= {"maxlength": 3, "placeholder": USUAL_CURRENCY}
        for field in fields.values():
            field.label = capfirst(field.label)
            if isinstance(field, forms.IntegerField | forms.DecimalField):
                # a number input forgets what is no number, before anybody can say what is wrong with it
                field.widget = forms.TextInput(attrs={"inputmode": "decimal"})

    def left_to_the_query(self, rows: QuerySet, name: str, value: str) -> QuerySet:
        return rows

    def filter_queryset(self, queryset: QuerySet) -> QuerySet:
        """Reference designs, which nobody rents out, come only where they are asked for."""
        asked = self.form.cleaned_data
        if not (asked["provider_kind"] or asked["provider"]):
            queryset = queryset.exclude(provider__kind=ProviderKind.REFERENCE)
        return super().filter_queryset(queryset)

    @cached_property
    def price_currency(self) -> str:
        return (self.form.cleaned_data.get("currency") or USUAL_CURRENCY).upper()

    @property
    def sort_key(self) -> str:
        return self.form.cleaned_data.get("sort") or SORTS[0][0]

    @property
    def asks_for_offers(self) -> bool:
        """False: what is asked of offers is left to the query for their prices, which answers both at once."""
        return False

    @property
    def needs_offer(self) -> bool:
        """Whether a server without an offer is left out; a currency alone leaves it in, without a price."""
        asked = (name for name in self.terms if name != "currency")
        return any(self.form.cleaned_data[name] not in (None, "", []) for name in asked)

    @property
    def priced_offers(self) -> QuerySet[Offer]:
        return self.offers.filter(currency=self.price_currency)


LEFT_OUT = ("gpu_count", "tenancy")
"""For callers of the API; the page has a range, and shows tenancy beside each offer."""
CHECKBOXES = ("accelerator", "topology", "provider", "provider_kind", "country", "pricing_model", "deployment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One server of the list with its cheapest offer, and where that price and the rate of a pair come from."""

    server: Server
    name: str
    links: str
    pair: str
    pair_note: Note | None
    confidence: str
    offer: Offer | None
    age: str
    note: Note | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A page of servers in order, and the number of all that match."""

    page: Page
    listings: tuple[Listing, ...]
    notes: Notes
    currency: str

    @property
    def count(self) -> int:
        return self.page.paginator.count


def results_of(browse: BrowseFilter, page_number: str | None, today: date) -> Results:
    """What matches a valid form. Three queries."""
    page = Paginator(_matching(browse), PAGE_SIZE).get_page(page_number)
    prices = dict(page.object_list)
    servers = Server.objects.select_related("provider", "accelerator", "fabric").in_bulk(list(prices))
    cheapest = _cheapest(browse.priced_offers, prices)
    notes = Notes()
    listings = tuple(_listing(servers[pk], cheapest.get(pk), today, notes) for pk in prices if pk in servers)
    return Results(page=page, listings=listings, notes=notes, currency=browse.price_currency)


def _matching(browse: BrowseFilter) -> list[tuple[int, object]]:
    """(server, least price per accelerator and hour) of all that match, in the order asked for."""
    own = browse.priced_offers.filter(server=OuterRef("pk")).order_by().values("server")
    least = Subquery(own.annotate(least=Min("price_per_gpu_hour")).values("least"))
    rows = browse.qs.annotate(least=least).order_by(*_ordering(browse.sort_key), "provider__key", "sku")
    if browse.sort_key == "age":
        cheapest = own.filter(price_per_gpu_hour=OuterRef("least"))
        rows = rows.annotate(seen=Subquery(cheapest.annotate(seen=Max("last_seen_on")).values("seen")))
    found = rows.values_list("pk", "least")
    return [row for row in found if row[1] is not None] if browse.needs_offer else list(found)


def _ordering(sort: str) -> tuple[object, ...]:
    by_price = F("least").asc(nulls_last=True)
    unknown_last = Case(When(accelerator=None, then=1), default=0)
    return {
        "price_per_gpu_hour": (unknown_last, by_price),
        "price_per_hour": ((F("least") * F("gpu_count")).asc(nulls_last=True),),
        "memory": (total_memory("").desc(nulls_last=True), by_price),
        "bandwidth": (pair_bandwidth("").desc(nulls_last=True), by_price),
        "age": (F("seen").desc(nulls_last=True), by_price),
        "name": (),
    }[sort]


def _cheapest(offers: QuerySet[Offer], prices: Mapping[int, object]) -> dict[int, Offer]:
    """The offer at the least price of each server, the newest where several ask it."""
    asked = {price for price in prices.values() if price is not None}
    near = offers.filter(server__in=list(prices), price_per_gpu_hour__in=asked).defer("printed", "notes")
    newest_last = near.order_by("last_seen_on", "pk")
    return {one.server_id: one for one in newest_last if one.price_per_gpu_hour == prices[one.server_id]}


def _listing(server: Server, offer: Offer | None, today: date, notes: Notes) -> Listing:
    fabric: Fabric | None = getattr(server, "fabric", None)
    return Listing(
        server=server,
        name=server.accelerator.name if server.accelerator else server.accelerator_printed,
        links=link_words(fabric),
        pair=pair_words(fabric),
        pair_note=notes.of_value(fabric, column).note if fabric and (column := pair_column(fabric)) else None,
        confidence=confidence_name(least_sure(server.confidence, fabric.confidence if fabric else server.confidence)),
        offer=offer,
        age=age_words(offer.last_seen_on, today) if offer else "",
        note=notes.of(offer.source, offer.source_licence, offer.source_url) if offer else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One filter that is in force, and the address of the same page without it."""

    label: str
    value: str
    without: str


def conditions_of(browse: BrowseFilter, query: QueryDict) -> tuple[Condition, ...]:
    """What narrows the list, in the order of the form; a currency alone and the order do not."""
    data = browse.form.cleaned_data if browse.form.is_valid() else {}
    named = (name for name in browse.form.fields if name not in ("sort", "currency"))
    return tuple(
        Condition(label=str(browse.form[name].label), value=_words(browse.form.fields[name], data[name]), without=url)
        for name in named
        if data.get(name) not in (None, "", [])
        for url in [_without(query, name)]
    )


def _words(field: forms.Field, value: object) -> str:
    names = dict(_flat(getattr(field, "choices", ())))
    values = value if isinstance(value, list) else [value]
    return ", ".join(str(names.get(one, one)) for one in values)


def _flat(choices: Iterable) -> Iterable[tuple[object, object]]:
    for value, name in choices:
        if isinstance(name, list | tuple):
            yield from name
        else:
            yield value, name


def _without(query: QueryDict, name: str) -> str:
    rest: MultiValueDict = query.copy()
    for gone in (name, "page"):
        rest.pop(gone, None)
    return f"?{rest.urlencode()}"
