"""Pages of a list."""

from base64 import b64decode
from collections.abc import Sequence
from decimal import InvalidOperation
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

if TYPE_CHECKING:
    from rest_framework.views import APIView


class CursorPages(CursorPagination):
    """Cursor pages: stable while rows are added, and as quick on the last page as on the first.

    A cursor or page size that no page could have given is a 400, never ignored.
    """

    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"
    ordering = "pk"

    def paginate_queryset(
        self, queryset: QuerySet, request: Request, view: "APIView | None" = None
    ) -> Sequence[Any] | None:
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValueError, TypeError, OverflowError, InvalidOperation, DjangoValidationError) as error:
            raise self._bad_cursor() from error

    def decode_cursor(self, request: Request) -> Cursor | None:
        try:
            b64decode(request.query_params.get(self.cursor_query_param, ""), validate=True)
            return super().decode_cursor(request)
        except (NotFound, ValueError) as error:
            raise self._bad_cursor() from error

    def get_page_size(self, request: Request) -> int:
        asked = request.query_params.get(self.page_size_query_param, str(self.page_size))
        if not (asked.isdecimal() and asked.isascii() and 1 <= int(asked[:9]) <= self.max_page_size):
            sentence = _("Enter a whole number from 1 to %(most)s.") % {"most": self.max_page_size}
            raise ValidationError({self.page_size_query_param: [sentence]})
        return int(asked)

    def _bad_cursor(self) -> ValidationError:
        sentence = _("This cursor is not one that a page gave; follow the links next and previous.")
        return ValidationError({self.cursor_query_param: [sentence]})


class NewestFirst(CursorPages):
    ordering = ("-created_at", "pk")
