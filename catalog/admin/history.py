"""The versions of a row: who changed what, when and why; any of them can become a draft."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from catalog import drafts
from catalog.admin import words
from catalog.admin.sheets import Sheet
from catalog.admin.words import Difference, differences
from catalog.changes import ChangesRefused, VersionConflict
from catalog.drafts import Edit
from catalog.tables import TABLES, Table

PAGE = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version as the page shows it. ``revert_url`` is empty where it is what is published now."""

    when: datetime
    who: str
    why: str
    differences: Sequence[Difference]
    is_first: bool
    revert_url: str


class WithHistory:
    """History pages of a table; for an admin of it."""

    table: Table

    def get_urls(self) -> list[URLPattern]:
        name = f"catalog_{self.opts.model_name}_revert"
        view = self.admin_site.admin_view(self.revert_view)
        return [path("<path:object_id>/history/<int:history_id>/revert/", view, name=name), *super().get_urls()]

    def history_view(self, request: HttpRequest, object_id: str, extra_context: dict | None = None) -> HttpResponse:
        row = self._published(request, object_id)
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        records = row.history.select_related("history_user").order_by("-history_date", "-history_id")
        page = Paginator(records, PAGE).get_page(request.GET.get("p"))
        context = {
            **self.admin_site.each_context(request),
            "title": _("History of %(row)s") % {"row": row},
            "opts": self.opts,
            "original": row,
            "page": page,
            "versions": self._versions(row, page.object_list, list(records[page.end_index() : page.end_index() + 1])),
            "may_change": self.has_change_permission(request, row),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/catalog/history.html", context)

    def revert_view(self, request: HttpRequest, object_id: str, history_id: int) -> HttpResponse:
        """Make a draft with the values of an older version."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self._published(request, object_id)
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        record = row.history.filter(history_id=history_id).first()
        if record is None:
            raise Http404
        old = _values(self.table, [record])[0]
        sheet = Sheet.of(self.table, self.table.key_of(row), row)
        values = {name: value for name, value in old.items() if name not in self._key_columns}
        reason = _("back to the version of %(when)s") % {"when": f"{record.history_date:%Y-%m-%d %H:%M}"}
        edit = Edit(table=self.table.name, key=sheet.key, values=values, seen=sheet.seen)
        try:
            made = drafts.save_drafts([edit], user=request.user, reason=reason)
        except ChangesRefused as error:
            for sentence in words.sentences(error.refused):
                messages.error(request, sentence)
        except VersionConflict:
            messages.error(request, _("Somebody else has just changed this row. Look again."))
        else:
            said = _("The old values are a draft now. Publish it to make them count.")
            messages.success(request, said if made else _("These are the values that are published already."))
        return HttpResponseRedirect(reverse(f"admin:catalog_{self.opts.model_name}_change", args=[row.pk]))

    @property
    def _key_columns(self) -> set[str]:
        return {field.partition("__")[0] for field in self.table.key_fields} | set(self.natural_key)

    def _published(self, request: HttpRequest, object_id: str) -> models.Model:
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        return row

    def _versions(self, row: models.Model, records: Sequence, older: Sequence) -> list[Version]:
        values = _values(self.table, [*records, *older])
        now = self.table.values_of(row)
        found = []
        for index, record in enumerate(records):
            before = values[index + 1] if index + 1 < len(values) else None
            same = all(now[name] == value for name, value in values[index].items())
            url = reverse(f"admin:catalog_{self.opts.model_name}_revert", args=[row.pk, record.history_id])
            found.append(
                Version(
                    when=record.history_date,
                    who=str(record.history_user or _("an import, or the shipped files")),
                    why=record.history_change_reason or "",
                    differences=differences(self.table, before, values[index]) if before else (),
                    is_first=before is None,
                    revert_url="" if same else url,
                )
            )
        return found


def _values(table: Table, records: Sequence) -> list[dict[str, object]]:
    """Column -> plain value of versions; one query for each table that they refer to."""
    kept = {f.name for f in table.model.history.model.tracked_fields} if records else set()
    names = [name for name in table.columns if name in kept]
    keys = {name: _keys(table, name, records) for name in table.refers if name in names}
    return [{name: _value(record, name, keys) for name in names} for record in records]


def _value(record: models.Model, name: str, keys: Mapping[str, Mapping[int, str]]) -> object:
    if name in keys:
        return keys[name].get(getattr(record, f"{name}_id"))
    return getattr(record, name)


def _keys(table: Table, name: str, records: Sequence) -> dict[int, str]:
    other = TABLES[table.refers[name]]
    wanted = {pk for record in records if (pk := getattr(record, f"{name}_id")) is not None}
    return {row.pk: other.key_of(row) for row in other.rows().filter(pk__in=wanted)}
