"""How the OpenAPI document describes what drf-spectacular cannot see by itself."""

from collections.abc import Sequence
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class ApiKeyScheme(OpenApiAuthenticationExtension):
    target_class = "advisor.api.authentication.ApiKeyAuthentication"
    name = "ApiKey"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "The word Api-Key, a space, and the key.",
        }


_PROBLEM = {
    "type": "object",
    "description": "A problem document (RFC 9457).",
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable; listed on the page that type points to."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"pointer": {"type": "string"}, "detail": {"type": "string"}},
                "required": ["pointer", "detail"],
            },
        },
    },
    "required": ["type", "title", "status", "detail", "code"],
}

_ALWAYS = {
    "400": "The request could not be read.",
    "401": "No valid API key.",
    "406": "The format asked for is not served here.",
    "429": "Too many requests; see Retry-After.",
}
_ONE = {"404": "There is nothing at this address that this key may see."}
_BODY = {
    "411": "The body has no Content-Length.",
    "413": "The body is too large.",
    "415": "The body has a media type that is not read here.",
    "422": "The body was read, but its values cannot be accepted.",
}
_SCOPE = {"403": "The key lacks the scope catalog:write."}
_CHANGE = {"409": "The state of the catalog does not allow this."}
_CONDITION = {
    "412": "The row is no longer what was read.",
    "428": "If-Match is missing.",
}


def add_problems(result: dict[str, Any], **_: object) -> dict[str, Any]:
    """Postprocessing hook: every operation also names the problem documents that it may answer with."""
    result["components"]["schemas"]["Problem"] = _PROBLEM
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            for code, description in sorted(_problems(path, method, operation.get("tags", ())).items()):
                operation["responses"].setdefault(code, _problem_response(description))
    return result


def _problems(path: str, method: str, tags: Sequence[str]) -> dict[str, str]:
    found = {**_ALWAYS, **(_ONE if "{" in path else {})}
    if method in ("post", "put", "patch"):
        found |= _BODY
    if "catalog" in tags and (method != "get" or any(name in path for name in ("imports", "printed-names", "offers"))):
        found |= _SCOPE
    if "catalog" in tags and method != "get":
        found |= _CHANGE
    if method in ("put", "patch") or (method == "delete" and "catalog" in tags):
        found |= _CONDITION
    return found


def _problem_response(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {"application/problem+json": {"schema": schema}}}
