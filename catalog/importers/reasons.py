"""The sentences of an import's report, which itself holds only codes and figures."""

from collections.abc import Mapping
from enum import StrEnum

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from catalog.importers import names, suspicion
from catalog.importers.printed import LEFT_OUT


class LeftOutHere(StrEnum):
    """Why an offer that a list prints well has no place in the catalog."""

    PART_OF_ONE = "part-of-one"
    PROVIDER_NOT_IN_CATALOG = "provider-not-in-catalog"
    SLASH_IN_NAME = "slash-in-name"
    NAME_REJECTED = "name-rejected"
    TWICE_IN_LIST = "twice-in-list"
    NO_LONGER_RENTED = "no-longer-rented"
    TOO_MANY_ACCELERATORS = "too-many-accelerators"


SENTENCES: Mapping[str, str | Promise] = {
    LeftOutHere.PART_OF_ONE: _("Parts of an accelerator are rented out here; the catalog compares whole ones."),
    LeftOutHere.PROVIDER_NOT_IN_CATALOG: _("The catalog does not have this provider. Add it, then import again."),
    LeftOutHere.SLASH_IN_NAME: _("The server's name holds a slash, which cannot be part of a web address."),
    LeftOutHere.NAME_REJECTED: _("An editor has rejected this accelerator name."),
    LeftOutHere.TWICE_IN_LIST: _("The list prints this offer twice; the first one counts."),
    LeftOutHere.NO_LONGER_RENTED: _("The list still prints this server, but it is no longer rented out."),
    LeftOutHere.TOO_MANY_ACCELERATORS: _("No server has as many accelerators as the row prints."),
    **{str(code): sentence for code, sentence in LEFT_OUT.items()},
}


NOTES: Mapping[str, str | Promise] = {
    "": "",
    "catalog-moved": _(
        "The catalog changed after this list was approved, and the list would now do something else. Look again."
    ),
}
"""What stands above a report."""


def left_out_sentence(code: str) -> str:
    """Why rows of a report were left out."""
    return str(SENTENCES[code])


def finding_sentence(code: str, params: Mapping[str, object]) -> str:
    """Why rows are held back, are worth a look, or the list asks for a person; without figures where none are given."""
    return suspicion.Finding(suspicion.Code(code), params).sentence


def name_sentence(code: str, params: Mapping[str, object]) -> str:
    """Why an accelerator name is not known."""
    return str(names.SENTENCES[names.Reason(code)]) % params
