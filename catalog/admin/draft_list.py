"""All drafts in one list: what they change, who began them, publishing and discarding."""

from collections.abc import Iterable, Sequence

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from catalog import drafts
from catalog.admin.drafting import form_url, may_publish, say_published
from catalog.admin.page import ago
from catalog.admin.rows import by_keys
from catalog.admin.sheets import Sheet, published
from catalog.admin.words import differences, sentences, table_label, title_of
from catalog.changes import ChangesRefused, VersionConflict
from catalog.models import Draft
from catalog.models.base import SourcedRow
from catalog.tables import TABLES

SHOWN = 4
MOST = 500


class OfTable(admin.SimpleListFilter):
    title = gettext_lazy("table")
    parameter_name = "table__exact"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        return [(name, table_label(name)) for name in TABLES]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet) -> models.QuerySet:
        return queryset.filter(table=self.value()) if self.value() in TABLES else queryset


@admin.register(Draft)
class DraftListAdmin(admin.ModelAdmin):
    list_display = ("title", "changes", "reason", "author", "begun", "state")
    list_filter = (OfTable, ("author", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("author",)
    list_per_page = 50
    show_full_result_count = False
    search_fields = ("key", "reason", "author__username")
    actions = ("publish_chosen", "discard_chosen")
    change_list_template = "admin/catalog/drafts.html"

    # who may what ----------------------------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Draft | None = None) -> bool:
        return False

    def has_publish_permission(self, request: HttpRequest) -> bool:
        return may_publish(request)

    def has_view_permission(self, request: HttpRequest, obj: Draft | None = None) -> bool:
        return self.has_change_permission(request, obj)

    # the list --------------------------------------------------------------------------------------------------------

    def get_changelist_instance(self, request: HttpRequest) -> object:
        found = super().get_changelist_instance(request)
        _join_rows(found.result_list)
        return found

    @admin.display(description=gettext_lazy("row"), ordering="key")
    def title(self, draft: Draft) -> str:
        return f"{table_label(draft.table)}: {title_of(draft, draft.published_row)}"

    @admin.display(description=gettext_lazy("changes"))
    def changes(self, draft: Draft) -> SafeString | str:
        if draft.published_row is None:
            return _("a new row") if draft.base_version == 0 else _("the row is gone")
        table = TABLES[draft.table]
        found = differences(table, published(table, draft.published_row), draft.values)
        lines = format_html_join(
            "", "<li>{}: {} → <strong>{}</strong></li>", ((d.label, d.old, d.new) for d in found[:SHOWN])
        )
        more = len(found) - SHOWN
        tail = format_html("<li>{}</li>", _("and %(n)s more") % {"n": more}) if more > 0 else ""
        return format_html('<ul class="catalog-changes">{}{}</ul>', lines, tail)

    @admin.display(description=gettext_lazy("last edited"), ordering="updated_at")
    def begun(self, draft: Draft) -> str:
        return ago(draft.updated_at)

    @admin.display(description=gettext_lazy("state"))
    def state(self, draft: Draft) -> SafeString | str:
        now = draft.published_row.version if draft.published_row else 0
        if now == draft.base_version:
            return _("ready")
        return format_html(
            '<span class="catalog-unsure">{}</span>', _("the row has changed since: open and save it again")
        )

    # one draft -------------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("publish/", wrap(self.publish_view), name="catalog_draft_publish"),
            path("discard/", wrap(self.discard_view), name="catalog_draft_discard"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict | None = None
    ) -> HttpResponse:
        """A draft is edited in the form of its row."""
        draft = self.get_object(request, object_id)
        if not self.has_change_permission(request, draft):
            raise PermissionDenied
        if draft is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        return HttpResponseRedirect(_home(draft))

    def publish_view(self, request: HttpRequest) -> HttpResponse:
        """Publish the drafts that a page showed, in the versions that it showed."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not may_publish(request):
            raise PermissionDenied
        shown = _shown(request)
        home = _home(shown[0]) if shown else reverse("admin:catalog_draft_changelist")
        if self._publish(request, shown):
            home = _home(shown[0])
        return HttpResponseRedirect(home)

    def discard_view(self, request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        shown = _shown(request)
        self._discard(request, shown)
        return HttpResponseRedirect(_home(shown[0]) if shown else reverse("admin:catalog_draft_changelist"))

    # several ---------------------------------------------------------------------------------------------------------

    @admin.action(description=gettext_lazy("Publish the chosen drafts"), permissions=["publish"])
    def publish_chosen(self, request: HttpRequest, queryset: models.QuerySet) -> None:
        self._publish(request, list(queryset[:MOST]))

    @admin.action(description=gettext_lazy("Discard the chosen drafts"), permissions=["change"])
    def discard_chosen(self, request: HttpRequest, queryset: models.QuerySet) -> None:
        self._discard(request, list(queryset[:MOST]))

    def _publish(self, request: HttpRequest, chosen: Sequence[Draft]) -> bool:
        try:
            number = drafts.publish(chosen, user=request.user)
        except ChangesRefused as error:
            for sentence in sentences(error.refused)[:20]:
                messages.error(request, sentence)
        except drafts.DraftConflict:
            messages.error(
                request, _("A draft was edited, published or discarded meanwhile. Nothing was published: look again.")
            )
        except VersionConflict as error:
            sentence = _(
                "%(key)s has changed since its draft was begun. Nothing was published: open the draft, save it again."
            )
            messages.error(request, sentence % {"key": error.key})
        else:
            say_published(request, number)
            return True
        return False

    def _discard(self, request: HttpRequest, chosen: Sequence[Draft]) -> None:
        for draft in chosen:
            if not request.user.has_perm(f"catalog.change_{TABLES[draft.table].model._meta.model_name}"):
                raise PermissionDenied
        count = drafts.discard(chosen)
        messages.info(request, ngettext("%(n)s draft discarded.", "%(n)s drafts discarded.", count) % {"n": count})


def _join_rows(found: Iterable[Draft]) -> None:
    """Give each draft its published row; one query for each table."""
    found = list(found)
    for name in {draft.table for draft in found}:
        rows = by_keys(TABLES[name], [draft.key for draft in found if draft.table == name])
        for draft in found:
            if draft.table == name:
                draft.published_row: SourcedRow | None = rows.get(draft.key)


def _shown(request: HttpRequest) -> list[Draft]:
    """The drafts that a page's buttons name, with the versions that the page showed."""
    seen = {}
    for text in request.POST.getlist("draft"):
        pk, _dot, version = text.partition(".")
        if pk.isdecimal() and version.isdecimal():
            seen[int(pk)] = int(version)
    found = list(Draft.objects.filter(pk__in=seen).order_by("pk"))
    order = list(TABLES)
    for draft in found:
        draft.version = seen[draft.pk]
    return sorted(found, key=lambda draft: order.index(draft.table))


def _home(draft: Draft) -> str:
    """The form of a draft's row; a fabric is edited inside its server."""
    server = draft.table == "fabrics" and TABLES["servers"].find(draft.key) is None
    table = TABLES["servers" if server else draft.table]
    sheet = Sheet.of(table, draft.key)
    return form_url(sheet)
