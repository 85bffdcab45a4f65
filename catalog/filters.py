"""What lists of the catalog can be filtered by; pages and the REST API share these. A bad value is an error."""

from decimal import Decimal

import django_filters
from django import forms
from django.db.models import BigIntegerField, ExpressionWrapper, F, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from catalog.models import Accelerator, Offer, Provider, Server
from catalog.models.accelerator import ScaleupKind
from catalog.models.fabric import TOPOLOGY_CHOICES
from catalog.models.offer import PRICING_CHOICES, OfferStatus
from catalog.models.server import Deployment, ProviderKind
from catalog.specs import TopologyClass

NVLINK = [str(topology) for topology in TopologyClass if topology.is_nvlink]
GIGA = 10**9
YES_NO = [("true", _("yes")), ("false", _("no"))]
LARGEST_GB = 10**6


class WholeNumberFilter(django_filters.NumberFilter):
    """Whole numbers of a size that every database can compare."""

    field_class = forms.IntegerField

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, min_value=1, max_value=100_000, **kwargs)


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

    class Meta:
        model = Provider
        fields: list[str] = []


def total_memory(path: str) -> ExpressionWrapper:
    """Bytes of all accelerators of the server at ``path``; PostgreSQL needs to be told that this exceeds an int."""
    product = F(f"{path}gpu_count") * F(f"{path}accelerator__memory_bytes")
    return ExpressionWrapper(product, output_field=BigIntegerField())


def _at_server(path: str) -> type[django_filters.FilterSet]:
    """The filters by server; ``path`` leads from the listed row to its server."""

    class ByServer(django_filters.FilterSet):
        vendor = django_filters.CharFilter(f"{path}accelerator__vendor", lookup_expr="iexact", label=_("vendor"))
        accelerator = django_filters.ModelChoiceFilter(
            field_name=f"{path}accelerator", queryset=Accelerator.objects.all(), to_field_name="key"
        )
        provider = django_filters.ModelChoiceFilter(
            field_name=f"{path}provider", queryset=Provider.objects.all(), to_field_name="key"
        )
        topology = django_filters.MultipleChoiceFilter(f"{path}fabric__topology", choices=TOPOLOGY_CHOICES)
        is_nvlink = django_filters.ChoiceFilter(
            choices=YES_NO, method="joined_by_nvlink", label=_("NVLink joins two or more")
        )
        gpu_count = WholeNumberFilter(f"{path}gpu_count", label=_("accelerators"))
        gpu_count_min = WholeNumberFilter(f"{path}gpu_count", lookup_expr="gte", label=_("accelerators, at least"))
        gpu_count_max = WholeNumberFilter(f"{path}gpu_count", lookup_expr="lte", label=_("accelerators, at most"))
        min_total_memory_gb = django_filters.NumberFilter(
            method="at_least_memory",
            min_value=0,
            max_value=LARGEST_GB,
            label=_("memory of all accelerators, at least so many GB (10^9 bytes)"),
        )
        deployment = django_filters.ChoiceFilter(
            field_name=f"{path}deployment", choices=[choice for choice in Deployment.choices if choice[0]]
        )

        def joined_by_nvlink(self, rows: QuerySet, name: str, value: str) -> QuerySet:
            nvlink = Q(**{f"{path}fabric__topology__in": NVLINK})
            return rows.filter(nvlink if value == "true" else ~nvlink)

        def at_least_memory(self, rows: QuerySet, name: str, value: Decimal) -> QuerySet:
            return rows.annotate(total_memory_bytes=total_memory(path)).filter(total_memory_bytes__gte=value * GIGA)

    return ByServer


class ServerFilter(_at_server("")):
    class Meta:
        model = Server
        fields: list[str] = []


class OfferFilter(_at_server("server__")):
    region = django_filters.CharFilter(lookup_expr="iexact", label=_("region, as the provider names it"))
    pricing_model = django_filters.MultipleChoiceFilter(choices=PRICING_CHOICES)
    currency = django_filters.CharFilter(lookup_expr="iexact", label=_("currency"))
    status = django_filters.ChoiceFilter(choices=OfferStatus.choices)
    price_max = django_filters.NumberFilter(
        "price_per_hour",
        lookup_expr="lte",
        min_value=0,
        max_value=10**7,
        label=_("price of the whole server for one hour, at most"),
    )
    observed_after = django_filters.DateFilter("observed_on", lookup_expr="gte", label=_("observed on or after"))

    class Meta:
        model = Offer
        fields: list[str] = []
