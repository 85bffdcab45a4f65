"""What every request must satisfy before a view sees it."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from advisor.errors import error_response

Handler = Callable[[HttpRequest], HttpResponse]
FORM_OVERHEAD_BYTES = 1 << 20


class BoundedBody:
    """Refuse a body of unannounced length, which WSGI would hand on as an empty one, and a body over all limits.

    The announced length is checked before a byte is read: the server reads no more than was announced.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            detail = _("Send the body with a Content-Length header.")
            return error_response(request, status=411, code="length_required", detail=detail)
        announced = request.META.get("CONTENT_LENGTH") or "0"
        if announced.isdecimal() and int(announced) > settings.UPLOAD_MAX_BYTES + FORM_OVERHEAD_BYTES:
            detail = _("The upload is larger than the limit of %(limit)s bytes.") % {"limit": settings.UPLOAD_MAX_BYTES}
            return error_response(request, status=413, code="body_too_large", detail=detail)
        return self.get_response(request)


class PrintableAddress:
    """Refuse control characters in addresses and cookies: PostgreSQL cannot even look for a NUL."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.isprintable():
            detail = _("There is nothing at this address.")
            return error_response(request, status=404, code="not_found", detail=detail)
        if not all(value.isprintable() for value in request.COOKIES.values()):
            detail = _("The request could not be read.")
            return error_response(request, status=400, code="bad_request", detail=detail)
        return self.get_response(request)
