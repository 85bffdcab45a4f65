"""What lists of the catalog can be filtered by; pages and the REST API share these. A bad value is an error.

Money is compared within one currency only. Bandwidths are GB/s (10^9 bytes) in one direction.
"""

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal

import django_filters
from django import forms
from django.core.validators import RegexValidator
from django.db.models import BigIntegerField, Case, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet, When
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django_filters.fields import MultipleChoiceField

from catalog.countries import EEA, countries_of
from catalog.models import Accelerator, CostLine, Offer, Provider, Region, Server
from catalog.models.accelerator import ScaleupKind
from catalog.models.cost_line import CostKind
from catalog.models.fabric import TOPOLOGY_CHOICES
from catalog.models.offer import PRICING_CHOICES, OfferStatus, Tenancy
from catalog.models.server import Deployment, Hire, ProviderKind
from catalog.specs import TopologyClass

NVLINK = [str(topology) for topology in TopologyClass if topology.is_nvlink]
PCIE = [str(topology) for topology in TopologyClass if topology.is_pcie]
GIGA = 10**9
YES_NO = [("true", _("yes")), ("false", _("no"))]
YES_NO_UNKNOWN = [*YES_NO, ("unknown", _("not known"))]
LARGEST_GB = 10**6
LARGEST_PRICE = 10**7
LONGEST_TERM = 120
USUAL_CURRENCY = "USD"
"""What a price limit counts in where no currency is named."""


class WholeNumberFilter(django_filters.NumberFilter):
    """Whole numbers of a size that every database can compare."""

    field_class = forms.IntegerField

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **({"min_value": 1, "max_value": 100_000} | kwargs))


class AnyOfFilter(django_filters.MultipleChoiceFilter):
    """One of the values named; no DISTINCT, for no filter here follows a link to many rows."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, distinct=False, **kwargs)


class DayFilter(django_filters.DateFilter):
    """Days as 2026-07-20 alone: 01/02/2026 is January or February, as one reads it."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, input_formats=["%Y-%m-%d"], **kwargs)


class CountryField(MultipleChoiceField):
    """Any well-formed code: that nothing is rented in a country is an answer, not a mistake."""

    default_error_messages = {"invalid_choice": _("Enter two capital letters, as in DE (ISO 3166-1), or EEA.")}

    def valid_value(self, value: object) -> bool:
        return value == EEA or re.fullmatch(r"[A-Z]{2}", str(value)) is not None


class CountryFilter(AnyOfFilter):
    field_class = CountryField


def _keys(model: type[Accelerator | Provider]) -> Callable[[], list[tuple[str, str]]]:
    return lambda: list(model.objects.order_by("key").values_list("key", "name"))


class AcceleratorFilter(django_filters.FilterSet):
    vendor = django_filters.CharFilter(lookup_expr="iexact", label=_("vendor"))
    architecture = django_filters.CharFilter(lookup_expr="istartswith", label=_("architecture, by its beginning"))
    form_factor = django_filters.CharFilter(lookup_expr="iexact", label=_("form factor"))
    scaleup_kind = django_filters.ChoiceFilter(choices=ScaleupKind.choices)
    min_memory_gb = django_filters.NumberFilter(
        method="at_least_memory",
        min_value=0,
        max_value=LARGEST_GB,
        label=_("device memory of at least so many GB (10^9 bytes)"),
    )

    class Meta:
        model = Accelerator
        fields: list[str] = []

    def at_least_memory(self, rows: QuerySet, name: str, value: Decimal) -> QuerySet:
        return rows.filter(memory_bytes__gte=value * GIGA)


class ProviderFilter(django_filters.FilterSet):
    kind = django_filters.ChoiceFilter(choices=ProviderKind.choices)
    country = CountryFilter(method="with_seat_in", label=_("country of the company's seat, or EEA"))

    class Meta:
        model = Provider
        fields: list[str] = []

    def with_seat_in(self, rows: QuerySet, name: str, value: list[str]) -> QuerySet:
        return rows.filter(country__in=countries_of(value))


class RegionFilter(django_filters.FilterSet):
    provider = AnyOfFilter("provider__key", choices=_keys(Provider), label=_("provider"))
    country = CountryFilter(method="in_countries", label=_("country, or EEA"))

    class Meta:
        model = Region
        fields: list[str] = []

    def in_countries(self, rows: QuerySet, name: str, value: list[str]) -> QuerySet:
        return rows.filter(country__in=countries_of(value))


class CostLineFilter(django_filters.FilterSet):
    provider = AnyOfFilter("provider__key", choices=_keys(Provider), label=_("provider"))
    server = django_filters.CharFilter(method="of_server", label=_("one server, as provider/SKU"))
    region = django_filters.CharFilter(lookup_expr="iexact", label=_("region, as the provider names it"))
    kind = AnyOfFilter(choices=CostKind.choices, label=_("what for"))

    class Meta:
        model = CostLine
        fields: list[str] = []

    def of_server(self, rows: QuerySet, name: str, value: str) -> QuerySet:
        """What is paid for this server: its own lines and those of all servers of its provider."""
        provider, _slash, sku = value.partition("/")
        return rows.filter(Q(server__isnull=True) | Q(server__sku=sku), provider__key=provider)


def total_memory(path: str) -> ExpressionWrapper:
    """Bytes of all accelerators of the server at ``path``; PostgreSQL needs to be told that this exceeds an int."""
    product = F(f"{path}gpu_count") * F(f"{path}accelerator__memory_bytes")
    return ExpressionWrapper(product, output_field=BigIntegerField())


def pair_bandwidth(path: str) -> Coalesce:
    """Bytes/s between one pair of accelerators of the server at ``path``; over PCIe at most its host link."""
    over_pcie = When(**{f"{path}fabric__topology__in": PCIE}, then=F(f"{path}fabric__pcie_bandwidth_bytes_per_s"))
    return Coalesce(F(f"{path}fabric__peer_bandwidth_bytes_per_s"), Case(over_pcie))


def buyable_offers(on: date) -> QuerySet[Offer]:
    """Offers that can be bought on a day: live, and not ended."""
    return Offer.objects.filter(Q(valid_to__isnull=True) | Q(valid_to__gte=on), status=OfferStatus.LIVE)


def _at_server(path: str) -> type[django_filters.FilterSet]:
    """The filters by server; ``path`` leads from the listed row to its server."""

    class ByServer(django_filters.FilterSet):
        vendor = django_filters.CharFilter(f"{path}accelerator__vendor", lookup_expr="iexact", label=_("vendor"))
        accelerator = AnyOfFilter(f"{path}accelerator__key", choices=_keys(Accelerator), label=_("accelerator"))
        form_factor_known = django_filters.ChoiceFilter(
            choices=YES_NO, method="with_form_factor", label=_("form factor known")
        )
        provider = AnyOfFilter(f"{path}provider__key", choices=_keys(Provider), label=_("provider"))
        provider_kind = AnyOfFilter(f"{path}provider__kind", choices=ProviderKind.choices, label=_("kind of provider"))
        topology = AnyOfFilter(choices=TOPOLOGY_CHOICES, method="of_topologies", label=_("topology"))
        is_nvlink = django_filters.ChoiceFilter(
            choices=YES_NO, method="joined_by_nvlink", label=_("NVLink joins two or more")
        )
        min_peer_bandwidth_gb_per_s = django_filters.NumberFilter(
            method="at_least_between_a_pair",
            min_value=0,
            max_value=LARGEST_GB,
            label=_("GB/s between one pair in one direction, at least; over PCIe the host link counts"),
        )
        rdma = django_filters.ChoiceFilter(choices=YES_NO_UNKNOWN, method="with_rdma", label=_("RDMA between servers"))
        gpu_count = WholeNumberFilter(f"{path}gpu_count", label=_("accelerators"))
        gpu_count_min = WholeNumberFilter(f"{path}gpu_count", lookup_expr="gte", label=_("accelerators, at least"))
        gpu_count_max = WholeNumberFilter(f"{path}gpu_count", lookup_expr="lte", label=_("accelerators, at most"))
        min_memory_gb = django_filters.NumberFilter(
            method="at_least_each",
            min_value=0,
            max_value=LARGEST_GB,
            label=_("memory of one accelerator, at least so many GB (10^9 bytes)"),
        )
        min_total_memory_gb = django_filters.NumberFilter(
            method="at_least_memory",
            min_value=0,
            max_value=LARGEST_GB,
            label=_("memory of all accelerators, at least so many GB (10^9 bytes)"),
        )
        deployment = AnyOfFilter(
            f"{path}deployment", choices=[choice for choice in Deployment.choices if choice[0]], label=_("deployment")
        )
        hire = django_filters.ChoiceFilter(f"{path}hire", choices=Hire.choices, label=_("hire"))

        def with_form_factor(self, rows: QuerySet, name: str, value: str) -> QuerySet:
            return rows.filter(**{f"{path}accelerator__isnull": value == "false"})

        def of_topologies(self, rows: QuerySet, name: str, value: list[str]) -> QuerySet:
            wanted = Q(**{f"{path}fabric__topology__in": value})
            if TopologyClass.UNKNOWN in value:
                wanted |= Q(**{f"{path}fabric__isnull": True})
            return rows.filter(wanted)

        def joined_by_nvlink(self, rows: QuerySet, name: str, value: str) -> QuerySet:
            nvlink = Q(**{f"{path}fabric__topology__in": NVLINK})
            return rows.filter(nvlink if value == "true" else ~nvlink)

        def at_least_between_a_pair(self, rows: QuerySet, name: str, value: Decimal) -> QuerySet:
            return rows.annotate(pair_bytes_per_s=pair_bandwidth(path)).filter(pair_bytes_per_s__gte=float(value) * 1e9)

        def with_rdma(self, rows: QuerySet, name: str, value: str) -> QuerySet:
            if value == "unknown":
                return rows.filter(**{f"{path}fabric__rdma__isnull": True})
            return rows.filter(**{f"{path}fabric__rdma": value == "true"})

        def at_least_each(self, rows: QuerySet, name: str, value: Decimal) -> QuerySet:
            return rows.filter(**{f"{path}accelerator__memory_bytes__gte": value * GIGA})

        def at_least_memory(self, rows: QuerySet, name: str, value: Decimal) -> QuerySet:
            return rows.annotate(total_memory_bytes=total_memory(path)).filter(total_memory_bytes__gte=value * GIGA)

    return ByServer


class OfferTerms(django_filters.FilterSet):
    """The filters by what is offered: where, how one pays, and for how much."""

    region = django_filters.CharFilter(lookup_expr="iexact", label=_("region, as the provider names it"))
    country = CountryFilter(method="in_countries", label=_("country of the region, or EEA"))
    pricing_model = AnyOfFilter(
        choices=[(str(word), title) for word, title in PRICING_CHOICES], label=_("way of paying")
    )
    term_months = WholeNumberFilter(min_value=0, max_value=LONGEST_TERM, label=_("term in months, 0 for none"))
    tenancy = AnyOfFilter(choices=Tenancy.choices, label=_("tenancy"))
    currency = django_filters.CharFilter(
        method="in_currency",
        validators=[RegexValidator(r"^[A-Za-z]{3}$", _("Enter three letters, as in USD (ISO 4217)."))],
        label=_("currency"),
    )
    price_max = django_filters.NumberFilter(
        "price_per_hour",
        method="at_most",
        min_value=0,
        max_value=LARGEST_PRICE,
        label=_("price of the whole server for one hour, at most; in USD unless a currency is named"),
    )
    price_per_gpu_hour_max = django_filters.NumberFilter(
        "price_per_gpu_hour",
        method="at_most",
        min_value=0,
        max_value=LARGEST_PRICE,
        label=_("price of one accelerator for one hour, at most; in USD unless a currency is named"),
    )

    def in_countries(self, rows: QuerySet, name: str, value: list[str]) -> QuerySet:
        """Offers name a region in the provider's own words; which country that is stands in the table of regions."""
        there = Region.objects.filter(country__in=countries_of(value))
        own = there.filter(provider=OuterRef("server__provider"), name=OuterRef("region"))
        # the first condition follows from the second, and spares most offers that look-up
        return rows.filter(Exists(own), region__in=there.values("name"))

    def in_currency(self, rows: QuerySet, name: str, value: str) -> QuerySet:
        return rows.filter(currency=value.upper())

    def at_most(self, rows: QuerySet, name: str, value: Decimal) -> QuerySet:
        currency = self.form.cleaned_data.get("currency") or USUAL_CURRENCY
        return rows.filter(currency=currency.upper(), **{f"{name}__lte": value})


TERMS = tuple(OfferTerms.base_filters)


class ServerFilter(_at_server(""), OfferTerms):
    """Servers; a condition on offers holds where one offer that can be bought meets all such conditions at once."""

    class Meta:
        model = Server
        fields: list[str] = []

    @property
    def offers(self) -> QuerySet[Offer]:
        """What can be bought today under the conditions on offers."""
        rows = buyable_offers(timezone.now().date())
        for name in self.terms:
            rows = self.filters[name].filter(rows, self.form.cleaned_data[name])
        return rows

    def filter_queryset(self, queryset: QuerySet) -> QuerySet:
        for name, value in self.form.cleaned_data.items():
            if name not in TERMS:
                queryset = self.filters[name].filter(queryset, value)
        return queryset.filter(Exists(self.offers.filter(server=OuterRef("pk")))) if self.asks_for_offers else queryset

    @property
    def asks_for_offers(self) -> bool:
        return any(self.form.cleaned_data[name] not in (None, "", []) for name in self.terms)

    @property
    def terms(self) -> list[str]:
        """Filters by offer that this list has."""
        return [name for name in TERMS if name in self.filters]


class OfferFilter(_at_server("server__"), OfferTerms):
    status = AnyOfFilter(choices=OfferStatus.choices, label=_("status"))
    observed_after = DayFilter("observed_on", lookup_expr="gte", label=_("observed on or after"))
    seen_after = DayFilter("last_seen_on", lookup_expr="gte", label=_("still seen on or after"))

    class Meta:
        model = Offer
        fields: list[str] = []
