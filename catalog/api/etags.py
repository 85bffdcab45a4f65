"""Versions of rows over HTTP (RFC 9110): an ETag changes whenever anything that a row's document shows changes."""

import re

from django.db.models import Model
from rest_framework.request import Request

from catalog.api.problems import PreconditionFailed, PreconditionRequired
from catalog.models import Offer, Server
from catalog.models.base import SourcedRow

_TAG = re.compile(r'(?:W/)?"[^"]*"')


def etag_of(row: SourcedRow) -> str:
    """A strong ETag. No query where the rows that the document shows too were read with it."""
    versions = [f"{shown.pk}.{shown.version}" for shown in _shown_in(row)]
    if isinstance(row, Offer):
        versions.append(getattr(row, "country", ""))
    return '"' + "-".join(versions) + '"'


def not_modified(request: Request, row: SourcedRow) -> bool:
    """Whether the reader already has this state of the row."""
    asked = request.headers.get("If-None-Match", "")
    return asked.strip() == "*" or etag_of(row) in (tag.removeprefix("W/") for tag in _TAG.findall(asked))


def check_writable(request: Request, row: SourcedRow | None) -> None:
    """Let a change of the row pass, or the making of it where there is none.

    Raises PreconditionFailed and PreconditionRequired.
    """
    matching, none_matching = request.headers.get("If-Match"), request.headers.get("If-None-Match")
    if matching is None and none_matching is None:
        raise PreconditionRequired
    if matching is not None and (row is None or not _matches(matching, etag_of(row))):
        raise PreconditionFailed
    if none_matching is not None and row is not None and (none_matching.strip() == "*" or matching is None):
        raise PreconditionFailed


def _matches(header: str, etag: str) -> bool:
    """The strong comparison: a weak tag matches nothing."""
    return header.strip() == "*" or etag in _TAG.findall(header)


def _shown_in(row: Model) -> list[SourcedRow]:
    if isinstance(row, Offer):
        return [row, *_shown_in(row.server)]
    if isinstance(row, Server):
        related = (getattr(row, "fabric", None), row.accelerator)
        return [row, *(other for other in related if other is not None)]
    return [row]
