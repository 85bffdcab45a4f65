"""One form while it is looked at and sent: its sheets, what is wrong with them, and who came in between."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _

from catalog.admin.rows import lay_over
from catalog.admin.sheets import Sheet
from catalog.admin.words import Difference, differences
from catalog.changes import Refused
from catalog.drafts import Edit, as_json
from catalog.models import Draft
from catalog.models.base import SourcedRow

SENT = "as_shown"
"""Name of the hidden field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """What somebody else did to a row while the form was open. ``conflicts``: mine (new) against theirs (old).

    ``taken``: what only the other has changed, now in the form too.
    """

    sentence: str
    reason: str
    conflicts: Sequence[Difference] = ()
    taken: Sequence[Difference] = ()


@dataclass(slots=True, kw_only=True)
class FormPage:
    """``sheets``: by table, the form's own row first."""

    sheets: dict[str, Sheet]
    problems: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    between: list[Between] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    published: int | None = None

    @property
    def main(self) -> Sheet:
        return next(iter(self.sheets.values()))

    @property
    def drafts(self) -> list[Draft]:
        return [sheet.draft for sheet in self.sheets.values() if sheet.draft]

    @property
    def sent(self) -> str:
        return json.dumps({name: sheet.sent() for name, sheet in self.sheets.items()})

    def receive(self, posted: QueryDict) -> None:
        """Go back to what the form that was sent had been showing."""
        try:
            sent = json.loads(posted.get(SENT, ""))
        except ValueError:
            return
        if isinstance(sent, Mapping):
            for name, sheet in self.sheets.items():
                sheet.take(sent.get(name))

    def new_instance(self, table: str) -> SourcedRow | None:
        """What the form of a new row begins with: its draft's values, where it has one."""
        sheet = self.sheets.get(table)
        if sheet is None or not sheet.is_new or not sheet.shown:
            return None
        return lay_over(sheet.table.model(), sheet.table, sheet.shown)

    def laid_over(self, table: str, row: SourcedRow) -> SourcedRow:
        sheet = self.sheets.get(table)
        return lay_over(row, sheet.table, sheet.shown) if sheet and not sheet.is_new else row

    def refuse(self, refused: Sequence[Refused]) -> None:
        """Let the forms say what was found wrong when the drafts were tried out."""
        for entry in refused:
            home = entry.table if entry.table in self.sheets else self.main.table.name
            for name, sentences in entry.problems.items():
                where = name if home == entry.table else ""
                self.problems.setdefault(home, {}).setdefault(where, []).extend(sentences)

    def meet(self) -> Iterator[tuple[str, str, object]]:
        """Take in what somebody else has saved or published since.

        Gives (table, column, plain value) of everything that only the other has changed, for the form to show.
        """
        wanted = {edit.table: edit for edit in self.edits}
        for name, sheet in self.sheets.items():
            edit = wanted.get(name)
            key = sheet.key or (edit.key if edit else "")
            now = Sheet.of(sheet.table, key)
            if now.seen == sheet.seen:
                continue
            typed = edit.values if edit else {}
            mine = {c: v for c, v in as_json(typed).items() if v != sheet.shown.get(c)}
            theirs = {c: v for c, v in now.shown.items() if c not in mine and v != sheet.shown.get(c)}
            both = {c: v for c, v in mine.items() if c in now.shown and now.shown[c] not in (v, sheet.shown.get(c))}
            taken = theirs if sheet.shown else {}
            self.between.append(
                Between(
                    sentence=_who(sheet, now),
                    reason=_why(now),
                    conflicts=differences(sheet.table, {c: now.shown[c] for c in both}, both),
                    taken=differences(sheet.table, sheet.shown, taken),
                )
            )
            self.problems.setdefault(name, {}).setdefault("", []).append(
                _("Somebody else has changed this meanwhile. Nothing was saved: look above, then save again.")
            )
            self.sheets[name] = now
            yield from ((name, column, value) for column, value in taken.items())
        if not self.between:
            self.problems.setdefault(self.main.table.name, {}).setdefault("", []).append(
                _("Something that this depends on was changed meanwhile. Nothing was saved: look again, then save.")
            )


def _who(before: Sheet, now: Sheet) -> str:
    """What happened to a row since, in a sentence."""
    if now.draft and now.draft.version != before.seen.draft:
        return _("%(who)s saved a draft of %(row)s %(when)s, while you were editing.") % {
            "who": now.draft.author or _("Somebody"),
            "row": now.row or now.key,
            "when": ago(now.draft.updated_at),
        }
    if now.row is None:
        return _("%(row)s is gone: it was deleted, or its draft was discarded, while you were editing.") % {
            "row": before.row or before.key
        }
    newest = now.row.history.select_related("history_user").first()
    if now.row.version == before.seen.row:
        return _("The draft that you were editing was discarded.")
    if newest is None:
        return _("%(row)s was changed while you were editing.") % {"row": now.row}
    return _("%(who)s published a change of %(row)s %(when)s, while you were editing.") % {
        "who": newest.history_user or _("An import"),
        "row": now.row,
        "when": ago(newest.history_date),
    }


def _why(now: Sheet) -> str:
    if now.draft:
        return now.draft.reason
    newest = now.row.history.first() if now.row else None
    return (newest.history_change_reason or "") if newest else ""


def ago(moment: datetime) -> str:
    """A moment as people say it, with the exact one behind it."""
    seconds = int((timezone.now() - moment).total_seconds())
    exact = timezone.localtime(moment).strftime("%Y-%m-%d %H:%M")
    if seconds < 60:
        return _("just now (%(exact)s)") % {"exact": exact}
    if seconds < 3600:
        return _("%(minutes)s min ago (%(exact)s)") % {"minutes": seconds // 60, "exact": exact}
    return _("on %(exact)s") % {"exact": exact}
