"""In which format an answer comes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.metadata import SimpleMetadata
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

if TYPE_CHECKING:
    from rest_framework.views import APIView


class KnownFormats(DefaultContentNegotiation):
    """As REST framework's, but an unknown ``?format=`` is told apart from an address where nothing is."""

    def filter_renderers(self, renderers: Sequence[BaseRenderer], format: str) -> Sequence[BaseRenderer]:
        try:
            return super().filter_renderers(renderers, format)
        except Http404:
            names = ", ".join(dict.fromkeys(one.format for one in renderers))
            sentence = _("There is no format of this name. Known are: %(names)s.") % {"names": names}
            raise ValidationError({"format": [sentence]}) from None


class NoForms(SimpleMetadata):
    """What OPTIONS answers: methods and formats. Fields are in the OpenAPI document, which knows them better."""

    def determine_actions(self, request: Request, view: "APIView") -> dict[str, object]:
        return {}
