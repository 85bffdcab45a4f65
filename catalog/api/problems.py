"""Refusals of a write, and how they point into the body that was sent."""

from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from rest_framework import status
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError

MAX_LISTED = 100
REFUSED = "refused"
"""Code of a value that was read but cannot be right: such answers are 422, not 400."""

Problems = Mapping[str, Sequence[str]]


class PreconditionFailed(APIException):
    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_code = "precondition_failed"
    default_detail = gettext_lazy("The row is no longer what you read. Read it again and decide anew.")


class PreconditionRequired(APIException):
    status_code = status.HTTP_428_PRECONDITION_REQUIRED
    default_code = "precondition_required"
    default_detail = gettext_lazy(
        "Send the ETag of the row that you read as If-Match, so that nobody's change is lost; or, to add a new row, "
        "If-None-Match: *."
    )


class Conflict(APIException):
    status_code = status.HTTP_409_CONFLICT
    default_code = "conflict"
    default_detail = gettext_lazy("The state of the resource does not allow this now.")


class TooLarge(APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "body_too_large"


def refusal(problems: Problems, code: str = REFUSED) -> ValidationError:
    """Problems of one row; the name "" stands for the row as a whole."""
    return ValidationError(_coded(problems, code))


def bulk_refusal(problems: Mapping[int, Problems], code: str = REFUSED) -> ValidationError:
    """Problems of several rows by their place in ``rows``; at most so many are listed, and the others counted."""
    listed: dict[str, object] = {}
    for index, of_row in sorted(problems.items())[:MAX_LISTED]:
        listed[str(index)] = _coded(of_row, code)
    document: dict[str, object] = {"rows": listed}
    more = len(problems) - len(listed)
    if more:
        sentence = ngettext("%(count)d more row has problems.", "%(count)d more rows have problems.", more)
        document[""] = [ErrorDetail(sentence % {"count": more}, code)]
    return ValidationError(document)


def unknown_field(known: Sequence[str]) -> str:
    return _("There is no field of this name. Known are: %(names)s.") % {"names": ", ".join(known)}


def _coded(problems: Problems, code: str) -> dict[str, list[ErrorDetail]]:
    return {name: [ErrorDetail(sentence, code) for sentence in of_name] for name, of_name in problems.items()}
