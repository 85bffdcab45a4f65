"""The catalog over REST, read only. A filter or an order that does not exist is an error, never ignored."""

from django.db.models import F, QuerySet
from django.shortcuts import get_object_or_404
from django.urls import path
from django.utils.translation import gettext as _
from django_filters.rest_framework import DjangoFilterBackend
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.filters import OrderingFilter
from rest_framework.request import Request
from rest_framework.views import APIView
from rest_framework.viewsets import ReadOnlyModelViewSet

from catalog import filters, serializers
from catalog.models import Accelerator, Offer, Provider, Server

PAGE_PARAMETERS = (
    "page_query_param",
    "page_size_query_param",
    "limit_query_param",
    "offset_query_param",
    "cursor_query_param",
)


class StrictFilters(DjangoFilterBackend):
    """django-filter's backend that also refuses names it does not know."""

    def filter_queryset(self, request: Request, queryset: QuerySet, view: APIView) -> QuerySet:
        known = set(view.filterset_class.base_filters) | {OrderingFilter.ordering_param, "format"}
        known |= {getattr(view.paginator, name, None) for name in PAGE_PARAMETERS}
        unknown = sorted(set(request.query_params) - known)
        if unknown:
            sentence = _("There is no filter of this name. Known are: %(names)s.")
            names = ", ".join(sorted(view.filterset_class.base_filters))
            raise ValidationError({name: [sentence % {"names": names}] for name in unknown})
        return super().filter_queryset(request, queryset, view)


class StrictOrdering(OrderingFilter):
    """Ordering by an allow-list, always with a last word, so that pages never overlap."""

    def get_ordering(self, request: Request, queryset: QuerySet, view: APIView) -> tuple[str, ...]:
        asked = [name.strip() for name in request.query_params.get(self.ordering_param, "").split(",")]
        wanted = [name for name in asked if name]
        unknown = [name for name in wanted if name.removeprefix("-") not in view.ordering_fields]
        if unknown:
            sentence = _("Cannot order by %(names)s. Known are: %(known)s.")
            names = {"names": ", ".join(unknown), "known": ", ".join(view.ordering_fields)}
            raise ValidationError({self.ordering_param: [sentence % names]})
        return (*wanted, "pk")

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, object]]:
        (parameter,) = super().get_schema_operation_parameters(view)
        names = ", ".join(view.ordering_fields)
        described = f"Names joined by commas, each with a minus in front for falling order. Known: {names}."
        return [parameter | {"description": described}]


class CatalogViewSet(ReadOnlyModelViewSet):
    filter_backends = (StrictFilters, StrictOrdering)
    lookup_field = "key"


@extend_schema(tags=["catalog"])
class AcceleratorViewSet(CatalogViewSet):
    """Accelerator models. Rates are dense (without sparsity), bandwidths in one direction."""

    queryset = Accelerator.objects.all()
    serializer_class = serializers.AcceleratorSerializer
    filterset_class = filters.AcceleratorFilter
    ordering_fields = ("key", "memory_bytes", "memory_bandwidth_bytes_per_s")


@extend_schema(tags=["catalog"])
class ProviderViewSet(CatalogViewSet):
    """Who rents servers out."""

    queryset = Provider.objects.all()
    serializer_class = serializers.ProviderSerializer
    filterset_class = filters.ProviderFilter
    ordering_fields = ("key", "name")


@extend_schema(tags=["catalog"])
class ServerViewSet(CatalogViewSet):
    """Rentable servers with their accelerators and how these are joined. Bandwidths are in one direction."""

    queryset = Server.objects.select_related("provider", "accelerator", "fabric").annotate(
        total_memory_bytes=filters.total_memory("")
    )
    serializer_class = serializers.ServerSerializer
    filterset_class = filters.ServerFilter
    ordering_fields = ("sku", "gpu_count", "total_memory_bytes")
    lookup_field = "sku"

    def get_object(self) -> Server:
        names = {"provider__key": self.kwargs["provider"], "sku": self.kwargs["sku"]}
        return get_object_or_404(self.get_queryset(), **names)


@extend_schema(tags=["catalog"])
class OfferViewSet(CatalogViewSet):
    """Prices of servers as observed: with region, way of paying, date, source and licence. Money is a string."""

    queryset = Offer.objects.select_related("server__provider", "server__accelerator", "server__fabric").annotate(
        gpu_count=F("server__gpu_count"),
    )
    serializer_class = serializers.OfferSerializer
    filterset_class = filters.OfferFilter
    ordering_fields = ("price_per_hour", "price_per_gpu_hour", "observed_on", "gpu_count")


def _paths(name: str, view: type[CatalogViewSet], detail: str) -> list:
    return [
        path(f"{name}/", view.as_view({"get": "list"}), name=f"api-{name}"),
        path(f"{name}/{detail}/", view.as_view({"get": "retrieve"}), name=f"api-{name}-one"),
    ]


urlpatterns = [
    *_paths("accelerators", AcceleratorViewSet, "<slug:key>"),
    *_paths("providers", ProviderViewSet, "<slug:key>"),
    *_paths("servers", ServerViewSet, "<slug:provider>/<str:sku>"),
    *_paths("offers", OfferViewSet, "<slug:key>"),
]
