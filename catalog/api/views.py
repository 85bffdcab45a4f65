"""The catalog's tables over REST."""

from collections.abc import Mapping, Sequence

from django.db.models import BigIntegerField, CharField, F, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.http import Http404, HttpResponseBase
from rest_framework import status
from rest_framework.exceptions import PermissionDenied
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle
from rest_framework.viewsets import GenericViewSet

from catalog import filters, serializers
from catalog.api import documentation, downloads
from catalog.api.bulk import BulkRows
from catalog.api.etags import etag_of, not_modified
from catalog.api.filters import FabricFilter, RevisionFilter
from catalog.api.listing import StrictFilters, StrictOrdering
from catalog.api.scope import NEEDS_SCOPE, WritingNeedsScope, is_staff
from catalog.api.writing import WritableRows, refuse_parameters
from catalog.models import Accelerator, CatalogRevision, CostLine, Fabric, Offer, Provider, Region, Server
from catalog.models.base import SourcedRow
from catalog.models.offer import OfferStatus


class PagedRows(GenericViewSet):
    """A list in pages."""

    filter_backends = (StrictFilters, StrictOrdering)
    permission_classes = (*api_settings.DEFAULT_PERMISSION_CLASSES, WritingNeedsScope)
    list_name: str
    ordering_fields: tuple[str, ...]
    default_ordering: tuple[str, ...] = ()

    def list(self, request: Request, **kwargs: str) -> HttpResponseBase:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class ListedRows(PagedRows):
    """A list in pages, or as a whole in a file."""

    def list(self, request: Request, **kwargs: str) -> HttpResponseBase:
        file_format = request.accepted_renderer.format
        if file_format not in downloads.FORMATS:
            return super().list(request, **kwargs)
        rows = self.filter_queryset(self.get_queryset())
        return downloads.download(self.list_name, file_format, self, rows)

    def get_renderers(self) -> Sequence[BaseRenderer]:
        files = downloads.FORMATS.values() if self.action == "list" else ()
        return [*super().get_renderers(), *(one() for one in files)]

    def get_throttles(self) -> Sequence[BaseThrottle]:
        asked = self.request.query_params.get("format"), self.request.headers.get("Accept", "")
        is_file = asked[0] in downloads.FORMATS or any(one.media_type in asked[1] for one in downloads.FORMATS.values())
        return downloads.throttles() if self.action == "list" and is_file else super().get_throttles()


class TableRows(BulkRows, WritableRows, ListedRows):
    """One table: its list, each row at its natural key, and changes of both."""

    def retrieve(self, request: Request, **kwargs: str) -> Response:
        refuse_parameters(request)
        row = self._row()
        if row is None:
            raise Http404
        headers = {"ETag": etag_of(row)}
        if not_modified(request, row):
            return Response(status=status.HTTP_304_NOT_MODIFIED, headers=headers)
        return Response(self.get_serializer(row).data, headers=headers)

    def address_of(self, row: SourcedRow) -> str:
        parts = self.table.split(self.table.key_of(row))
        return reverse(f"api-{self.list_name}-one", args=parts, request=self.request)


@documentation.table
class AcceleratorViewSet(TableRows):
    """Accelerator models. Rates are dense (without sparsity), bandwidths in one direction."""

    table_name = list_name = "accelerators"
    queryset = Accelerator.objects.all()
    serializer_class = serializers.AcceleratorSerializer
    filterset_class = filters.AcceleratorFilter
    ordering_fields = ("key", "memory_bytes", "memory_bandwidth_bytes_per_s")


@documentation.table
class ProviderViewSet(TableRows):
    """Who rents servers out."""

    table_name = list_name = "providers"
    queryset = Provider.objects.all()
    serializer_class = serializers.ProviderSerializer
    filterset_class = filters.ProviderFilter
    ordering_fields = ("key", "name")


@documentation.table
class RegionViewSet(TableRows):
    """Where providers have their machines, by the providers' own names; the country where it is certain."""

    table_name = list_name = "regions"
    url_columns = ("provider", "name")
    queryset = Region.objects.select_related("provider")
    serializer_class = serializers.RegionSerializer
    filterset_class = filters.RegionFilter
    ordering_fields = ("name", "country")


@documentation.table
class ServerViewSet(TableRows):
    """Rentable servers with their accelerators and how these are joined. Bandwidths are in one direction.

    Where accelerator is null, the price list does not say which form factor it is; accelerator_printed has its words.
    """

    table_name = list_name = "servers"
    renamed: Mapping[str, str] = {"host_memory_bytes": "memory_bytes"}
    url_columns = ("provider", "sku")
    queryset = Server.objects.select_related("provider", "accelerator", "fabric").annotate(
        total_memory_bytes=Coalesce(filters.total_memory(""), Value(0), output_field=BigIntegerField())
    )
    serializer_class = serializers.ServerSerializer
    filterset_class = filters.ServerFilter
    ordering_fields = ("sku", "gpu_count", "total_memory_bytes")


@documentation.table
class FabricViewSet(TableRows):
    """How the accelerators of a server are joined. Servers show it too; here it is changed."""

    table_name = list_name = "fabrics"
    url_columns = ("server",)
    queryset = Fabric.objects.select_related("server__provider")
    serializer_class = serializers.FabricSerializer
    filterset_class = FabricFilter
    ordering_fields = ("topology",)

    def _named(self) -> dict[str, object]:
        return {"server": self._key()}


@documentation.table
class CostLineViewSet(TableRows):
    """What comes on top of a server's price: storage, traffic, addresses, support, power; and how time is counted."""

    table_name, list_name = "cost_lines", "cost-lines"
    url_columns = ()
    queryset = CostLine.objects.select_related("provider", "server__provider")
    serializer_class = serializers.CostLineSerializer
    filterset_class = filters.CostLineFilter
    ordering_fields = ("kind", "amount", "observed_on")


def _country() -> Coalesce:
    """Of the region that an offer names; empty where the table of regions does not have it."""
    there = Region.objects.filter(provider=OuterRef("server__provider"), name=OuterRef("region"))
    return Coalesce(Subquery(there.values("country")), Value(""), output_field=CharField())


@documentation.table
class OfferViewSet(TableRows):
    """Prices of servers as observed: with region, way of paying, date, source and licence. Money is a string.

    Offers that an import holds back (status quarantined) are shown to keys with the scope catalog:write alone, and
    listed only where the filter status asks for them.
    """

    table_name = list_name = "offers"
    url_columns = ()
    queryset = Offer.objects.select_related("server__provider", "server__accelerator", "server__fabric").annotate(
        gpu_count=F("server__gpu_count"), country=_country()
    )
    serializer_class = serializers.OfferSerializer
    filterset_class = filters.OfferFilter
    ordering_fields = ("price_per_hour", "price_per_gpu_hour", "observed_on", "gpu_count")

    def get_queryset(self) -> QuerySet[Offer]:
        rows = super().get_queryset()
        return rows if self._shows_held_back() else rows.exclude(status=OfferStatus.QUARANTINED)

    def _shows_held_back(self) -> bool:
        if self.action != "list":
            return is_staff(self.request)
        if OfferStatus.QUARANTINED not in self.request.query_params.getlist("status"):
            return False
        if not is_staff(self.request):
            raise PermissionDenied(NEEDS_SCOPE)
        return True


@documentation.listed
class RevisionViewSet(ListedRows):
    """The changes of the catalog as a whole, the newest first. Studies name the number that they were made with."""

    list_name = "revisions"
    queryset = CatalogRevision.objects.all()
    serializer_class = serializers.RevisionSerializer
    filterset_class = RevisionFilter
    ordering_fields = ("number",)
    default_ordering = ("-number",)

    def retrieve(self, request: Request, number: int) -> Response:
        refuse_parameters(request)
        row = self.get_queryset().filter(number=number).first()
        if row is None:
            raise Http404
        return Response(self.get_serializer(row).data)
