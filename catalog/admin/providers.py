"""Providers, their regions, and what comes on top of their prices."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from catalog.admin.bulk import WithBulkEdit
from catalog.admin.drafting import DraftAdmin
from catalog.admin.history import WithHistory
from catalog.admin.lists import confidence
from catalog.models import CostLine, Provider, Region
from catalog.tables import TABLES


@admin.register(Provider)
class ProviderAdmin(WithBulkEdit, WithHistory, DraftAdmin):
    table = TABLES["providers"]
    natural_key = ("key",)
    bulk_columns = ("kind", "country", "source", "source_licence")
    list_display = ("name", "key", "kind", "country", "edited")
    list_filter = ("kind", "country", "edited")
    search_fields = ("key", "name")


@admin.register(Region)
class RegionAdmin(WithBulkEdit, WithHistory, DraftAdmin):
    table = TABLES["regions"]
    natural_key = ("provider", "name")
    bulk_columns = ("country", "place", "source", "source_licence")
    list_display = ("name", "provider", "country", "place", "edited")
    list_filter = ("country", "edited", "provider")
    list_select_related = ("provider",)
    search_fields = ("name", "place", "country", "provider__key", "provider__name")
    autocomplete_fields = ("provider",)


@admin.register(CostLine)
class CostLineAdmin(WithBulkEdit, WithHistory, DraftAdmin):
    table = TABLES["cost_lines"]
    natural_key = ("provider", "server", "region", "kind", "unit")
    bulk_columns = ("amount", "currency", "free_allowance", "observed_on", "confidence", "source", "source_licence")
    list_display = (
        "provider",
        "of",
        "region",
        "kind",
        "amount",
        "currency",
        "unit",
        "observed_on",
        confidence,
        "edited",
    )
    list_filter = ("kind", "currency", "confidence", "edited", "provider")
    list_select_related = ("provider", "server__provider")
    search_fields = ("provider__key", "provider__name", "server__sku", "region", "source")
    autocomplete_fields = ("provider", "server")

    @admin.display(description=_("server"), ordering="server__sku", empty_value=_("every server"))
    def of(self, row: CostLine) -> str | None:
        return row.server.sku if row.server else None
