"""DRF's errors as problem documents (RFC 9457)."""

from collections.abc import Iterator

from django.core.exceptions import RequestDataTooBig
from django.utils.translation import gettext as _
from rest_framework import exceptions, status
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response
from rest_framework.views import exception_handler

from advisor.errors import PROBLEM_JSON, problem

_CODES = {
    400: "bad_request",
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    409: "conflict",
    412: "precondition_failed",
    413: "body_too_large",
    415: "media_type",
    422: "unprocessable",
    428: "precondition_required",
    429: "rate_limited",
}


_VALUE_CODES = {"min_value", "max_value", "invalid_choice", "max_length", "empty", "refused"}


class Unprocessable(exceptions.APIException):
    """Read, but the values or their combination cannot be accepted."""

    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_code = "unprocessable"

    def __init__(self, detail: str, *, code: str = "unprocessable", pointer: str | None = None) -> None:
        super().__init__(detail, code)
        self.pointer = pointer


class PayloadTooLarge(exceptions.APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "body_too_large"


def handle(error: Exception, context: dict[str, object]) -> Response | None:
    """The exception handler of every API view; None hands a bug on to Django's handler500."""
    if isinstance(error, RequestDataTooBig):
        error = PayloadTooLarge(_("The request body is too large."))
    response = exception_handler(error, context)
    if response is None:
        return None
    if isinstance(error, exceptions.ValidationError) and _only_values(error, context):
        response.status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    response.data = _document(error, response)
    response.content_type = PROBLEM_JSON
    return response


def _document(error: Exception, response: Response) -> dict[str, object]:
    if isinstance(error, exceptions.ValidationError):
        errors = list(_field_errors(error.detail, "#"))
        detail = errors[0]["detail"] if len(errors) == 1 else _("Some values cannot be accepted; see errors.")
        return problem(status=response.status_code, code="invalid", detail=detail, errors=errors)
    if isinstance(error, Unprocessable):
        errors = [{"pointer": error.pointer, "detail": str(error.detail)}] if error.pointer else []
        code = str(error.detail.code)
        return problem(status=response.status_code, code=code, detail=str(error.detail), errors=errors)
    code = _CODES.get(response.status_code, "error")
    detail = response.data.get("detail", "") if isinstance(response.data, dict) else ""
    if response.status_code == status.HTTP_404_NOT_FOUND:
        detail = _("There is nothing at this address.")
    return problem(status=response.status_code, code=code, detail=str(detail))


def _only_values(error: exceptions.ValidationError, context: dict[str, object]) -> bool:
    """Whether a body could be read and only its values cannot be accepted."""
    codes = set(_codes(error.get_codes()))
    return context["request"].method not in SAFE_METHODS and codes <= _VALUE_CODES


def _codes(nested: object) -> Iterator[str]:
    if isinstance(nested, str):
        yield nested
    else:
        for inner in nested.values() if isinstance(nested, dict) else nested:
            yield from _codes(inner)


def _field_errors(detail: object, pointer: str) -> Iterator[dict[str, str]]:
    """The name "" stands for the object itself; others are escaped as RFC 6901 asks."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            escaped = str(name).replace("~", "~0").replace("/", "~1")
            yield from _field_errors(inner, f"{pointer}/{escaped}" if name else pointer)
    elif isinstance(detail, list):
        for inner in detail:
            yield from _field_errors(inner, pointer)
    else:
        yield {"pointer": pointer, "detail": str(detail)}
