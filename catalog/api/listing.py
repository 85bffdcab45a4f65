"""Lists: filters, orders and formats that do not exist are an error, never ignored."""

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import ValidationError
from rest_framework.filters import OrderingFilter
from rest_framework.request import Request
from rest_framework.views import APIView

from catalog.api.values import shown_name

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
            raise ValidationError({shown_name(name): [sentence % {"names": names}] for name in unknown})
        return super().filter_queryset(request, queryset, view)


class StrictOrdering(OrderingFilter):
    """Ordering by an allow-list, always with a last word, so that pages never overlap.

    That word turns with the first one: one index then serves both directions.
    """

    def get_ordering(self, request: Request, queryset: QuerySet, view: APIView) -> tuple[str, ...]:
        asked = [name.strip() for name in request.query_params.get(self.ordering_param, "").split(",")]
        wanted = [name for name in asked if name]
        unknown = [name for name in wanted if name.removeprefix("-") not in view.ordering_fields]
        if unknown:
            sentence = _("Cannot order by %(names)s. Known are: %(known)s.")
            names = {"names": shown_name(", ".join(unknown)), "known": ", ".join(view.ordering_fields)}
            raise ValidationError({self.ordering_param: [sentence % names]})
        names = wanted or list(view.default_ordering)
        return (*names, "-pk" if names and names[0].startswith("-") else "pk")

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, object]]:
        (parameter,) = super().get_schema_operation_parameters(view)
        names = ", ".join(view.ordering_fields)
        described = f"Names joined by commas, each with a minus in front for falling order. Known: {names}."
        return [parameter | {"description": described}]
