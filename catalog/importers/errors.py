"""Why an import ends without a result, or a request about one is refused: a stable code and a sentence."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from catalog.importers.printed import UNREADABLE, UnreadableCode

IMPORT_ERRORS: Mapping[str, str | Promise] = {
    "empty-file": _("The file is empty. Choose it again."),
    "file-too-large": _(
        "The file is larger than %(limit)s bytes, which is the limit. Split it, or upload one cloud alone."
    ),
    "file-missing": _("The file is no longer there. Upload it again."),
    "table-unknown": _("There is no table “%(table)s”. Choose one of: %(tables)s."),
    "source-missing": _("Say where the prices come from: the repository, page or document."),
    "licence-missing": _("Say under which licence the source may be used; facts-only where single facts were read."),
    "provider-missing": _("A SkyPilot file does not say whose prices it holds. Choose the provider."),
    "date-in-future": _("%(date)s has not come yet. Enter the day on which the prices were seen."),
    "older-list": _(
        "The list is of %(date)s; the catalog already holds prices of this source seen on %(newest)s. "
        "Older lists are not imported."
    ),
    "too-many-rows": _("The list has more than %(limit)s rows, which is the limit. Split it."),
    "too-slow": _("Reading the list took longer than %(limit)s seconds. Split it."),
    "memory": _("The list needs more memory than there is. Split it."),
    "worker-lost": _("The worker was lost %(attempts)s times while it worked on this list. Try again, or tell us."),
    "internal": _(
        "Something went wrong on our side. The catalog was not changed; the details are kept with the import."
    ),
    "not-waiting": _("This import does not wait for a decision: it %(status)s."),
    "not-applied": _("Only what is in the catalog can be rolled back: this import %(status)s."),
    "not-newest": _("A later import of the same source is in the catalog. Roll that one back first."),
    "rows-refused": _("%(count)s rows cannot be right. Correct the table and upload it again."),
    "catalog-busy": _("The catalog kept changing while the list was compared. Approve it again when others are done."),
    "name-state": _("Choose the accelerator that this name stands for, or reject the name."),
    **{str(code): UNREADABLE[code] for code in UnreadableCode},
}


class ImportRefused(Exception):
    """``str()`` is one sentence in the reader's language that says what is wrong and what to do."""

    def __init__(self, code: str, **params: object) -> None:
        super().__init__(code, params)
        self.code = code
        self.params: Mapping[str, object] = params

    def __str__(self) -> str:
        return sentence_of(self.code, self.params)


def sentence_of(code: str, params: Mapping[str, object]) -> str:
    """The sentence of a stored code, "" for none."""
    return str(IMPORT_ERRORS[code]) % params if code else ""
