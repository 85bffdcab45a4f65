"""One column of many rows at once: choose, look at old and new, then drafts of them all."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from catalog import drafts
from catalog.admin import words
from catalog.admin.sheets import Sheet, Values, published
from catalog.changes import ChangesRefused, VersionConflict
from catalog.drafts import Edit, Seen, as_json
from catalog.models import Draft
from catalog.models.base import SourcedRow
from catalog.tables import Table

MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of the preview."""

    key: str
    title: str
    old: str
    new: str
    changes: bool
    problems: Sequence[str]


class WithBulkEdit:
    """The action and its page; for an admin of a table. ``bulk_columns``: what may be set for many rows at once."""

    table: Table
    bulk_columns: ClassVar[tuple[str, ...]] = ()
    actions = ("edit_column",)

    @admin.action(description=gettext_lazy("Edit one column of the chosen rows"), permissions=["change"])
    def edit_column(self, request: HttpRequest, queryset: models.QuerySet) -> HttpResponse | None:
        ids = list(queryset.order_by("pk").values_list("pk", flat=True)[: MOST + 1])
        if len(ids) > MOST:
            messages.error(
                request, _("At most %(most)s rows at once. Narrow the list with a filter first.") % {"most": MOST}
            )
            return None
        query = urlencode({"ids": ",".join(str(pk) for pk in ids)})
        return HttpResponseRedirect(reverse(f"admin:catalog_{self.opts.model_name}_bulk") + f"?{query}")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.bulk_view)
        return [path("bulk/", view, name=f"catalog_{self.opts.model_name}_bulk"), *super().get_urls()]

    def bulk_view(self, request: HttpRequest) -> HttpResponse:
        """GET with a column and a value shows what would change; POST of the same makes the drafts."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        sent = request.POST if request.method == "POST" else request.GET
        rows = self._rows(sent.get("ids", ""))
        column = sent.get("column") if sent.get("column") in self.bulk_columns else None
        form = self._form(request, column, sent if "preview" in sent else None)
        lines: list[Line] = []
        seen = {}
        if column and form.is_bound and form.is_valid():
            value = as_json({column: self._plain(column, form.cleaned_data["value"])})[column]
            sheets = self._sheets(rows)
            if request.method == "POST":
                done = self._save(request, sheets, column, value, form.cleaned_data["reason"], sent.get("seen", ""))
                if done:
                    return done
            lines = self._lines(sheets, column, value, self._trial(sheets, column, value, request))
            seen = {sheet.key: str(sheet.seen) for sheet in sheets}
        context = {
            **self.admin_site.each_context(request),
            "title": _("Edit one column"),
            "opts": self.opts,
            "rows": rows,
            "ids": ",".join(str(row.pk) for row in rows),
            "columns": [(name, words.label_of(self.table, name)) for name in self.bulk_columns],
            "column": column,
            "label": words.label_of(self.table, column) if column else "",
            "form": form,
            "lines": lines,
            "changing": sum(line.changes for line in lines),
            "wrong": any(line.problems for line in lines),
            "seen": json.dumps(seen),
        }
        return TemplateResponse(request, "admin/catalog/bulk.html", context)

    def _rows(self, ids: str) -> list[SourcedRow]:
        wanted = [int(pk) for pk in ids.split(",") if pk.isascii() and pk.isdigit()][:MOST]
        return list(self.table.rows().filter(pk__in=wanted))

    def _form(self, request: HttpRequest, column: str | None, data: object) -> forms.Form:
        fields: dict[str, forms.Field] = {}
        if column:
            field = self.formfield_for_dbfield(self.table.model._meta.get_field(column), request)
            fields["value"] = field
            fields["reason"] = forms.CharField(
                label=_("Why"), required=False, max_length=100, widget=forms.TextInput(attrs={"class": "vTextField"})
            )
        return type("BulkForm", (forms.Form,), fields)(data)

    def _plain(self, column: str, value: object) -> object:
        field = self.table.model._meta.get_field(column)
        return "" if value is None and isinstance(field, models.CharField | models.TextField) else value

    def _sheets(self, rows: Sequence[SourcedRow]) -> list[Sheet]:
        keys = {self.table.key_of(row): row for row in rows}
        waiting = {draft.key: draft for draft in Draft.objects.filter(table=self.table.name, key__in=list(keys))}
        return [_sheet(self.table, key, row, waiting.get(key)) for key, row in keys.items()]

    def _edits(self, sheets: Sequence[Sheet], column: str, value: object, seen: dict | None = None) -> list[Edit]:
        return [
            Edit(table=self.table.name, key=sheet.key, values={column: value}, seen=_seen(sheet, seen))
            for sheet in sheets
        ]

    def _trial(self, sheets: Sequence[Sheet], column: str, value: object, request: HttpRequest) -> dict[str, list[str]]:
        """By key, what is wrong with the drafts; nothing is kept."""
        changing = [sheet for sheet in sheets if sheet.shown.get(column) != value]
        try:
            with transaction.atomic():
                drafts.save_drafts(self._edits(changing, column, value), user=request.user)
                transaction.set_rollback(True)
        except ChangesRefused as error:
            return {
                entry.key: [sentence for several in entry.problems.values() for sentence in several]
                for entry in error.refused
            }
        return {}

    def _lines(self, sheets: Sequence[Sheet], column: str, value: object, wrong: dict[str, list[str]]) -> list[Line]:
        return [
            Line(
                key=sheet.key,
                title=str(sheet.row),
                old=words.said(self.table, column, sheet.shown.get(column)),
                new=words.said(self.table, column, value),
                changes=sheet.shown.get(column) != value,
                problems=wrong.get(sheet.key, ()),
            )
            for sheet in sheets
        ]

    def _save(
        self, request: HttpRequest, sheets: Sequence[Sheet], column: str, value: object, reason: str, seen: str
    ) -> HttpResponse | None:
        changing = [sheet for sheet in sheets if sheet.shown.get(column) != value]
        try:
            edits = self._edits(changing, column, value, _versions(seen))
            count = len(drafts.save_drafts(edits, user=request.user, reason=reason))
        except ChangesRefused:
            messages.error(request, _("Some rows cannot have this value, so no draft was made. See the table."))
        except VersionConflict as error:
            sentence = _("%(key)s was changed by somebody else meanwhile, so no draft was made. This is how it is now.")
            messages.error(request, sentence % {"key": error.key})
        else:
            messages.success(request, ngettext("%(n)s draft saved.", "%(n)s drafts saved.", count) % {"n": count})
            return HttpResponseRedirect(reverse("admin:catalog_draft_changelist") + f"?table__exact={self.table.name}")
        return None


def _sheet(table: Table, key: str, row: SourcedRow, draft: Draft | None) -> Sheet:
    shown: Values = {**published(table, row), **(draft.values if draft else {})}
    seen = Seen(row=row.version, draft=draft.version if draft else 0)
    return Sheet(table=table, key=key, row=row, draft=draft, shown=shown, seen=seen)


def _seen(sheet: Sheet, seen: dict | None) -> Seen:
    """What the preview showed of a row; a row that it did not show must not be saved."""
    if seen is None:
        return sheet.seen
    try:
        return Seen.parse(str(seen.get(sheet.key)))
    except ValueError:
        return Seen()


def _versions(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
