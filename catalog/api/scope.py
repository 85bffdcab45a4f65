"""What only keys with the scope ``catalog:write`` may do.

The project hangs scopes on its keys (``request.auth.scopes``); the catalog knows nothing else of them.
"""

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

if TYPE_CHECKING:
    from rest_framework.views import APIView

WRITE_SCOPE = "catalog:write"
NEEDS_SCOPE = _("This needs an API key with the scope catalog:write.")


def is_staff(request: Request) -> bool:
    """Whether the key may write, and see what waits for a decision. One query."""
    scopes = getattr(request.auth, "scopes", None)
    return scopes is not None and scopes.filter(scope=WRITE_SCOPE).exists()


class WritingNeedsScope(BasePermission):
    """Whoever got this far may read."""

    message = NEEDS_SCOPE

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return request.method in SAFE_METHODS or is_staff(request)


class ScopeNeeded(BasePermission):
    """Reading needs the scope too."""

    message = NEEDS_SCOPE

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return is_staff(request)
