"""What pages say of drafts that wait."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from catalog.admin.page import FormPage, ago
from catalog.admin.rows import by_keys
from catalog.admin.sheets import Sheet
from catalog.admin.words import Difference, table_label, title_of
from catalog.models import Draft
from catalog.tables import Table

FEW = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Banner:
    """``seen``: what the buttons send, so that only the draft that was looked at is published."""

    draft: Draft
    what: str
    when: str
    is_new: bool
    outdated: bool
    differences: Sequence[Difference]
    seen: str
    effect_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Drafts of one table: how many there are, and the newest few."""

    count: int
    newest: Sequence[Draft]
    url: str


def of(page: FormPage, request: HttpRequest) -> list[Banner]:
    return [_banner(sheet) for sheet in page.sheets.values() if sheet.draft]


def _banner(sheet: Sheet) -> Banner:
    draft = sheet.draft
    return Banner(
        draft=draft,
        what=table_label(sheet.table.name),
        when=ago(draft.updated_at),
        is_new=sheet.is_new,
        outdated=sheet.outdated,
        differences=() if sheet.is_new else sheet.differences,
        seen=seen(draft),
        effect_url=effect_url(draft),
    )


def seen(draft: Draft) -> str:
    return f"{draft.pk}.{draft.version}"


def effect_url(draft: Draft) -> str:
    """The page that tells what publishing would do to predictions; empty where the project has none."""
    for name in ("catalog-draft-effect", "admin:catalog_draft_effect"):
        try:
            return f"{reverse(name)}?draft={draft.pk}"
        except NoReverseMatch:
            continue
    return ""


def waiting(table: Table) -> Waiting:
    newest = list(Draft.objects.filter(table=table.name).select_related("author")[: FEW + 1])
    count = len(newest) if len(newest) <= FEW else Draft.objects.filter(table=table.name).count()
    rows = by_keys(table, [draft.key for draft in newest[:FEW]])
    for draft in newest[:FEW]:
        draft.shown_title = title_of(draft, rows.get(draft.key))
    url = reverse("admin:catalog_draft_changelist") + f"?table__exact={table.name}"
    return Waiting(count=count, newest=newest[:FEW], url=url)
