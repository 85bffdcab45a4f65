"""One shape for every error: a problem document (RFC 9457) under /api/, a plain page elsewhere."""

from collections.abc import Sequence
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

PROBLEM_JSON = "application/problem+json"

TITLES = {
    400: gettext_lazy("The request could not be read"),
    403: gettext_lazy("Not allowed"),
    404: gettext_lazy("Not found"),
    411: gettext_lazy("Length missing"),
    413: gettext_lazy("Too large"),
    500: gettext_lazy("Something went wrong"),
}
"""What the error page says on top; the API keeps HTTP's own words."""


def problem(*, status: int, code: str, detail: str, errors: Sequence[dict[str, str]] = ()) -> dict[str, object]:
    """A problem document. ``code`` is stable; ``errors`` point at single fields (RFC 6901 pointers)."""
    document: dict[str, object] = {
        "type": f"/docs/problems/#{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    if errors:
        document["errors"] = list(errors)
    return document


def error_response(
    request: HttpRequest, *, status: int, code: str, detail: str, errors: Sequence[dict[str, str]] = ()
) -> HttpResponse:
    """The answer to a request that cannot be served, in the form that its reader expects."""
    if request.path.startswith("/api/"):
        return JsonResponse(
            problem(status=status, code=code, detail=detail, errors=errors),
            status=status,
            content_type=PROBLEM_JSON,
        )
    context = {"status": status, "title": TITLES.get(status, TITLES[400]), "detail": detail}
    return render(request, "error.html", context, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400: unreadable form data, too many fields, an unknown host name."""
    too_large = type(exception).__name__ == "RequestDataTooBig"
    if too_large:
        return error_response(request, status=413, code="body_too_large", detail=_("The request body is too large."))
    return error_response(request, status=400, code="bad_request", detail=_("The request could not be read."))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler403."""
    return error_response(request, status=403, code="forbidden", detail=_("You may not see or do this."))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The form token is missing or stale."""
    detail = _("This page was open for too long or cookies are off. Go back, reload the page and send the form again.")
    return error_response(request, status=403, code="csrf", detail=detail)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404."""
    return error_response(request, status=404, code="not_found", detail=_("There is nothing at this address."))


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500."""
    detail = _("Something went wrong on our side. What you stored is safe; please try again.")
    return error_response(request, status=500, code="internal_error", detail=detail)
