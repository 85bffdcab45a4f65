"""Pages of a list."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import InvalidOperation
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import Model, Q, QuerySet
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

if TYPE_CHECKING:
    from rest_framework.views import APIView

Value = str | int | float


@dataclass(frozen=True, slots=True)
class _Place:
    """Beside which row a page lies: the row's values in the order of the list; ``back``: the page ends before it."""

    values: tuple[Value, ...]
    back: bool

    def encode(self) -> str:
        return urlsafe_b64encode(json.dumps([self.back, *self.values], default=str).encode()).decode()

    @classmethod
    def decode(cls, text: str) -> "_Place":
        """Raises ValueError for what ``encode`` cannot have made."""
        back, *values = json.loads(urlsafe_b64decode(text))
        if not isinstance(back, bool) or not all(isinstance(value, Value) for value in values):
            raise ValueError
        if any(isinstance(value, str) and not value.isprintable() for value in values):
            raise ValueError  # PostgreSQL cannot even look for a NUL
        return cls(tuple(values), back)


class CursorPages(CursorPagination):
    """Cursor pages: stable while rows are added, and as quick on the last page as on the first.

    A page continues after the values of the last row, not after a count of rows, so that any number of rows may have
    the same price. Lists are ordered by columns that are never empty, the last of them unique. Where a database must
    sort, it sorts keys alone: the rows of the page are read by a second query. A cursor or page size that no page could
    have given is a 400, never ignored.
    """

    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"
    ordering = "pk"

    def paginate_queryset(self, queryset: QuerySet, request: Request, view: "APIView | None" = None) -> list[Model]:
        self.base_url = request.build_absolute_uri()
        self.ordering = self.get_ordering(request, queryset, view)
        size = self.get_page_size(request)
        place = self._asked_place(request)
        back = place is not None and place.back
        try:
            keys = list(_beside(queryset, self.ordering, place).values_list("pk", flat=True)[: size + 1])
        except (ValueError, TypeError, OverflowError, InvalidOperation, DjangoValidationError) as error:
            raise self._bad_cursor() from error
        more = len(keys) > size
        rows = queryset.in_bulk(keys[:size])
        found = [rows[key] for key in keys[:size] if key in rows]
        self.page = found[::-1] if back else found
        self.has_next = back or more
        self.has_previous = more if back else place is not None
        return self.page

    def get_next_link(self) -> str | None:
        return self._link(self.page[-1], back=False) if self.has_next and self.page else None

    def get_previous_link(self) -> str | None:
        return self._link(self.page[0], back=True) if self.has_previous and self.page else None

    def get_page_size(self, request: Request) -> int:
        asked = request.query_params.get(self.page_size_query_param, str(self.page_size))
        if not (asked.isdecimal() and asked.isascii() and len(asked) < 9 and 1 <= int(asked) <= self.max_page_size):
            sentence = _("Enter a whole number from 1 to %(most)s.") % {"most": self.max_page_size}
            raise ValidationError({self.page_size_query_param: [sentence]})
        return int(asked)

    def _asked_place(self, request: Request) -> _Place | None:
        text = request.query_params.get(self.cursor_query_param)
        if text is None:
            return None
        try:
            place = _Place.decode(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise self._bad_cursor() from error
        if len(place.values) != len(self.ordering):
            raise self._bad_cursor()
        return place

    def _link(self, row: Model, *, back: bool) -> str:
        place = _Place(tuple(getattr(row, name.removeprefix("-")) for name in self.ordering), back)
        return replace_query_param(self.base_url, self.cursor_query_param, place.encode())

    def _bad_cursor(self) -> ValidationError:
        sentence = _("This cursor is not one that a page gave; follow the links next and previous.")
        return ValidationError({self.cursor_query_param: [sentence]})


class NewestFirst(CursorPages):
    ordering = ("-created_at", "pk")


def _beside(queryset: QuerySet, ordering: Sequence[str], place: _Place | None) -> QuerySet:
    """The rows from the place on, in the order of the list, or against it where the page lies before the place."""
    if place is None:
        return queryset.order_by(*ordering)
    names = [_turned(name) for name in ordering] if place.back else list(ordering)
    return queryset.order_by(*names).filter(_after(names, place.values))


def _turned(name: str) -> str:
    return name[1:] if name.startswith("-") else f"-{name}"


def _after(names: Sequence[str], values: Sequence[Value]) -> Q:
    """Rows that come after these values. The bound of the first column lets the database start within its index."""
    condition = Q()
    for name, value in reversed(list(zip(names, values, strict=True))):
        field, beyond = name.removeprefix("-"), "lt" if name.startswith("-") else "gt"
        further = Q(**{f"{field}__{beyond}": value})
        condition = further | (Q(**{field: value}) & condition) if condition else further
    first = names[0].removeprefix("-")
    bound = Q(**{f"{first}__{'lte' if names[0].startswith('-') else 'gte'}": values[0]})
    return bound & condition
