"""The numbers of the catalog: to look at, not to touch."""

from django.contrib import admin
from django.http import HttpRequest

from catalog.models import CatalogRevision


@admin.register(CatalogRevision)
class CatalogRevisionAdmin(admin.ModelAdmin):
    list_display = ("number", "recorded_at", "origin", "summary", "user")
    list_filter = ("origin",)
    list_select_related = ("user",)
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: CatalogRevision | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: CatalogRevision | None = None) -> bool:
        return False
