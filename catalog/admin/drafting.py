"""Forms that save drafts instead of rows. Published rows change only through ``catalog.changes``."""

from collections.abc import Sequence
from typing import ClassVar

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.forms import BaseModelFormSet, Field, ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog import drafts
from catalog.admin import banners, words
from catalog.admin.lists import in_unit
from catalog.admin.page import FormPage
from catalog.admin.provenance import origins, restored
from catalog.admin.sheets import Sheet
from catalog.changes import Change, ChangesRefused, VersionConflict, apply_changes
from catalog.drafts import Edit, Seen
from catalog.forms import FORMS, CatalogForm, UnitField, unit_of
from catalog.models import Draft
from catalog.models.base import SourcedRow
from catalog.models.revision import RevisionOrigin
from catalog.tables import TABLES, Table

PROVENANCE = ("confidence", "source", "source_licence", "source_url", "notes")
PUBLISH = "catalog.publish_catalog"


class InUnits:
    """Forms in GB/s, TFLOP/s and so on instead of base units; where the values come from stands last."""

    natural_key: tuple[str, ...] = ()

    def get_fieldsets(self, request: HttpRequest, obj: models.Model | None = None) -> list:
        names = [name for name in self.get_fields(request, obj) if name != "reason"]
        first = [name for name in self.natural_key if name not in PROVENANCE]
        own = [name for name in names if name not in (*first, *PROVENANCE)]
        provenance = [name for name in PROVENANCE if name in names]
        if obj is not None and not self.has_change_permission(request, obj):
            own = [self._to_look_at(name) for name in own]
        return [(None, {"fields": [*first, *own]}), (gettext_lazy("Where it comes from"), {"fields": provenance})]

    def _to_look_at(self, name: str) -> object:
        """For those who may only look: a number with its unit instead of the stored one."""
        column = self.model._meta.get_field(name)
        unit = unit_of(column)
        return in_unit(name, f"{words.first_upper(column.verbose_name)} ({unit.name})") if unit else name

    def formfield_for_dbfield(self, db_field: models.Field, request: HttpRequest, **kwargs: object) -> Field | None:
        if unit := unit_of(db_field):
            return UnitField.of(db_field, unit)
        if isinstance(db_field, models.URLField):
            kwargs["assume_scheme"] = "https"
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None:
            # what the form showed travels in a field of ours
            field.show_hidden_initial = False
        for adds in ("can_add_related", "can_change_related", "can_delete_related", "can_view_related"):
            if field is not None and hasattr(field.widget, adds):
                setattr(field.widget, adds, False)
        return field


class DraftAdmin(InUnits, admin.ModelAdmin):
    """What the tables of the catalog share."""

    table: ClassVar[Table]
    change_form_template = "admin/catalog/draft_form.html"
    change_list_template = "admin/catalog/draft_change_list.html"
    list_per_page = 50
    show_full_result_count = False
    also: ClassVar[tuple[str, ...]] = ()
    """Tables whose rows are edited inside this form, under the same key."""

    @property
    def form(self) -> type[ModelForm]:
        return FORMS.get(self.table.name, CatalogForm)

    # who may what ----------------------------------------------------------------------------------------------------

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        # A shipped row would come back with the next loading; an offer is retired instead.
        shipped = isinstance(obj, SourcedRow) and bool(obj.file_hash)
        return not shipped and may_publish(request) and super().has_delete_permission(request, obj)

    def get_actions(self, request: HttpRequest) -> dict[str, object]:
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    # the form --------------------------------------------------------------------------------------------------------

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: dict | None = None
    ) -> HttpResponse:
        page = request.catalog_page = self._opened(request, object_id)
        if page and request.method == "POST":
            request.POST = request.POST.copy()
            page.receive(request.POST)
            self._restore(request, page)
        if request.method != "POST":
            return super().changeform_view(request, object_id, form_url, extra_context)
        try:
            with transaction.atomic():
                return super().changeform_view(request, object_id, form_url, extra_context)
        except VersionConflict:
            for table, name, value in page.meet():
                self._type_over(request, table, name, value)
        except ChangesRefused as error:
            page.refuse(error.refused)
        # the same form once more, now with what is wrong; all that was typed is still in it
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _opened(self, request: HttpRequest, object_id: str | None) -> FormPage | None:
        """None for those who may only look: drafts are for editors."""
        row = super().get_object(request, unquote(object_id)) if object_id else None
        if not (self.has_change_permission(request, row) if object_id else self.has_add_permission(request)):
            return None
        key = self.table.key_of(row) if row else self._draft_key(request)
        sheets = {self.table.name: Sheet.of(self.table, key, row)}
        sheets |= {name: Sheet.of(TABLES[name], key) for name in self.also}
        return FormPage(sheets=sheets)

    def _draft_key(self, request: HttpRequest) -> str:
        """The key of the new row whose draft the address names."""
        given = request.GET.get("draft", "")
        draft = (
            Draft.objects.filter(pk=given, table=self.table.name).first()
            if given.isascii() and given.isdigit()
            else None
        )
        return draft.key if draft and self.table.find(draft.key) is None else ""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> models.Model | None:
        row = super().get_object(request, object_id, from_field)
        page = getattr(request, "catalog_page", None)
        return page.laid_over(self.table.name, row) if row and page else row

    def get_form(
        self, request: HttpRequest, obj: models.Model | None = None, change: bool = False, **kwargs: object
    ) -> type[ModelForm]:
        form = super().get_form(request, obj, change=change, **kwargs)
        page = getattr(request, "catalog_page", None)
        return bound(form, page, self.table.name) if page else form

    def get_readonly_fields(self, request: HttpRequest, obj: models.Model | None = None) -> tuple[str, ...]:
        return self.natural_key if obj else ()

    def render_change_form(self, request: HttpRequest, context: dict, *args: object, **kwargs: object) -> HttpResponse:
        page = getattr(request, "catalog_page", None)
        context |= {"page": page, "may_publish": may_publish(request), "table": self.table}
        if page:
            context["banners"] = banners.of(page, request)
            context["all_origins"] = {name: origins(sheet) for name, sheet in page.sheets.items()}
            context["own_origins"] = context["all_origins"][self.table.name]
        return super().render_change_form(request, context, *args, **kwargs)

    def _restore(self, request: HttpRequest, page: FormPage) -> None:
        """The button beside a replaced value types that value into the form and saves."""
        if "_restore" in request.POST and (found := restored(page, request.POST["_restore"])):
            self._type_over(request, *found)

    def _type_over(self, request: HttpRequest, table: str, name: str, value: object) -> None:
        """Put a plain value into the form that was sent, as a browser would have sent it."""
        column = TABLES[table].model._meta.get_field(name)
        field = self.formfield_for_dbfield(column, request)
        if field is None:
            return
        python = value
        if name in TABLES[table].refers:
            row = TABLES[TABLES[table].refers[name]].find(str(value)) if value else None
            python = row.pk if row else None
        shown = field.prepare_value(python)
        html = self.html_name(table, name)
        if shown is False and isinstance(column, models.BooleanField) and not column.null:
            request.POST.pop(html, None)
        else:
            request.POST[html] = "" if shown is None else str(shown)

    def html_name(self, table: str, name: str) -> str:
        return name

    # saving ----------------------------------------------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: models.Model, form: ModelForm, change: bool) -> None:
        """Nothing: ``save_related`` saves drafts of all rows of the form at once."""

    def save_related(
        self, request: HttpRequest, form: ModelForm, formsets: Sequence[BaseModelFormSet], change: bool
    ) -> None:
        page = request.catalog_page
        page.edits = self.edits(page, form, formsets)
        if "_publish" in request.POST and not may_publish(request):
            raise PermissionDenied
        with transaction.atomic():
            _leave_old_keys(page)
            drafts.save_drafts(page.edits, user=request.user, reason=form.cleaned_data.get("reason", ""))
        keys = {edit.table: edit.key for edit in page.edits}
        page.sheets = {name: Sheet.of(sheet.table, keys.get(name, sheet.key)) for name, sheet in page.sheets.items()}
        if "_publish" in request.POST:
            page.published = drafts.publish(page.drafts, user=request.user)

    def edits(self, page: FormPage, form: CatalogForm, formsets: Sequence[BaseModelFormSet]) -> list[Edit]:
        """What was typed, by row; a row whose draft waits is saved with it, so that both are tried out together."""
        sheet = page.main
        found = [edit] if (edit := edit_of(sheet, form)) else []
        found += self.inline_edits(page, form, formsets)
        if not found and not (sheet.draft and (sheet.outdated or form.cleaned_data["reason"] != sheet.draft.reason)):
            return []
        edited = {edit.table for edit in found}
        waiting = [
            Edit(table=name, key=other.key, values={}, seen=other.seen)
            for name, other in page.sheets.items()
            if name not in edited and other.draft
        ]
        return [*waiting, *found]

    def inline_edits(self, page: FormPage, form: CatalogForm, formsets: Sequence[BaseModelFormSet]) -> list[Edit]:
        return []

    def construct_change_message(self, *args: object, **kwargs: object) -> str:
        return ""

    def log_addition(self, *args: object, **kwargs: object) -> None:
        """The history of the row tells who did what; a draft is no action on a row."""

    log_change = log_addition

    def response_add(
        self, request: HttpRequest, obj: models.Model, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._response(request)

    def response_change(self, request: HttpRequest, obj: models.Model) -> HttpResponse:
        return self._response(request)

    def _response(self, request: HttpRequest) -> HttpResponse:
        page = request.catalog_page
        if "_publish" in request.POST:
            say_published(request, page.published)
            return HttpResponseRedirect(self._list_url())
        if not page.edits:
            messages.info(request, _("Nothing was changed, so there is nothing to save."))
        elif page.drafts:
            messages.success(request, _("Saved as a draft. Only editors see it until it is published."))
        else:
            messages.info(request, _("This is what is published already: there is no draft any more."))
        return HttpResponseRedirect(self._list_url() if "_addanother" in request.POST else form_url(page.main))

    def _list_url(self) -> str:
        return reverse(f"admin:catalog_{self.opts.model_name}_changelist")

    # deleting --------------------------------------------------------------------------------------------------------

    def delete_model(self, request: HttpRequest, obj: SourcedRow) -> None:
        change = Change(table=self.table.name, key=self.table.key_of(obj), values={}, delete=True)
        summary = f"deleted {obj._meta.verbose_name} {obj}"
        try:
            with transaction.atomic():
                number = apply_changes([change], origin=RevisionOrigin.ADMIN, summary=summary, user=request.user)
                Draft.objects.filter(table=change.table, key=change.key).delete()
        except ChangesRefused as error:
            request.catalog_refused = words.sentences(error.refused)
        else:
            say_published(request, number)

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: int) -> HttpResponse:
        for sentence in getattr(request, "catalog_refused", ()):
            messages.error(request, sentence)
        return HttpResponseRedirect(self._list_url())

    def log_deletions(self, *args: object, **kwargs: object) -> None:
        """As with additions: the history tells."""

    # the list --------------------------------------------------------------------------------------------------------

    def changelist_view(self, request: HttpRequest, extra_context: dict | None = None) -> HttpResponse:
        waiting = {}
        if self.has_change_permission(request):
            waiting = {"waiting": banners.waiting(self.table)}
        return super().changelist_view(request, (extra_context or {}) | waiting)


def may_publish(request: HttpRequest) -> bool:
    return request.user.has_perm(PUBLISH)


def say_published(request: HttpRequest, number: int | None) -> None:
    if number is None:
        messages.info(request, _("The catalog already was like that; its number stays."))
    else:
        messages.success(request, _("Published: the catalog is now revision %(number)s.") % {"number": number})


def form_url(sheet: Sheet) -> str:
    """The page on which a row, or the draft of a new one, is edited."""
    name = sheet.table.model._meta.model_name
    if sheet.row is not None:
        return reverse(f"admin:catalog_{name}_change", args=[sheet.row.pk])
    query = f"?draft={sheet.draft.pk}" if sheet.draft else ""
    return reverse(f"admin:catalog_{name}_add") + query


def bound(form: type[ModelForm], page: FormPage, table: str) -> type[ModelForm]:
    """The form class with the page that it stands on."""
    draft = page.sheets[table].draft if table in page.sheets else None
    return type(form)(
        form.__name__,
        (form,),
        {
            "begin_with": staticmethod(lambda: page.new_instance(table)),
            "found_wrong": page.problems.get(table, {}),
            "reason_before": draft.reason if draft else "",
        },
    )


def edit_of(sheet: Sheet, form: CatalogForm) -> Edit | None:
    """What was typed into one form: of a new row everything, else what differs from what the form showed."""
    values = sheet.table.values_of(form.instance)
    if sheet.is_new:
        typed = {name: values[name] for name in sheet.table.columns if name in form.fields}
        key = _new_key(sheet.table, form.instance)
        return Edit(
            table=sheet.table.name, key=key, values=typed, seen=sheet.seen if sheet.key in ("", key) else Seen()
        )
    typed = {name: values[name] for name in form.changed_columns if name in values}
    return Edit(table=sheet.table.name, key=sheet.key, values=typed, seen=sheet.seen) if typed else None


def _new_key(table: Table, row: SourcedRow) -> str:
    return row.natural_key() if "key" in table.derived else table.key_of(row)


def _leave_old_keys(page: FormPage) -> None:
    """A new row that is called otherwise now: its draft goes on under the new key. Raises VersionConflict."""
    left = []
    for edit in page.edits:
        sheet = page.sheets[edit.table]
        if sheet.is_new and sheet.draft and sheet.key != edit.key:
            if Seen.now(edit.table, sheet.key) != sheet.seen:
                raise VersionConflict(table=edit.table, key=sheet.key, version=0)
            left.append(sheet.draft)
    drafts.discard(left)
