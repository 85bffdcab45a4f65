"""What every request must satisfy before a view sees it."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from advisor.errors import error_response


class RequireContentLength:
    """Refuse a body of unannounced length: WSGI would hand it on as an empty one, and an empty upload would be kept."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            return error_response(
                request,
                status=411,
                code="length_required",
                detail=_("Send the body with a Content-Length header."),
            )
        return self.get_response(request)
