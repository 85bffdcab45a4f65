"""Editing the catalog: a change is kept in the history, marks its row as edited and gives the catalog a new number."""

from django.contrib import admin, messages
from django.db import models
from django.forms import BaseModelFormSet, Field, ModelForm
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _
from simple_history.admin import SimpleHistoryAdmin

from catalog.forms import DEVICE_MEMORY, HOST_MEMORY, UNITS, OfferForm, UnitField
from catalog.models import Accelerator, CatalogRevision, Fabric, Offer, Provider, Server
from catalog.models.base import SourcedRow
from catalog.models.revision import RevisionOrigin
from catalog.services import record_revision

PROVENANCE = ("confidence", "source", "source_licence", "notes", "edited")


class CatalogForms:
    """Forms in GB/s, TFLOP/s and so on instead of base units; where the values come from stands last."""

    natural_key: tuple[str, ...] = ()

    def get_fieldsets(self, request: HttpRequest, obj: models.Model | None = None) -> list:
        names = self.get_fields(request, obj)
        first = [name for name in self.natural_key if name not in PROVENANCE]
        own = [name for name in names if name not in (*first, *PROVENANCE)]
        provenance = [name for name in PROVENANCE if name in names]
        return [(None, {"fields": [*first, *own]}), (_("Where it comes from"), {"fields": provenance})]

    def formfield_for_dbfield(self, db_field: models.Field, request: HttpRequest, **kwargs: object) -> Field | None:
        unit = UNITS.get(db_field.name)
        if db_field.name == "memory_bytes":
            unit = DEVICE_MEMORY if db_field.model is Accelerator else HOST_MEMORY
        if unit:
            return UnitField.of(db_field, unit)
        return super().formfield_for_dbfield(db_field, request, **kwargs)


class CatalogAdmin(CatalogForms, SimpleHistoryAdmin):
    """What the five tables share."""

    list_per_page = 50
    show_full_result_count = False

    def get_readonly_fields(self, request: HttpRequest, obj: models.Model | None = None) -> tuple[str, ...]:
        return ("edited", *(self.natural_key if obj else ()))

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        # A shipped row would come back with the next loading; an offer is retired instead.
        shipped = isinstance(obj, SourcedRow) and bool(obj.file_hash)
        return not shipped and super().has_delete_permission(request, obj)

    def get_actions(self, request: HttpRequest) -> dict[str, object]:
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def save_model(self, request: HttpRequest, obj: models.Model, form: ModelForm, change: bool) -> None:
        if change and not _differs(obj):
            return
        obj.edited = True
        super().save_model(request, obj, form, change)
        _new_revision(request, obj)

    def delete_model(self, request: HttpRequest, obj: models.Model) -> None:
        _new_revision(request, obj)
        super().delete_model(request, obj)


class FabricInline(CatalogForms, admin.StackedInline):
    model = Fabric
    min_num = 1
    max_num = 1
    can_delete = False
    readonly_fields = ("edited",)


@admin.register(Accelerator)
class AcceleratorAdmin(CatalogAdmin):
    natural_key = ("key",)
    list_display = (
        "name",
        "vendor",
        "architecture",
        "form_factor",
        "memory",
        "dense_bf16",
        "link",
        "confidence",
        "edited",
    )
    list_filter = ("vendor", "architecture", "form_factor", "scaleup_kind", "confidence", "edited")
    search_fields = ("key", "name", "architecture", "source", "notes")

    @admin.display(description=_("memory (GiB)"), ordering="memory_bytes")
    def memory(self, row: Accelerator) -> str:
        return number_format(row.memory_bytes / 2**30, 1)

    @admin.display(description=_("dense bf16 (TFLOP/s)"), ordering="dense_bf16_flops_per_s")
    def dense_bf16(self, row: Accelerator) -> str | None:
        return _shown(row.dense_bf16_flops_per_s, 1e12)

    @admin.display(description=_("scale-up link, one direction (GB/s)"), ordering="scaleup_bandwidth_bytes_per_s")
    def link(self, row: Accelerator) -> str | None:
        return _shown(row.scaleup_bandwidth_bytes_per_s, 1e9)


@admin.register(Provider)
class ProviderAdmin(CatalogAdmin):
    natural_key = ("key",)
    list_display = ("name", "key", "kind", "edited")
    list_filter = ("kind", "edited")
    search_fields = ("key", "name")


@admin.register(Server)
class ServerAdmin(CatalogAdmin):
    natural_key = ("provider", "sku")
    inlines = (FabricInline,)
    list_display = ("sku", "provider", "accelerator", "gpu_count", "topology", "deployment", "confidence", "edited")
    list_filter = ("fabric__topology", "gpu_count", "deployment", "confidence", "edited", "provider", "accelerator")
    list_select_related = ("provider", "accelerator", "fabric")
    search_fields = ("sku", "provider__key", "provider__name", "accelerator__key", "accelerator__name")
    autocomplete_fields = ("provider", "accelerator")

    @admin.display(description=_("topology"), ordering="fabric__topology")
    def topology(self, row: Server) -> str | None:
        return row.fabric.get_topology_display() if hasattr(row, "fabric") else None

    def save_formset(self, request: HttpRequest, form: ModelForm, formset: BaseModelFormSet, change: bool) -> None:
        changed = formset.save(commit=False)
        for fabric in changed:
            fabric.edited = True
            fabric.save()
        formset.save_m2m()
        if changed and change and not form.has_changed():
            _new_revision(request, form.instance)


@admin.register(Fabric)
class FabricAdmin(CatalogAdmin):
    natural_key = ("server",)
    list_display = ("server", "topology", "domain_gpus", "per_accelerator", "per_pair", "confidence", "edited")
    list_filter = ("topology", "host_link_basis", "peer_to_peer", "rdma", "confidence", "edited")
    list_select_related = ("server__provider",)
    search_fields = ("server__sku", "server__provider__key", "topology", "notes")
    autocomplete_fields = ("server",)

    @admin.display(description=_("per accelerator, one direction (GB/s)"), ordering="bandwidth_bytes_per_s")
    def per_accelerator(self, row: Fabric) -> str | None:
        return _shown(row.bandwidth_bytes_per_s, 1e9)

    @admin.display(description=_("between one pair, one direction (GB/s)"), ordering="peer_bandwidth_bytes_per_s")
    def per_pair(self, row: Fabric) -> str | None:
        return _shown(row.peer_bandwidth_bytes_per_s, 1e9)


@admin.register(Offer)
class OfferAdmin(CatalogAdmin):
    form = OfferForm
    natural_key = ("server", "region", "tenancy", "pricing_model", "currency", "observed_on", "source")
    list_display = (
        "server",
        "region",
        "pricing_model",
        "price_per_hour",
        "currency",
        "observed_on",
        "status",
        "edited",
    )
    list_filter = (
        "status",
        "pricing_model",
        "currency",
        "tenancy",
        "edited",
        "server__provider",
        "server__accelerator",
    )
    list_select_related = ("server__provider",)
    search_fields = ("server__sku", "server__provider__key", "region", "source")
    autocomplete_fields = ("server",)
    date_hierarchy = "observed_on"


@admin.register(CatalogRevision)
class CatalogRevisionAdmin(admin.ModelAdmin):
    list_display = ("number", "recorded_at", "origin", "summary", "user")
    list_filter = ("origin",)
    list_select_related = ("user",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: CatalogRevision | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: CatalogRevision | None = None) -> bool:
        return False


def _shown(value: float | None, unit: float) -> str | None:
    return None if value is None else number_format(f"{value / unit:g}")


def _differs(row: models.Model) -> bool:
    stored = type(row).objects.filter(pk=row.pk).values().first()
    return stored is None or any(getattr(row, name) != value for name, value in stored.items())


def _new_revision(request: HttpRequest, row: models.Model) -> None:
    summary = f"{row._meta.verbose_name}: {row}"
    number = record_revision(origin=RevisionOrigin.ADMIN, summary=summary, user=request.user)
    messages.info(request, _("The catalog is now revision %(number)s.") % {"number": number})
