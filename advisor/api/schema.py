"""How the OpenAPI document describes what drf-spectacular cannot see by itself."""

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

_ALWAYS = {"400": "The request could not be read.", "401": "No valid API key.", "406": "Only JSON is served."}
_ALWAYS |= {"429": "Too many requests; see Retry-After."}
_ONE = {"404": "There is nothing at this address that this key may see."}
_BODY = {
    "411": "The body has no Content-Length.",
    "413": "The body is too large.",
    "415": "The body has a media type that is not read here.",
    "422": "The body was read, but its values cannot be accepted.",
}


def add_problems(result: dict[str, Any], **_: object) -> dict[str, Any]:
    """Postprocessing hook: every operation also names the problem documents that it may answer with."""
    result["components"]["schemas"]["Problem"] = _PROBLEM
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            codes = {**_ALWAYS, **(_ONE if "{" in path else {}), **(_BODY if method == "post" else {})}
            for code, description in codes.items():
                operation["responses"].setdefault(code, _problem_response(description))
    return result


def _problem_response(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {"application/problem+json": {"schema": schema}}}
