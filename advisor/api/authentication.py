"""API keys: `Authorization: Api-Key <key>`; only a hash of the key is stored."""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework_api_key.models import APIKey

if TYPE_CHECKING:
    from rest_framework.views import APIView

SCHEME = "Api-Key"


class ApiKeyAuthentication(BaseAuthentication):
    """Puts the key into ``request.auth``; unknown, revoked and expired keys get the same answer."""

    def authenticate(self, request: Request) -> tuple[None, APIKey] | None:
        words = get_authorization_header(request).decode("latin-1").split()
        if not words:
            return None
        if len(words) != 2 or words[0].lower() != SCHEME.lower():
            raise AuthenticationFailed(_("Send the header «Authorization: Api-Key YOUR_KEY»."))
        return None, _valid_key(words[1])

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


def _valid_key(text: str) -> APIKey:
    """The key. One query."""
    try:
        key = APIKey.objects.get_from_key(text)
    except APIKey.DoesNotExist:
        key = None
    if key is None or key.has_expired:
        raise AuthenticationFailed(_("This API key is not valid."))
    return key


class HasApiKey(BasePermission):
    """Any valid key; what else a key may do is in its scopes (``advisor.models.ApiKeyScope``)."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return isinstance(request.auth, APIKey)
