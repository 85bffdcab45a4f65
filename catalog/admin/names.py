"""Accelerator names of price lists that nobody has decided on: an editor says what each means, or that it is none."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Case, Count, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from catalog.admin.import_form import one_line
from catalog.admin.words import sentences
from catalog.changes import ChangesRefused, VersionConflict
from catalog.importers import decisions
from catalog.importers.names import normalised
from catalog.models import Accelerator, PrintedName, Server
from catalog.models.printed_name import NameState

OPEN_FIRST = Case(When(state=NameState.OPEN, then=Value(0)), default=Value(1))


@dataclass(frozen=True, slots=True)
class Effect:
    """What of the catalog stands under a printed name and waits for its accelerator."""

    servers: int = 0
    offers: int = 0


class Stored:
    """Servers without a known accelerator, counted by provider and printed name; one query."""

    def __init__(self) -> None:
        rows = Server.objects.filter(accelerator__isnull=True).order_by()
        counted = rows.values_list("provider__key", "accelerator_printed").annotate(
            Count("pk", distinct=True), Count("offers", distinct=True)
        )
        self._servers: Counter[tuple[str, str]] = Counter()
        self._offers: Counter[tuple[str, str]] = Counter()
        for provider, printed, servers, offers in counted:
            for whose in (provider, ""):
                self._servers[whose, normalised(printed)] += servers
                self._offers[whose, normalised(printed)] += offers

    def under(self, name: PrintedName) -> Effect:
        key = (name.provider, name.normalised)
        return Effect(self._servers[key], self._offers[key])


@admin.register(PrintedName)
class PrintedNameAdmin(admin.ModelAdmin):
    list_filter = ("state", "provider")
    list_select_related = ("accelerator", "decided_by")
    search_fields = ("name", "example")
    list_per_page = 50
    show_full_result_count = False
    actions = ("reject_marked",)
    ordering = (OPEN_FIRST, "-rows", "name")

    class Media:
        css = {"all": ["catalog/imports.css"]}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: PrintedName | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: PrintedName | None = None) -> bool:
        return False

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("catalog.publish_catalog")

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        choice = "suggested_buttons" if self.has_decide_permission(request) else "suggested"
        return "name", "printed_by", "rows", choice

    def get_urls(self) -> list[URLPattern]:
        decide = self.admin_site.admin_view(require_POST(self.decide))
        return [path("<int:pk>/decide/", decide, name="catalog_printedname_decide"), *super().get_urls()]

    @admin.display(description=gettext_lazy("such as"), ordering="provider")
    def printed_by(self, name: PrintedName) -> SafeString:
        return format_html("{}<br><small>{}</small>", name.example or name.provider, name.why_unknown)

    @admin.display(description=gettext_lazy("it is …"), ordering="state")
    def suggested(self, name: PrintedName) -> str:
        return _decided(name) or ", ".join(name.suggestions)

    @admin.display(description=gettext_lazy("it is …"), ordering="state")
    def suggested_buttons(self, name: PrintedName) -> SafeString | str:
        """Buttons of the list's own form that go to another address: no form can hold another one."""
        if name.state != NameState.OPEN:
            return _decided(name)
        address = reverse("admin:catalog_printedname_decide", args=[name.pk])
        button = '<button type="submit" formaction="{}" formnovalidate name="accelerator" value="{}">{}</button> '
        suggestions = format_html_join("", button, ((address, key, key) for key in name.suggestions))
        other = reverse("admin:catalog_printedname_change", args=[name.pk])
        return format_html(
            '<span class="choices">{}<a href="{}">{}</a></span>', suggestions, other, _("another, or none")
        )

    def changelist_view(self, request: HttpRequest, extra_context: Mapping[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(
            request, {"title": _("Accelerator names of price lists"), **(extra_context or {})}
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """One name with all that can be decided about it, and what that would do."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        name = self.get_object(request, object_id)
        if name is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        if not self.has_view_permission(request, name):
            raise PermissionDenied
        suggested = {row.key: row for row in Accelerator.objects.filter(key__in=name.suggestions)}
        form = self._form()
        context = {
            **self.admin_site.each_context(request),
            "title": name.name,
            "opts": self.opts,
            "media": self.media + form.media,
            "form": form,
            "name": name,
            "suggested": [suggested[key] for key in name.suggestions if key in suggested],
            "effect": Stored().under(name),
            "is_open": name.state == NameState.OPEN,
            "may_decide": self.has_decide_permission(request),
        }
        return TemplateResponse(request, "admin/catalog/printedname/decide.html", context)

    def decide(self, request: HttpRequest, pk: int) -> HttpResponse:
        """``accelerator=KEY`` (a suggestion) or ``other=ID``, ``none=1``, or ``reopen=1``."""
        if not self.has_decide_permission(request):
            raise PermissionDenied
        with transaction.atomic():
            name = get_object_or_404(PrintedName.objects.select_for_update(), pk=pk)
            self._carry_out(request, name)
        return HttpResponseRedirect(reverse("admin:catalog_printedname_changelist"))

    @admin.action(description=gettext_lazy("They are no accelerators: leave such rows out"), permissions=["decide"])
    def reject_marked(self, request: HttpRequest, queryset: QuerySet[PrintedName]) -> None:
        with transaction.atomic():
            names = list(queryset.select_for_update(of=("self",)).filter(state=NameState.OPEN))
            for name in names:
                decisions.decide_name(name, None, request.user)
        words = ngettext("%(count)s name rejected.", "%(count)s names rejected.", len(names))
        messages.success(request, words % {"count": len(names)})

    def _carry_out(self, request: HttpRequest, name: PrintedName) -> None:
        if "reopen" in request.POST and name.state != NameState.OPEN:
            decisions.reopen_name(name, request.user)
            messages.success(request, _("“%(name)s” waits for a decision again.") % {"name": name.name})
        elif name.state != NameState.OPEN:
            messages.error(request, _("Somebody has already decided on “%(name)s”.") % {"name": name.name})
        elif "none" in request.POST:
            decisions.decide_name(name, None, request.user)
            said = _("“%(name)s” is no accelerator: rows with it are left out from the next import on.")
            messages.success(request, said % {"name": name.name})
        else:
            accelerator = self._chosen(request.POST)
            if accelerator is None:
                messages.error(request, _("Choose an accelerator of the catalog. Nothing was changed."))
            else:
                self._settle(request, name, accelerator)

    def _settle(self, request: HttpRequest, name: PrintedName, accelerator: Accelerator) -> None:
        try:
            servers = decisions.decide_name(name, accelerator, request.user)
        except ChangesRefused as refusal:
            transaction.set_rollback(True)
            messages.error(request, _("Nothing was changed:") + " " + " ".join(sentences(refusal.refused)[:5]))
            return
        except VersionConflict:
            transaction.set_rollback(True)
            messages.error(request, _("Somebody else has just changed one of the servers. Try again."))
            return
        words = ngettext(
            "“%(name)s” is %(accelerator)s; %(count)s server now has it.",
            "“%(name)s” is %(accelerator)s; %(count)s servers now have it.",
            servers,
        )
        messages.success(request, words % {"name": name.name, "accelerator": accelerator, "count": servers})

    def _chosen(self, data: Mapping[str, Any]) -> Accelerator | None:
        if key := one_line(data.get("accelerator", ""), 80):
            return Accelerator.objects.filter(key=key).first()
        form = self._form(data)
        return form.cleaned_data["other"] if form.is_valid() else None

    def _form(self, data: Mapping[str, Any] | None = None) -> forms.Form:
        column = PrintedName._meta.get_field("accelerator")

        class Other(forms.Form):
            other = forms.ModelChoiceField(
                label=_("Another accelerator"),
                queryset=Accelerator.objects.all(),
                widget=AutocompleteSelect(column, self.admin_site),
            )

        return Other(data)


def _decided(name: PrintedName) -> str:
    """What was decided, "" while it is open."""
    if name.state == NameState.OPEN:
        return ""
    return str(name.accelerator or name.get_state_display())
