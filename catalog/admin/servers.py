"""Servers with their fabrics."""

from collections.abc import Sequence
from typing import ClassVar

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.forms import BaseInlineFormSet, BaseModelFormSet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _

from catalog.admin.bulk import WithBulkEdit
from catalog.admin.drafting import DraftAdmin, InUnits, bound, edit_of
from catalog.admin.drawing import drawn, problems_of
from catalog.admin.history import WithHistory
from catalog.admin.lists import UnknownFormFactor, accelerator, confidence, in_unit
from catalog.admin.page import FormPage
from catalog.drafts import Edit, Seen
from catalog.forms import CatalogForm, FabricForm
from catalog.models import Fabric, Server
from catalog.tables import TABLES

PREFIX = "fabric-0-"


class InlineFabricForm(FabricForm):
    """The server's form asks why once for both."""

    reason = None


class FabricFormSet(BaseInlineFormSet):
    """One fabric of one server; drafts are laid over it, and of a new server's it begins with the draft's values."""

    page: ClassVar[FormPage | None] = None
    _is_laid_over = False

    def get_queryset(self) -> models.QuerySet:
        rows = super().get_queryset()
        if self.page and not self._is_laid_over:
            # once: later the same rows hold what was typed
            self._is_laid_over = True
            for row in rows:
                self.page.laid_over("fabrics", row)
        return rows


class FabricInline(InUnits, admin.StackedInline):
    model = Fabric
    form = InlineFabricForm
    formset = FabricFormSet
    template = "admin/catalog/fabric_inline.html"
    min_num = 0
    extra = 1
    max_num = 1
    can_delete = False

    def get_formset(self, request: HttpRequest, obj: Server | None = None, **kwargs: object) -> type[BaseInlineFormSet]:
        page = getattr(request, "catalog_page", None)
        made = super().get_formset(request, obj, **kwargs)
        made.page = page
        if page:
            made.form = bound(made.form, page, "fabrics")
        return made


@admin.register(Server)
class ServerAdmin(WithBulkEdit, WithHistory, DraftAdmin):
    table = TABLES["servers"]
    also = ("fabrics",)
    natural_key = ("provider", "sku")
    bulk_columns = (
        "sockets",
        "cpu_model",
        "cpu_cores",
        "memory_bytes",
        "local_storage_bytes",
        "deployment",
        "exposes_topology",
        "exposes_nvlink",
        "rack_units",
        "power_w",
        "confidence",
        "source",
        "source_licence",
    )
    inlines = (FabricInline,)
    list_display = ("sku", "provider", accelerator, "gpu_count", "topology", "deployment", confidence, "edited")
    list_filter = (
        UnknownFormFactor,
        "fabric__topology",
        "gpu_count",
        "deployment",
        "hire",
        "confidence",
        "edited",
        "provider",
        "accelerator",
    )
    list_select_related = ("provider", "accelerator", "fabric")
    search_fields = (
        *("sku", "provider__key", "provider__name", "accelerator__key", "accelerator__name", "accelerator_printed"),
    )
    autocomplete_fields = ("provider", "accelerator")

    @admin.display(description=_("topology"), ordering="fabric__topology")
    def topology(self, row: Server) -> str | None:
        return row.fabric.get_topology_display() if hasattr(row, "fabric") else None

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.drawing_view)
        return [
            path("drawing/", view, name="catalog_server_drawing"),
            path("<int:object_id>/drawing/", view, name="catalog_server_drawing_of"),
            *super().get_urls(),
        ]

    def html_name(self, table: str, name: str) -> str:
        return PREFIX + name if table == "fabrics" else name

    def inline_edits(self, page: FormPage, form: CatalogForm, formsets: Sequence[BaseModelFormSet]) -> list[Edit]:
        sheet, fabric_forms = page.sheets["fabrics"], [f for formset in formsets for f in formset.forms]
        if not fabric_forms:
            return []
        fabric = fabric_forms[0]
        if sheet.is_new and not fabric.has_changed() and not sheet.draft:
            return []
        fabric.instance.server = form.instance
        edit = edit_of(sheet, fabric)
        if edit is None or not sheet.is_new:
            return [edit] if edit else []
        server = self.table.key_of(form.instance)
        values = {**edit.values, "server": server}
        return [
            Edit(table="fabrics", key=server, values=values, seen=sheet.seen if sheet.key in ("", server) else Seen())
        ]

    def render_change_form(self, request: HttpRequest, context: dict, *args: object, **kwargs: object) -> HttpResponse:
        original = context.get("original")
        fabric_forms = [form for formset in context["inline_admin_formsets"] for form in formset.formset.forms]
        server = context["adminform"].form.instance
        fabric = fabric_forms[0].instance if fabric_forms else None
        context["drawing"] = drawn(server, fabric)
        context["drawing_url"] = (
            reverse("admin:catalog_server_drawing_of", args=[original.pk])
            if original
            else reverse("admin:catalog_server_drawing")
        )
        return super().render_change_form(request, context, *args, **kwargs)

    def drawing_view(self, request: HttpRequest, object_id: int | None = None) -> HttpResponse:
        """The drawing of what a form holds right now, with what is wrong with it; nothing is saved."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self.get_object(request, str(object_id)) if object_id else None
        if not (self.has_change_permission(request, row) if object_id else self.has_add_permission(request)):
            raise PermissionDenied
        form = self.get_form(request, row, change=row is not None)(request.POST, instance=row)
        valid = form.is_valid()
        formsets, _inlines = self._create_formsets(request, form.instance, change=row is not None)
        fabric = formsets[0].forms[0] if formsets and formsets[0].forms else None
        problems = problems_of(fabric) if fabric is not None else []
        context = {"drawing": drawn(form.instance, fabric.instance if fabric else None), "problems": problems}
        return render(request, "admin/catalog/drawing.html", context | {"server_is_valid": valid})


@admin.register(Fabric)
class FabricAdmin(WithBulkEdit, WithHistory, DraftAdmin):
    table = TABLES["fabrics"]
    natural_key = ("server",)
    bulk_columns = (
        "topology_basis",
        "pcie_generation",
        "pcie_lanes",
        "pcie_bandwidth_bytes_per_s",
        "host_link_basis",
        "peer_to_peer",
        "rdma",
        "network_bandwidth_bytes_per_s",
        "nic_count",
        "numa_nodes",
        "gpus_per_pcie_switch",
        "confidence",
        "source",
        "source_licence",
    )
    list_display = (
        "server",
        "topology",
        "domain_gpus",
        in_unit("bandwidth_bytes_per_s", _("per accelerator, one direction (GB/s)")),
        in_unit("peer_bandwidth_bytes_per_s", _("between one pair, one direction (GB/s)")),
        confidence,
        "edited",
    )
    list_filter = ("topology", "host_link_basis", "peer_to_peer", "rdma", "confidence", "edited")
    list_select_related = ("server__provider",)
    search_fields = ("server__sku", "server__provider__key", "topology", "notes")
    autocomplete_fields = ("server",)
