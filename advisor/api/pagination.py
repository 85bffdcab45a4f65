"""Pages of a list."""

from rest_framework.pagination import CursorPagination


class CursorPages(CursorPagination):
    """Cursor pages: stable while rows are added, and as quick on the last page as on the first."""

    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"
    ordering = "pk"
