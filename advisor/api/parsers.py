"""Reading request bodies."""

from collections.abc import Mapping
from typing import IO

import msgspec
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.utils.http import parse_header_parameters
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.parsers import BaseParser

MAX_DEPTH = 32


class BoundedJSONParser(BaseParser):
    """Strict JSON of bounded size and depth.

    msgspec refuses NaN, lone surrogates and deep nesting without recursing; NUL is refused because PostgreSQL
    cannot store it.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, object] | None = None,
    ) -> object:
        _type, parameters = parse_header_parameters(media_type or self.media_type)
        if parameters.get("charset", "utf-8").lower() not in ("utf-8", "utf8"):
            raise UnsupportedMediaType(media_type)
        body = stream.read(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
        if len(body) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise RequestDataTooBig
        try:
            document = msgspec.json.decode(body)
        except RecursionError as error:
            raise ParseError(_("The body is nested deeper than %(limit)d levels.") % {"limit": MAX_DEPTH}) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ParseError(_("The body is not valid JSON: %(reason)s.") % {"reason": error}) from error
        if b"\\u0000" in body:
            raise ParseError(_("The body contains the character U+0000; leave it out."))
        if _depth(document) > MAX_DEPTH:
            raise ParseError(_("The body is nested deeper than %(limit)d levels.") % {"limit": MAX_DEPTH})
        if not isinstance(document, dict):
            raise ParseError(_("The body must be a JSON object."))
        return document


def _depth(document: object) -> int:
    deepest, level = 0, [document]
    while level and deepest <= MAX_DEPTH:
        deepest += 1
        level = [child for node in level for child in _children(node)]
    return deepest


def _children(node: object) -> list[object]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []
