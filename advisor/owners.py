"""Who owns what: one string per API key, signed-in user or browser."""

import secrets

from django.http import HttpRequest
from rest_framework.request import Request


def api_owner(request: Request) -> str:
    """The owner of what this API key creates."""
    return f"key:{request.auth.prefix}"


def page_owner(request: HttpRequest) -> str:
    """The owner of what this browser creates: its user, else a random name kept in the session."""
    if request.user.is_authenticated:
        return f"user:{request.user.pk}"
    if "owner" not in request.session:
        request.session["owner"] = secrets.token_urlsafe(24)
    return f"session:{request.session['owner']}"


def known_owner(request: HttpRequest) -> str:
    """Like ``page_owner``, but makes no name for a browser that has created nothing: then nothing matches."""
    if request.user.is_authenticated or "owner" in request.session:
        return page_owner(request)
    return "session:"
